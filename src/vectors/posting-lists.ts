/**
 * Posting lists: for each term the slots of the memories that have it, some three bytes a posting.
 *
 * A list is a chain of blocks from the newest to the oldest, because slots rise and a search begins with the newest. A block holds
 * the first of its slots and the distances to the next ones. The blocks of a list double in size up to 256 bytes, so that rare
 * terms take little room and long lists are skipped block by block. A term with a single posting, as most names and ids are, has
 * no block at all.
 *
 * ```
 * entry  u32 term | u32 newest slot | u32 newest block | u32 count × 256 + bytes used in the newest block
 * block  u32 block before | u32 first slot | distances, 7 bits a byte, the lowest first; 0 where they end before the block does
 * ```
 * A block is named by its address, a multiple of 16, with the class of its size in the low bits. The entries are a hash table with
 * open addressing, in parts that grow one at a time: growing all at once would hold up the searches. It is keyed, because the ids
 * of terms follow from texts: without a key texts could be made whose terms all meet in one place.
 *
 * @module
 */
import type { TermId } from "../embeddings/embedder.ts";
import { mix } from "../embeddings/local/semantics.ts";

const ENTRY_WORDS = 4;
const NEWEST = 1;
const BLOCK = 2;
const COUNT_AND_USED = 3;
const COUNT_MAX = 2 ** 24 - 1;

const PARTS = 64;
const PART_SHIFT = 26;
const PART_MASK = 2 ** PART_SHIFT - 1;
const PART_CAPACITY_FIRST = 16;
const PART_GROWTH = 1.4;
const LOAD_MAX = 0.75;

const ALIGNMENT = 16;
const CLASS_MASK = ALIGNMENT - 1;
const CLASS_MAX = 4;
const HEADER_BYTES = 8;
/** Postings of a block at most: the first, and a byte for each of the others. */
export const BLOCK_POSTINGS_MAX = (ALIGNMENT << CLASS_MAX) - HEADER_BYTES + 1;

/** Blocks lie in chunks, none across two: what grew as a whole would have to be copied now and then. */
const CHUNK_SHIFT = 18;
const CHUNK_BYTES = 2 ** CHUNK_SHIFT;
const CHUNK_MASK = CHUNK_BYTES - 1;

/** Where a search begins to read a list. */
export interface ListHead {
  readonly count: number;
  readonly newest: number;
  /** The newest block, or 0 for a list of one posting. */
  readonly block: number;
}

/** What is written to disk, and read again. */
export interface PostingParts {
  readonly key: number;
  readonly tables: readonly Uint32Array[];
  /** Chunks of blocks, the last one as far as it is in use. */
  readonly chunks: readonly Uint8Array[];
}

export class PostingLists {
  readonly #key: number;
  readonly #tables: Uint32Array[];
  /** How many entries of each table are in use. */
  readonly #used: number[];
  readonly #chunks: Uint8Array[] = [];
  readonly #chunkWords: Uint32Array[] = [];
  /** Where the next block goes: after the first 16 bytes, for 0 means no block. */
  #end = ALIGNMENT;

