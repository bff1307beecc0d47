import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checksumOf, PartReader, writeParts } from "../../../src/search/snapshot/snapshot-file.ts";

function fileIn(): { path: string } & Disposable {
  const directory = mkdtempSync(join(tmpdir(), "parts-"));
  return { path: join(directory, "file"), [Symbol.dispose]: () => rmSync(directory, { recursive: true }) };
}

const PARTS = [Uint8Array.of(1, 2, 3), new Uint8Array(0), new Uint8Array(new SharedArrayBuffer(70_000)).fill(7), Uint8Array.of(4)];

/** Reads the parts again, the third of them to where the caller wants it. */
function readParts(path: string) {
  using file = new PartReader(path);
  const wanted = new Uint8Array(new SharedArrayBuffer(80_000));
  const first = [file.take(3), file.take(0)];
  file.readInto(wanted.subarray(5_000, 75_000));
  return { parts: [...first, wanted.slice(5_000, 75_000), file.take(1)], left: file.left, checksum: file.checksum };
}

test("parts are read as they were written, with the same checksum", () => {
  using file = fileIn();
  const written = writeParts(file.path, PARTS);
  expect(readParts(file.path)).toEqual({ parts: PARTS.map((part) => part.slice()), left: 0, checksum: written });
  expect(written.bytes).toBe(70_004);
});

test("a bit that is changed in any part changes the checksum", () => {
  using file = fileIn();
  const { xxh3 } = writeParts(file.path, PARTS);
  const whole = readFileSync(file.path);
  const seen = new Set([xxh3]);
  for (const at of [0, 2, 3, 40_000, 70_002, 70_003]) {
    const bytes = Buffer.from(whole);
    bytes[at]! ^= 1;
    writeFileSync(file.path, bytes);
    seen.add(readParts(file.path).checksum.xxh3);
  }
  expect(seen.size).toBe(7);
});

test("parts that are not there are refused before memory is taken for them", () => {
  using file = fileIn();
  writeParts(file.path, PARTS);
  truncateSync(file.path, 50_000);
  expect(() => readParts(file.path)).toThrow(RangeError);
  using reader = new PartReader(file.path);
  expect(() => reader.take(2 ** 32)).toThrow("of 4294967296 bytes the file has 50000");
});

test("a file of any length has a checksum, which another length or byte changes", async () => {
  using file = fileIn();
  const seen = new Set<string>();
  // Longer than what is read at a time, and than what is read in a turn.
  const bytes = new Uint8Array(70 * 1024 * 1024 + 5);
  for (const length of [0, 1, 1024 * 1024, 1024 * 1024 + 1, bytes.length - 1, bytes.length]) {
    writeFileSync(file.path, bytes.subarray(0, length));
    const checksum = await checksumOf(file.path);
    expect(checksum.bytes).toBe(length);
    seen.add(checksum.xxh3);
  }
  for (const at of [0, bytes.length >> 1, bytes.length - 1]) {
    bytes[at] = 1;
    writeFileSync(file.path, bytes);
    seen.add((await checksumOf(file.path)).xxh3);
  }
  expect(seen.size).toBe(9);
});

test("a start that is stopped reads the graph no further", async () => {
  using file = fileIn();
  writeFileSync(file.path, new Uint8Array(70 * 1024 * 1024));
  const signal = AbortSignal.abort(new Error("stopped"));
  expect(await checksumOf(file.path, signal).catch((error: unknown) => error)).toMatchObject({ message: "stopped" });
});
