/**
 * Some members of the values of documents, which the dotted paths of filters lead to.
 *
 * @example ["status", "order.total"]
 *
 * @module
 */
import { toJson, type JsonObject, type JsonText, type JsonValue } from "../lib/json.ts";

/** Part that is wanted below a member: all of it, or some of its members. */
type FieldTree = true | Map<string, FieldTree>;

export class Projection {
  /** Number of characters of its paths: each is followed in each document. */
  readonly length: number;
  readonly #wanted: FieldTree = new Map<string, FieldTree>();

  constructor(paths: readonly string[]) {
    this.length = paths.reduce((sum, path) => sum + path.length, 0);
    for (const path of paths) this.#want(path.split("."));
  }

  /** The members that are there, in their order; an object of which some are wanted has those alone, and what is none is left out. */
  of(value: JsonText): JsonText {
    return toJson(part(JSON.parse(value) as JsonObject, this.#wanted));
  }

  #want(path: readonly string[]): void {
    let at = this.#wanted;
    for (const [i, name] of path.entries()) {
      if (at === true) return;
      const inner = at.get(name);
      if (i === path.length - 1 || inner === true) at.set(name, true);
      else if (inner === undefined) at.set(name, new Map<string, FieldTree>());
      at = at.get(name)!;
    }
  }
}

function part(value: JsonValue, wanted: FieldTree): JsonValue | undefined {
  if (wanted === true) return value;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const members = Object.entries(value).flatMap(([name, inner]): [string, JsonValue][] => {
    const below = wanted.get(name);
    const found = below === undefined ? undefined : part(inner, below);
    return found === undefined ? [] : [[name, found]];
  });
  return Object.fromEntries(members);
}
