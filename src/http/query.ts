/**
 * Reads a query string by its schema: texts as they are, whole numbers where a number is meant.
 *
 * @module
 */
import type { TObject, TSchema } from "@sinclair/typebox";

/** A plain decimal integer; anything else stays text, which the schema then refuses. */
const INTEGER = /^-?\d{1,15}$/;

/** In a query a plus is a space: an offset that was not escaped is meant all the same. */
const UNESCAPED_OFFSET = /(T.*) (\d\d(?::?\d\d)?)$/i;

/** Longer than any time with its offset: such a text stays as it is, since the pattern would take long over it. */
const TIME_LENGTH_MAX = 64;

/** Only what the schema knows is read; of a repeated parameter the first counts, unless a list is meant. */
export function readQuery(url: string, schema: TObject): Record<string, unknown> {
  const start = url.indexOf("?");
  if (start === -1) return {};
  const sent = new URLSearchParams(url.slice(start + 1));
  const query: Record<string, unknown> = {};
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    if (property["type"] === "array") {
      if (sent.has(name)) query[name] = sent.getAll(name);
      continue;
    }
    const text = sent.get(name);
    if (text !== null) query[name] = valueOf(text, property);
  }
  return query;
}

function valueOf(text: string, property: TSchema): string | number {
  if (property["type"] === "integer" && INTEGER.test(text)) return Number(text);
  const isTime = property["format"] === "date-time" && text.length <= TIME_LENGTH_MAX;
  return isTime ? text.replace(UNESCAPED_OFFSET, "$1+$2") : text;
}
