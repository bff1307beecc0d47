import { expect, test } from "bun:test";
import { packQuery, unpackQuery } from "../../../src/search/query.ts";
import { pack, RowCandidate, unpack, type SlotTables } from "../../../src/search/candidates.ts";

const CALIBRATIONS = (["measured", "builtin"] as const).map((kind) => ({
  kind,
  lexicalShare: 0.5,
  cosineOfUnrelated: -0.125,
  cosineOfSame: 1 / 3,
  relevant: 0.2,
}));

function query(words: number, dimension: number) {
  const vector = Int16Array.from({ length: dimension }, (_, i) => (i % 2 === 0 ? 32_767 - i : -32_768 + i));
  const asked = {
    ids: Uint32Array.from({ length: words }, (_, i) => 2 ** 32 - words + i),
    weights: Float64Array.from({ length: words }, (_, i) => 1 / (i + 1)),
    fingerprint: 0xdfffffff,
  };
  return { vector, words: asked, calibration: CALIBRATIONS[words % 2]!, limit: 48, enough: 16 };
}

test("a query is the same on the other thread, of any length, and stays so when the next one is packed", () => {
  const queries = [query(5, 1536), query(1, 1536), query(0, 384), query(3_000, 1536), query(7, 17)];
  const texts = queries.map(packQuery);
  const others = texts.map(unpackQuery);
  expect(others).toEqual(queries);
});

test("candidates that have a row are told of by their slots and cosines, others whole and first", () => {
  const tables = {} as SlotTables;
  const rows = [new RowCandidate(tables, 4_000_000_000, 1 / 3), new RowCandidate(tables, 0, -1)];
  const whole = { memory: "000000000001", id: "000000000002", cosine: 0.1, terms: new Uint32Array(3) };
  const told = structuredClone(pack([rows[0]!, whole, rows[1]!]));
  expect(unpack(told, tables)).toEqual([whole, ...rows]);
  expect(unpack(told, undefined)).toEqual([whole]);
  expect(unpack(pack([]), tables)).toEqual([]);
});
