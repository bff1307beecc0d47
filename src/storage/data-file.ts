/**
 * The file of the store as bytes, read without LMDB: whether it is whole enough to be mapped, and an empty one.
 *
 * LMDB trusts its file. It maps it and follows what is there, so that a file that is too short ends the process with SIGBUS,
 * and of two meta pages it takes the one with the higher number even if that one is damaged. So the ends of the file are
 * looked at before it is mapped; what lies between them is checked page by page, here in `pages.ts` and in LMDB as it reads.
 *
 * ```
 * page     its number u64, the transaction that wrote it u64, unused u16, flags u16, then for a tree's page where its free
 *          room begins and ends, u16 each, for a large value its length in pages u32
 * meta     pages 0 and 1, written in turn: after the head magic u32, version u32, unused u64, size of the map u64, the trees
 *          of free pages and of table names, the last page u64, the transaction u64
 * tree     page size (of the first) u32, flags u16, depth u16, pages u64 three times, entries u64, root page u64
 * ```
 *
 * @module
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** The store's own directory and its two files, inside a data directory. */
export const STORE_DIRECTORY = "store";
export const DATA_FILE = join(STORE_DIRECTORY, "data.mdb");
export const LOCK_FILE = join(STORE_DIRECTORY, "lock.mdb");

const META_PAGES = 2;
export const HEAD_BYTES = 24;
const META_BYTES = 168;
const META_FLAG = 0x08;
const MAGIC = 0xbeefc0de;
const VERSION = 2;
/** Flags of the tree of free pages: its keys are numbers. */
const INTEGER_KEYS = 0x08;
/** And of lmdb-js: nobody has waited for the flush of this state, as in a store that is written relaxed. */
const NOT_FLUSHED = 0x1000;
const NO_PAGE = 0xffff_ffff_ffff_ffffn;
/** Page size of a new file; LMDB reads others too. */
const PAGE_BYTES = 4_096;
const PAGE_BYTES_MIN = 512;
const PAGE_BYTES_MAX = 65_536;
const FIRST_MAP_BYTES = 128n * 1024n;

/** One of LMDB's trees, as its record has it. */
export interface Tree {
  /** How many levels of pages it has. */
  depth: number;
  entries: number;
  /** undefined for an empty one. */
  root: number | undefined;
}

/** What a meta page says, if it is one. */
interface MetaPage {
  pageBytes: number;
  lastPage: number;
  transaction: number;
  isFlushed: boolean;
  /** undefined where they cannot be what it says: so LMDB leaves a page that it could not write, which the other one outdates. */
  trees: { free: Tree; names: Tree } | undefined;
}

/** The state of the store that a meta page leads to. */
export interface Meta extends MetaPage {
  trees: { free: Tree; names: Tree };
}

/** What the ends of the file say; `flushed` is the state before that LMDB goes back to when the newest one was not flushed. */
export type DataFile =
  /** `fileBytes` may be less than the last page asks for: LMDB does not write free pages at the end. */
  | { kind: "whole"; meta: Meta; fileBytes: number; flushed: Meta | undefined }
  /** There is none, and never was. */
  | { kind: "none" }
  | { kind: "damaged"; reason: string; canBeMended: boolean };

/** A server may write one meta page after the other between two reads of them. */
const ATTEMPTS = 5;
const ATTEMPT_MS = 5;

/** Reads the ends of the file. To read the same state afterwards, pin its pages first (`pinPages`). */
export function readDataFile(path: string): DataFile {
  for (let attempt = 1; ; attempt++) {
    const found = readOnce(path);
    if (found.kind !== "damaged" || attempt === ATTEMPTS) return found;
    Bun.sleepSync(ATTEMPT_MS);
  }
}

