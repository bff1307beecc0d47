import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { estimateTokens, firstTokens, takeBatch } from "../../../../src/embeddings/remote/batching.ts";

test("tokens are estimated on the high side of what tokenizers make of ordinary text", () => {
  const estimates = ["a".repeat(1000), "я".repeat(1000), "茶".repeat(1000), "👋".repeat(1000), ""].map(estimateTokens);
  expect(estimates).toEqual([400, 800, 1500, 3000, 0]);
});

test("a text is cut to its longest beginning within the limit, never inside a character", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 50 }), fc.integer({ min: 0, max: 40 }), (text, tokensMax) => {
      const first = firstTokens(text, tokensMax);
      expect(text.startsWith(first)).toBe(true);
      expect(first.isWellFormed()).toBe(true);
      expect(estimateTokens(first)).toBeLessThanOrEqual(tokensMax);
      const [next = ""] = text.slice(first.length);
      if (first !== text) expect(firstTokens(first + next, tokensMax)).toBe(first);
    }),
  );
});

test("batches hold every text once, in order, within both limits; a text over the limit goes alone", () => {
  const limit = fc.integer({ min: 1, max: 10 });
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 12 })), limit, limit, (sizes, textsMax, tokensMax) => {
      const queue = sizes.map((tokens, i) => ({ tokens, i }));
      const batches: (typeof queue)[] = [];
      while (queue.length > 0) batches.push(takeBatch(queue, { textsMax, tokensMax }));
      expect(batches.flat().map(({ i }) => i)).toEqual(sizes.map((_, i) => i));
      for (const batch of batches) {
        expect(batch.length).toBeGreaterThan(0);
        expect(batch.length).toBeLessThanOrEqual(textsMax);
        if (batch.length > 1) expect(batch.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(tokensMax);
      }
    }),
  );
});
