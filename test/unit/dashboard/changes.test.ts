import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { changesBetween, changesOf, pathText, type Change } from "../../../src/dashboard/app/changes.ts";
import { diffObjects } from "../../../src/sessions/diff.ts";

type Json = any;

/** Applies changes as they say: the paths of what goes are those before, of what comes those after. */
function applied(before: Json, changes: readonly Change[]): Json {
  if (changes.length === 0) return before;
  const own = changes.find(({ path }) => path.length === 0);
  if (own !== undefined) return "to" in own ? own.to : undefined;
  const groups = Map.groupBy(changes, ({ path }) => path[0] as string | number);
  if (!Array.isArray(before)) {
    const members = new Map<string, Json>(Object.entries(before as object));
    for (const [name, inner] of groups) {
      const value = applied(members.get(String(name)), inner.map(within));
      if (inner.some(({ kind, path }) => kind === "removed" && path.length === 1)) members.delete(String(name));
      else members.set(String(name), value);
    }
    return Object.fromEntries(members);
  }
  const items = [...before] as Json[];
  const here = changes.filter(({ path }) => path.length === 1);
  const leaving = here.filter(({ kind }) => kind === "removed" || kind === "moved");
  const gone = new Set(leaving.map(({ path }) => path[0] as number));
  const left = items.filter((_, index) => !gone.has(index));
  const arriving = here.flatMap((change) => {
    if (change.kind === "added") return [[change.path[0] as number, change.to] as const];
    return change.kind === "moved" ? [[change.toIndex, items[change.path[0] as number]] as const] : [];
  });
  for (const [index, item] of arriving.toSorted(([one], [other]) => one - other)) left.splice(index, 0, item);
  for (const [index, inner] of groups) {
    const rest = inner.filter(({ kind, path }) => path.length > 1 || kind === "changed");
    if (rest.length > 0) left[index as number] = applied(left[index as number], rest.map(within));
  }
  return left;
}

const within = (change: Change): Change => ({ ...change, path: change.path.slice(1) });

const items = fc.array(fc.record({ id: fc.integer({ min: 0, max: 5 }), qty: fc.integer({ min: 0, max: 2 }) }), { maxLength: 6 });
const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), items, fc.record({ items, name: fc.string() }));

test("applying the changes between two values to the one gives the other", () => {
  fc.assert(
    fc.property(value, value, (one, other) => {
      // As a server sends them: -0 is no JSON.
      const [before, after] = [one, other].map((side) => JSON.parse(JSON.stringify(side)));
      expect(JSON.parse(JSON.stringify(applied(before, changesBetween(before, after)) ?? null))).toEqual(after);
    }),
    { numRuns: 2_000 },
  );
});

test("the changes of the server's difference are those between the two states", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), value), fc.dictionary(fc.string(), value), (one, other) => {
      const [before, after] = [one, other].map((side) => JSON.parse(JSON.stringify(side)));
      expect(applied(before, changesOf(diffObjects(before, after)))).toEqual(after);
    }),
    { numRuns: 500 },
  );
});

test("items with an id are followed by it, wherever they stand", () => {
  const lamp = { id: "lamp", qty: 1 };
  const bulb = { id: "bulb", qty: 2 };
  expect(changesBetween({ items: [lamp, bulb] }, { items: [{ ...bulb, qty: 3 }, lamp] })).toEqual([
    { kind: "moved", path: ["items", 1], toIndex: 0 },
    { kind: "changed", path: ["items", 0, "qty"], from: 2, to: 3 },
  ]);
});

test("items without an id that stay in their place are compared there", () => {
  expect(changesBetween([{ qty: 1 }, { qty: 2 }], [{ qty: 1 }, { qty: 3 }])).toEqual([
    { kind: "changed", path: [1, "qty"], from: 2, to: 3 },
  ]);
  expect(changesBetween([1, 2, 3], [0, 1, 2, 3])).toEqual([{ kind: "added", path: [0], to: 0 }]);
});

test("names that are no words stand in quotes", () => {
  expect(pathText(["order", "items", 0, "a b", "c"])).toBe('order.items[0]["a b"].c');
  expect(pathText([])).toBe("(all of it)");
});
