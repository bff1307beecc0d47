/**
 * The two meta pages that a data file of LMDB begins with, read without LMDB: whether they lead to a state of the store.
 *
 * LMDB trusts its file: it maps it and follows what is there. A file that is too short ends the process (SIGBUS), and of two
 * meta pages LMDB takes the one with the higher transaction, damaged or not. So these pages are checked before LMDB opens
 * the file; `pages.ts` checks the others.
 *
 * ```
 * page     its number u64, the transaction that wrote it u64, unused u16, flags u16, then for a page of a tree where its free
 *          space begins and ends, u16 each, for a large value its length in pages u32
 * meta     pages 0 and 1, written in turn: after the head magic u32, version u32, unused u64, size of the map u64, the trees
 *          of free pages and of table names, the last page u64, the transaction u64
 * tree     page size (in the first tree) u32, flags u16, depth u16, pages u64 three times, entries u64, root page u64
 * ```
 *
 * @module
 */
import { closeSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";

/**
 * Everywhere, because every file begins with the pages of `emptyDataFile`. LMDB by itself would take those of the system: 16,384
 * bytes on Apple silicon, which triples what a commit writes, and makes another file.
 */
export const PAGE_BYTES = 4_096;
export const HEAD_BYTES = 24;
export const META_PAGES = 2;
const META_BYTES = 168;
const META_FLAG = 0x08;
const MAGIC = 0xbeefc0de;
const VERSION = 2;
const FREE_TREE = 48;
const NAMES_TREE = 96;
const LAST_PAGE = 144;
const TRANSACTION = 152;
/** Flags of the tree of free pages: its keys are numbers. */
const INTEGER_KEYS = 0x08;
/** Flag of lmdb-js: nobody has waited for the flush of this state, as in a store with relaxed durability. */
const NOT_FLUSHED = 0x1000;
const NO_PAGE = 0xffff_ffff_ffff_ffffn;
const FIRST_MAP_BYTES = 128n * 1024n;

/** One of LMDB's trees, as its record has it. */
export interface Tree {
  /** Number of its levels of pages. */
  depth: number;
  entries: number;
  /** undefined for an empty one. */
  root: number | undefined;
}

interface MetaPage {
  lastPage: number;
  transaction: number;
  isFlushed: boolean;
  /** undefined where they are impossible: LMDB leaves such a page when a write fails, and the other page is newer. */
  trees: { free: Tree; names: Tree } | undefined;
}

/** The state of the store that a meta page leads to. */
export interface Meta extends MetaPage {
  trees: { free: Tree; names: Tree };
}

/** States in the meta pages; `flushed` is the earlier state that LMDB returns to when the newest one was not flushed. */
export type MetaPages = { kind: "whole"; meta: Meta; flushed: Meta | undefined } | Damaged;

export interface Damaged {
  kind: "damaged";
  reason: string;
  canBeMended: boolean;
}

/** @param file - an open file that is not empty */
export function readMetaPages(file: number): MetaPages {
  const [first, second] = readBoth(file);
  const newest = newestOf(first, second);
  // In the file of a copy the first is that of an empty store, which nobody returns to.
  if (newest === undefined || (newest.transaction === 0 && newest !== second))
    return damaged("has no whole meta page: it was overwritten or cut short, or was never a store");
  if (first === undefined || second === undefined || newest.transaction < Math.max(first.transaction, second.transaction))
    return damaged(`has a damaged meta page (page ${newest === first ? 1 : 0})`, { canBeMended: true });
  // A power cut leaves any of the pages that nobody has flushed.
  const isInStep = Math.abs(first.transaction - second.transaction) <= 1 || !newest.isFlushed;
  if (!isInStep && first.transaction > 0 && second.transaction > 0) return damaged("has two meta pages that contradict each other");
  return { kind: "whole", meta: newest, flushed: newest.isFlushed ? undefined : readFlushed(file) };
}

export function damaged(reason: string, { canBeMended = false } = {}): Damaged {
  return { kind: "damaged", reason, canBeMended };
}

/** The one that leads to the newest state; undefined when neither leads to any. */
function newestOf(first: MetaPage | undefined, second: MetaPage | undefined): Meta | undefined {
  const usable = [second, first].filter((page): page is Meta => page?.trees !== undefined);
  return usable.toSorted((a, b) => b.transaction - a.transaction)[0];
}

/** Both meta pages, undefined for one that is none. */
function readBoth(file: number): [MetaPage | undefined, MetaPage | undefined] {
  const [first, second] = [readMeta(file, 0), readMeta(file, 1)];
  // Transactions write them in turn. Where none has written the one, the other can be of any.
  const isOutOfTurn = (page: MetaPage | undefined, index: number, other: MetaPage | undefined) =>
    page !== undefined && other !== undefined && other.transaction > 0 && page.transaction % META_PAGES !== index;
  return [isOutOfTurn(first, 0, second) ? undefined : first, isOutOfTurn(second, 1, first) ? undefined : second];
}

function readMeta(file: number, index: number): MetaPage | undefined {
  const bytes = readMetaBytes(file, index * PAGE_BYTES);
  if (bytes?.readBigUInt64LE(0) !== BigInt(index) || bytes.readUInt16LE(18) !== META_FLAG) return undefined;
  if (bytes.readUInt32LE(HEAD_BYTES) !== MAGIC || bytes.readUInt16LE(HEAD_BYTES + 4) !== VERSION) return undefined;
  return metaOf(bytes);
}

/** lmdb-js writes the last state that it has flushed into the second half of page 0, without the head and what never changes. */
function readFlushed(file: number): Meta | undefined {
  const bytes = readMetaBytes(file, PAGE_BYTES / 2);
  const meta = bytes && metaOf(bytes);
  return meta?.trees !== undefined && meta.transaction > 0 ? { ...meta, trees: meta.trees } : undefined;
}

function readMetaBytes(file: number, offset: number): Buffer | undefined {
  const bytes = Buffer.alloc(META_BYTES);
  return readSync(file, bytes, 0, META_BYTES, offset) === META_BYTES ? bytes : undefined;
}

function metaOf(bytes: Buffer): MetaPage | undefined {
  const [lastPage, transaction] = [Number(bytes.readBigUInt64LE(LAST_PAGE)), Number(bytes.readBigUInt64LE(TRANSACTION))];
  if (bytes.readUInt32LE(FREE_TREE) !== PAGE_BYTES || lastPage < META_PAGES - 1) return undefined;
  if (!Number.isSafeInteger(lastPage) || !Number.isSafeInteger(transaction)) return undefined;
  const [free, names] = [treeAt(bytes, FREE_TREE, lastPage), treeAt(bytes, NAMES_TREE, lastPage)];
  const isFlushed = (bytes.readUInt16LE(FREE_TREE + 4) & NOT_FLUSHED) === 0;
  return { lastPage, transaction, isFlushed, trees: free === undefined || names === undefined ? undefined : { free, names } };
}

/** @returns undefined for an impossible one */
export function treeAt(bytes: Buffer, offset: number, lastPage: number): Tree | undefined {
  const root = bytes.readBigUInt64LE(offset + 40);
  const depth = bytes.readUInt16LE(offset + 6);
  const entries = Number(bytes.readBigUInt64LE(offset + 32));
  if (root === NO_PAGE) return depth === 0 && entries === 0 ? { depth, entries, root: undefined } : undefined;
  return root >= META_PAGES && root <= lastPage && depth > 0 ? { depth, entries, root: Number(root) } : undefined;
}

/**
 * Writes the whole one of two meta pages over the damaged one, as the state before it: LMDB continues from the whole one.
 * At most the last commit is lost. The caller has locked the directory.
 */
export function repairMeta(path: string): void {
  const file = openSync(path, "r+");
  try {
    const [first, second] = readBoth(file);
    const meta = newestOf(first, second);
    const good = meta === first ? 0 : 1;
    const bytes = readMetaBytes(file, good * PAGE_BYTES);
    if (meta === undefined || bytes === undefined) throw new Error("There is no whole meta page.");
    bytes.writeBigUInt64LE(BigInt(1 - good), 0);
    bytes.writeBigUInt64LE(BigInt(Math.max(0, meta.transaction - 1)), TRANSACTION);
    writeSync(file, bytes, 0, META_BYTES, (1 - good) * PAGE_BYTES);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** The file of an empty store, as LMDB itself begins one. */
export function emptyDataFile(): Buffer {
  const bytes = Buffer.alloc(META_PAGES * PAGE_BYTES);
  for (let page = 0; page < META_PAGES; page++) {
    const at = page * PAGE_BYTES;
    bytes.writeBigUInt64LE(BigInt(page), at);
    bytes.writeUInt16LE(META_FLAG, at + 18);
    bytes.writeUInt32LE(MAGIC, at + HEAD_BYTES);
    bytes.writeUInt32LE(VERSION, at + HEAD_BYTES + 4);
    bytes.writeBigUInt64LE(FIRST_MAP_BYTES, at + 40);
    bytes.writeUInt32LE(PAGE_BYTES, at + FREE_TREE);
    bytes.writeUInt16LE(INTEGER_KEYS, at + FREE_TREE + 4);
    for (const tree of [FREE_TREE, NAMES_TREE]) bytes.writeBigUInt64LE(NO_PAGE, at + tree + 40);
    bytes.writeBigUInt64LE(BigInt(META_PAGES - 1), at + LAST_PAGE);
  }
  return bytes;
}
