/**
 * Parts of lists of documents, which are in the order of their keys.
 *
 * @module
 */
import type { Document, Documents, JsonObject } from "../../client/index.ts";
import { PAGE_MAX, taken } from "./documents.ts";

/** As many as the server leaves out at once without looking at all that it may. */
const OFFSET_MAX = 5_000;
/** Number of documents read at once where not all of them are wanted. */
const LOOKED_AT_MIN = 100;

/** Part of a list of documents. */
export interface Span {
  readonly order: "asc" | "desc";
  readonly after?: string;
  readonly before?: string;
  readonly filter?: JsonObject;
}

export interface Slice {
  readonly offset: number;
  readonly limit: number;
}

/** Returns the documents of several namespaces in one order, from an offset on. */
export async function sliceOf(
  documents: Documents,
  namespaces: readonly string[][],
  span: Span,
  { offset, limit }: Slice,
  isWanted?: (found: Document) => boolean,
): Promise<Document[]> {
  const [namespace] = namespaces;
  if (namespace === undefined || limit <= 0) return [];
  if (namespaces.length === 1) {
    const skipped = isWanted === undefined ? Math.min(offset, OFFSET_MAX) : 0;
    const rest = { offset: offset - skipped, limit };
    const least = isWanted === undefined || span.filter !== undefined ? 1 : LOOKED_AT_MIN;
    const page = Math.min(PAGE_MAX, Math.max(least, rest.offset + limit));
    const list = documents.list(namespace, { ...span, offset: skipped, limit: page });
    return taken(list, rest, isWanted);
  }
  const found: Document[][] = [];
  for (const one of namespaces) found.push(await sliceOf(documents, [one], span, { offset: 0, limit: offset + limit }, isWanted));
  return found
    .flat()
    .sort(byKey(span.order))
    .slice(offset, offset + limit);
}

/** Compares documents by their keys, which are ASCII where order matters. */
export function byKey(order: "asc" | "desc"): (a: Pick<Document, "key">, b: Pick<Document, "key">) => number {
  const sign = order === "asc" ? 1 : -1;
  return (a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0);
}

/** Returns how many documents some namespaces have, without those below them. */
export async function countOf(documents: Documents, namespaces: readonly string[][]): Promise<number> {
  let total = 0;
  for (let from = 0; from < namespaces.length; from += 100) {
    const operations = namespaces.slice(from, from + 100).map((namespace) => ({ op: "count", namespace }) as const);
    for (const { count } of await documents.query(operations)) total += count;
  }
  return total;
}
