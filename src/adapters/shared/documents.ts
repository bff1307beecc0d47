/**
 * More documents than one request takes.
 *
 * @module
 */
import { CairnError, type Document, type DocumentChange, type Documents, type JsonObject } from "../../client/index.ts";

const OPERATIONS_MAX = 100;
/** A request may have 1 MiB unless the server is set otherwise; what surrounds the values fits into the rest. */
const BATCH_BYTES_MAX = 900_000;

/** Makes changes in their order, in as few transactions as they fit into. What makes the others visible comes last. */
export async function change(documents: Documents, changes: readonly DocumentChange[]): Promise<void> {
  const encoder = new TextEncoder();
  const sizes = changes.map((one) => encoder.encode(JSON.stringify(one)).length);
  for (let from = 0; from < changes.length;) {
    let to = from + 1;
    for (let bytes = sizes[from] ?? 0; to < changes.length && to - from < OPERATIONS_MAX; to++) {
      bytes += sizes[to] ?? 0;
      if (bytes > BATCH_BYTES_MAX) break;
    }
    await documents.batch(changes.slice(from, to));
    from = to;
  }
}

/** Returns the documents at some places, in their order; null where there is none. */
export async function getAll(documents: Documents, places: readonly Pick<Document, "namespace" | "key">[]): Promise<(Document | null)[]> {
  const found: (Document | null)[] = [];
  for (let from = 0, count = OPERATIONS_MAX; from < places.length;) {
    const part = places.slice(from, from + count);
    try {
      found.push(...(await documents.query(part.map(({ namespace, key }) => ({ op: "get" as const, namespace, key })))));
      from += part.length;
    } catch (error) {
      // Together they are more than an answer may hold.
      if (!(error instanceof CairnError) || error.code !== "payload_too_large" || part.length === 1) throw error;
      count = Math.ceil(part.length / 2);
    }
  }
  return found;
}

const PAGE_MAX = 1_000;

/** Returns the values of all documents of a namespace, in the order of their keys. */
export async function allValues(documents: Documents, namespace: string[]): Promise<JsonObject[]> {
  const values: JsonObject[] = [];
  for await (const { value } of documents.list(namespace, { limit: PAGE_MAX })) values.push(value);
  return values;
}
