import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { kthLargest, placesOfLargest } from "../../../src/lib/kth-largest.ts";

/** As many as are sorted into buckets, and as few as are not. */
const numbersOf = (number: fc.Arbitrary<number>) =>
  fc.oneof(fc.array(number, { minLength: 1, maxLength: 60 }), fc.array(number, { minLength: 100, maxLength: 300 }));

test("the nth largest number is the one that sorting puts there, with equal ones and infinities among them", () => {
  const alike = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.double({ min: -1, max: 1, noNaN: true }), fc.constant(-Infinity));
  const any = fc.oneof(alike, fc.double({ noNaN: true }));
  fc.assert(
    fc.property(fc.oneof(numbersOf(alike), numbersOf(any)), fc.nat(), (numbers, pick) => {
      const count = 1 + (pick % numbers.length);
      const before = Float64Array.from(numbers);
      const sorted = numbers.toSorted((a, b) => b - a);
      expect(kthLargest(before, count) === sorted[count - 1]).toBe(true);
      expect(before).toEqual(Float64Array.from(numbers));
    }),
  );
});

test("of fewer numbers than asked for none is kept out", () => {
  expect([kthLargest(Float64Array.of(1, 2), 3), kthLargest(new Float64Array(0), 1)]).toEqual([-Infinity, -Infinity]);
});

test("the places of the largest numbers are those that sorting puts first, of equal ones the newest, and none of -Infinity", () => {
  const some = fc.array(fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constant(-Infinity)), { maxLength: 200 });
  fc.assert(
    fc.property(some, fc.nat(210), (numbers, count) => {
      const ids = Uint32Array.from(numbers, (_, i) => (i * 7_919) % 1_009);
      const places = numbers.map((_, i) => i).filter((i) => numbers[i] !== -Infinity);
      const expected = places.sort((a, b) => numbers[b]! - numbers[a]! || ids[b]! - ids[a]!).slice(0, count);
      const found = placesOfLargest(Float64Array.from(numbers), ids, count);
      expect(new Set(found)).toEqual(new Set(expected));
      expect(found.length).toBe(expected.length);
    }),
  );
});