function readOnce(path: string): DataFile {
  if (!existsSync(path)) {
    const left = namesIn(dirname(path)).filter((name) => !name.startsWith(DRAFT));
    if (left.length === 0) return { kind: "none" };
    return damaged(`is missing, though other files of a store are there (${left.join(", ")})`);
  }
  // Opening a named pipe would wait for somebody who writes to it.
  const entry = statSync(path);
  if (!entry.isFile()) return damaged(`is no file, but ${entry.isDirectory() ? "a directory" : "something else"}`);
  const file = openSync(path, "r");
  try {
    const [first, second] = readMetas(file);
    const { size: fileBytes } = fstatSync(file);
    if (fileBytes === 0) return damaged("is empty, though there was a store");
    const newest = newestOf(first, second);
    // In the file of a copy the first is that of an empty store, which nobody goes back to.
    if (newest === undefined || (newest.transaction === 0 && newest !== second))
      return damaged("has no whole meta page: it was overwritten or cut short, or was never a store");
    if (first === undefined || second === undefined || newest.transaction < Math.max(first.transaction, second.transaction))
      return damaged(`has a damaged meta page (page ${newest === first ? 1 : 0})`, { canBeMended: true });
    // Of pages that nobody has flushed a power cut leaves any.
    const isInStep = Math.abs(first.transaction - second.transaction) <= 1 || !newest.isFlushed;
    if (!isInStep && first.transaction > 0 && second.transaction > 0) return damaged("has two meta pages that contradict each other");
    return { kind: "whole", meta: newest, fileBytes, flushed: newest.isFlushed ? undefined : readFlushed(file, newest.pageBytes) };
  } finally {
    closeSync(file);
  }
}

/** The one that leads to the newest state; undefined when neither leads to any. */
function newestOf(first: MetaPage | undefined, second: MetaPage | undefined): Meta | undefined {
  const usable = [second, first].filter((page): page is Meta => page?.trees !== undefined);
  return usable.toSorted((a, b) => b.transaction - a.transaction)[0];
}

function damaged(reason: string, { canBeMended = false } = {}): DataFile {
  return { kind: "damaged", reason, canBeMended };
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}

/** Both meta pages, undefined for one that is none. */
function readMetas(file: number): [MetaPage | undefined, MetaPage | undefined] {
  const [first, second] = readEach(file);
  if (first === undefined || second === undefined) return [first, second];
  // Transactions write them in turn; 0 is one that none has written, and then the other can be of any.
  const isInTurn = ({ transaction }: MetaPage, index: number, other: MetaPage) =>
    other.transaction === 0 || transaction % META_PAGES === index;
  const [isFirst, isSecond] = [isInTurn(first, 0, second), isInTurn(second, 1, first)];
  return [isFirst || !isSecond ? first : undefined, isSecond || !isFirst ? second : undefined];
}

function readEach(file: number): [MetaPage | undefined, MetaPage | undefined] {
  const first = readMeta(file, 0, 0);
  if (first !== undefined) return [first, readMeta(file, 1, first.pageBytes)];
  for (let pageBytes = PAGE_BYTES_MIN; pageBytes <= PAGE_BYTES_MAX; pageBytes *= 2) {
    const second = readMeta(file, 1, pageBytes);
    if (second?.pageBytes === pageBytes) return [undefined, second];
  }
  return [undefined, undefined];
}

/** lmdb-js writes the last state that it has flushed into the second half of page 0, without the head and what never changes. */
function readFlushed(file: number, pageBytes: number): Meta | undefined {
  const bytes = new Uint8Array(META_BYTES);
  if (readSync(file, bytes, 0, META_BYTES, pageBytes / 2) < META_BYTES) return undefined;
  const meta = metaOf(new DataView(bytes.buffer));
  return meta?.trees !== undefined && meta.pageBytes === pageBytes && meta.transaction > 0 ? { ...meta, trees: meta.trees } : undefined;
}

function readMeta(file: number, index: number, offset: number): MetaPage | undefined {
  const bytes = new Uint8Array(META_BYTES);
  if (readSync(file, bytes, 0, META_BYTES, offset) < META_BYTES) return undefined;
  const view = new DataView(bytes.buffer);
  if (view.getBigUint64(0, true) !== BigInt(index) || view.getUint16(18, true) !== META_FLAG) return undefined;
  if (view.getUint32(HEAD_BYTES, true) !== MAGIC || (view.getUint32(HEAD_BYTES + 4, true) & 0xffff) !== VERSION) return undefined;
  return metaOf(view);
}

function metaOf(view: DataView): MetaPage | undefined {
  const pageBytes = view.getUint32(48, true);
  const isPower = pageBytes >= PAGE_BYTES_MIN && pageBytes <= PAGE_BYTES_MAX && (pageBytes & (pageBytes - 1)) === 0;
  const lastPage = Number(view.getBigUint64(144, true));
  const transaction = Number(view.getBigUint64(152, true));
  const [free, names] = [treeAt(view, 48, lastPage), treeAt(view, 96, lastPage)];
  if (!isPower || lastPage < META_PAGES - 1) return undefined;
  if (!Number.isSafeInteger(lastPage) || !Number.isSafeInteger(transaction)) return undefined;
  const isFlushed = (view.getUint16(52, true) & NOT_FLUSHED) === 0;
  return { pageBytes, lastPage, transaction, isFlushed, trees: free === undefined || names === undefined ? undefined : { free, names } };
}

