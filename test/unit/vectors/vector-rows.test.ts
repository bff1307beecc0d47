import { expect, test } from "bun:test";
import { localEmbedder } from "../../../src/embeddings/local/local.ts";
import { quantize } from "../../../src/vectors/encoding.ts";
import { compareOn, scriptCompare } from "../../../src/vectors/resident-kernel.ts";
import { VectorRows } from "../../../src/vectors/vector-rows.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { QUESTIONS } from "../../retrieval/questions.ts";
import { chance, dot, storedBytes, unitVector } from "./stored-vectors.ts";

const random = chance(1);
const VECTORS = [
  ...Object.values(MEMORIES).map((text) => localEmbedder.embedMemory(text).vector),
  ...Array.from({ length: 30 }, () => unitVector(random)),
];
/** More than two chunks have. */
const ROWS = 40_000;

test.each([compareOn, scriptCompare])(
  "cosines are those of the whole vectors to the last bit, in whatever chunks they lie: %p",
  (kernel) => {
    const rows = new VectorRows(kernel);
    const stored = VECTORS.map((vector) => storedBytes({ vector }));
    const isGone = (slot: number) => slot % 1_000 === 7;
    for (let slot = 0; slot < ROWS; slot++) rows.add(isGone(slot) ? undefined : stored[slot % stored.length]);
    expect(rows.length).toBe(ROWS);
    const slots = Uint32Array.from({ length: 3_000 }, (_, i) => (i < 40 ? 1_000 * i + 7 : Math.floor(random() * ROWS)));
    for (const { text } of QUESTIONS.slice(0, 3)) {
      const query = localEmbedder.embedQuery(text).vector;
      const cosines = VECTORS.map((vector) => dot(query, vector));
      const expected = Float64Array.from(slots, (slot) => (isGone(slot) ? 0 : cosines[slot % VECTORS.length]!));
      expect(rows.cosines(quantize(query), slots)).toEqual(expected);
    }
  },
);

test("vectors are dense when most have all their numbers", () => {
  const rows = new VectorRows();
  const [sparse, dense] = [storedBytes({ vector: VECTORS[0]! }), storedBytes({ vector: VECTORS.at(-1)! })];
  rows.add(sparse);
  rows.add(dense);
  expect(rows.areDense).toBe(false);
  rows.add(dense);
  expect(rows.areDense).toBe(true);
});
