/**
 * Walks the pages of the data file without LMDB, and says which of them are damaged.
 *
 * Every page that can be reached is read once: those of the free list, of the names of the tables, and of each table.
 * Whatever a damaged page says, nothing is read outside of it, no page is visited twice, and what lies below other pages is
 * still found. A page is read with `read`, so that one that the disk no longer gives is an error and no signal.
 *
 * @module
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../../lib/errors.ts";
import { KEY } from "../../keys.ts";
import { DATA_FILE, readDataFile, type DataFile } from "./data-file.ts";
import { HEAD_BYTES, META_PAGES, PAGE_BYTES, treeAt, type Damaged, type Meta, type Tree } from "./meta-pages.ts";

const BRANCH = 0x01;
const LEAF = 0x02;
const OVERFLOW = 0x04;
const KIND_BITS = 0x1fff;
const NODE_BYTES = 8;
const IN_OVERFLOW = 0x01;
const IS_TABLE = 0x02;
const TREE_BYTES = 48;
/** Page, transaction and length in pages of a large value. */
const REFERENCE_BYTES = 24;
/** LMDB's own limit. */
const DEPTH_MAX = 32;
/** The most bytes that LMDB can say a value has. */
const VALUE_BYTES_MAX = 2 ** 32;
const FREE_LIST_WRONG = "the list of free pages is no such list";

/** A page that is not what it should be. */
export interface Damage {
  page: number;
  /** The table it belongs to; undefined for the list of free pages, and for the names of the tables. */
  table: string | undefined;
  reason: string;
}

/** A table as the file has it. */
export interface TableTree extends Tree {
  name: string;
}

/** One row; its bytes are good until the next one is asked for. */
export interface Entry {
  key: string;
  value: Buffer;
  /** The page of the entry, also where a large value has pages of its own. */
  page: number;
}

/** LMDB must not map the data file, or the file does not hold what it should. */
class DamagedStoreError extends Error {
  override name = "DamagedStoreError";
}

/** @throws {DamagedStoreError} when the meta pages of a data directory's file are damaged */
export function assertMetaPages(dataDirectory: string): Exclude<DataFile, Damaged> {
  const found = readDataFile(join(dataDirectory, DATA_FILE));
  if (found.kind !== "damaged") return found;
  const advice = found.canBeMended
    ? "Stop the server and run cairn doctor --fix, which continues from the other one: at most the last change is lost."
    : "Restore a backup (cairn restore FILE --force), or move its directory store away to begin with an empty one.";
  throw new DamagedStoreError(`The store in ${dataDirectory} is damaged: ${DATA_FILE} ${found.reason}. Nothing was changed. ${advice}`);
}

/**
 * Checks, before LMDB maps it, the file of a data directory, whether there is one or not.
 *
 * @throws {DamagedStoreError} for one that must not be mapped
 */
export function assertMappable(dataDirectory: string): void {
  const path = join(dataDirectory, DATA_FILE);
  const found = assertMetaPages(dataDirectory);
  // LMDB does not write free pages at the end: all pages that are missing have to be free.
  if (found.kind === "none" || statSync(path).size >= (found.meta.lastPage + 1) * PAGE_BYTES) return;
  const hasBeenCutShort = (state: State) => {
    // To read all of a store takes seconds for each GB, and most often the list of free pages says enough.
    if (missesOnlyFreePages(path, state)) return false;
    using pages = new Pages(path, state);
    for (const table of pages.tables()) for (const _ of pages.rows(table));
    pages.walkFreeList();
    return pages.hasBeenCutShort;
  };
  if (!hasBeenCutShort("newest") || (found.flushed !== undefined && !hasBeenCutShort("flushed"))) return;
  throw new DamagedStoreError(
    `The store in ${dataDirectory} is damaged: ${DATA_FILE} has been cut short. Nothing was changed. cairn doctor says what is lost.`,
  );
}

function missesOnlyFreePages(path: string, state: State): boolean {
  using pages = new Pages(path, state);
  return pages.missesOnlyFreePages();
}

/** `flushed` is what LMDB returns to after a crash of the system, in a store with relaxed durability. */
type State = "newest" | "flushed";

export class Pages implements Disposable {
  readonly #file: number;
  readonly #meta: Meta;
  readonly #visited: Uint8Array;
  /** True if a page lies behind the end of the file. */
  hasBeenCutShort = false;
  /** Damaged pages in the order in which they were met. */
  readonly damage: Damage[] = [];

  /** @throws {DamagedStoreError} when the meta pages are damaged */
  constructor(path: string, state: State = "newest") {
    const found = readDataFile(path);
    if (found.kind !== "whole")
      throw new DamagedStoreError(`${path} cannot be read: it ${found.kind === "none" ? "is not there" : found.reason}.`);
    this.#meta = state === "newest" ? found.meta : (found.flushed ?? found.meta);
    this.#visited = new Uint8Array(Math.ceil((this.#meta.lastPage + 1) / 8));
    this.#file = openSync(path, "r");
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }

