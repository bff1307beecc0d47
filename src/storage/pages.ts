/**
 * Walks the pages of the store's file without LMDB, and says which of them are damaged.
 *
 * Every page that can be reached is read once: those of the free list, of the names of the tables, and of each table.
 * Whatever a damaged page says, nothing is read outside of it, no page is visited twice, and what lies below other pages is
 * still found. A page is read with `read`, so that one that the disk no longer gives is an error and no signal.
 *
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../lib/errors.ts";
import { DATA_FILE, HEAD_BYTES, readDataFile, treeAt, type Meta, type Tree } from "./data-file.ts";

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
/** The most bytes that a value may have: those that LMDB can say. */
const VALUE_BYTES_MAX = 2 ** 32;

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
  value: Uint8Array;
  /** Where it stands, or where it is said on which pages its value is. */
  page: number;
}

/** The file of a store must not be mapped, or does not hold what it should. */
export class DamagedStoreError extends Error {
  override name = "DamagedStoreError";
}

/**
 * Looks at the ends of the file of a data directory, whether there is one or not.
 *
 * @throws {DamagedStoreError} for one that must not be mapped
 */
export function assertFile(dataDirectory: string): void {
  const path = join(dataDirectory, DATA_FILE);
  const found = readDataFile(path);
  if (found.kind === "damaged") throw new DamagedStoreError(damageText(dataDirectory, found));
  if (found.kind === "none" || found.fileBytes >= (found.meta.lastPage + 1) * found.meta.pageBytes) return;
  // Then all that is missing has to be free.
  const hasBeenCutShort = (state: State) => {
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

/** What is said of a file whose ends are damaged, and what can be done. */
export function damageText(dataDirectory: string, { reason, canBeMended }: { reason: string; canBeMended: boolean }): string {
  const advice = canBeMended
    ? "Stop the server and run cairn doctor --fix, which continues from the other one: at most the last change is lost."
    : "Restore a backup (cairn restore FILE --force), or move its directory store away to begin with an empty one.";
  return `The store in ${dataDirectory} is damaged: ${DATA_FILE} ${reason}. Nothing was changed. ${advice}`;
}

/** `flushed` is what LMDB goes back to after a crash of the system, in a store that is written relaxed. */
type State = "newest" | "flushed";

export class Pages implements Disposable {
  readonly #file: number;
  readonly #meta: Meta;
  readonly #visited: Uint8Array;
  /** Whether a page lies behind the end of the file. */
  hasBeenCutShort = false;
  /** In the order in which they were met. */
  readonly damage: Damage[] = [];

  /** @throws {DamagedStoreError} when the ends of the file are damaged */
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

  /** How many tables there are, whether or not their names can be read. */
  get tableCount(): number {
    return this.#meta.trees.names.entries;
  }

  /** Every table whose name can be read. */
  tables(): TableTree[] {
    const tables: TableTree[] = [];
    for (const { key, value, page, isTable } of this.#walk(this.#meta.trees.names, undefined)) {
      const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
      const tree = isTable && value.byteLength === TREE_BYTES ? treeAt(view, 0, this.#meta.lastPage) : undefined;
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
      before = key;
      yield { key, value, page };
    }
  }

  /** The list of free pages, which are in use nowhere else. To be walked last. */
  walkFreeList(): void {
    const inUse = this.#visited.slice();
    for (const { value, page } of this.#walk(this.#meta.trees.free, undefined)) {
      const reason = this.#freeListProblem(value, inUse);
      if (reason !== undefined) this.damage.push({ page, table: undefined, reason });
    }
  }

  /** Entries are page numbers; one below 0 is the length of the block that the next one begins, 0 is none. */
  #freeListProblem(value: Uint8Array, inUse: Uint8Array): string | undefined {
    const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
    const length = value.byteLength < 8 ? -1 : Number(view.getBigUint64(0, true));
    if (length < 0 || length > value.byteLength / 8 - 1) return "the list of free pages is no such list";
    for (let i = 1; i <= length; i++) {
      let pages = 1;
      let first = view.getBigInt64(i * 8, true);
      if (first === 0n) continue;
      if (first < 0n) {
        pages = -Number(first);
        if (++i > length) return "the list of free pages is no such list";
        first = view.getBigInt64(i * 8, true);
      }
      const end = Number(first) + pages;
      if (first < 2n || end > this.#meta.lastPage + 1) return "the list of free pages names pages that are not there";
      for (let page = Number(first); page < end; page++) if (isSet(inUse, page)) return `page ${page} is listed as free and is in use`;
    }
    return undefined;
  }

  *#walk(tree: Tree, table: string | undefined): Generator<Entry & { isTable: boolean }> {
    if (tree.root === undefined) return;
    if (tree.depth > DEPTH_MAX) {
      this.damage.push({ page: tree.root, table, reason: `the tree is ${tree.depth} pages deep` });
      return;
    }
    yield* this.#below(tree.root, tree.depth, table);
  }

  *#below(page: number, depth: number, table: string | undefined): Generator<Entry & { isTable: boolean }> {
    const bytes = this.#treePage(page, depth === 1 ? LEAF : BRANCH, table);
    if (bytes === undefined) return;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const count = view.getUint16(20, true) >> 1;
    for (let i = 0; i < count; i++) {
      const node = HEAD_BYTES + view.getUint16(HEAD_BYTES + i * 2, true);
      const low = view.getUint32(node, true);
      const flags = view.getUint16(node + 4, true);
      if (depth > 1) {
        yield* this.#below(low + flags * 2 ** 32, depth - 1, table);
        continue;
      }
      const keyEnd = node + NODE_BYTES + view.getUint16(node + 6, true);
      const key = Buffer.from(bytes.buffer, bytes.byteOffset + node + NODE_BYTES, keyEnd - node - NODE_BYTES).toString("latin1");
      const value = (flags & IN_OVERFLOW) === 0 ? bytes.subarray(keyEnd, keyEnd + low) : this.#largeValue(view, keyEnd, low, table);
      if (value !== undefined) yield { key, value, page, isTable: (flags & IS_TABLE) !== 0 };
    }
  }

  /** A page of a tree, if it is whole: then no offset in it leads outside of it. */
  #treePage(page: number, kind: number, table: string | undefined): Uint8Array | undefined {
    const bytes = this.#read(page, 1, table);
    if (bytes === undefined) return undefined;
    const reason = treePageProblem(bytes, page, kind, this.#meta.transaction);
    if (reason === undefined) return bytes;
    this.damage.push({ page, table, reason });
    return undefined;
  }

  #largeValue(view: DataView, at: number, length: number, table: string | undefined): Uint8Array | undefined {
    const page = Number(view.getBigUint64(at, true));
    const pages = Number(view.getBigUint64(at + 16, true));
    const needed = Math.ceil((HEAD_BYTES + length) / this.#meta.pageBytes);
    if (length > VALUE_BYTES_MAX || pages < needed || page + pages > this.#meta.lastPage + 1) {
      this.damage.push({ page, table, reason: "a large value is longer than its pages" });
      return undefined;
    }
    const bytes = this.#read(page, needed, table);
    if (bytes === undefined) return undefined;
    const head = new DataView(bytes.buffer, bytes.byteOffset);
    const isRight =
      head.getBigUint64(0, true) === BigInt(page) &&
      (head.getUint16(18, true) & KIND_BITS) === OVERFLOW &&
      head.getUint32(20, true) === pages;
    for (let i = 1; i < pages; i++) this.#visit(page + i);
    if (isRight) return bytes.subarray(HEAD_BYTES, HEAD_BYTES + length);
    this.damage.push({ page, table, reason: "it is no page of a large value" });
    return undefined;
  }

  #read(page: number, pages: number, table: string | undefined): Uint8Array | undefined {
    const { pageBytes, lastPage } = this.#meta;
    const damaged = (reason: string) => void this.damage.push({ page, table, reason });
    if (page < 2 || page > lastPage) return damaged("there is no such page");
    if (!this.#visit(page)) return damaged("another page leads to it too");
    const bytes = new Uint8Array(pages * pageBytes);
    try {
      if (readSync(this.#file, bytes, 0, bytes.length, page * pageBytes) === bytes.length) return bytes;
      this.hasBeenCutShort = true;
      return damaged("it lies behind the end of the file");
    } catch (error) {
      return damaged(`it cannot be read: ${messageOf(error)}`);
    }
  }

  /** @returns whether it was not there before */
  #visit(page: number): boolean {
    if (isSet(this.#visited, page)) return false;
    this.#visited[page >> 3] = (this.#visited[page >> 3] ?? 0) | (1 << (page & 7));
    return true;
  }
}

function isSet(bits: Uint8Array, page: number): boolean {
  return ((bits[page >> 3] ?? 0) & (1 << (page & 7))) !== 0;
}

function treePageProblem(bytes: Uint8Array, page: number, kind: number, transaction: number): string | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.every((byte) => byte === 0)) return "it is all zeros";
  if (view.getBigUint64(0, true) !== BigInt(page)) return "it says another number than its own";
  if (view.getBigUint64(8, true) > BigInt(transaction)) return "it says a transaction that has not been";
  if ((view.getUint16(18, true) & KIND_BITS) !== kind) return "it is of another kind than it should be";
  const [lower, upper, room] = [view.getUint16(20, true), view.getUint16(22, true), bytes.byteLength - HEAD_BYTES];
  if (lower === 0 || (lower & 1) !== 0 || lower > upper || upper > room) return "its directory is wrong";
  for (let i = 0; i < lower; i += 2) {
    const at = view.getUint16(HEAD_BYTES + i, true);
    if (at < upper || (at & 1) !== 0 || at + NODE_BYTES > room) return "its directory is wrong";
    const node = HEAD_BYTES + at;
    const flags = view.getUint16(node + 4, true);
    const keyEnd = at + NODE_BYTES + view.getUint16(node + 6, true);
    const valueBytes = kind === BRANCH ? 0 : (flags & IN_OVERFLOW) === 0 ? view.getUint32(node, true) : REFERENCE_BYTES;
    if (keyEnd + valueBytes > room || (kind === LEAF && (flags & ~(IN_OVERFLOW | IS_TABLE)) !== 0)) return "an entry of it is wrong";
  }
  return undefined;
}