  /** @param stored - what `parts` gave, or a key for empty lists */
  constructor(stored: PostingParts | { readonly key: number }) {
    this.#key = (stored.key | 1) >>> 0;
    if (!("tables" in stored)) {
      this.#tables = Array.from({ length: PARTS }, () => new Uint32Array(PART_CAPACITY_FIRST * ENTRY_WORDS));
      this.#used = this.#tables.map(() => 0);
      this.#addChunk();
      return;
    }
    this.#tables = [...stored.tables];
    this.#used = this.#tables.map((table) => {
      let used = 0;
      for (let at = COUNT_AND_USED; at < table.length; at += ENTRY_WORDS) if (table[at] !== 0) used++;
      return used;
    });
    for (const chunk of stored.chunks) this.#addChunk().set(chunk);
    this.#end = (stored.chunks.length - 1) * CHUNK_BYTES + stored.chunks.at(-1)!.byteLength;
  }

  /** Memory taken. */
  get bytes(): number {
    return this.#tables.reduce((sum, table) => sum + table.byteLength, this.#chunks.length * CHUNK_BYTES);
  }

  /** Views of what is there: valid until something is added. */
  parts(): PostingParts {
    return {
      key: this.#key,
      tables: this.#tables,
      chunks: [...this.#chunks.slice(0, -1), this.#chunks.at(-1)!.subarray(0, ((this.#end - 1) & CHUNK_MASK) + 1)],
    };
  }

  /** Slots of a list must not fall. */
  append(term: TermId, slot: number): void {
    const hash = this.#hash(term);
    const part = hash >>> PART_SHIFT;
    const table = this.#tables[part]!;
    const at = placeIn(table, term, hash);
    const countAndUsed = table[at + COUNT_AND_USED]!;
    if (countAndUsed === 0) {
      table[at] = term;
      table[at + NEWEST] = slot;
      table[at + COUNT_AND_USED] = 1 << 8;
      this.#used[part]!++;
      if (this.#used[part]! * ENTRY_WORDS > table.length * LOAD_MAX) this.#enlarge(part);
      return;
    }
    let block = table[at + BLOCK]!;
    let used = countAndUsed & 0xff;
    const newest = table[at + NEWEST]!;
    if (slot === newest) return;
    if (block === 0) block = this.#newBlock(0, 0, newest);
    let distance = slot - newest;
    let length = 1;
    for (let rest = distance; rest >= 128; rest = Math.floor(rest / 128)) length++;
    const kind = block & CLASS_MASK;
    if (used + length > (ALIGNMENT << kind) - HEADER_BYTES) {
      block = this.#newBlock(Math.min(kind + 1, CLASS_MAX), block, slot);
      used = 0;
    } else {
      const bytes = this.#chunks[block >>> CHUNK_SHIFT]!;
      let to = (block & CHUNK_MASK) - kind + HEADER_BYTES + used;
      for (; distance >= 128; distance = Math.floor(distance / 128)) bytes[to++] = (distance & 127) | 128;
      bytes[to] = distance;
      used += length;
    }
    table[at + NEWEST] = slot;
    table[at + BLOCK] = block;
    table[at + COUNT_AND_USED] = Math.min(countAndUsed >>> 8, COUNT_MAX - 1) * 256 + 256 + used;
  }

  find(term: TermId): ListHead | undefined {
    const hash = this.#hash(term);
    const table = this.#tables[hash >>> PART_SHIFT]!;
    const at = placeIn(table, term, hash);
    const count = table[at + COUNT_AND_USED]! >>> 8;
    return count === 0 ? undefined : { count, newest: table[at + NEWEST]!, block: table[at + BLOCK]! };
  }

  /** Every list, in no order. */
  *all(): Generator<{ term: TermId; head: ListHead }> {
    for (const table of this.#tables) {
      for (let at = 0; at < table.length; at += ENTRY_WORDS) {
        const count = table[at + COUNT_AND_USED]! >>> 8;
        if (count > 0) yield { term: table[at]!, head: { count, newest: table[at + NEWEST]!, block: table[at + BLOCK]! } };
      }
    }
  }

  /** The block before another one, or 0. */
  before(block: number): number {
    return this.#chunkWords[block >>> CHUNK_SHIFT]![wordAt(block)]!;
  }

  /** The oldest slot of a block. */
  firstOf(block: number): number {
    return this.#chunkWords[block >>> CHUNK_SHIFT]![wordAt(block) + 1]!;
  }

  /** Writes the slots of a block to the beginning of `into`, oldest first. @returns how many */
  read(block: number, into: Int32Array): number {
    const bytes = this.#chunks[block >>> CHUNK_SHIFT]!;
    const kind = block & CLASS_MASK;
    const begin = (block & CHUNK_MASK) - kind;
    const end = begin + (ALIGNMENT << kind);
    let slot = this.firstOf(block);
    into[0] = slot;
    let count = 1;
    for (let at = begin + HEADER_BYTES; at < end;) {
      let byte = bytes[at++]!;
      if (byte === 0) break;
      if (byte < 128) {
        slot += byte;
      } else {
        let distance = byte & 127;
        for (let unit = 128; byte >= 128; unit *= 128) {
          byte = bytes[at++]!;
          distance += (byte & 127) * unit;
        }
        slot += distance;
      }
      into[count++] = slot;
    }
    return count;
  }

  #hash(term: TermId): number {
    return mix(Math.imul(term, this.#key));
  }

  #enlarge(part: number): void {
    const table = this.#tables[part]!;
    const larger = new Uint32Array(Math.ceil((table.length / ENTRY_WORDS) * PART_GROWTH) * ENTRY_WORDS);
    for (let at = 0; at < table.length; at += ENTRY_WORDS) {
      if (table[at + COUNT_AND_USED] === 0) continue;
      const term = table[at]!;
      larger.set(table.subarray(at, at + ENTRY_WORDS), placeIn(larger, term, this.#hash(term)));
    }
    this.#tables[part] = larger;
  }

  #newBlock(kind: number, before: number, first: number): number {
    const bytes = ALIGNMENT << kind;
    if (this.#chunks.length * CHUNK_BYTES - this.#end < bytes) {
      this.#end = this.#chunks.length * CHUNK_BYTES;
      this.#addChunk();
    }
    const block = this.#end + kind;
    this.#end += bytes;
    const words = this.#chunkWords[block >>> CHUNK_SHIFT]!;
    words[wordAt(block)] = before;
    words[wordAt(block) + 1] = first;
    return block;
  }

  #addChunk(): Uint8Array {
    const chunk = new Uint8Array(CHUNK_BYTES);
    this.#chunks.push(chunk);
    this.#chunkWords.push(new Uint32Array(chunk.buffer));
    return chunk;
  }
}

/** Where in the words of its chunk a block begins. */
function wordAt(block: number): number {
  return (block & CHUNK_MASK & ~CLASS_MASK) >>> 2;
}

/** Where in a table a term's entry is, or goes. A table is never full. */
function placeIn(table: Uint32Array, term: TermId, hash: number): number {
  const capacity = table.length / ENTRY_WORDS;
  let at = Math.floor(((hash & PART_MASK) / (PART_MASK + 1)) * capacity) * ENTRY_WORDS;
  while (table[at + COUNT_AND_USED] !== 0 && table[at] !== term) {
    at += ENTRY_WORDS;
    if (at === table.length) at = 0;
  }
  return at;
}