/** @returns undefined for one that cannot be */
export function treeAt(view: DataView, offset: number, lastPage: number): Tree | undefined {
  const root = view.getBigUint64(offset + 40, true);
  const depth = view.getUint16(offset + 6, true);
  const entries = Number(view.getBigUint64(offset + 32, true));
  if (root === NO_PAGE) return depth === 0 && entries === 0 ? { depth, entries, root: undefined } : undefined;
  return root >= META_PAGES && root <= lastPage && depth > 0 ? { depth, entries, root: Number(root) } : undefined;
}

/**
 * Writes the whole one of two meta pages over the damaged one, as the state before it: LMDB continues from the whole one.
 * At most the last commit is missing then. The caller has locked the directory.
 */
export function mendMeta(dataDirectory: string): void {
  const file = openSync(join(dataDirectory, DATA_FILE), "r+");
  try {
    const [first, second] = readMetas(file);
    const meta = newestOf(first, second);
    if (meta === undefined) throw new Error("There is no whole meta page.");
    const good = meta === first ? 0 : 1;
    const bytes = new Uint8Array(META_BYTES);
    readSync(file, bytes, 0, META_BYTES, good * meta.pageBytes);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, BigInt(1 - good), true);
    view.setBigUint64(152, BigInt(Math.max(0, meta.transaction - 1)), true);
    writeSync(file, bytes, 0, META_BYTES, (1 - good) * meta.pageBytes);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

const DRAFT = "new-";

/**
 * Makes the file of an empty store, unless there is one by then. It appears whole: an empty file, or a store directory
 * with other files and without it, is never what an interrupted start has left.
 */
export function createDataFile(dataDirectory: string): void {
  if (existsSync(join(dataDirectory, DATA_FILE))) return;
  const directory = join(dataDirectory, STORE_DIRECTORY);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const draft = join(directory, `${DRAFT}${process.pid}`);
  try {
    const file = openSync(draft, "w", 0o600);
    try {
      writeSync(file, emptyFile());
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    nameFile(draft, join(dataDirectory, DATA_FILE));
  } finally {
    rmSync(draft, { force: true });
  }
  for (const path of [directory, dataDirectory]) flushDirectory(path);
}

/** What LMDB's table of readers takes. */
const LOCK_BYTES = 8_272;

/**
 * Makes LMDB's lock file with all of its bytes on the disk. LMDB makes one of holes and maps it: where the disk is full the
 * first write to it would end the process (SIGBUS).
 *
 * @throws {Error} when the disk does not take it
 */
export function createLockFile(dataDirectory: string): void {
  const path = join(dataDirectory, LOCK_FILE);
  if (existsSync(path)) return;
  const draft = `${join(dataDirectory, STORE_DIRECTORY, DRAFT)}lock-${process.pid}`;
  try {
    writeFileSync(draft, new Uint8Array(LOCK_BYTES), { mode: 0o600, flush: true });
    nameFile(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Leaves a file alone that is there already. */
function nameFile(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    // There are file systems without links.
    if (!existsSync(path)) renameSync(draft, path);
    else if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

/** As LMDB itself begins one. */
function emptyFile(): Uint8Array {
  const bytes = new Uint8Array(META_PAGES * PAGE_BYTES);
  for (let page = 0; page < META_PAGES; page++) {
    const view = new DataView(bytes.buffer, page * PAGE_BYTES);
    view.setBigUint64(0, BigInt(page), true);
    view.setUint16(18, META_FLAG, true);
    view.setUint32(HEAD_BYTES, MAGIC, true);
    view.setUint32(HEAD_BYTES + 4, VERSION, true);
    view.setBigUint64(40, FIRST_MAP_BYTES, true);
    view.setUint32(48, PAGE_BYTES, true);
    view.setUint16(52, INTEGER_KEYS, true);
    for (const tree of [48, 96]) view.setBigUint64(tree + 40, NO_PAGE, true);
    view.setBigUint64(144, BigInt(META_PAGES - 1), true);
  }
  return bytes;
}

function flushDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
