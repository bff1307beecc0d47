/**
 * Names that are nearly those of fields: `userId`, or one letter off. Ignored like other unknown names they would fail silently.
 *
 * @module
 */
import type { TObject, TSchema } from "@sinclair/typebox";
import { ApiError } from "../lib/errors.ts";

/** The names of the fields at one place. Nothing of it takes time until a name is sent that is none of them. */
export class FieldNames {
  readonly #names: ReadonlySet<string>;
  /** In the order of the schema. */
  #plain: readonly { readonly name: string; readonly plain: string }[] | undefined;
  #sentLengthMax = 0;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /**
   * Returns the field that a name is nearly that of: the same in another spelling, or else the first that is one letter off.
   *
   * @param isThere - whether a field was sent too: then what is one letter off is no misspelt one, but a name of its own
   */
  nearest(sent: string, isThere: (name: string) => boolean = () => false): string | undefined {
    this.#plain ??= this.#prepared();
    if (sent.length > this.#sentLengthMax) return undefined;
    const plain = plainOf(sent);
    if (plain === "") return undefined;
    let near: string | undefined;
    for (const known of this.#plain) {
      if (known.plain === plain) return known.name;
      if (near === undefined && isOneLetterOff(plain, known.plain) && !isThere(known.name)) near = known.name;
    }
    return near;
  }

  #prepared() {
    // With a sign before each letter, and one letter more.
    for (const { length } of this.#names) this.#sentLengthMax = Math.max(this.#sentLengthMax, 2 * length + 2);
    return Array.from(this.#names, (name) => ({ name, plain: plainOf(name) }));
  }
}

/** Returns the names of the fields of an object. */
export function fieldNamesOf(schema: TObject): FieldNames {
  return new FieldNames(Object.keys(schema.properties));
}

/** A name without what differs between spellings: `userId`, `user-id` and `USER_ID` are all `userid`. */
function plainOf(name: string): string {
  return name.replaceAll(/[_\-. ]/g, "").toLowerCase();
}

/** Checks whether a letter is left out, added, replaced or swapped with the next one. */
function isOneLetterOff(one: string, other: string): boolean {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  if (long.length - short.length > 1) return false;
  let at = 0;
  while (at < short.length && short[at] === long[at]) at++;
  if (long.length > short.length) return short.slice(at) === long.slice(at + 1);
  if (short.slice(at + 1) === long.slice(at + 1)) return true;
  return short[at] === long[at + 1] && short[at + 1] === long[at] && short.slice(at + 2) === long.slice(at + 2);
}

/**
 * @param path - where the name is, with a full stop at its end: `input.`
 * @param isThere - whether a field was sent too
 * @param isKnown - whether something else of the same concept has that name: then it means that
 * @throws {ApiError} `invalid_request` for a name that is nearly that of a field
 */
export function refuseNearMiss(
  sent: string,
  fields: FieldNames,
  path: string,
  isThere: (name: string) => boolean,
  isKnown: (name: string) => boolean,
): void {
  if (fields.has(sent)) return;
  const near = fields.nearest(sent, isThere);
  if (near === undefined || isKnown(sent)) return;
  throw nearMiss(path + sent, near);
}

/** @param param - the name that was sent, with its path */
export function nearMiss(param: string, near: string): ApiError {
  return new ApiError("invalid_request", `${param} is not a field here; did you mean ${near}?`, { param });
}

interface Described {
  readonly tag: { readonly name: string };
  readonly path: string;
  readonly query: TSchema;
  readonly body: TSchema | null;
  readonly response: TSchema;
  readonly takesTicket: boolean;
}

/** The names that the operations of an API know, by concept: what a record shows may be sent back, and what one takes another ignores. */
export class ConceptNames {
  readonly #endpoints: readonly Described[];
  readonly #ofTags = new Map<string, ReadonlySet<string>>();

  constructor(endpoints: readonly Described[]) {
    this.#endpoints = endpoints;
  }

  /** Checks whether an operation of the same part of the API, or of the same path, takes or shows a name. */
  knows({ tag, path }: Described, name: string): boolean {
    const onPath = this.#endpoints.filter((endpoint) => endpoint.path === path);
    return [tag, ...onPath.map((endpoint) => endpoint.tag)].some((one) => this.#namesOf(one.name).has(name));
  }

  #namesOf(tag: string): ReadonlySet<string> {
    let names = this.#ofTags.get(tag);
    if (names === undefined) {
      const own = this.#endpoints.filter((endpoint) => endpoint.tag.name === tag);
      names = namesIn(own.flatMap(({ query, body, response }) => [query, response, ...(body === null ? [] : [body])]));
      if (own.some(({ takesTicket }) => takesTicket)) names = new Set([...names, "ticket"]);
      this.#ofTags.set(tag, names);
    }
    return names;
  }
}

/** A member whose own members nobody sends back: its `filters` would let a misspelt `filter` pass. */
const NEVER_SENT = "explanation";

/** Returns the names of all members of schemas, however deep. */
export function namesIn(schemas: readonly TSchema[]): ReadonlySet<string> {
  const names = new Set<string>();
  const collect = (schema: TSchema): void => {
    const { properties = {}, items, anyOf = [] } = schema as { properties?: Record<string, TSchema>; items?: TSchema; anyOf?: TSchema[] };
    for (const [name, property] of Object.entries(properties)) {
      names.add(name);
      if (name !== NEVER_SENT) collect(property);
    }
    if (items !== undefined) collect(items);
    for (const one of anyOf) collect(one);
  };
  for (const schema of schemas) collect(schema);
  return names;
}
