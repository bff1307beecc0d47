/**
 * Posting lists: for each term the slots of the memories that have it, some three bytes a posting.
 *
 * A list is a chain of blocks from the newest to the oldest, because slots rise and a search begins with the newest. A block holds
 * how far each of its slots is from the one before, so that it is read from its end, where it is. The blocks of a list double in size up
 * to 4 KB: rare terms take little room, and few blocks of a common one have to come from elsewhere in memory. A term with a single
 * posting, as most names and ids are, has no block at all.
 *
 * ```
 * entry  u32 term | u32 newest slot | u32 newest block | u32 postings
 * block  u32 block before | u32 slot before | u16 number of distances | u16 distances
 * ```
 * A list's first slot is in no block: it is the slot before the oldest one.
 * A block is named by its address, a multiple of 16, with the class of its size in the low bits. The entries are a hash table with
 * open addressing, in parts that grow one at a time: growing all at once would hold up the searches. It is keyed, because the ids
 * of terms follow from texts: without a key texts could be made whose terms all meet in one place.
 *
 * @module
 */
import type { TermId } from "../../embeddings/embedder.ts";
import { mix } from "../../lib/hash.ts";
import type { PartSource } from "../snapshot/snapshot-file.ts";

const ENTRY_WORDS = 4;
const NEWEST = 1;
const BLOCK = 2;
const COUNT = 3;

const PARTS = 64;
const PART_SHIFT = 26;
const PART_MASK = 2 ** PART_SHIFT - 1;
const PART_CAPACITY_FIRST = 16;
const PART_GROWTH = 1.4;
const LOAD_MAX = 0.75;

const ALIGNMENT = 16;
const CLASS_MASK = ALIGNMENT - 1;
const CLASS_MAX = 8;
/** Positions in a block, counted in halves of words, of the number of its distances, and of the first. */
const COUNT_HALF = 4;
const DISTANCES_HALF = 5;
const DISTANCE_MAX = 0xffff;

/** Blocks lie in chunks, none across two: what grew as a whole would have to be copied now and then. */
const CHUNK_SHIFT = 18;
const CHUNK_BYTES = 2 ** CHUNK_SHIFT;
const CHUNK_MASK = CHUNK_BYTES - 1;
/** The lists were read from a file that is not sound, which its checksum did not show. */
export class DamagedListsError extends Error {
  override name = "DamagedListsError";

  constructor() {
    super("the posting lists are damaged");
  }
}

/** Position at which a search begins to read a list. */
export interface ListHead {
  readonly count: number;
  readonly newest: number;
  /** The newest block, or 0 for a list of one posting. */
  readonly block: number;
}

/** Parts that are written to disk. */
export interface PostingParts {
  readonly key: number;
  readonly tables: readonly Uint32Array[];
  /** Chunks of blocks, the last one as far as it is in use. */
  readonly chunks: readonly Uint8Array[];
}

/** Header of the parts, read before them. */
export interface PostingLengths {
  readonly key: number;
  readonly tables: Iterable<number>;
  readonly chunks: Iterable<number>;
}

export class PostingLists {
  readonly #key: number;
  readonly #tables: Uint32Array[];
  /** Number of entries of each table in use. */
  readonly #used: number[];
  readonly #chunks: Uint8Array[] = [];
  readonly #chunkWords: Uint32Array[] = [];
  readonly #chunkHalves: Uint16Array[] = [];
  /** Position of the next block: after the first 16 bytes, for 0 means no block. */
  #end = ALIGNMENT;

