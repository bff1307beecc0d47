import { expect, test } from "bun:test";
import { localEmbedder } from "../../src/embeddings/local/local.ts";

// A word whose two places were the same one, with opposite signs, once cancelled itself out: one in 2,500 words alone in a
// text had a vector of NaN, and its memory was never found.
test("every word alone has a vector of length 1, as a memory and as a query", () => {
  const embedder = localEmbedder;
  const isUnit = (vector: Float32Array) => {
    let square = 0;
    for (let i = 0; i < vector.length; i++) square += vector[i]! * vector[i]!;
    return Math.abs(square - 1) < 1e-5;
  };
  const words = ["竱", "ᒋ𐖌", ...Array.from({ length: 15_000 }, (_, i) => `word${i}`)];
  const wrong = words.filter((word) => !isUnit(embedder.embedMemory(word).vector) || !isUnit(embedder.embedQuery(word).vector));
  expect(wrong).toEqual([]);
});
