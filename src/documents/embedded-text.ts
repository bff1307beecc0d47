/**
 * Text that a document is found by: the texts in its value, or those that paths lead to.
 *
 * ```
 * $           all of the value
 * a.b         a member of a member
 * a[0] a[-1]  an item of an array, from its beginning or its end
 * a[*] a.*    every item, every member
 * ```
 * An object is the text of its members, each after its name; null is no text.
 *
 * @module
 */
import type { JsonObject, JsonValue } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength } from "../lib/text.ts";

/** All of the value, or what each of these paths leads to. */
export type Index = true | readonly string[];

/** A member or an item by its name, an item by its number, or all of both. */
type Step = { readonly name: string } | { readonly item: number } | "all";

/** A part of a path: a name with brackets after it. */
const PART = /^(?<name>[^[\]]*)(?<brackets>(?:\[(?:\*|-?\d{1,7})\])*)$/;

/** The steps of a path; undefined for a text that is none. */
function stepsOf(path: string): Step[] | undefined {
  if (path === "$") return [];
  const steps: Step[] = [];
  for (const part of path.split(".")) {
    const { name = "", brackets = "" } = PART.exec(part)?.groups ?? {};
    if (name === "") return undefined;
    steps.push(name === "*" ? "all" : { name });
    for (const [, item = ""] of brackets.matchAll(/\[(.*?)\]/g)) steps.push(item === "*" ? "all" : { item: Number(item) });
  }
  return steps;
}

export function isPath(path: string): boolean {
  return stepsOf(path) !== undefined;
}

/** Values that are looked at: as many texts as that are too many. */
const PROBES_MAX = 100_000;

/** The text by which a document is found; undefined where it would be longer than that may be. Empty: it is not found at all. */
export function textOf(value: JsonObject, index: Index): string | undefined {
  const found = new Texts();
  for (const path of index === true ? ["$"] : index) found.follow(value, stepsOf(path) ?? []);
  return found.text;
}

class Texts {
  #text = "";
  #probes = 0;

  get text(): string | undefined {
    return this.#isTooMuch || codePointLength(this.#text) > LIMITS.documentTextLengthMax ? undefined : this.#text.trim();
  }

  /** A code point has two units at most. */
  get #isTooMuch(): boolean {
    return this.#probes > PROBES_MAX || this.#text.length > 2 * LIMITS.documentTextLengthMax;
  }

  follow(value: JsonValue | undefined, steps: readonly Step[], at = 0): void {
    this.#probes++;
    if (value === undefined || this.#isTooMuch) return;
    const step = steps[at];
    if (step === undefined) return this.#add(value);
    if (step === "all") {
      if (typeof value !== "object" || value === null) return;
      for (const inner of Array.isArray(value) ? value : Object.values<JsonValue>(value)) this.follow(inner, steps, at + 1);
    } else if ("item" in step) {
      if (Array.isArray(value)) this.follow(value.at(step.item), steps, at + 1);
    } else if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      this.follow(Object.hasOwn(value, step.name) ? value[step.name] : undefined, steps, at + 1);
    }
  }

  #add(value: JsonValue, name = ""): void {
    if (++this.#probes > PROBES_MAX || value === null || this.#isTooMuch) return;
    if (typeof value !== "object") {
      this.#text += `${this.#text === "" ? "" : "\n"}${name === "" ? "" : `${name}: `}${value}`;
    } else if (Array.isArray(value)) {
      for (const item of value) this.#add(item, name);
    } else {
      for (const [member, inner] of Object.entries(value)) this.#add(inner, name === "" ? member : `${name} ${member}`);
    }
  }
}
