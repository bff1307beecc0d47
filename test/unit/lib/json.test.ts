import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { jsonArray, jsonDepth, jsonWith, mergeObjects, toJson, type JsonObject, type JsonText } from "../../../src/lib/json.ts";

test("members that are JSON already stand where they are given among those that are not", () => {
  const cases: [written: JsonText, value: unknown][] = [
    [jsonWith({}, {}), {}],
    [jsonWith({ a: undefined }, { b: undefined }), {}],
    [jsonWith({ a: 1, b: undefined, c: "x" }, {}), { a: 1, c: "x" }],
    [jsonWith({ a: undefined }, { b: toJson([1]), c: undefined, d: toJson(null) }), { b: [1], d: null }],
    [
      jsonWith({ object: "list" }, { data: toJson(["}"]) }, { has_more: false, last_id: null }),
      { object: "list", data: ["}"], has_more: false, last_id: null },
    ],
    [jsonWith({}, { a: undefined, b: toJson({}) }, { c: { d: 1 } }), { b: {}, c: { d: 1 } }],
  ];
  expect(cases.map(([written]) => written)).toEqual(cases.map(([, value]) => toJson(value)));
});

test("an array is put together from items that are JSON already", () => {
  expect(jsonArray([])).toBe(toJson([]));
  expect(jsonArray([toJson({ a: 1 }), toJson("x"), toJson(null)])).toBe(toJson([{ a: 1 }, "x", null]));
});

test("a value nests as deep as its deepest part", () => {
  const cases: [value: unknown, depth: number][] = [
    [null, 0],
    ["[[[", 0],
    [{}, 1],
    [[], 1],
    [{ a: 1, b: { c: [1, { d: 2 }] } }, 4],
    [[[], [[]], []], 3],
  ];
  expect(cases.map(([value]) => [value, jsonDepth(value)])).toEqual(cases);
});

test("no depth is too much to be counted", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 200_000; level++) deep = level % 2 === 0 ? [deep] : { deep };
  expect(jsonDepth(deep)).toBe(200_000);
});

const key = fc.constantFrom("a", "b", "c", "__proto__", "constructor", "toString", "");
const object = (value: fc.Arbitrary<unknown>) =>
  fc.array(fc.tuple(key, value), { maxLength: 6 }).map((entries): JsonObject => JSON.parse(toJson(Object.fromEntries(entries))));

test("changes laid over an object win key by key, a null removes, and neither of the two is touched", () => {
  fc.assert(
    fc.property(object(fc.constantFrom(1, "x", [], { a: null })), object(fc.constantFrom(null, 2, { b: null })), (base, changes) => {
      const before = [toJson(base), toJson(changes)];
      const merged = mergeObjects(base, changes);
      for (const name of ["a", "b", "c", "__proto__", "constructor", "toString", ""]) {
        const changed = Object.hasOwn(changes, name);
        const expected = changed ? changes[name] : Object.hasOwn(base, name) ? base[name] : null;
        expect([name, Object.hasOwn(merged, name), Object.hasOwn(merged, name) ? merged[name] : null]).toEqual([
          name,
          expected !== null,
          expected ?? null,
        ]);
      }
      expect([toJson(base), toJson(changes)]).toEqual(before);
      expect(Object.getPrototypeOf(merged)).toBe(Object.prototype);
    }),
    { numRuns: 500 },
  );
});
