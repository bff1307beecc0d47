/**
 * Lists of documents and of namespaces, in the order of their keys: a few are read at a time, as they can be long, within a budget.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import { toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { eachFetched, FIRST, type Reader, type Span } from "../storage/access.ts";
import { hiddenIn, namespaceRow, visibleDocument } from "../storage/document-records.ts";
import {
  MAX_KEY,
  successor,
  changeKey,
  documentKey,
  DOCUMENT_SPACE_LENGTH,
  namespaceKey,
  namespaceOfDocument,
  namespaceParts,
  ownDocuments,
} from "../storage/keys.ts";
import { rowsOrGaps } from "../storage/page.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { documentRemovals, documents, namespaces, type DocumentRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { documentJson, pageJson, type Shown } from "./answers.ts";
import type { Budget } from "./budget.ts";

export type Order = "asc" | "desc";
export type Namespace = readonly string[];

export interface Listing {
  op: "list";
  namespace: Namespace;
  deep: boolean;
  order: Order;
  orderBy: "key" | "updated_at";
  after?: string | undefined;
  before?: string | undefined;
  cursor?: string | undefined;
  limit: number;
  offset: number;
  filter?: RecordFilter | undefined;
  shown: Shown;
}

export interface NamespaceListing {
  op: "namespaces";
  prefix: Namespace;
  suffix: Namespace;
  maxDepth?: number | undefined;
  cursor?: string | undefined;
  limit: number;
  offset: number;
}

const ROWS_AT_ONCE = 25;
/** Rows that are read at once have about as many characters together, if each is as long as the longest one before. */
const CHARACTERS_AT_ONCE = 512 * 1024;

/** Position at which a list continues, number of documents that it still takes, and length of the longest read last. */
interface ListPlace {
  readonly orderBy: Listing["orderBy"];
  readonly span: { readonly from: string; readonly to: string };
  readonly descending: boolean;
  readonly wanted: number;
  readonly longest: number;
}

interface FoundDocument {
  /** Position in the list: its key, or its entry in the order of changes. */
  readonly at: string;
  readonly key: string;
  readonly length: number;
  readonly row: DocumentRow | undefined;
}

export interface NextDocuments {
  readonly found: readonly FoundDocument[];
  readonly isEnd: boolean;
}

export function firstOf(space: string, listing: Listing): ListPlace {
  const { filter, offset, limit, order, orderBy } = listing;
  const wanted = filter === undefined ? offset + limit + 1 : Infinity;
  // Nothing is known of their lengths: two are read first.
  return { orderBy, span: spanOf(space, listing), descending: order === "desc", wanted, longest: CHARACTERS_AT_ONCE / 2 };
}

/** As few as will do: each can be a megabyte. */
export function nextDocuments(reader: Reader, { orderBy, span, descending, wanted, longest }: ListPlace): NextDocuments {
  const few = Math.min(ROWS_AT_ONCE, Math.max(1, Math.floor(CHARACTERS_AT_ONCE / longest)));
  const limit = Math.min(wanted, reader.recordsAtOnce > ROWS_AT_ONCE ? reader.recordsAtOnce : few);
  const rows = (orderBy === "key" ? rowsByKey : rowsByChange)(reader, { ...span, limit, descending });
  const found = eachFetched(rows, ({ at, key, row }) => ({
    at,
    key,
    length: row?.body.length ?? 0,
    row: row && unlessUnreadable(() => visibleDocument(reader, key, row)),
  }));
  return { found, isEnd: rows.length < limit };
}

type Rows = readonly Pick<FoundDocument, "at" | "key" | "row">[];

function rowsByKey(reader: Reader, span: Span): Rows {
  return rowsOrGaps(reader, documents, span).map(({ key, row }) => ({ at: key, key, row }));
}

/** Skips entries that are not of a document's last change: a server of before leaves such. */
function rowsByChange(reader: Reader, span: Span): Rows {
  const entries = reader.keys(byChange, span);
  const keys = entries.map((entry) => byChange.recordOf(entry));
  reader.ahead(documents, keys);
  return eachFetched(entries, (at) => {
    const key = byChange.recordOf(at);
    const row = unlessUnreadable(() => reader.get(documents, key));
    return { at, key, row: row !== undefined && changeKey(key, row.id) === at ? row : undefined };
  });
}
const { byChange } = documents.index;

