/**
 * Differences between two JSON values, as a flat list of paths: easier to read than a tree, and to copy.
 *
 * Items of arrays are matched by their `id` where they have one, otherwise by what they are.
 *
 * @module
 */
import { create, type Delta } from "jsondiffpatch";

type Path = readonly (string | number)[];

/**
 * One difference. Within an array `removed` and `moved` say where an item was, `added` and `changed` where it is. Taken in this
 * order they make the one value out of the other: of each array first what is removed, then what is added or moved in, by place.
 */
export type Change =
  | { readonly kind: "added"; readonly path: Path; readonly to: unknown }
  | { readonly kind: "removed"; readonly path: Path; readonly from: unknown }
  | { readonly kind: "changed"; readonly path: Path; readonly from: unknown; readonly to: unknown }
  | { readonly kind: "moved"; readonly path: Path; readonly toIndex: number };

const SIGNED_ID = "$id";

const differ = create({
  // Called for null too.
  objectHash: (item: object | null) => JSON.stringify(item !== null && SIGNED_ID in item ? [SIGNED_ID, item[SIGNED_ID]] : [item]),
  arrays: { detectMove: true, includeValueOnMove: false },
});

export function changesBetween(before: unknown, after: unknown): Change[] {
  return flattened(differ.diff(escaped(before), escaped(after)), []);
}

/** The changes of a state from the difference that the server gives of it, which is that of its outermost keys. */
export function changesOf(diff: {
  added: Readonly<Record<string, unknown>>;
  removed: Readonly<Record<string, unknown>>;
  /** Each with `from` and `to`. */
  modified: Readonly<Record<string, unknown>>;
}): Change[] {
  return [
    ...Object.entries(diff.modified).flatMap(([name, modified]) => {
      const { from, to } = modified as { from: unknown; to: unknown };
      return changesBetween(from, to).map((change) => ({ ...change, path: [name, ...change.path] }));
    }),
    ...Object.entries(diff.added).map(([name, to]) => ({ kind: "added" as const, path: [name], to })),
    ...Object.entries(diff.removed).map(([name, from]) => ({ kind: "removed" as const, path: [name], from })),
  ];
}

/** `order.items[0].qty`, with names that are no words in quotes. */
export function pathText(path: Path): string {
  if (path.length === 0) return "(all of it)";
  return path
    .map((part, index) => {
      if (typeof part === "number") return `[${part}]`;
      if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(part)) return `[${JSON.stringify(part)}]`;
      return index === 0 ? part : `.${part}`;
    })
    .join("");
}

function flattened(delta: Delta, path: Path): Change[] {
  if (delta === undefined) return [];
  if (!Array.isArray(delta)) return isOfArray(delta) ? ofArray(delta, path) : ofObject(delta, path);
  const [first, second, kind] = delta as readonly unknown[];
  if (delta.length === 1) return [{ kind: "added", path, to: plain(first) }];
  if (delta.length === 2) return [{ kind: "changed", path, from: plain(first), to: plain(second) }];
  return kind === MOVED ? [{ kind: "moved", path, toIndex: second as number }] : [{ kind: "removed", path, from: plain(first) }];
}
const MOVED = 3;

function isOfArray(delta: object): boolean {
  return "_t" in delta && delta._t === "a";
}

function ofObject(delta: object, path: Path): Change[] {
  return Object.entries(delta).flatMap(([name, inner]) => flattened(inner as Delta, [...path, unescapedName(name)]));
}

/** Places before have an underscore: `_2` was removed from there or moved. */
function ofArray(delta: object, path: Path): Change[] {
  const entries = Object.entries(delta).filter(([name]) => name !== "_t");
  const removed = entries.filter(([name, inner]) => name.startsWith("_") && (inner as unknown[])[2] !== MOVED);
  const removedAt = new Map(removed.map(([name, inner]) => [name.slice(1), (inner as unknown[])[0]]));
  const added = entries.filter(([name, inner]) => !name.startsWith("_") && Array.isArray(inner) && inner.length === 1);
  const inPlace = added.length === removed.length && entries.length === 2 * added.length && added.every(([name]) => removedAt.has(name));
  // Items without an id that stayed where they are: what is different within them says more than the whole of them.
  if (inPlace)
    return added.flatMap(([name, inner]) => flattened(differ.diff(removedAt.get(name), (inner as unknown[])[0]), [...path, Number(name)]));
  return entries
    .toSorted(([one], [other]) => Number(other.startsWith("_")) - Number(one.startsWith("_")))
    .flatMap(([name, inner]) => flattened(inner as Delta, [...path, Number(name.replace("_", ""))]));
}

/**
 * While jsondiffpatch compares, names have a sign before them: it takes what an object inherits, such as `toString`, for a
 * member, and writes the members of arrays, marked by `_t`, and what it finds of `__proto__` into plain objects.
 */
const SIGN = "$";

function escaped(value: unknown): unknown {
  return renamed(value, (name) => SIGN + name);
}

function plain(value: unknown): unknown {
  return renamed(value, unescapedName);
}

function unescapedName(name: string): string {
  return name.slice(SIGN.length);
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [rename(name), renamed(inner, rename)]));
}
