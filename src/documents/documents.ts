/**
 * Documents: JSON objects under a namespace and a key, in the order of keys. A log, a key-value store and a table in one, for the
 * storage of frameworks; they leave no trace and no event.
 *
 * Each owner has a space of documents, so that the same namespace and key are other documents for another user or agent. A batch is one
 * transaction. A query is no transaction: it reads within a budget and lets other requests through.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import type { FairSemaphore } from "../lib/fair-semaphore.ts";
import { homeOfUser, NO_HOME } from "../lib/ids.ts";
import { jsonArray, jsonWith, toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { toIso } from "../lib/time.ts";
import { liveSession } from "../sessions/live-session.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { DocumentWriter, hiddenIn, namespaceRow, visibleDocument } from "../storage/document-records.ts";
import {
  AFTER_ALL,
  DOCUMENT_SPACE_LENGTH,
  documentKey,
  documentName,
  documentSpace,
  namespaceKey,
  namespaceOfDocument,
  namespaceParts,
  ownDocuments,
} from "../storage/keys.ts";
import { ownerOfNew, type Owner } from "../storage/owner.ts";
import { behind } from "../storage/page.ts";
import type { Store } from "../storage/store.ts";
import { documents, namespaces, type DocumentRow } from "../storage/tables.ts";
import { LOOKS_PER_TURN } from "../storage/walk.ts";
import { commitFor, type Caller, type Deps } from "../traces/record.ts";

type Order = "asc" | "desc";
type Namespace = readonly string[];

export type Change =
  | {
      op: "put";
      namespace: Namespace;
      key?: string | undefined;
      value: JsonObject;
      ifVersion?: number | undefined;
      sessionId?: string | undefined;
      ttlSeconds?: number | undefined;
    }
  | { op: "delete"; namespace: Namespace; key: string; ifVersion?: number | undefined }
  | { op: "delete_all"; namespace: Namespace }
  | { op: "pop"; namespace: Namespace; order: Order };

interface Listing {
  op: "list";
  namespace: Namespace;
  deep: boolean;
  order: Order;
  after?: string | undefined;
  before?: string | undefined;
  cursor?: string | undefined;
  limit: number;
  offset: number;
  /** Tests the value of a document. */
  filter?: ((value: JsonObject) => boolean) | undefined;
}

interface NamespaceListing {
  op: "namespaces";
  prefix: Namespace;
  suffix: Namespace;
  maxDepth?: number | undefined;
  cursor?: string | undefined;
  limit: number;
  offset: number;
}

export type Query =
  | { op: "get"; namespace: Namespace; key: string }
  | { op: "count"; namespace: Namespace; deep: boolean }
  | Listing
  | NamespaceListing;

/** Documents that one commit removes by itself; of more the rest is left to a task. */
const REMOVED_PER_COMMIT = 200;

/**
 * Makes all changes, or none.
 *
 * @param named - the user and the agent whose documents they are
 * @throws {ApiError} `version_conflict`, or `session_not_found` for a session of somebody else
 */
export function changeDocuments(deps: Deps, caller: Caller, named: Owner, changes: readonly Change[]): Promise<JsonText> {
  const owner = ownerOfNew(caller.owner, named);
  if (changes.some(({ op }) => op === "put")) deps.quotas?.refuseGrowth();
  const values = changes.map((change) => (change.op === "put" ? toJson(change.value) : undefined));
  return commitFor(deps, caller, owner.userId === undefined ? NO_HOME : homeOfUser(owner.userId), (tx) => {
    const batch = new Batch(tx, owner);
    const results = changes.map((change, i) => batch.run(change, `operations.${i}`, values[i]));
    return batch.end(results);
  });
}

class Batch {
  readonly #tx: Tx;
  readonly #owner: Owner;
  readonly #space: string;
  readonly #writer: DocumentWriter;
  #removable = REMOVED_PER_COMMIT;
  #looks = 0;
  #bytes = 0;

  constructor(tx: Tx, owner: Owner) {
    this.#tx = tx;
    this.#owner = owner;
    this.#space = documentSpace(owner.userId, owner.agentId);
    this.#writer = new DocumentWriter(tx);
  }

