/**
 * What is stored of a text is an embedding to whoever reads it, whatever the text.
 */
import { expect, test } from "bun:test";
import { encodeVector, isComparable, isEmbedding, storedVector } from "../../../src/vectors/encoding.ts";
import { Chance } from "../../support/process.ts";
import { longRounds } from "../../support/rounds.ts";
import { pick } from "../../support/seeds.ts";

const OWNER = { memory: "0VQk3aB4x1Zq", generation: 1 };
test("the numbers of any provider are stored as an embedding, also such as are none or far too large", () => {
  const odd = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 3e38, -3e38, 1, -1, 1e-5, 2 ** -16, 1e-40, 0];
  const wrong: number[] = [];
  for (let seed = 1; seed <= longRounds(2_000, 100_000); seed++) {
    const chance = new Chance(seed);
    const share = chance.next();
    const oneOf = chance.below(3) === 0 ? odd : odd.slice(5);
    const length = pick(chance, [1, 8, 384, 1_280, 1_536]);
    const vector = Float32Array.from({ length }, () => (chance.next() < share ? chance.next() / 40 : pick(chance, oneOf)));
    if (chance.below(2) === 0) vector[chance.below(length)] = 1;
    const bytes = encodeVector({ vector, terms: new Uint32Array(0) }, OWNER);
    const again = encodeVector({ vector: storedVector(bytes), terms: new Uint32Array(0) }, OWNER);
    if (!isEmbedding(bytes) || !isComparable(storedVector(bytes)) || !Buffer.from(again).equals(bytes)) wrong.push(seed);
  }
  expect(wrong).toEqual([]);
});