  private constructor(key: number, tables: Uint32Array[]) {
    this.#key = (key | 1) >>> 0;
    this.#tables = tables;
    this.#used = tables.map((table) => {
      let used = 0;
      for (let at = COUNT; at < table.length; at += ENTRY_WORDS) if (table[at] !== 0) used++;
      return used;
    });
  }

  static empty(key: number): PostingLists {
    const lists = new PostingLists(
      key,
      Array.from({ length: PARTS }, () => new Uint32Array(PART_CAPACITY_FIRST * ENTRY_WORDS)),
    );
    lists.#addChunk();
    return lists;
  }

  /**
   * @param source - the parts. Damaged lists are noticed when they are followed
   * @throws {RangeError} when there cannot be such parts
   */
  static read(source: PartSource, { key, tables, chunks }: PostingLengths): PostingLists {
    const lists = new PostingLists(
      key,
      Array.from(tables, (bytes) => new Uint32Array(source.take(bytes).buffer)),
    );
    for (const bytes of chunks) {
      source.readInto(lists.#addChunk().subarray(0, bytes));
      lists.#end = (lists.#chunks.length - 1) * CHUNK_BYTES + bytes;
    }
    // Looking for a term ends at an entry that is not in use.
    const isSearchable = (table: Uint32Array, part: number) =>
      table.length % ENTRY_WORDS === 0 && lists.#used[part]! * ENTRY_WORDS < table.length;
    if (lists.#tables.length !== PARTS || !lists.#tables.every(isSearchable)) throw new RangeError("terms cannot be looked for");
    if (lists.#chunks.length === 0 || lists.#end > lists.#chunks.length * CHUNK_BYTES) throw new RangeError("blocks cannot be there");
    return lists;
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
    const newest = table[at + NEWEST]!;
    if (table[at + COUNT] === 0) {
      table[at] = term;
      table[at + NEWEST] = slot;
      table[at + COUNT] = 1;
      this.#used[part]!++;
      if (this.#used[part]! * ENTRY_WORDS > table.length * LOAD_MAX) this.#enlarge(part);
      return;
    }
    if (slot === newest) return;
    const block = table[at + BLOCK]!;
    if (!this.#extend(block, slot - newest)) table[at + BLOCK] = this.#newBlock(block, newest);
    table[at + NEWEST] = slot;
    table[at + COUNT]!++;
  }

  find(term: TermId): ListHead | undefined {
    const hash = this.#hash(term);
    const table = this.#tables[hash >>> PART_SHIFT]!;
    const at = placeIn(table, term, hash);
    const count = table[at + COUNT]!;
    return count === 0 ? undefined : { count, newest: table[at + NEWEST]!, block: table[at + BLOCK]! };
  }

  /** Every list, in no order. */
  *all(): Generator<{ term: TermId; head: ListHead }> {
    for (const table of this.#tables) {
      for (let at = 0; at < table.length; at += ENTRY_WORDS) {
        const count = table[at + COUNT]!;
        if (count > 0) yield { term: table[at]!, head: { count, newest: table[at + NEWEST]!, block: table[at + BLOCK]! } };
      }
    }
  }

  /** Begins to read a list at its newest slot. @throws {DamagedListsError} */
  cursor(head: ListHead): ListCursor {
    return new ListCursor(this.#chunkWords, this.#chunkHalves, head);
  }

  /** The slots of a list, the newest first. @throws {DamagedListsError} */
  *slots(head: ListHead): Generator<number> {
    for (const cursor = this.cursor(head); cursor.slot >= 0; cursor.next()) yield cursor.slot;
  }

  #halves(block: number): Uint16Array {
    return this.#chunkHalves[block >>> CHUNK_SHIFT]!;
  }

  #distancesTo(block: number): number {
    const at = 2 * wordAt(block);
    return at + DISTANCES_HALF + this.#halves(block)[at + COUNT_HALF]!;
  }

  /** Adds a slot to a block, if there is room for it and it is not too far. */
  #extend(block: number, distance: number): boolean {
    const to = block === 0 ? 0 : this.#distancesTo(block);
    const end = 2 * wordAt(block) + ((ALIGNMENT << (block & CLASS_MASK)) >>> 1);
    if (block === 0 || to === end || distance > DISTANCE_MAX) return false;
    const halves = this.#halves(block);
    halves[to] = distance;
    halves[2 * wordAt(block) + COUNT_HALF]!++;
    return true;
  }

  #hash(term: TermId): number {
    return mix(Math.imul(term, this.#key));
  }

  #enlarge(part: number): void {
    const table = this.#tables[part]!;
    const larger = new Uint32Array(Math.ceil((table.length / ENTRY_WORDS) * PART_GROWTH) * ENTRY_WORDS);
    for (let at = 0; at < table.length; at += ENTRY_WORDS) {
      if (table[at + COUNT] === 0) continue;
      const term = table[at]!;
      larger.set(table.subarray(at, at + ENTRY_WORDS), placeIn(larger, term, this.#hash(term)));
    }
    this.#tables[part] = larger;
  }

  /** A block for one more slot, of twice the size if that before it is full. */
  #newBlock(before: number, slotBefore: number): number {
    let kind = 0;
    if (before !== 0) {
      const needed = this.#distancesTo(before) - (2 * wordAt(before) + DISTANCES_HALF) + 1;
      while (kind < CLASS_MAX && distancesMax(kind) < needed) kind++;
    }
    const bytes = ALIGNMENT << kind;
    if (this.#chunks.length * CHUNK_BYTES - this.#end < bytes) {
      this.#end = this.#chunks.length * CHUNK_BYTES;
      this.#addChunk();
    }
    const block = this.#end + kind;
    this.#end += bytes;
    const words = this.#chunkWords[block >>> CHUNK_SHIFT]!;
    words[wordAt(block)] = before;
    words[wordAt(block) + 1] = slotBefore;
    return block;
  }

  #addChunk(): Uint8Array {
    const chunk = new Uint8Array(CHUNK_BYTES);
    this.#chunks.push(chunk);
    this.#chunkWords.push(new Uint32Array(chunk.buffer));
    this.#chunkHalves.push(new Uint16Array(chunk.buffer));
    return chunk;
  }
}

const NO_DISTANCES = new Uint16Array(0);

/**
 * Reads a list from its newest slot to its oldest. Lists come from a file and may be damaged: a block is checked when it is entered, so
 * that nothing is read from elsewhere, and no chain leads round and round.
 */
export class ListCursor {
  /** The newest slot that was not passed; less than 0 once all were. */
  slot: number;
  /** Postings that were passed. */
  passed = 0;
  readonly #chunkWords: readonly Uint32Array[];
  readonly #chunkHalves: readonly Uint16Array[];
  /** Positions of the distances of the block, of the first of them, and of that from `slot` to the one before it. */
  #halves: Uint16Array = NO_DISTANCES;
  #first = 0;
  #at = -1;
  #blockBefore = 0;
  #slotBefore = -1;

  constructor(chunkWords: readonly Uint32Array[], chunkHalves: readonly Uint16Array[], { newest, block }: ListHead) {
    this.#chunkWords = chunkWords;
    this.#chunkHalves = chunkHalves;
    this.slot = newest;
    this.#enter(block);
  }

  /** Passes a slot. */
  next(): void {
    this.passed++;
    if (this.#at >= this.#first) this.slot -= this.#halves[this.#at--]!;
    else this.#leave();
  }

  /** Checks whether a slot is in the list. Passes what is newer. */
  has(slot: number): boolean {
    while (this.slot > slot) {
      // A block whose other slots are all newer is passed at once.
      if (this.#slotBefore >= slot) this.#leave();
      else this.next();
    }
    return this.slot === slot;
  }

  /**
   * Adds a score to the sums of the slots from one on that are in the list, and passes them: none may be beyond the sums.
   *
   * @param touched - where slots go whose sum was 0, from a place on. @returns how many there are by then
   */
  add(score: number, sums: Uint32Array, from: number, touched: Uint32Array, count: number): number {
    while (this.slot >= from) {
      const [halves, first] = [this.#halves, this.#first];
      let [slot, at] = [this.slot, this.#at];
      const before = at;
      for (;;) {
        const place = slot - from;
        if (sums[place] === 0) touched[count++] = slot;
        sums[place]! += score;
        if (at < first) break;
        slot -= halves[at--]!;
        if (slot < from) break;
      }
      this.slot = slot;
      this.#at = at;
      this.passed += before - at;
      if (slot < from) continue;
      this.passed++;
      this.#leave();
    }
    return count;
  }

  /** Goes from the oldest slot of a block to the block before, whose slots are older. */
  #leave(): void {
    if (this.#slotBefore >= this.slot) throw new DamagedListsError();
    this.slot = this.#slotBefore;
    this.#enter(this.#blockBefore);
  }

  /** Stands at the newest slot of a block. */
  #enter(block: number): void {
    this.#blockBefore = 0;
    this.#slotBefore = -1;
    this.#first = 0;
    this.#at = -1;
    if (block === 0) return;
    const kind = block & CLASS_MASK;
    const [words, halves] = [this.#chunkWords[block >>> CHUNK_SHIFT], this.#chunkHalves[block >>> CHUNK_SHIFT]];
    const at = wordAt(block);
    if (words === undefined || halves === undefined || kind > CLASS_MAX || 4 * at + (ALIGNMENT << kind) > CHUNK_BYTES)
      throw new DamagedListsError();
    const count = halves[2 * at + COUNT_HALF]!;
    if (count > distancesMax(kind)) throw new DamagedListsError();
    this.#halves = halves;
    this.#first = 2 * at + DISTANCES_HALF;
    this.#at = this.#first + count - 1;
    this.#blockBefore = words[at]!;
    this.#slotBefore = words[at + 1]!;
  }
}

/** Position of a block in the words of its chunk. */
function wordAt(block: number): number {
  return (block & CHUNK_MASK & ~CLASS_MASK) >> 2;
}

/** Number of distances that a block of a class has space for. */
function distancesMax(kind: number): number {
  return ((ALIGNMENT << kind) >>> 1) - DISTANCES_HALF;
}

/** Position of a term's entry in a table, or the one that it would have. A table is never full. */
function placeIn(table: Uint32Array, term: TermId, hash: number): number {
  const capacity = table.length / ENTRY_WORDS;
  let at = Math.floor(((hash & PART_MASK) / (PART_MASK + 1)) * capacity) * ENTRY_WORDS;
  while (table[at + COUNT] !== 0 && table[at] !== term) {
    at += ENTRY_WORDS;
    if (at === table.length) at = 0;
  }
  return at;
}