  /** Number of tables, whether or not their names can be read. */
  get tableCount(): number {
    return this.#meta.trees.names.entries;
  }

  /** No table has more rows: each takes the header of a node, and more. */
  get rowsMax(): number {
    return ((this.#meta.lastPage + 1) * PAGE_BYTES) / NODE_BYTES;
  }

  /** Every table whose name can be read. */
  tables(): TableTree[] {
    const tables: TableTree[] = [];
    for (const { key, value, page, isTable } of this.#walk(this.#meta.trees.names, undefined)) {
      const tree = isTable && value.length === TREE_BYTES ? treeAt(value, 0, this.#meta.lastPage) : undefined;
      if (tree === undefined) this.damage.push({ page, table: key, reason: "the record of the table is no such record" });
      else tables.push({ ...tree, name: key.replace(/\0$/, "") });
    }
    return tables;
  }

  /** Every row of a table that can be read, in the order of keys. */
  *rows(table: TableTree): Generator<Entry> {
    let before: string | undefined;
    for (const { key, value, page } of this.#walk(table, table.name)) {
      if (before !== undefined && key <= before) this.damage.push({ page, table: table.name, reason: "a key is out of order" });
      else if (!KEY.test(key)) this.damage.push({ page, table: table.name, reason: "a key has characters that no key has" });
      before = key;
      yield { key, value, page };
    }
  }

  /** Checks the list of free pages, which no tree may use: call it when all tables were walked. */
  walkFreeList(): void {
    const inUse = this.#visited.slice();
    for (const { value, page } of this.#walk(this.#meta.trees.free, undefined)) {
      const reason = this.#freeListProblem(value, inUse);
      if (reason !== undefined) this.damage.push({ page, table: undefined, reason });
    }
  }

  #freeListProblem(value: Buffer, inUse: Uint8Array): string | undefined {
    const blocks = freeBlocks(value);
    if (blocks === undefined) return FREE_LIST_WRONG;
    for (const { first, end } of blocks) {
      if (first < META_PAGES || end > this.#meta.lastPage + 1) return "the list of free pages names pages that are not there";
      for (let page = first; page < end; page++) if (isSet(inUse, page)) return `page ${page} is listed as free and is in use`;
    }
    return undefined;
  }

  /** Checks whether the list of free pages can be read to its end, and has every page that lies behind the end of the file. */
  missesOnlyFreePages(): boolean {
    const blocks: Block[] = [];
    for (const { value } of this.#walk(this.#meta.trees.free, undefined)) blocks.push(...(freeBlocks(value) ?? []));
    let there = Math.floor(fstatSync(this.#file).size / PAGE_BYTES);
    for (const { first, end } of blocks.sort((a, b) => a.first - b.first)) if (first <= there) there = Math.max(there, end);
    return this.damage.length === 0 && there > this.#meta.lastPage;
  }

  *#walk(tree: Tree, table: string | undefined): Generator<Entry & { isTable: boolean }> {
    if (tree.root === undefined) return;
    if (tree.depth > DEPTH_MAX) this.#damaged(tree.root, table, `the tree is ${tree.depth} pages deep`);
    else yield* this.#below(tree.root, tree.depth, table);
  }

  *#below(page: number, depth: number, table: string | undefined): Generator<Entry & { isTable: boolean }> {
    const bytes = this.#read(page, 1, table);
    if (bytes === undefined) return;
    const reason = treePageProblem(bytes, page, depth === 1 ? LEAF : BRANCH, this.#meta.transaction);
    if (reason !== undefined) {
      this.#damaged(page, table, reason);
      return;
    }
    const count = bytes.readUInt16LE(20) >> 1;
    for (let i = 0; i < count; i++) {
      const node = HEAD_BYTES + bytes.readUInt16LE(HEAD_BYTES + i * 2);
      const low = bytes.readUInt32LE(node);
      const flags = bytes.readUInt16LE(node + 4);
      if (depth > 1) {
        yield* this.#below(low + flags * 2 ** 32, depth - 1, table);
        continue;
      }
      const keyEnd = node + NODE_BYTES + bytes.readUInt16LE(node + 6);
      const key = bytes.toString("latin1", node + NODE_BYTES, keyEnd);
      const value = (flags & IN_OVERFLOW) === 0 ? bytes.subarray(keyEnd, keyEnd + low) : this.#largeValue(bytes, keyEnd, low, table);
      if (value !== undefined) yield { key, value, page, isTable: (flags & IS_TABLE) !== 0 };
    }
  }

  /** @param at - where the reference to the pages of the value begins in `node` */
  #largeValue(node: Buffer, at: number, length: number, table: string | undefined): Buffer | undefined {
    const page = Number(node.readBigUInt64LE(at));
    const pages = Number(node.readBigUInt64LE(at + 16));
    const needed = Math.ceil((HEAD_BYTES + length) / PAGE_BYTES);
    if (length > VALUE_BYTES_MAX || pages < needed || page + pages > this.#meta.lastPage + 1)
      return this.#damaged(page, table, "a large value is longer than its pages");
    const bytes = this.#read(page, needed, table);
    if (bytes === undefined) return undefined;
    for (let i = 1; i < pages; i++) this.#visit(page + i);
    const isRight =
      bytes.readBigUInt64LE(0) === BigInt(page) && (bytes.readUInt16LE(18) & KIND_BITS) === OVERFLOW && bytes.readUInt32LE(20) === pages;
    return isRight ? bytes.subarray(HEAD_BYTES, HEAD_BYTES + length) : this.#damaged(page, table, "it is no page of a large value");
  }

  #read(page: number, pages: number, table: string | undefined): Buffer | undefined {
    if (page < META_PAGES || page > this.#meta.lastPage) return this.#damaged(page, table, "there is no such page");
    if (!this.#visit(page)) return this.#damaged(page, table, "another page leads to it too");
    const bytes = Buffer.alloc(pages * PAGE_BYTES);
    try {
      if (readSync(this.#file, bytes, 0, bytes.length, page * PAGE_BYTES) === bytes.length) return bytes;
      this.hasBeenCutShort = true;
      return this.#damaged(page, table, "it lies behind the end of the file");
    } catch (error) {
      return this.#damaged(page, table, `it cannot be read: ${messageOf(error)}`);
    }
  }

  #damaged(page: number, table: string | undefined, reason: string): undefined {
    this.damage.push({ page, table, reason });
  }

  /** @returns whether it was not visited before */
  #visit(page: number): boolean {
    if (isSet(this.#visited, page)) return false;
    this.#visited[page >> 3] = (this.#visited[page >> 3] ?? 0) | (1 << (page & 7));
    return true;
  }
}

/** Free pages from the first to before `end`. */
interface Block {
  first: number;
  end: number;
}

/**
 * Content of an entry of the list of free pages. It has page numbers; one below 0 is the length of the block
 * that the next one begins, 0 is none.
 *
 * @returns undefined when it is no such list
 */
function freeBlocks(value: Buffer): Block[] | undefined {
  const length = value.length < 8 ? -1 : Number(value.readBigUInt64LE(0));
  if (length < 0 || length > value.length / 8 - 1) return undefined;
  const blocks: Block[] = [];
  for (let i = 1; i <= length; i++) {
    let pages = 1;
    let first = Number(value.readBigInt64LE(i * 8));
    if (first === 0) continue;
    if (first < 0) {
      pages = -first;
      if (++i > length) return undefined;
      first = Number(value.readBigInt64LE(i * 8));
    }
    blocks.push({ first, end: first + pages });
  }
  return blocks;
}

function isSet(bits: Uint8Array, page: number): boolean {
  return ((bits[page >> 3] ?? 0) & (1 << (page & 7))) !== 0;
}

/** Reason why a page of a tree is damaged. Of one that is not, no offset leads outside of it. */
function treePageProblem(bytes: Buffer, page: number, kind: number, transaction: number): string | undefined {
  if (bytes.every((byte) => byte === 0)) return "it is all zeros";
  if (bytes.readBigUInt64LE(0) !== BigInt(page)) return "it says another number than its own";
  if (bytes.readBigUInt64LE(8) > BigInt(transaction)) return "it says a transaction that has not been";
  if ((bytes.readUInt16LE(18) & KIND_BITS) !== kind) return "it is of another kind than it should be";
  const [lower, upper, room] = [bytes.readUInt16LE(20), bytes.readUInt16LE(22), bytes.length - HEAD_BYTES];
  if (lower === 0 || (lower & 1) !== 0 || lower > upper || upper > room) return "its directory is wrong";
  // Entries fill a page from `upper` to its end: where one ends another begins.
  const [starts, ends] = [new Set<number>([room]), new Set<number>([upper])];
  for (let i = 0; i < lower; i += 2) {
    const at = bytes.readUInt16LE(HEAD_BYTES + i);
    if (at < upper || (at & 1) !== 0 || at + NODE_BYTES > room) return "its directory is wrong";
    const node = HEAD_BYTES + at;
    const flags = bytes.readUInt16LE(node + 4);
    const keyEnd = at + NODE_BYTES + bytes.readUInt16LE(node + 6);
    const valueBytes = kind === BRANCH ? 0 : (flags & IN_OVERFLOW) === 0 ? bytes.readUInt32LE(node) : REFERENCE_BYTES;
    if (keyEnd + valueBytes > room || (kind === LEAF && (flags & ~(IN_OVERFLOW | IS_TABLE)) !== 0)) return "an entry of it is wrong";
    starts.add(at);
    ends.add((keyEnd + valueBytes + 1) & ~1);
  }
  return starts.size === ends.size && starts.size === lower / 2 + 1 && starts.isSubsetOf(ends) ? undefined : "entries of it overlap";
}
