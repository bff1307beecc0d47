/**
 * More documents than one request takes.
 *
 * @module
 */
import {
  CairnError,
  type Document,
  type DocumentChange,
  type DocumentPage,
  type DocumentQueryOperation,
  type Documents,
} from "../../client/index.ts";
import { pauseUpTo } from "./clock.ts";

const OPERATIONS_MAX = 100;
/** Three changes for each item and some for what they have in common are not more than a request takes. */
const ITEMS_PER_PART = 31;
/** A request may have 1 MiB unless the server is set otherwise; what surrounds the values fits into the rest. */
const BATCH_BYTES_MAX = 900_000;
/** Largest number of documents of a page. */
export const PAGE_MAX = 1_000;

/**
 * Makes changes in their order, in as few transactions as they fit into. What makes the others visible comes last.
 *
 * @param each - is made in every transaction, after the others
 */
export async function change(
  documents: Documents,
  changes: readonly DocumentChange[],
  each: readonly DocumentChange[] = [],
): Promise<void> {
  const sizes = changes.map(bytesOf);
  const reserved = sum(each.map(bytesOf));
  for (let from = 0; from < changes.length;) {
    let to = from + 1;
    for (let bytes = reserved + (sizes[from] ?? 0); to < changes.length && to - from < OPERATIONS_MAX - each.length; to++) {
      bytes += sizes[to] ?? 0;
      if (bytes > BATCH_BYTES_MAX) break;
    }
    await documents.batch([...changes.slice(from, to), ...each]);
    from = to;
  }
}

/** Checks whether changes can be made in one transaction. */
export function fitTogether(changes: readonly DocumentChange[]): boolean {
  return changes.length <= OPERATIONS_MAX && (changes.length === 1 || sum(changes.map(bytesOf)) <= BATCH_BYTES_MAX);
}

function bytesOf(one: DocumentChange): number {
  return new TextEncoder().encode(JSON.stringify(one)).length;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

/**
 * Makes changes for some items, in as few transactions as they fit into; each depends on what is there when it is made.
 *
 * @param plan - finds the changes for some of the items; they name the versions of what they depend on
 */
export async function changeInParts<Item>(
  documents: Documents,
  items: readonly Item[],
  plan: (part: readonly Item[]) => Promise<readonly DocumentChange[]>,
): Promise<void> {
  for (let from = 0, count = ITEMS_PER_PART; from < items.length;) {
    const part = items.slice(from, from + count);
    const fits = await untilUnchanged(async () => {
      const changes = await plan(part);
      if (part.length > 1 && !fitTogether(changes)) return false;
      if (changes.length > 0) await documents.batch(changes);
      return true;
    });
    if (fits) from += part.length;
    else count = Math.ceil(part.length / 2);
  }
}

const TRIES = 20;
const PAUSE_MS_MAX = 500;

/** Makes a change that depends on what is there; when others were faster, again with what is there then, after a wait as of a backoff. */
export async function untilUnchanged<Result>(attempt: () => Promise<Result>, pause = pauseUpTo): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isConflict(error) || tries === TRIES) throw error;
      await pause(Math.min(PAUSE_MS_MAX, 2 ** tries));
    }
  }
}

export function isConflict(error: unknown): boolean {
  return error instanceof CairnError && error.code === "version_conflict";
}

/** Namespace that documents are kept in. @throws {RangeError} without a part: then nothing tells them from those of others */
export function rootOf(namespace: readonly string[]): readonly string[] {
  if (namespace.length === 0) throw new RangeError('namespace must have at least one part, such as ["my-graph"]; got [].');
  return namespace;
}

/** @throws {TypeError} for an id by which nothing can be kept */
export function check(id: unknown, name: string): void {
  if (typeof id !== "string" || id.trim() === "")
    throw new TypeError(`${name} must be a text that is not empty; got ${JSON.stringify(id)}.`);
}

export type DocumentAddress = Pick<Document, "namespace" | "key">;

/** Returns the documents at some places, in their order; null where there is none. */
export async function getAll(documents: Documents, places: readonly DocumentAddress[]): Promise<(Document | null)[]> {
  return (await readAll(documents, places, [])).found;
}

/** Returns the documents at some places, and all documents of some namespaces, in as few requests as they fit into. */
export async function readAll(
  documents: Documents,
  places: readonly DocumentAddress[],
  namespaces: readonly string[][],
): Promise<{ found: (Document | null)[]; lists: Document[][] }> {
  const operations = [
    ...places.map(({ namespace, key }) => ({ op: "get" as const, namespace, key })),
    ...namespaces.map((namespace) => ({ op: "list" as const, namespace, limit: PAGE_MAX })),
  ];
  const results = await queryAll(documents, operations);
  const pages = results.slice(places.length) as DocumentPage[];
  for (const [i, { data, next_cursor: cursor }] of pages.entries()) {
    if (cursor === null) continue;
    for await (const document of documents.list(namespaces[i] ?? [], { limit: PAGE_MAX, cursor })) data.push(document);
  }
  return { found: results.slice(0, places.length) as (Document | null)[], lists: pages.map(({ data }) => data) };
}

async function queryAll(documents: Documents, operations: readonly DocumentQueryOperation[]) {
  const found = [];
  for (let from = 0, count = OPERATIONS_MAX; from < operations.length;) {
    const part = operations.slice(from, from + count);
    try {
      found.push(...(await documents.query(part)));
      from += part.length;
    } catch (error) {
      // Together they are more than an answer may hold.
      if (!(error instanceof CairnError) || error.code !== "payload_too_large" || part.length === 1) throw error;
      count = Math.ceil(part.length / 2);
    }
  }
  return found;
}

/** Returns all documents of a namespace, in the order of their keys. */
export async function allDocuments(documents: Documents, namespace: string[]): Promise<Document[]> {
  return (await readAll(documents, [], [namespace])).lists.flat();
}

/** Returns what is wanted of a list, from an offset on, and reads no further than that takes. */
export async function taken<Found>(
  list: AsyncIterable<Found>,
  { offset, limit }: { offset: number; limit: number },
  isWanted: (found: Found) => boolean = () => true,
): Promise<Found[]> {
  const results: Found[] = [];
  if (limit <= 0) return results;
  let passed = 0;
  for await (const found of list) {
    if (!isWanted(found) || passed++ < offset) continue;
    results.push(found);
    if (results.length >= limit) break;
  }
  return results;
}
