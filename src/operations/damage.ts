/**
 * Reads every page and every row of a data file without LMDB, and says what of it is damaged.
 *
 * Backup and restore check the copy they have made, and doctor the file itself.
 *
 * @module
 */
import { join, resolve } from "node:path";
import { lockDirectory } from "../storage/lmdb/directory/directory-lock.ts";
import { DATA_FILE, readDataFile } from "../storage/lmdb/file/data-file.ts";
import { repairMeta } from "../storage/lmdb/file/meta-pages.ts";
import { assertMetaPages, Pages } from "../storage/lmdb/file/pages.ts";
import { pinPages } from "../storage/lmdb/environment.ts";
import { VECTOR_TABLES } from "../storage/tables.ts";
import { isEmbedding } from "../search/encoding.ts";
import { RECORDS, type RecordTable } from "./records.ts";
import { Findings, type Finding, type OnProgress } from "./report.ts";

const BY_NAME = new Map(RECORDS.map((table) => [table.name, table]));

export interface FileCheck {
  findings: Finding[];
  /** Rows of tables that cannot be read, of the `records` that should be there; rows of indexes are not counted. */
  lostRecords: number;
  records: number;
}

/**
 * A store with relaxed durability is whole when the last flushed state is: a start returns to that one.
 *
 * @param rows - `decode`: whether rows have to be readable by this version, too
 */
export function checkFile(path: string, rows: { decode: boolean }, onProgress?: OnProgress): FileCheck {
  using newest = new Pages(path);
  const check = checkPages(newest, rows, onProgress);
  if (check.findings.length === 0) return check;
  using flushed = new Pages(path, "flushed");
  const checkOfFlushed = checkPages(flushed, rows, onProgress);
  return checkOfFlushed.findings.length === 0 ? checkOfFlushed : check;
}

function checkPages(pages: Pages, { decode }: { decode: boolean }, onProgress: OnProgress | undefined): FileCheck {
  const tables = pages.tables();
  const findings = new Findings();
  const total = tables.reduce((sum, { entries }) => sum + entries, 0);
  let done = 0;
  let lostRecords = 0;
  let records = 0;
  for (const table of tables) {
    const { name, entries } = table;
    const of = BY_NAME.get(name);
    let unread = entries;
    let unreadable = 0;
    for (const { key, value } of pages.rows(table)) {
      unread--;
      onProgress?.(++done, total);
      if (!decode || isReadable(name, of, value)) continue;
      unreadable++;
      findings.add(`${name}: rows that cannot be read`, [key]);
    }
    if (unread !== 0) findings.add(`${name}: rows that cannot be reached, of ${entries}`, [], { count: Math.abs(unread) });
    if (of === undefined) continue;
    records += entries;
    lostRecords += Math.max(0, unread) + unreadable;
  }
  const lostTables = Math.abs(pages.tableCount - tables.length);
  if (lostTables > 0) findings.add("tables that cannot be found", [], { count: lostTables });
  pages.walkFreeList();
  const damage = new Findings();
  for (const { table, page, reason } of pages.damage)
    damage.add(`damaged pages of ${table ?? "the file itself"}`, [`page ${page}: ${reason}`]);
  return { findings: [...damage.all, ...findings.all], lostRecords, records };
}

/**
 * Calls back with the path of the data file, whose present pages stay as they are until `work` is done.
 *
 * @throws {DamagedStoreError} when its meta pages are damaged
 */
export async function withDataFile<Result>(dataDirectory: string, work: (path: string) => Result | Promise<Result>): Promise<Result> {
  assertMetaPages(dataDirectory);
  await using _ = pinPages(dataDirectory);
  return await work(join(dataDirectory, DATA_FILE));
}

/** Repairs a damaged meta page, if the other one is whole. @returns what was done */
export function repairMetaPages(dataDirectory: string): string | undefined {
  const path = join(dataDirectory, DATA_FILE);
  const found = readDataFile(path);
  if (found.kind !== "damaged" || !found.canBeMended) return undefined;
  using _ = lockDirectory(resolve(dataDirectory));
  repairMeta(path);
  return `${DATA_FILE} ${found.reason}: it is repaired from the other one. At most the last change is lost.`;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of a row; undefined when it is none. */
export function textOf(value: Buffer): string | undefined {
  try {
    return utf8.decode(value);
  } catch {
    return undefined;
  }
}

function isReadable(name: string, of: RecordTable | undefined, value: Buffer): boolean {
  // Copied, so that its numbers begin at a multiple of four bytes.
  if (VECTOR_TABLES.some((table) => table.name === name)) return isEmbedding(new Uint8Array(value));
  const text = textOf(value);
  if (text === undefined || of === undefined) return text !== undefined;
  try {
    JSON.parse(of.toExport(text));
    return true;
  } catch {
    return false;
  }
}
