import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { MAX_KEY, successor, hashKey, KEY, numberKey, versionKey } from "../../../src/storage/keys.ts";
import { KEY_ENCODER } from "../../../src/storage/lmdb/key-encoder.ts";

test("a text of any length and kind becomes 22 characters, and texts that differ become others", () => {
  const words = ["", "a", "A", "a ", "é", "e\u0301", "\ud800", "\ud801", "\udc00", "\ufffd", "🫖", "\u0000", "null", '"a"'];
  const texts = [...words, "x".repeat(1_000_000)];
  const keys = texts.map(hashKey);
  expect(keys.filter((key) => !/^[\w-]{22}$/.test(key))).toEqual([]);
  expect(new Set(keys).size).toBe(texts.length);
  expect(texts.map(hashKey)).toEqual(keys);
});

test("a key is read as it was written, whatever its bytes and however long it is, and zeros follow it", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)), minLength: 1, maxLength: 100 }),
      (key) => {
        const buffer = Buffer.alloc(200, 0xff);
        const end = KEY_ENCODER.writeKey(key, buffer, 7);
        expect([KEY_ENCODER.readKey(buffer, 7, end), [...buffer.subarray(end, end + 4)], buffer[6]]).toEqual([key, [0, 0, 0, 0], 0xff]);
      },
    ),
  );
  expect(() => KEY_ENCODER.writeKey("x".repeat(198), Buffer.alloc(200), 0)).toThrow(RangeError);
});

test("number keys are in the order of their numbers, and everything is before the end of a span", () => {
  const number = fc.integer({ min: 0, max: 62 ** 7 - 1 });
  fc.assert(
    fc.property(number, number, (a, b) => {
      expect(numberKey(a) < numberKey(b)).toBe(a < b);
      expect(versionKey("0VQk3aB4x1Zq", a) < versionKey("0VQk3aB4x1Zq", b)).toBe(a < b);
      expect(versionKey("0VQk3aB4x1Zq", a) < `0VQk3aB4x1Zq${MAX_KEY}`).toBe(true);
      expect(versionKey("0VQk3aB4x1Zq", a) < versionKey("0VQk3aB4x1Zr", 0)).toBe(true);
    }),
  );
});

test("behind a key are all greater ones and no others", () => {
  const key = fc.stringMatching(KEY, { maxLength: 4 });
  fc.assert(fc.property(key, key, (one, other) => expect(other >= successor(one)).toBe(other > one)));
});
