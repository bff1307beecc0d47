import { afterEach, beforeEach, expect, test } from "bun:test";
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_PARTITION } from "../../../src/lib/ids.ts";
import { createFiles, DATA_FILE, readDataFile } from "../../../src/storage/lmdb/file/data-file.ts";
import { assertMappable, Pages } from "../../../src/storage/lmdb/file/pages.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { payloads, TABLES, VECTOR_TABLES } from "../../../src/storage/tables.ts";
import { FakeClock } from "../../support/clock.ts";

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), "cairn-pages-"))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const file = () => join(directory, DATA_FILE);

/** Rows enough for branches, values of several pages, and pages that are free again. */
async function fill(): Promise<Map<string, string>> {
  const store = await Store.open(directory, new FakeClock());
  const rows = new Map<string, string>();
  for (let round = 0; round < 4; round++) {
    await store.commit(NO_PARTITION, (tx) => {
      for (let i = 0; i < 2_000; i++) {
        const [key, row] = [`${i}`.padStart(6, "0"), "é".repeat(i % 50 === 0 ? i * 4 : i % 60)];
        if (i % 7 === round) {
          tx.remove(payloads, key);
          rows.delete(key);
        } else {
          tx.put(payloads, key, row);
          rows.set(key, row);
        }
      }
    });
  }
  await store.close();
  return rows;
}

function read(): { rows: Map<string, string>; damage: number; names: string[] } {
  using pages = new Pages(file());
  const tables = pages.tables();
  const rows = new Map<string, string>();
  for (const table of tables) {
    for (const { key, value } of pages.rows(table)) if (table.name === payloads.name) rows.set(key, Buffer.from(value).toString());
  }
  pages.walkFreeList();
  return { rows, damage: pages.damage.length, names: tables.map(({ name }) => name) };
}

test("page by page the file has the rows that LMDB gives, and nothing in it is damaged", async () => {
  const rows = await fill();
  const found = read();
  expect(found.damage).toBe(0);
  expect([...found.rows]).toEqual([...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  expect(found.names.toSorted()).toEqual([...TABLES, ...VECTOR_TABLES].map(({ name }) => name).toSorted());
});

test("any page that is zeros is named, and every row that is not on it or below it is still found", async () => {
  const rows = await fill();
  const whole = readFileSync(file());
  let damaged = 0;
  for (let page = 2; page < whole.length / 4096; page += 3) {
    const bytes = Buffer.from(whole);
    bytes.fill(0, page * 4096, (page + 1) * 4096);
    writeFileSync(file(), bytes);
    const found = read();
    if (found.damage > 0) damaged++;
    // The pages of a large value behind its first one say nothing about themselves.
    const wrong = [...found.rows].filter(([key, row]) => row.length < 100 && row !== rows.get(key));
    expect(wrong).toEqual([]);
    if (found.damage === 0) expect(found.rows.size).toBe(rows.size);
  }
  expect(damaged).toBeGreaterThan(10);
});

test("a file that is made is an empty store for LMDB, and one that is there is left alone", async () => {
  await createFiles(directory);
  expect(readDataFile(file())).toMatchObject({ kind: "whole", meta: { trees: { names: { root: undefined } }, transaction: 0 } });
  const store = await Store.open(directory, new FakeClock());
  await store.commit(NO_PARTITION, (tx) => tx.put(payloads, "key", "row"));
  await store.close();
  await createFiles(directory);
  const again = await Store.open(directory, new FakeClock());
  expect(again.latest.get(payloads, "key")).toBe("row");
  await again.close();
  expect(readdirSync(join(directory, "store")).toSorted()).toEqual(["data.mdb", "lock.mdb"]);
});

test("where there never was a store none is missed; where other files of one are, its file is", () => {
  expect(() => assertMappable(directory)).not.toThrow();
  mkdirSync(join(directory, "store"));
  expect(() => assertMappable(directory)).not.toThrow();
  writeFileSync(join(directory, "store", "new-17"), "of a start that was killed");
  expect(() => assertMappable(directory)).not.toThrow();
  writeFileSync(join(directory, "store", "lock.mdb"), "");
  expect(() => assertMappable(directory)).toThrow("is missing, though other files of a store are there (lock.mdb)");
});

test("a file that is shorter than its last page is whole as long as only free pages are missing", async () => {
  await fill();
  const { length } = readFileSync(file());
  const found = readDataFile(file());
  if (found.kind !== "whole") throw new Error("not whole");
  // LMDB says a last page that it has not written yet.
  const handle = openSync(file(), "r+");
  const last = Buffer.alloc(8);
  last.writeBigUInt64LE(BigInt(length / 4096 + 10));
  for (const meta of [0, 1]) writeSync(handle, last, 0, 8, meta * 4096 + 144);
  closeSync(handle);
  expect(() => assertMappable(directory)).not.toThrow();
  writeFileSync(file(), readFileSync(file()).subarray(0, 40 * 4096));
  expect(() => assertMappable(directory)).toThrow("has been cut short. Nothing was changed. cairn doctor says what is lost.");
});

test("that free pages are missing is told by their list, and that one in use is missing by all pages", async () => {
  const store = await Store.open(directory, new FakeClock());
  for (let i = 0; i < 10; i++) await store.commit(NO_PARTITION, (tx) => tx.put(payloads, "small", `${i}`));
  // What was large leaves free pages at the end: later changes are written to those before it.
  await store.commit(NO_PARTITION, (tx) => tx.put(payloads, "large", "x".repeat(400_000)));
  await store.commit(NO_PARTITION, (tx) => tx.remove(payloads, "large"));
  for (let i = 0; i < 10; i++) await store.commit(NO_PARTITION, (tx) => tx.put(payloads, "small", `${i}`));
  await store.close();
  const whole = readFileSync(file());
  const cutTo = (pages: number) => writeFileSync(file(), whole.subarray(0, pages * 4096));
  const missesOnlyFreePages = () => {
    using pages = new Pages(file());
    return pages.missesOnlyFreePages();
  };
  let pages = whole.length / 4096;
  for (let fewer = pages - 1; cutTo(fewer), missesOnlyFreePages(); fewer--) pages = fewer;
  expect(whole.length / 4096 - pages).toBeGreaterThan(50);
  cutTo(pages);
  expect(() => assertMappable(directory)).not.toThrow();
  expect(read().damage).toBe(0);
  cutTo(pages - 1);
  expect(() => assertMappable(directory)).toThrow("has been cut short");
});
