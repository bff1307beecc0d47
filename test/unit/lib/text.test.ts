import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { codePointLength, firstCodePoints, normalized } from "../../../src/lib/text.ts";

/** Texts with halves of surrogate pairs, whole ones and halves the wrong way round. */
const text = fc.array(fc.constantFrom("a", "é", "🫖", "\ud83e", "\uded6", "\u0000"), { maxLength: 12 }).map((parts) => parts.join(""));

test("a length counts code points, half a surrogate pair as one", () => {
  expect(["", "tea", "🫖", "🫖\ud83e", "\uded6\ud83e"].map(codePointLength)).toEqual([0, 3, 1, 2, 2]);
  fc.assert(fc.property(text, (any) => expect(codePointLength(any)).toBe(Array.from(any).length)));
});

test("the beginning of a text has so many code points and never ends in the middle of one", () => {
  expect([firstCodePoints("🫖🫖tea", 2), firstCodePoints("tea", 5), firstCodePoints("tea", 0)]).toEqual(["🫖🫖", "tea", ""]);
  fc.assert(
    fc.property(text, fc.nat(14), (any, count) => {
      expect(firstCodePoints(any, count)).toBe(Array.from(any).slice(0, count).join(""));
    }),
  );
});

test("texts that a reader takes for one are normalized to one, in the length that they have", () => {
  for (const same of ["Ｃafé  au\nlait", " café au lait", "CAFÉ au lait"]) expect(normalized(same)).toBe("café au lait");
  // One character that stands for a phrase of 18.
  const phrase = "\ufdfa";
  expect(normalized(phrase)).toBe(phrase.normalize("NFKC"));
  for (const long of [phrase.repeat(10_000), `A  ${phrase.repeat(1_000)}`]) {
    expect(normalized(long).length).toBeLessThanOrEqual(3 * long.length);
    expect(normalized(`${long.toUpperCase()} `)).toBe(normalized(long));
  }
});
