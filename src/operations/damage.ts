/**
 * Reads every page and every row of a store's file, without LMDB: what of it is damaged, and what can still be read.
 *
 * A backup and a restore go through here with the copy they have made, and doctor with the file itself.
 *
 * @module
 */
import { join, resolve } from "node:path";
import { lockDirectory } from "../storage/directory-lock.ts";
import { DATA_FILE, mendMeta, readDataFile } from "../storage/data-file.ts";
import { damageText, DamagedStoreError, Pages, type Damage } from "../storage/pages.ts";
import { pinPages } from "../storage/store.ts";
import { isEmbedding } from "../vectors/encoding.ts";
import { vectors } from "../storage/tables.ts";
import { RECORDS, type RecordTable } from "./records.ts";
import { EXAMPLES_MAX, type Finding, type OnProgress } from "./report.ts";

const BY_NAME = new Map(RECORDS.map((of) => [of.table.name, of]));

/** What is wrong with a file. */
export interface FileCheck {
  findings: Finding[];
  /** Rows of tables that cannot be read, of those that are said to be there; rows of indexes are not counted. */
  lostRecords: number;
  records: number;
}

/**
 * A store that is written relaxed is whole when the last state that was flushed is: a start goes back to that one.
 *
 * @param rows - `decode`: whether rows have to be those of this version too
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
  const findings: Finding[] = [];
  const total = tables.reduce((sum, { entries }) => sum + entries, 0);
  let done = 0;
  let lostRecords = 0;
  let records = 0;
  for (const table of tables) {
    const of = BY_NAME.get(table.name);
    const unreadable: string[] = [];
    let read = 0;
    for (const { key, value } of pages.rows(table)) {
      read++;
      onProgress?.(++done, total);
      if (decode && !isReadable(table.name, of, value)) unreadable.push(key);
    }
    const lost = table.entries - read;
    if (lost !== 0) findings.push(findingOf(`${table.name}: rows that cannot be reached, of ${table.entries}`, [], Math.abs(lost)));
    if (unreadable.length > 0) findings.push(findingOf(`${table.name}: rows that cannot be read`, unreadable, unreadable.length));
    if (of === undefined) continue;
    records += table.entries;
    lostRecords += Math.max(0, lost) + unreadable.length;
  }
  const lostTables = pages.tableCount - tables.length;
  if (lostTables !== 0) findings.push(findingOf("tables that cannot be found", [], Math.abs(lostTables)));
  pages.walkFreeList();
  return { findings: [...findingsOf(pages.damage), ...findings], lostRecords, records };
}

/**
 * Has the file of a data directory read by something else than LMDB, beside a running server too.
 *
 * @throws {DamagedStoreError} when the ends of the file are damaged
 */
export async function withDataFile<Result>(dataDirectory: string, work: (path: string) => Result | Promise<Result>): Promise<Result> {
  const path = join(dataDirectory, DATA_FILE);
  const found = readDataFile(path);
  if (found.kind === "damaged") throw new DamagedStoreError(damageText(dataDirectory, found));
  await using _ = pinPages(dataDirectory);
  return await work(path);
}

/** Mends the ends of the file, if they can be. @returns what was done */
export function mendEnds(dataDirectory: string): string | undefined {
  const found = readDataFile(join(dataDirectory, DATA_FILE));
  if (found.kind !== "damaged" || !found.canBeMended) return undefined;
  using _ = lockDirectory(resolve(dataDirectory));
  mendMeta(dataDirectory);
  return `${DATA_FILE} ${found.reason}: it is mended from the other one. At most the last change is lost.`;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of a row; undefined when it is none. */
export function textOf(value: Uint8Array): string | undefined {
  try {
    return utf8.decode(value);
  } catch {
    return undefined;
  }
}

function isReadable(name: string, of: RecordTable | undefined, value: Uint8Array): boolean {
  // Its parts are read where they stand, for which they have to begin at a multiple of four bytes.
  if (name === vectors.name) return isEmbedding(value.slice());
  const text = textOf(value);
  if (text === undefined || of === undefined) return text !== undefined;
  try {
    JSON.parse(of.write(text));
    return true;
  } catch {
    return false;
  }
}

/** The damaged pages of each table together. */
function findingsOf(damage: readonly Damage[]): Finding[] {
  const byPlace = new Map<string, { examples: string[]; count: number }>();
  for (const { table, page, reason } of damage) {
    const place = table === undefined ? "pages of the file itself" : `pages of ${table}`;
    const finding = byPlace.get(place) ?? { examples: [], count: 0 };
    byPlace.set(place, finding);
    finding.count++;
    if (finding.examples.length < EXAMPLES_MAX) finding.examples.push(`page ${page}: ${reason}`);
  }
  return [...byPlace].map(([place, { examples, count }]) => findingOf(`damaged ${place}`, examples, count));
}

function findingOf(what: string, examples: readonly string[], count: number): Finding {
  return { what, count, examples: examples.slice(0, EXAMPLES_MAX), canBeMended: false };
}
