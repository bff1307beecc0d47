/**
 * Reads a query string by its schema: numbers, booleans and objects, as JSON, where the schema has these, texts as they are.
 *
 * @module
 */
import type { TObject, TSchema } from "@sinclair/typebox";
import { ApiError } from "../lib/errors.ts";
import { refuseUnusual } from "./body.ts";

/** A plain decimal integer; anything else stays text, which the schema then refuses. */
const INTEGER = /^-?\d{1,15}$/;
/** The same with decimals: `0.7`. */
const DECIMAL = /^-?\d{1,15}(\.\d{1,15})?$/;

/** In a query a plus is a space: `+02:00` that was not escaped is still read as an offset. */
const UNESCAPED_OFFSET = /(T.*) (\d\d(?::?\d\d)?)$/i;

/** Longer than any time with its offset: the pattern would be slow on longer texts. */
const TIME_LENGTH_MAX = 64;

/** Returns the parameters of a URL, known or not. */
export function parametersOf(url: string): URLSearchParams {
  const start = url.indexOf("?");
  return new URLSearchParams(start === -1 ? "" : url.slice(start + 1));
}

/** Reads the parameters that the schema knows; of a repeated one the first counts, unless the schema has an array. */
export function readQuery(sent: URLSearchParams, schema: TObject): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    if (property["type"] === "array") {
      if (sent.has(name)) query[name] = sent.getAll(name);
      continue;
    }
    const text = sent.get(name);
    if (text !== null) query[name] = property["type"] === "object" ? objectOf(name, text) : valueOf(text, property);
  }
  return query;
}

/** Returns the names of the parameters of all lists of an API. */
export function listParametersOf(endpoints: readonly { method: string; query: TObject }[]): ReadonlySet<string> {
  return new Set(endpoints.filter(isList).flatMap(({ query }) => Object.keys(query.properties)));
}

/** Every list has a limit for its pages. */
function isList({ method, query }: { method: string; query: TObject }): boolean {
  return method === "GET" && "limit" in query.properties;
}

/**
 * Refuses a list a filter that only other lists have: ignoring it would answer with records that were not asked for.
 *
 * @param names - the parameters that were sent; those that no list has are ignored
 * @param known - those of all lists, from `listParametersOf`
 * @throws {ApiError} `invalid_request` naming the parameter
 */
export function refuseForeignFilter(
  names: Iterable<string>,
  endpoint: { method: string; query: TObject },
  known: ReadonlySet<string>,
): void {
  if (!isList(endpoint)) return;
  const own = endpoint.query.properties;
  for (const name of names) {
    if (!known.has(name) || Object.hasOwn(own, name)) continue;
    throw new ApiError("invalid_request", `${name} is not a parameter of this list; it has ${Object.keys(own).join(", ")}.`, {
      param: name,
    });
  }
}

/** Leaves what is not a JSON object as text, which the schema then refuses. */
function objectOf(name: string, text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return text;
  refuseUnusual({ [name]: value }, `{${JSON.stringify(name)}:${text}}`);
  return value;
}

function valueOf(text: string, property: TSchema): string | number | boolean {
  if (property["type"] === "boolean" && (text === "true" || text === "false")) return text === "true";
  if (property["type"] === "integer" && INTEGER.test(text)) return Number(text);
  if (property["type"] === "number" && DECIMAL.test(text)) return Number(text);
  const isTime = property["format"] === "date-time" && text.length <= TIME_LENGTH_MAX;
  return isTime ? text.replace(UNESCAPED_OFFSET, "$1+$2") : text;
}