  /** @param param - the name of the change, for errors; @param value - of a put, as JSON */
  run(change: Change, param: string, value: JsonText | undefined): JsonText {
    const namespace = namespaceKey(this.#space, change.namespace);
    switch (change.op) {
      case "put":
        return this.#put(namespace, change, param, value!);
      case "delete":
        return this.#delete(documentKey(namespace, change.key), change, param);
      case "delete_all":
        return this.#deleteAll(namespace);
      default:
        return this.#pop(namespace, change.order, param);
    }
  }

  end(results: readonly JsonText[]): JsonText {
    this.#writer.flush();
    return resultsJson(results);
  }

  #put(namespace: string, change: Change & { op: "put" }, param: string, body: JsonText): JsonText {
    const { now } = this.#tx;
    const id = this.#writer.id();
    const { key: name = id, ifVersion, sessionId, ttlSeconds } = change;
    const key = documentKey(namespace, name);
    const before = visibleDocument(this.#tx, key);
    refuseOtherVersion(name, before, ifVersion, param);
    const version = (before?.version ?? 0) + 1;
    this.#writer.put(key, {
      id,
      version,
      createdAt: before?.createdAt ?? now,
      updatedAt: Math.max(before?.updatedAt ?? 0, now),
      ...(ttlSeconds === undefined ? {} : { expiresAt: now + ttlSeconds * 1000 }),
      ...(sessionId === undefined ? {} : { sessionId: this.#session(sessionId, param) }),
      body,
    });
    return toJson({ key: name, version });
  }

  #session(id: string, param: string) {
    try {
      return liveSession(this.#tx, this.#owner, id).id;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw new ApiError(error.code, error.message, { param: `${param}.session_id` });
    }
  }

  #delete(key: string, { key: name, ifVersion }: Change & { op: "delete" }, param: string): JsonText {
    const row = visibleDocument(this.#tx, key);
    refuseOtherVersion(name, row, ifVersion, param);
    if (row !== undefined) this.#writer.remove(key);
    return deletedJson(row === undefined ? 0 : 1);
  }

  #deleteAll(namespace: string): JsonText {
    this.#writer.flush();
    const { all = 0 } = namespaceRow(this.#tx, namespace) ?? {};
    const deleted = all - hiddenIn(this.#tx, namespace).size;
    this.#removable -= this.#writer.empty(namespace, this.#removable);
    return deletedJson(deleted);
  }

  #pop(namespace: string, order: Order, param: string): JsonText {
    const own = ownDocuments(namespace);
    const descending = order === "desc";
    let span = { from: own, to: own + AFTER_ALL };
    for (;;) {
      const [found] = this.#tx.rows(documents, { ...span, limit: 1, descending });
      if (found === undefined) return toJson(null);
      const { key } = found;
      const row = visibleDocument(this.#tx, key, found.row);
      if (row !== undefined) {
        const json = documentJson(key, row);
        this.#bytes += Buffer.byteLength(json);
        if (this.#bytes > LIMITS.pageBytesMax) throw tooLarge(param);
        this.#writer.remove(key);
        return json;
      }
      if (++this.#looks > LIMITS.documentRowsMax) {
        throw new ApiError(
          "service_unavailable",
          "Too many documents are being removed there. Nothing was changed; try again in a moment.",
          {
            param,
            retryAfterSeconds: 1,
          },
        );
      }
      span = descending ? { ...span, to: key } : { ...span, from: behind(key) };
    }
  }
}

function refuseOtherVersion(
  name: string,
  { version }: Pick<DocumentRow, "version"> = NONE,
  expected: number | undefined,
  param: string,
): void {
  if (expected === undefined || expected === version) return;
  throw new ApiError("version_conflict", `Document ${toJson(name)} is at version ${version}, not ${expected}. Nothing was changed.`, {
    param: `${param}.if_version`,
  });
}
/** A document that does not exist. */
const NONE = { version: 0 };

/** What queries need besides the store. */
export interface DocumentDeps extends Deps {
  /** Limits how many queries hold much in memory while others are let through, by API key. */
  readonly documentQueries: FairSemaphore;
}

/** @param named - the user and the agent whose documents are asked for */
export async function queryDocuments(
  { store, documentQueries }: DocumentDeps,
  { owner, limitsId }: { owner: Owner; limitsId: string },
  named: Owner,
  queries: readonly Query[],
): Promise<JsonText> {
  const { userId, agentId } = ownerOfNew(owner, named);
  const space = documentSpace(userId, agentId);
  using permit = documentQueries.permitOf(limitsId);
  for (;;) {
    const budget = new Budget(permit.isTaken);
    const results: JsonText[] = [];
    for (const [i, query] of queries.entries()) results.push(await answerTo(store, space, query, budget, `operations.${i}`));
    if (!budget.needsPermit) return resultsJson(results);
    // What was found is not held while waiting: it is read again.
    results.length = 0;
    await permit.take();
  }
}

async function answerTo(store: Store, space: string, query: Query, budget: Budget, param: string): Promise<JsonText> {
  switch (query.op) {
    case "get": {
      const key = documentKey(namespaceKey(space, query.namespace), query.key);
      const row = store.read((reader) => visibleDocument(reader, key));
      if (row === undefined) return toJson(null);
      const json = documentJson(key, row);
      if (!budget.takes(json)) throw tooLarge(param);
      await budget.look(json.length);
      return json;
    }
    case "count": {
      const namespace = namespaceKey(space, query.namespace);
      const count = store.read((reader) => countOf(reader, namespace, query.deep));
      await budget.look(COUNT_CHARACTERS);
      return toJson({ count });
    }
    case "list":
      return listDocuments(store, space, query, budget);
    default:
      return listNamespaces(store, space, query, budget);
  }
}

function countOf(reader: Reader, namespace: string, deep: boolean): number {
  const row = namespaceRow(reader, namespace);
  if (row === undefined) return 0;
  const hidden = hiddenIn(reader, namespace);
  return deep ? row.all - hidden.size : row.own - Array.from(hidden).filter((key) => namespaceOfDocument(key) === namespace).length;
}

/** What an answer holds in memory without a permit while other requests are let through. */
const HELD_BYTES_MAX = 64 * 1024;
/** A document that is read takes as long as this many looks at an index, … */
const LOOKS_PER_DOCUMENT = 5;
/** … and as one for this many of its characters, or a tenth of them where it is parsed. */
const CHARACTERS_PER_LOOK = 5_000;
/** A count takes as long as this many characters where much has just ended. */
const COUNT_CHARACTERS = 100 * CHARACTERS_PER_LOOK;

/** How much all operations of one query may look at and hold. */
class Budget {
  #rows = 0;
  #looks = 0;
  #bytes = 0;
  #hasSome = false;
  #isSpent = false;
  #needsPermit = false;
  readonly #mayHoldMuch: boolean;

  /** @param mayHoldMuch - while other requests are let through */
  constructor(mayHoldMuch: boolean) {
    this.#mayHoldMuch = mayHoldMuch;
  }

  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Whether it ended only because more is held than without a permit. */
  get needsPermit(): boolean {
    return this.#needsPermit;
  }

  /** False for a result that makes the answer too large, which is the end of it. */
  takes(json: JsonText): boolean {
    this.#bytes += Buffer.byteLength(json);
    const isTooMuch = this.#hasSome && this.#bytes > LIMITS.pageBytesMax;
    this.#hasSome = true;
    this.#isSpent ||= isTooMuch;
    return !isTooMuch;
  }

  /** Counts a row that was read, and lets other requests through from time to time. */
  async look(characters: number): Promise<void> {
    this.#looks += LOOKS_PER_DOCUMENT + characters / CHARACTERS_PER_LOOK;
    if (++this.#rows >= LIMITS.documentRowsMax) this.#isSpent = true;
    if (this.#looks < LOOKS_PER_TURN) return;
    this.#looks = 0;
    if (this.#mayHoldMuch || this.#bytes <= HELD_BYTES_MAX) return nextTurn();
    this.#isSpent = true;
    this.#needsPermit = true;
  }
}

const ROWS_AT_ONCE = 25;

async function listDocuments(store: Store, space: string, listing: Listing, budget: Budget): Promise<JsonText> {
  const { limit, offset, filter } = listing;
  const descending = listing.order === "desc";
  const data: JsonText[] = [];
  let span = spanOf(space, listing);
  let passed = 0;
  const page = (hasMore: boolean) => pageJson(data, hasMore ? (descending ? span.to : span.from) : undefined);
  while (!budget.isSpent) {
    // As few as will do: each can be a megabyte.
    const atOnce = filter === undefined ? Math.min(ROWS_AT_ONCE, offset + limit + 1 - passed) : ROWS_AT_ONCE;
    const found = store.read((reader) =>
      reader
        .rows(documents, { ...span, limit: atOnce, descending })
        .map(({ key, row }) => ({ key, length: row.body.length, row: visibleDocument(reader, key, row) })),
    );
    for (const { key, length, row } of found) {
      if (row !== undefined && (filter === undefined || filter(JSON.parse(row.body) as JsonObject)) && passed++ >= offset) {
        if (data.length === limit) return page(true);
        const json = documentJson(key, row);
        if (!budget.takes(json)) return page(true);
        data.push(json);
      }
      span = descending ? { ...span, to: key } : { ...span, from: behind(key) };
      await budget.look(filter === undefined ? length : 10 * length);
      if (budget.isSpent) return page(true);
    }
    if (found.length < atOnce) return page(false);
  }
  return page(true);
}

function spanOf(space: string, { namespace, deep, order, after, before, cursor }: Listing): { from: string; to: string } {
  const top = namespaceKey(space, namespace);
  const first = deep ? top : ownDocuments(top);
  const from = after === undefined ? first : behind(documentKey(top, after));
  const to = before === undefined ? first + AFTER_ALL : documentKey(top, before);
  if (cursor === undefined) return { from, to: to < from ? from : to };
  const at = space + cursor;
  return order === "asc" ? { from: at < from ? from : at > to ? to : at, to } : { from, to: at > to ? to : at < from ? from : at };
}

async function listNamespaces(store: Store, space: string, listing: NamespaceListing, budget: Budget): Promise<JsonText> {
  const { prefix, suffix, maxDepth = Infinity, limit, offset, cursor } = listing;
  const data: JsonText[] = [];
  const star = prefix.indexOf("*");
  const first = namespaceKey(space, star === -1 ? prefix : prefix.slice(0, star));
  const to = first + AFTER_ALL;
  let from = cursor === undefined || space + cursor < first ? first : space + cursor;
  let passed = 0;
  const page = (hasMore: boolean) => pageJson(data, hasMore ? from : undefined);
  while (!budget.isSpent) {
    const found = from > to ? [] : store.read((reader) => namespacesIn(reader, from, to));
    for (const { key, isThere } of found) {
      // What lies below one that was cut off is the same one again.
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
      from = isFound && parts.length >= maxDepth ? namespaceKey(space, cut) + AFTER_ALL : behind(key);
      await budget.look(key.length);
      if (budget.isSpent) return page(true);
    }
    if (found.length < ROWS_AT_ONCE) return page(false);
  }
  return page(true);
}

/** The next namespaces, and which of them have documents of their own that are there. */
function namespacesIn(reader: Reader, from: string, to: string): { key: string; isThere: boolean }[] {
  const hidden = Map.groupBy(hiddenIn(reader, from.slice(0, DOCUMENT_SPACE_LENGTH)), namespaceOfDocument);
  return reader.rows(namespaces, { from, to, limit: ROWS_AT_ONCE }).map(({ key }) => ({
    key,
    isThere: (namespaceRow(reader, key)?.own ?? 0) > (hidden.get(key)?.length ?? 0),
  }));
}

/** Whether the first parts are those of a pattern, in which `*` is any. */
function isLike(parts: Namespace, pattern: Namespace): boolean {
  return pattern.every((part, i) => part === "*" || part === parts[i]);
}

/** @param next - where the next page begins, if there may be more */
function pageJson(data: readonly JsonText[], next: string | undefined): JsonText {
  const cursor = next === undefined ? null : next.slice(DOCUMENT_SPACE_LENGTH);
  return jsonWith({ object: "list" }, { data: jsonArray(data) }, { has_more: next !== undefined, next_cursor: cursor });
}

function resultsJson(results: readonly JsonText[]): JsonText {
  return jsonWith({ object: "list" }, { data: jsonArray(results) });
}

function deletedJson(deleted: number): JsonText {
  return toJson({ deleted });
}

function documentJson(key: string, { version, createdAt, updatedAt, body }: DocumentRow): JsonText {
  return jsonWith(
    { object: "document", namespace: namespaceParts(namespaceOfDocument(key)), key: documentName(key) },
    { value: body },
    { version, created_at: toIso(createdAt), updated_at: toIso(updatedAt) },
  );
}

function tooLarge(param: string): ApiError {
  const mib = LIMITS.pageBytesMax / 1024 / 1024;
  return new ApiError(
    "payload_too_large",
    `The answer would have more than ${mib} MiB: ask for fewer documents at once. Nothing was changed.`,
    {
      param,
    },
  );
}
