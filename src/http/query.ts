/**
 * Reads a query string by its schema: texts as they are, whole numbers where a number is meant.
 *
 * @module
 */
import type { TObject, TSchema } from "@sinclair/typebox";

/** A plain decimal integer; anything else stays text, which the schema then refuses. */
const INTEGER = /^-?\d{1,15}$/;

/** Only what the schema knows is read; of a repeated parameter the first counts. */
export function readQuery(url: string, schema: TObject): Record<string, unknown> {
  const start = url.indexOf("?");
  if (start === -1) return {};
  const sent = new URLSearchParams(url.slice(start + 1));
  const query: Record<string, unknown> = {};
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    const text = sent.get(name);
    if (text !== null) query[name] = property["type"] === "integer" && INTEGER.test(text) ? Number(text) : text;
  }
  return query;
}
