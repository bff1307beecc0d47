/**
 * What is stored of a text is an embedding to whoever reads it, whatever the text.
 */
import { expect, test } from "bun:test";
import { passagesOf } from "../../../src/embeddings/builtin/passages.ts";
import { PASSAGE_DIMENSION } from "../../../src/embeddings/embedder.ts";
import { memoryTerms } from "../../../src/embeddings/words/terms.ts";
import { encodeVector, isComparable, isEmbedding, storedPassages, storedTerms, storedVector } from "../../../src/search/encoding.ts";
import { Chance } from "../../support/process.ts";
import { longRounds } from "../../support/rounds.ts";
import { pick } from "../../support/seeds.ts";
import { letters } from "../../support/texts.ts";

const OWNER = { memory: "0VQk3aB4x1Zq", generation: 1 };
const LENGTHS = [0, 1, 20, 200, 1_000, 2_000, 5_000, 10_000];
const TEXTS = longRounds(600, 100_000);

const number = (chance: Chance) => String(chance.below(10 ** (1 + chance.below(9))));
const uuid = (chance: Chance) => [8, 4, 4, 4, 12].map((length) => letters(chance, length, "0123456789abcdef")).join("-");
const common = (chance: Chance) =>
  pick(chance, "the parcel is blue and waits for Ada in Turin since monday with 12 letters about money".split(" "));

/** What a text is made of, one after another. */
const SHAPES: Record<string, (chance: Chance) => string> = {
  "rare words": (chance) => letters(chance, 3 + chance.below(12)),
  "words of three letters": (chance) => letters(chance, 3),
  UUIDs: uuid,
  "log lines": (chance) =>
    JSON.stringify({ time: Number(number(chance)), level: pick(chance, ["info", "warn"]), id: uuid(chance), message: letters(chance, 9) }),
  numbers: number,
  "common words": common,
  "common and rare words": (chance) => (chance.below(4) === 0 ? letters(chance, 8) : common(chance)),
  "source code": (chance) => `const ${letters(chance, 4)}_${letters(chance, 3)}=${letters(chance, 5)}(${number(chance)});`,
  "addresses of pages": (chance) => `https://${letters(chance, 6)}.example/${letters(chance, 4)}?${letters(chance, 2)}=${number(chance)}`,
  "any characters": (chance) => String.fromCodePoint(32 + chance.below(0xd7df)),
  "signs and emoji": (chance) => String.fromCodePoint(0x1f300 + chance.below(700)),
  "letters without an end": (chance) => letters(chance, 50),
};

function textOf(chance: Chance, next: (chance: Chance) => string): string {
  const length = pick(chance, LENGTHS);
  const separator = pick(chance, [" ", "\n", ", "]);
  let text = "";
  while (text.length < length) text += next(chance) + separator;
  return text.slice(0, length);
}

/** A vector of unit length for each passage, some with a single large number, side by side. */
function vectorsOf(chance: Chance, passages: number): Float32Array {
  const vector = Float32Array.from({ length: passages * PASSAGE_DIMENSION }, () => chance.next() - 0.5);
  for (let i = 0; i < passages; i++) {
    const one = vector.subarray(i * PASSAGE_DIMENSION, (i + 1) * PASSAGE_DIMENSION);
    if (chance.below(4) === 0) one[chance.below(PASSAGE_DIMENSION)] = 40;
    const length = Math.hypot(...one);
    for (const [j, value] of one.entries()) one[j] = value / length;
  }
  return vector;
}

test(`${TEXTS} texts of every shape are stored with vectors of unit length or less, and stored alike again`, () => {
  const wrong: string[] = [];
  const shapes = Object.entries(SHAPES);
  const counts = new Set<number>();
  for (let seed = 1; seed <= TEXTS; seed++) {
    const chance = new Chance(seed);
    const [name, next] = shapes[seed % shapes.length]!;
    const text = textOf(chance, next);
    const passages = Math.max(1, passagesOf(text).length);
    counts.add(passages);
    const bytes = encodeVector({ vector: vectorsOf(chance, passages), passages, terms: memoryTerms(text) }, OWNER);
    const vector = storedVector(bytes);
    const again = encodeVector({ vector, passages, terms: storedTerms(bytes) }, OWNER);
    const isLonger = storedPassages(bytes).some((one) => one.reduce((square, value) => square + value * value, 0) > 1.006);
    if (!isEmbedding(bytes) || !isComparable(vector, passages) || isLonger || !Buffer.from(again).equals(bytes))
      wrong.push(`${name}, seed ${seed}`);
  }
  expect(wrong).toEqual([]);
  expect(Math.max(...counts)).toBeGreaterThan(40);
});

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
