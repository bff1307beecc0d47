/**
 * Looks for secrets in the JSON of a request, and takes them out. Pure.
 *
 * Of a body those members are looked at that the schema leaves to the caller: texts, and all within JSON of the caller's own, the names in
 * it and whole numbers too. Names by which records are found (ids, `external_id`, namespaces and keys of documents) are not: another text
 * in their place would be another record.
 *
 * @module
 */
import { findSecrets, isNamedSecret, type FoundSecret } from "./find.ts";
import type { SecretGroup } from "./kinds.ts";
import { isCard } from "./numbers.ts";

/** Secrets of a kind at one place of a request. */
export interface Redaction {
  /** Path within the body: `memories[3].content`. */
  readonly path: string;
  readonly kind: string;
  readonly count: number;
}

/** Members of an object that are looked at. */
export interface ScreenedMembers {
  readonly [name: string]: ScreenedMember;
}
export type ScreenedMember =
  /** All of it is the caller's own. */
  | "all"
  /** An object, or the objects of an array, whose places are in brackets in errors, or behind a dot. */
  | { readonly members: ScreenedMembers; readonly array?: "brackets" | "dots" | undefined };

export interface Screened<Value> {
  /** With `[redacted:KIND]` in the place of each secret; the same value where there is none. */
  readonly value: Value;
  readonly found: readonly Redaction[];
}

type Json = Readonly<Record<string, unknown>>;
const PATH_LENGTH_MAX = 256;
/** Beyond these places kinds are counted together: an answer is not to be many times as long as its request. */
export const REDACTIONS_MAX = 100;
const FURTHER = "…";
/** Smallest number that can be one of a card. */
const CARD_NUMBER_MIN = 1e13;

export function screen(body: Json, members: ScreenedMembers, groups: ReadonlySet<SecretGroup>): Screened<Json> {
  const screening = new Screening(groups);
  const value = screening.membersOf(body, members, "");
  return { value, found: screening.found };
}

/** The same for all of a value. */
export function screenedText<Value>(value: Value, groups: ReadonlySet<SecretGroup>): Value {
  return new Screening(groups).all(value, "", "") as Value;
}

/** Kinds of secrets in a value. */
export function kindsIn(value: unknown, groups: ReadonlySet<SecretGroup>): Set<string> {
  const screening = new Screening(groups);
  screening.all(value, "", "");
  return new Set(screening.found.map(({ kind }) => kind));
}

class Screening {
  readonly #places: Redaction[] = [];
  readonly #further = new Map<string, number>();
  readonly #groups: ReadonlySet<SecretGroup>;

  constructor(groups: ReadonlySet<SecretGroup>) {
    this.#groups = groups;
  }

  get found(): Redaction[] {
    return [...this.#places, ...Array.from(this.#further, ([kind, count]) => ({ path: FURTHER, kind, count }))];
  }

  membersOf(value: Json, members: ScreenedMembers, path: string): Json {
    let changed: Record<string, unknown> | undefined;
    for (const [name, member] of Object.entries(members)) {
      if (!Object.hasOwn(value, name)) continue;
      const before = value[name];
      const after = this.#member(before, member, pathTo(path, name), name);
      if (after !== before) (changed ??= { ...value })[name] = after;
    }
    return changed ?? value;
  }

  #member(value: unknown, member: ScreenedMember, path: string, name: string): unknown {
    if (member === "all") return this.all(value, path, name);
    const { members, array } = member;
    if (array === undefined) return isObject(value) ? this.membersOf(value, members, path) : value;
    if (!Array.isArray(value)) return value;
    return mapped(value, (one, i) =>
      isObject(one) ? this.membersOf(one, members, array === "brackets" ? `${path}[${i}]` : pathTo(path, `${i}`)) : one,
    );
  }

  /** Looks at all of a value. @param name - of the member that it is */
  all(value: unknown, path: string, name: string): unknown {
    if (typeof value === "string") return this.#text(value, path, name);
    if (typeof value === "number") return this.#number(value, path);
    if (Array.isArray(value)) return mapped(value, (one, i) => this.all(one, pathTo(path, `${i}`), name));
    return isObject(value) ? this.#object(value, path) : value;
  }

  #text(text: string, path: string, name: string): string {
    const found =
      isNamedSecret(name, text) && this.#groups.has("keys") ? [wholly("aws_secret_key", text)] : findSecrets(text, this.#groups);
    if (found.length === 0) return text;
    this.#note(path, found);
    return redacted(text, found);
  }

  #number(number: number, path: string): unknown {
    if (number < CARD_NUMBER_MIN || !this.#groups.has("cards") || !Number.isSafeInteger(number)) return number;
    const digits = String(number);
    if (!isCard(digits)) return number;
    const found = [wholly("card_number", digits)];
    this.#note(path, found);
    return redacted(digits, found);
  }

  /** A name is looked at as well; of two that are the same then each has a number. */
  #object(value: Json, path: string): Json {
    let changed: [string, unknown][] | undefined;
    let names: FreeNames | undefined;
    const entries = Object.entries(value);
    for (const [i, [name, before]] of entries.entries()) {
      const inName = findSecrets(name, this.#groups);
      const shown = inName.length === 0 ? name : redacted(name, inName);
      const place = pathTo(path, shown);
      if (inName.length > 0) this.#note(place, inName);
      const after = this.all(before, place, name);
      if (changed === undefined && (after !== before || shown !== name)) changed = entries.slice(0, i);
      changed?.push([inName.length === 0 ? name : (names ??= new FreeNames(value)).of(shown), after]);
    }
    return changed === undefined ? value : Object.fromEntries(changed);
  }

  #note(path: string, found: readonly FoundSecret[]): void {
    const counts = new Map<string, number>();
    for (const { kind } of found) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    for (const [kind, count] of counts) {
      if (this.#places.length < REDACTIONS_MAX) this.#places.push({ path, kind, count });
      else this.#further.set(kind, (this.#further.get(kind) ?? 0) + count);
    }
  }
}

/** Path of a member; of a long one the beginning, which members of it share. */
function pathTo(path: string, name: string): string {
  if (path.length > PATH_LENGTH_MAX) return path;
  const whole = path === "" ? name : `${path}.${name}`;
  return whole.length <= PATH_LENGTH_MAX ? whole : `${whole.slice(0, PATH_LENGTH_MAX).toWellFormed()}…`;
}

/** Names for members of an object whose own are taken out: of some that become the same, all but the first have a number. */
class FreeNames {
  readonly #value: Json;
  readonly #given = new Map<string, number>();

  constructor(value: Json) {
    this.#value = value;
  }

  of(name: string): string {
    for (;;) {
      const count = (this.#given.get(name) ?? 0) + 1;
      this.#given.set(name, count);
      const numbered = count === 1 ? name : `${name}#${count}`;
      if (!Object.hasOwn(this.#value, numbered)) return numbered;
    }
  }
}

/** The same array where nothing of it has changed. */
function mapped(values: readonly unknown[], of: (value: unknown, i: number) => unknown): readonly unknown[] {
  let changed: unknown[] | undefined;
  for (const [i, before] of values.entries()) {
    const after = of(before, i);
    if (changed === undefined && after !== before) changed = values.slice(0, i);
    changed?.push(after);
  }
  return changed ?? values;
}

const wholly = (kind: string, text: string): FoundSecret => ({ kind, start: 0, end: text.length });

export function redacted(text: string, found: readonly FoundSecret[]): string {
  let shown = "";
  let at = 0;
  for (const { kind, start, end } of found) {
    shown += `${text.slice(at, start)}[redacted:${kind}]`;
    at = end;
  }
  return shown + text.slice(at);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
