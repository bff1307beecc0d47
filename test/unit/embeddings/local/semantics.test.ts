import { expect, test } from "bun:test";
import { MEANING_DIMENSION, Semantics, semantics } from "../../../../src/embeddings/local/semantics.ts";

/** A table of the stems 10, cup and tea, where tea and cup are neighbours and `teas` is an irregular form of tea. */
function smallTable(): Uint8Array {
  const rows = ["10", "cup", "tea"];
  const text = (content: string) => new TextEncoder().encode(content);
  const header = Uint32Array.of(rows.length, MEANING_DIMENSION, 2, rows.join("\n").length, "teas tea".length);
  const codes = rows.flatMap((_, row) => Array.from({ length: MEANING_DIMENSION / 2 }, (_, i) => (i === row ? 0x9f : 0x88))); // 7 and 1, or 0
  const neighbours = Uint16Array.of(65535, 65535, 2, 65535, 1, 65535);
  const parts = [text("CSV2"), header, text(rows.join("\n")), text("teas tea"), [100, 90, 0], codes, neighbours, [0, 0, 51, 0, 51, 0]];
  return Buffer.concat(parts.map((part) => (ArrayBuffer.isView(part) ? new Uint8Array(part.buffer) : Uint8Array.from(part))));
}

test("a table gives back its stems, irregular forms, weights and neighbours", () => {
  const table = new Semantics(smallTable());
  expect(["10", "cup", "tea", "milk", ""].map((stem) => table.row(stem))).toEqual([0, 1, 2, -1, -1]);
  expect([0, 1, 2].map((row) => table.stem(row))).toEqual(["10", "cup", "tea"]);
  expect([table.irregular("teas"), table.irregular("cups")]).toEqual(["tea", undefined]);
  expect(table.wordsFrom).toBe(1);
  expect([...table.neighbourRows.subarray(2, 4)]).toEqual([2, 65535]);
  // q = 90 is a frequency of 2^-9, 0.00195: the word weighs about a half; q = 0 is every word of a text.
  expect(table.weight(1)).toBeCloseTo(0.002 / (0.002 + 2 ** -9), 12);
  expect(table.weight(2)).toBeCloseTo(0.002, 4);
});

test("a sum has the length of its factors along each stem's own direction", () => {
  const table = new Semantics(smallTable());
  const sum = new Float64Array(MEANING_DIMENSION);
  table.sum(Int32Array.of(1, -1, 2), Float64Array.of(1, 9, 0.5), sum);
  const unit = Math.hypot(7, 1);
  const expected = new Float64Array(MEANING_DIMENSION);
  expected.set([7 / unit, 1 / unit, 3.5 / unit, 0.5 / unit], 2);
  for (let i = 0; i < MEANING_DIMENSION; i++) expect(sum[i]).toBeCloseTo(expected[i]!, 4);
});

test("a sum of thousands of stems loses nothing and does not depend on their order", () => {
  const table = semantics();
  const rows = Int32Array.from({ length: 3001 }, (_, i) => (i * 7919) % table.rows);
  const factors = Float64Array.from({ length: rows.length }, (_, i) => 1 + (i % 7));
  const inOrder = new Float64Array(MEANING_DIMENSION);
  table.sum(rows, factors, inOrder);
  const oneByOne = new Float64Array(MEANING_DIMENSION);
  for (let i = rows.length - 1; i >= 0; i--) table.sum(rows.subarray(i, i + 1), factors.subarray(i, i + 1), oneByOne);
  expect(inOrder).toEqual(oneByOne);
});

test("the program's own table knows what tea is near to", () => {
  const table = semantics();
  const row = table.row("tea");
  const at = row * table.neighboursPerRow;
  const near = Array.from(table.neighbourRows.subarray(at, at + table.neighboursPerRow), (near) => table.stem(near));
  expect(near).toContain("coffe");
});

test("what is no table of meanings is refused", () => {
  expect(() => new Semantics(new Uint8Array(64))).toThrow("does not begin with CSV2");
});
