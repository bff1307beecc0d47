import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { findWeights } from "../../../src/embeddings/builtin/native.ts";
import { placeWeights, weightsProblems } from "../../../scripts/weights.ts";

const FILES = findWeights().map(({ path }) => readFileSync(path));
/** What the build puts into an executable for them: each file with room for a shift, and a table to fill in. */
const ROOM = Buffer.alloc(64);
const TABLE = Buffer.from(JSON.stringify(["weights that have no place yet"]).padEnd(256));

function executable(...more: readonly Buffer[]): Buffer {
  const parts = FILES.flatMap((file, i) => [Buffer.alloc(1_001 + 7 * i, 1), file, ROOM]);
  return Buffer.concat([...parts, Buffer.from("before the table"), TABLE, Buffer.from("the end"), ...more]);
}

test("a build shifts the weights to multiples of 64 bytes, writes down where they are, and changes nothing else", () => {
  const [before, made] = [executable(), executable()];
  expect(weightsProblems(made)).toEqual(["it has no table of the weights"]);
  placeWeights(made);
  expect(weightsProblems(made)).toEqual([]);
  expect(made.length).toBe(before.length);
  expect(made.subarray(0, 1_001).equals(before.subarray(0, 1_001))).toBe(true);
  expect(made.subarray(-7).equals(Buffer.from("the end"))).toBe(true);
  made.writeUInt8(made.readUInt8(30_000_000) ^ 1, 30_000_000);
  expect(weightsProblems(made)).toEqual(["tokens-1.bin is not at 18747008"]);
});

test("a build fails where an executable lacks the weights, has them twice or not whole", () => {
  expect(() => placeWeights(Buffer.concat([TABLE]))).toThrow("The weights are in the executable nowhere.");
  expect(() => placeWeights(executable(FILES[0]!))).toThrow("The weights are in the executable more than once.");
  const damaged = executable();
  damaged.fill(0, 9_000_000, 9_000_100);
  expect(() => placeWeights(damaged)).toThrow("The executable holds weights that are not whole.");
});
