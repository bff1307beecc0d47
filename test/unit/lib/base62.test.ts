import { afterEach, expect, mock, spyOn, test } from "bun:test";
import * as fc from "fast-check";
import { fromBase62, randomBase62, toBase62 } from "../../../src/lib/base62.ts";
import { InvariantError } from "../../../src/lib/invariant.ts";

test("a number becomes text of its width and back", () => {
  const cases: [number: number, width: number, text: string][] = [
    [0, 1, "0"],
    [0, 7, "0000000"],
    [9, 1, "9"],
    [10, 1, "A"],
    [35, 1, "Z"],
    [36, 1, "a"],
    [61, 3, "00z"],
    [62, 2, "10"],
    [62 ** 7 - 1, 7, "zzzzzzz"],
  ];
  for (const [number, width, text] of cases) expect([toBase62(number, width), fromBase62(text)]).toEqual([text, number]);
});

test("a number that is not whole becomes the text of the whole one below it", () => {
  expect([toBase62(61.75, 3), toBase62(3_844.5, 7)]).toEqual(["00z", toBase62(3_844, 7)]);
});

test("text order is number order", () => {
  const number = fc.integer({ min: 0, max: 62 ** 7 - 1 });
  fc.assert(
    fc.property(number, number, (a, b) => {
      expect(toBase62(a, 7) < toBase62(b, 7)).toBe(a < b);
      expect(fromBase62(toBase62(a, 7))).toBe(a);
    }),
  );
});

test("a number that does not fit its width is a broken assumption", () => {
  for (const [number, width] of [
    [62, 1],
    [62 ** 7, 7],
    [-1, 7],
  ] as const) {
    expect(() => toBase62(number, width)).toThrow(InvariantError);
  }
});

afterEach(() => mock.restore());

test("random text takes each byte below 248 for one of 62 characters, and none for the rest, so that all are equally likely", () => {
  // Bytes 0, 1, 2 … 255, 0, 1 …: 248 is 4 × 62, so in 256 bytes each character comes four times.
  let next = 0;
  spyOn(crypto, "getRandomValues").mockImplementation(((array: Uint8Array) => {
    for (let i = 0; i < array.length; i++) array[i] = next++ % 256;
    return array;
  }) as typeof crypto.getRandomValues);
  const text = randomBase62(248);
  const digits = Array.from({ length: 62 }, (_, value) => toBase62(value, 1)).join("");
  expect(text).toBe(digits.repeat(4));
  next = 248;
  expect(randomBase62(3)).toBe("012");
});

test("random text has the length asked for and is another one each time", () => {
  expect(randomBase62(0)).toBe("");
  const texts = Array.from({ length: 1_000 }, () => randomBase62(24));
  expect(texts.filter((text) => !/^[0-9A-Za-z]{24}$/.test(text))).toEqual([]);
  expect(new Set(texts).size).toBe(1_000);
});
