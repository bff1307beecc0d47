/**
 * Records of exports: however a file is cut into chunks, and wherever it ends.
 *
 * @module
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { JsonRecords, type JsonRecord } from "../../../src/cli/import/json-records.ts";

function recordsOf(bytes: Uint8Array, sizes: readonly number[]): JsonRecord[] {
  const records = new JsonRecords(["results", "memories"]);
  const found: JsonRecord[] = [];
  let [from, i] = [0, 0];
  while (from < bytes.length) {
    const size = sizes.length === 0 ? bytes.length : (sizes[i++ % sizes.length] as number);
    // The memory of a chunk is used again.
    const chunk = Uint8Array.from(bytes.subarray(from, from + size));
    found.push(...records.take(chunk));
    chunk.fill(0);
    from += size;
  }
  return [...found, ...records.end()];
}

const values = fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 6 });
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
const around = fc.constantFrom<(list: unknown) => unknown>(
  (list) => list,
  (list) => ({ count: 2, next: { memories: [1] }, 're"sults': "[{", results: list, after: ["x", { y: [] }] }),
  (list) => ({ note: 'memories"', memories: list }),
);

test("records are those that JSON.parse gives, in whatever chunks the file comes", () => {
  fc.assert(
    fc.property(values, sizes, around, fc.constantFrom(undefined, 2), (list, cuts, wrap, indent) => {
      const text = `\ufeff${JSON.stringify(wrap(list), undefined, indent)}\n`;
      const found = recordsOf(Buffer.from(text), cuts);
      expect(found).toEqual(list.map((value, i) => ({ number: i + 1, value: JSON.parse(JSON.stringify(value)) as unknown })));
    }),
  );
});

test("a file that is cut anywhere gives its whole records, and says that it ends too early", () => {
  fc.assert(
    fc.property(values, around, fc.nat(), (list, wrap, at) => {
      const text = Buffer.from(JSON.stringify(wrap(list)));
      const found = recordsOf(text.subarray(0, at % text.length), []);
      const whole = found.filter((one) => "value" in one);
      expect(whole.map(({ number }) => number)).toEqual(whole.map((_, i) => i + 1));
      // A number at the end may be a part of one.
      for (const { number, value } of whole.slice(0, -1)) expect(value).toEqual(JSON.parse(JSON.stringify(list[number - 1])));
      expect(found.length - whole.length).toBe(at % text.length === 0 ? 0 : 1);
    }),
  );
});

test("bytes that are no JSON never end it, nor give what is none", () => {
  const piece = fc.constantFrom("[", "]", "{", "}", '"', "\\", ",", ":", "1", " ", "null", '{"memories":[', "\n");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), sizes, (pieces, cuts) => {
      const bytes = Buffer.from(pieces.join(""));
      expect(recordsOf(bytes, cuts)).toEqual(recordsOf(bytes, []));
    }),
  );
});