export async function listDocuments(
  store: RecordStore,
  space: string,
  listing: Listing,
  { first, budget }: { first: NextDocuments; budget: Budget },
): Promise<JsonText> {
  const { limit, offset, filter, shown } = listing;
  const data: JsonText[] = [];
  let at = firstOf(space, listing);
  let passed = 0;
  const page = (hasMore: boolean) => {
    const cursor = at.descending ? at.span.to : at.span.from;
    return pageJson(data, hasMore ? cursor : undefined, offset - passed);
  };
  for (let { found, isEnd } = first; !budget.isSpent; { found, isEnd } = await store.read((reader) => nextDocuments(reader, at))) {
    for (const { at: place, key, length, row } of found) {
      if (row !== undefined && filter?.passes(JSON.parse(row.body) as JsonObject) !== false && passed++ >= offset) {
        if (data.length === limit) return page(true);
        const json = documentJson(key, row, { shown });
        if (!budget.takes(json)) return page(true);
        data.push(json);
      }
      at = { ...at, span: at.descending ? { ...at.span, to: place } : { ...at.span, from: successor(place) } };
      await budget.look(length, filter, shown);
      if (budget.isSpent) return page(true);
    }
    if (isEnd) return page(false);
    const longest = found.reduce((most, { length }) => Math.max(most, length), 1);
    at = { ...at, longest, wanted: filter === undefined ? offset + limit + 1 - passed : Infinity };
  }
  return page(true);
}

function spanOf(space: string, { namespace, deep, order, after, before, cursor }: Listing): { from: string; to: string } {
  const top = namespaceKey(space, namespace);
  const first = deep ? top : ownDocuments(top);
  const from = after === undefined ? first : successor(documentKey(top, after));
  const to = before === undefined ? first + MAX_KEY : documentKey(top, before);
  if (cursor === undefined) return { from, to: to < from ? from : to };
  const at = space + cursor;
  return order === "asc" ? { from: at < from ? from : at > to ? to : at, to } : { from, to: at > to ? to : at < from ? from : at };
}

export async function listNamespaces(store: RecordStore, space: string, listing: NamespaceListing, budget: Budget): Promise<JsonText> {
  const { prefix, suffix, maxDepth = Infinity, limit, offset, cursor } = listing;
  const data: JsonText[] = [];
  const star = prefix.indexOf("*");
  const first = namespaceKey(space, star === -1 ? prefix : prefix.slice(0, star));
  const to = first + MAX_KEY;
  let from = cursor === undefined || space + cursor < first ? first : space + cursor;
  let passed = 0;
  const page = (hasMore: boolean) => pageJson(data, hasMore ? from : undefined, offset - passed);
  while (!budget.isSpent) {
    const { found, isEnd } = await store.read((reader) => namespacesIn(reader, from, to));
    for (const { key, isThere } of found) {
      // Namespaces below one that was cut off are the same one again.
      if (key < from) continue;
      const parts = namespaceParts(key);
      const isFound =
        isThere &&
        parts.length >= Math.max(1, prefix.length, suffix.length) &&
        isLike(parts, prefix) &&
        isLike(parts.slice(-suffix.length), suffix);
      const cut = isFound && parts.length > maxDepth ? parts.slice(0, maxDepth) : parts;
      if (isFound && passed++ >= offset) {
        if (data.length === limit) return page(true);
        const json = toJson(cut);
        if (!budget.takes(json)) return page(true);
        data.push(json);
      }
      from = isFound && parts.length >= maxDepth ? namespaceKey(space, cut) + MAX_KEY : successor(key);
      await budget.look(key.length);
      if (budget.isSpent) return page(true);
    }
    if (isEnd) return page(false);
  }
  return page(true);
}

/** The next namespaces, which of them have documents of their own that are there, and whether they are the last. */
function namespacesIn(reader: Reader, from: string, to: string): { found: { key: string; isThere: boolean }[]; isEnd: boolean } {
  if (from > to) return { found: [], isEnd: true };
  const span = { from, to, limit: Math.max(ROWS_AT_ONCE, reader.recordsAtOnce) };
  reader.aheadOf([documentRemovals], FIRST);
  const hidden = Map.groupBy(hiddenIn(reader, from.slice(0, DOCUMENT_SPACE_LENGTH)), namespaceOfDocument);
  const found = eachFetched(rowsOrGaps(reader, namespaces, span), ({ key }) => ({
    key,
    isThere: (unlessUnreadable(() => namespaceRow(reader, key))?.own ?? 0) > (hidden.get(key)?.length ?? 0),
  }));
  return { found, isEnd: found.length < span.limit };
}

/** Checks whether the first parts are those of a pattern, in which `*` is any. */
function isLike(parts: Namespace, pattern: Namespace): boolean {
  return pattern.every((part, i) => part === "*" || part === parts[i]);
}
