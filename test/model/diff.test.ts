/** `applyDiff(before, diffObjects(before, after))` is `after`, whatever the keys are called. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { diffObjects, type Diff } from "../../src/sessions/diff.ts";
import { toJson, type JsonObject, type JsonValue } from "../../src/lib/json.ts";

const ODD_KEYS = [..."__proto__ constructor prototype toString hasOwnProperty added from 0 10 é a.b".split(" "), "", "\ud800"];
const key = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...ODD_KEYS) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 3 }) },
);
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 2, stringUnit: "binary" }) as fc.Arbitrary<JsonValue>,
  // Few values, so that the same key often has the same one before and after.
  fc.constantFrom<JsonValue[]>(null, 0, "", [], {}),
);
/** As the parser makes it: `__proto__` is an own key. */
const object = fc
  .array(fc.tuple(key, value), { maxLength: 8 })
  .map((entries): JsonObject => JSON.parse(toJson(Object.fromEntries(entries))));

/** `applyDiff(before, diffObjects(before, after))` has the keys and values of `after`. */
function applyDiff(before: JsonObject, { added, removed, modified }: Diff): JsonObject {
  const after = new Map(Object.entries(before));
  for (const key of Object.keys(removed)) after.delete(key);
  for (const [key, value] of Object.entries(added)) after.set(key, value);
  for (const [key, { to }] of Object.entries(modified)) after.set(key, to);
  return Object.fromEntries(after);
}

/** Keys in order, since a diff does not say where a key stood. */
function canonical(object: JsonObject): string {
  return toJson(Object.entries(object).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

test("a diff applied to what was gives what is, also when it went through JSON; of an object with itself it is empty", () => {
  fc.assert(
    fc.property(object, object, (before, after) => {
      const kept = [toJson(before), toJson(after)];
      const diff = diffObjects(before, after);
      for (const same of [diff, JSON.parse(toJson(diff))]) expect(canonical(applyDiff(before, same))).toBe(canonical(after));
      expect([toJson(before), toJson(after)]).toEqual(kept);
      expect(JSON.stringify(diffObjects(before, JSON.parse(toJson(before))))).toBe('{"added":{},"removed":{},"modified":{}}');
    }),
    { numRuns: 2_000 },
  );
});

test("each key stands in one part of a diff at most, and only if it changed", () => {
  fc.assert(
    fc.property(object, object, (before, after) => {
      const { added, removed, modified } = diffObjects(before, after);
      const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
      for (const name of keys) {
        const was = Object.hasOwn(before, name) ? toJson(before[name]) : undefined;
        const is = Object.hasOwn(after, name) ? toJson(after[name]) : undefined;
        expect([name, Object.hasOwn(added, name), Object.hasOwn(removed, name), Object.hasOwn(modified, name)]).toEqual([
          name,
          was === undefined,
          is === undefined,
          was !== undefined && is !== undefined && was !== is,
        ]);
      }
      for (const part of [added, removed, modified]) for (const name of Object.keys(part)) expect(keys.has(name)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test("values are the same when their JSON is the same but for the order of keys", () => {
  const same: [JsonValue, JsonValue][] = [
    [-0, 0],
    [[-0], [0]],
    [
      { x: [-0], y: [1] },
      { y: [1], x: [0] },
    ],
  ];
  for (const [from, to] of same) expect(diffObjects({ a: from }, { a: to })).toEqual({ added: {}, removed: {}, modified: {} });
  const different: [JsonValue, JsonValue][] = [
    [
      [-0, 1],
      [0, 2],
    ],
    [[-0], [0, 0]],
    [[-0], { 0: 0 }],
    [{ x: -0 }, { y: 0 }],
    [
      [-0, null],
      [0, {}],
    ],
  ];
  for (const [from, to] of different) expect(diffObjects({ a: from }, { a: to }).modified).toEqual({ a: { from, to } });
});
