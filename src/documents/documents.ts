/**
 * Documents: JSON objects under a namespace and a key, in the order of keys. A log, a key-value store and a table in one, for the
 * storage of frameworks; they leave no trace and no event.
 *
 * Each owner has a space of documents, so that the same namespace and key are other documents for another user or agent. A batch is one
 * transaction. A query is no transaction: it reads within a budget and lets other requests through.
 *
 * @module
 */
import type { Answered } from "../lib/answer.ts";
import { nextTurn } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import type { FairSemaphore } from "../lib/fair-semaphore.ts";
import { bare, homeOfUser, NO_HOME, withPrefix, type BareId, type SessionId } from "../lib/ids.ts";
import { invariant } from "../lib/invariant.ts";
import { toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { BACKGROUND, type Active, type Embeddings, type MadeEmbedding } from "../embeddings/embeddings.ts";
import { liveSession } from "../sessions/live-session.ts";
import { eachFetched, eachRead, FIRST, type Reader, type Tx } from "../storage/access.ts";
import { DOCUMENTS } from "../storage/collections.ts";
import { DocumentWriter, hiddenIn, namespaceRow, visibleDocument } from "../storage/document-records.ts";
import {
  AFTER_ALL,
  behind,
  documentKey,
  documentSpace,
  hashKey,
  namespaceKey,
  namespaceOfDocument,
  ownDocuments,
} from "../storage/keys.ts";
import { generationOf } from "../storage/memory-records.ts";
import { ownerOfNew, type Owner } from "../storage/owner.ts";
import type { RecordStore } from "../storage/record-store.ts";
import {
  documentRemovals,
  documents,
  indexedDocuments,
  namespaces,
  pendingEmbeddings,
  sessions,
  type DocumentRow,
  type IndexedDocumentRow,
} from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Activator } from "../tasks/task.ts";
import { commitFor, type Caller, type Deps } from "../traces/record.ts";
import { storeVector } from "../vectors/store-vector.ts";
import type { CandidateIndex } from "../vectors/candidate-index.ts";
import { documentJson, resultsJson, tooLarge } from "./answers.ts";
import { Budget, COUNT_CHARACTERS } from "./budget.ts";
import { textOf, type Index } from "./embedded-text.ts";
import {
  firstOf,
  listDocuments,
  listNamespaces,
  nextDocuments,
  type Listing,
  type Namespace,
  type NamespaceListing,
  type NextDocuments,
  type Order,
} from "./lists.ts";
import { searchDocuments, type Search } from "./search.ts";

export type Change =
  | {
      op: "put";
      namespace: Namespace;
      key?: string | undefined;
      value: JsonObject;
      index?: Index | undefined;
      ifVersion?: number | undefined;
      sessionId?: string | undefined;
      ttlSeconds?: number | undefined;
    }
  | { op: "delete"; namespace: Namespace; key: string; ifVersion?: number | undefined }
  | { op: "delete_all"; namespace: Namespace }
  | { op: "pop"; namespace: Namespace; order: Order };

export type Query =
  | { op: "get"; namespace: Namespace; key: string }
  | { op: "count"; namespace: Namespace; deep: boolean }
  | Listing
  | Search
  | NamespaceListing;

/** Documents that one commit removes by itself; of more the rest is left to a task. */
const REMOVED_PER_COMMIT = 200;
/** How many of the documents that a pop passes over, since they have ended, are looked at together. */
const POP_LOOKS_AT_ONCE = 50;

/** What a document of a put is made of before the commit. */
interface Prepared {
  readonly value: JsonText;
  /** What it is found by; empty for one that is not. */
  readonly text: string;
}

/**
 * Makes all changes, or none.
 *
 * @param named - the user and the agent whose documents they are
 * @throws {ApiError} `version_conflict`, or `session_not_found` for a session of somebody else
 */
export async function changeDocuments(deps: DocumentDeps, caller: Caller, named: Owner, changes: readonly Change[]): Promise<JsonText> {
  const owner = ownerOfNew(caller.owner, named);
  if (changes.some(({ op }) => op === "put")) deps.quotas?.refuseGrowth();
  const prepared = await prepareAll(changes);
  const { active } = deps.embeddings;
  const embeddings = await embedAll(deps, active, prepared, caller.limitsId ?? BACKGROUND.limitsId);
  const answer = await commitFor(deps, caller, owner.userId === undefined ? NO_HOME : homeOfUser(owner.userId), (tx) => {
    const batch = new Batch(tx, owner, active, changes);
    const results = eachFetched(Array.from(changes.entries()), ([i, change]) =>
      batch.run(change, `operations.${i}`, prepared[i], embeddings[i]),
    );
    return batch.end(results);
  });
  deps.documentVectors.changed();
  if (prepared.some((one, i) => one !== undefined && one.text !== "" && embeddings[i]?.isPending === true)) deps.backfill.wake();
  return answer;
}

/** Characters that paths of an index may lead through, one after another, before other requests are let through. */
const FOLLOWED_CHARACTERS_PER_TURN = 50_000;

/** What the puts are made of, in the order of changes; undefined for another change. */
async function prepareAll(changes: readonly Change[]): Promise<(Prepared | undefined)[]> {
  const made: (Prepared | undefined)[] = [];
  let followed = 0;
  for (const [i, change] of changes.entries()) {
    const one = change.op === "put" ? prepare(change, `operations.${i}`) : undefined;
    made.push(one);
    if (change.op !== "put" || one === undefined || change.index === undefined) continue;
    followed += one.value.length * (change.index === true ? 1 : change.index.length);
    if (followed < FOLLOWED_CHARACTERS_PER_TURN) continue;
    followed = 0;
    await nextTurn();
  }
  return made;
}

function prepare({ value, index }: Change & { op: "put" }, param: string): Prepared {
  const text = index === undefined ? "" : textOf(value, index);
  if (text !== undefined) return { value: toJson(value), text };
  throw new ApiError(
    "content_too_large",
    `What ${param}.index names has more than ${LIMITS.documentTextLengthMax} characters: name what the document is to be found by.`,
    { param: `${param}.index` },
  );
}

const EMBEDDED_CHARACTERS_PER_TURN = 10_000;

/** The vectors of texts, in their order; undefined where there is no text, or the vector has to be made later. */
async function embedAll(
  { embeddings }: DocumentDeps,
  active: Active,
  prepared: readonly (Prepared | undefined)[],
  limitsId: string,
): Promise<(MadeEmbedding | undefined)[]> {
  const embed = async (text = "") => (text === "" ? undefined : embeddings.embedMemory(active, text, limitsId));
  // Where others are answered while the provider thinks, it is asked for all at once.
  if (active.remote !== undefined || active.builtin !== undefined) return Promise.all(prepared.map((one) => embed(one?.text)));
  const made: (MadeEmbedding | undefined)[] = [];
  let characters = 0;
  for (const one of prepared) {
    made.push(await embed(one?.text));
    characters += one?.text.length ?? 0;
    if (characters < EMBEDDED_CHARACTERS_PER_TURN) continue;
    characters = 0;
    await nextTurn();
  }
  return made;
}

class Batch {
  readonly #tx: Tx;
  readonly #owner: Owner;
  readonly #active: Active;
  readonly #space: string;
  readonly #writer: DocumentWriter;
  /** How many documents are going to be popped from an end of a namespace, of those of which none was yet. */
  readonly #pops = new Map<string, number>();
  /** `hashKey` of those whose documents these are: their owner's, or their session's. */
  readonly #users = new Set<string>();
  #puts = 0;
  #removed = 0;
  #removable = REMOVED_PER_COMMIT;
  #looks = 0;
  #bytes = 0;

  constructor(tx: Tx, owner: Owner, active: Active, changes: readonly Change[]) {
    this.#tx = tx;
    this.#owner = owner;
    this.#active = active;
    this.#space = documentSpace(owner.userId, owner.agentId);
    this.#writer = new DocumentWriter(tx);
    if (owner.userId !== undefined) this.#users.add(hashKey(owner.userId));
    for (const change of changes) {
      if (change.op !== "pop") continue;
      const end = endOf(namespaceKey(this.#space, change.namespace), change.order);
      this.#pops.set(end, (this.#pops.get(end) ?? 0) + 1);
    }
  }

  /** @param param - the name of the change, for errors; @param prepared - of a put, with the vector of its text if there is one */
  run(change: Change, param: string, prepared: Prepared | undefined, embedding: MadeEmbedding | undefined): JsonText {
    const namespace = namespaceKey(this.#space, change.namespace);
    switch (change.op) {
      case "put":
        return this.#put(namespace, change, param, prepared!, embedding);
      case "delete":
        return this.#delete(documentKey(namespace, change.key), change, param);
      case "delete_all":
        return this.#deleteAll(namespace);
      default:
        return this.#pop(namespace, change.order, param);
    }
  }

  end(results: readonly JsonText[]): Answered<JsonText> {
    this.#writer.flush();
    return {
      json: resultsJson(results),
      users: Array.from(this.#users),
      asksForRoom: this.#puts === 0 && this.#removed > 0 ? "never" : "always",
    };
  }

  #put(
    namespace: string,
    change: Change & { op: "put" },
    param: string,
    { value, text }: Prepared,
    embedding: MadeEmbedding | undefined,
  ): JsonText {
    const { now } = this.#tx;
    this.#puts++;
    const id = this.#writer.id();
    const { key: name = id, index, ifVersion, sessionId, ttlSeconds } = change;
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
      ...(index === undefined ? {} : { index: index === true ? index : [...index] }),
      body: value,
    });
    if (text !== "") this.#index(id, key, embedding);
    return toJson({ key: name, version });
  }

  /** Gives a document its vector and words; when there is none of the provider that is set by now, it is made later. */
  #index(id: BareId, key: string, embedding: MadeEmbedding | undefined): void {
    const row: IndexedDocumentRow = { document: key };
    const { generation } = this.#active;
    const isOfProvider = embedding !== undefined && generationOf(this.#tx) === generation;
    if (!isOfProvider || embedding.isPending === true) this.#tx.put(pendingEmbeddings, id, "");
    if (isOfProvider) row.embedding = storeVector(this.#tx, DOCUMENTS, id, generation, embedding, withPrefix("emb", id));
    this.#tx.add(indexedDocuments, id, row);
  }

  #session(id: string, param: string) {
    try {
      const session = liveSession(this.#tx, this.#owner, id);
      this.#noteUserOf(session.id);
      return session.id;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw new ApiError(error.code, error.message, { param: `${param}.session_id` });
    }
  }

  /** Notes whose session a document goes with that the answer shows. */
  #noteUserOf(sessionId: SessionId | undefined): void {
    const userId = sessionId === undefined ? null : (this.#tx.get(sessions, bare(sessionId))?.userId ?? null);
    if (userId !== null) this.#users.add(hashKey(userId));
  }

  #delete(key: string, { key: name, ifVersion }: Change & { op: "delete" }, param: string): JsonText {
    const row = visibleDocument(this.#tx, key);
    refuseOtherVersion(name, row, ifVersion, param);
    if (row === undefined) return deletedJson(0);
    this.#removed++;
    this.#writer.remove(key);
    return deletedJson(1);
  }

  #deleteAll(namespace: string): JsonText {
    this.#writer.flush();
    const { all = 0 } = namespaceRow(this.#tx, namespace) ?? {};
    const deleted = all - hiddenIn(this.#tx, namespace).size;
    this.#removed += deleted;
    this.#removable -= this.#writer.empty(namespace, this.#removable);
    return deletedJson(deleted);
  }

  #pop(namespace: string, order: Order, param: string): JsonText {
    const own = ownDocuments(namespace);
    const descending = order === "desc";
    let span = { from: own, to: own + AFTER_ALL };
    const pops = this.#pops.get(endOf(namespace, order)) ?? 0;
    this.#pops.delete(endOf(namespace, order));
    // Each of them removes the next one: all are fetched together.
    if (pops > 1) this.#tx.ahead(documents, this.#tx.keys(documents, { ...span, limit: pops, descending }));
    for (let atOnce = 1; ; atOnce = POP_LOOKS_AT_ONCE) {
      const keys = this.#tx.keys(documents, { ...span, limit: atOnce, descending });
      this.#tx.ahead(documents, keys);
      for (const key of keys) {
        const row = unlessUnreadable(() => visibleDocument(this.#tx, key));
        if (row !== undefined) return this.#popped(key, row, param);
        if (++this.#looks > LIMITS.documentRowsMax) {
          throw new ApiError(
            "service_unavailable",
            "Too many documents are being removed there. Nothing was changed; try again in a moment.",
            { param, retryAfterSeconds: 1 },
          );
        }
        span = descending ? { ...span, to: key } : { ...span, from: behind(key) };
      }
      if (keys.length < atOnce) return toJson(null);
    }
  }

  #popped(key: string, row: DocumentRow, param: string): JsonText {
    const json = documentJson(key, row);
    this.#bytes += Buffer.byteLength(json);
    if (this.#bytes > LIMITS.pageBytesMax) throw tooLarge(param);
    this.#removed++;
    this.#noteUserOf(row.sessionId);
    this.#writer.remove(key);
    return json;
  }
}

/** One end of a namespace, which documents are popped from. */
const endOf = (namespace: string, order: Order): string => `${order} ${namespace}`;

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

/** What operations on documents need besides the store. */
export interface DocumentDeps extends Deps {
  readonly embeddings: Embeddings;
  readonly documentVectors: CandidateIndex;
  /** Has pending vectors made soon. */
  readonly backfill: Activator;
  /** Limits how many queries take longer than a turn of the event loop at the same time, by API key. */
  readonly documentQueries: FairSemaphore;
}

/** @param named - the user and the agent whose documents are asked for */
export async function queryDocuments(
  deps: DocumentDeps,
  { owner, limitsId }: { owner: Owner; limitsId: string },
  named: Owner,
  queries: readonly Query[],
): Promise<JsonText> {
  const { userId, agentId } = ownerOfNew(owner, named);
  const space = documentSpace(userId, agentId);
  using permit = deps.documentQueries.permitOf(limitsId);
  for (;;) {
    const budget = new Budget(permit.isTaken, limitsId);
    const results: JsonText[] = [];
    const together = readTogether(deps.store, space, queries);
    for (const [i, query] of queries.entries()) {
      results.push(await answerTo(deps, space, query, together, budget, `operations.${i}`));
      if (budget.needsPermit) break;
    }
    if (!budget.needsPermit) return resultsJson(results);
    // What was found is not held while waiting: it is read again.
    results.length = 0;
    await permit.take();
  }
}

/** What the operations of one kind in a query read first, each once and in their order; some of it is read together. */
class Reads<Item, Result> {
  readonly #results: AsyncGenerator<Result[], void>;
  #read: readonly Result[] = [];
  #at = 0;

  constructor(store: RecordStore, items: readonly Item[], read: (reader: Reader, item: Item) => Result) {
    this.#results = eachRead(store, items, (reader) => {
      reader.aheadOf([documentRemovals], FIRST);
      return (item) => read(reader, item);
    });
  }

  async next(): Promise<Result> {
    if (this.#at === this.#read.length) {
      this.#read = (await this.#results.next()).value ?? [];
      this.#at = 0;
    }
    invariant(this.#at < this.#read.length, "no more is read than the query asks for");
    return this.#read[this.#at++] as Result;
  }
}

interface Together {
  readonly gets: Reads<unknown, { readonly key: string; readonly row: DocumentRow | undefined }>;
  readonly counts: Reads<unknown, number>;
  readonly lists: Reads<unknown, NextDocuments>;
}

function readTogether(store: RecordStore, space: string, queries: readonly Query[]): Together {
  const namespaceOf = ({ namespace }: { namespace: Namespace }) => namespaceKey(space, namespace);
  const gets = queries.flatMap((query) => (query.op === "get" ? [documentKey(namespaceOf(query), query.key)] : []));
  const counts = queries.flatMap((query) => (query.op === "count" ? [query] : []));
  const lists = queries.flatMap((query) => (query.op === "list" ? [query] : []));
  return {
    gets: new Reads(store, gets, (reader, key) => ({ key, row: visibleDocument(reader, key) })),
    lists: new Reads(store, lists, (reader, query) => nextDocuments(reader, firstOf(space, query))),
    counts: new Reads(store, counts, (reader, query) => countOf(reader, namespaceOf(query), query.deep)),
  };
}

async function answerTo(
  deps: DocumentDeps,
  space: string,
  query: Query,
  { gets, counts, lists }: Together,
  budget: Budget,
  param: string,
): Promise<JsonText> {
  const { store } = deps;
  switch (query.op) {
    case "get": {
      const { key, row } = await gets.next();
      if (row === undefined) return toJson(null);
      const json = documentJson(key, row);
      if (!budget.takes(json)) throw tooLarge(param);
      await budget.look(json.length);
      return json;
    }
    case "count": {
      const count = await counts.next();
      await budget.look(COUNT_CHARACTERS);
      return toJson({ count });
    }
    case "list":
      return listDocuments(store, space, query, { first: await lists.next(), budget });
    case "search":
      return searchDocuments(deps, space, query, budget);
    default:
      return listNamespaces(store, space, query, budget);
  }
}

function countOf(reader: Reader, namespace: string, deep: boolean): number {
  reader.ahead(namespaces, [namespace]);
  const hidden = hiddenIn(reader, namespace);
  const row = namespaceRow(reader, namespace);
  if (row === undefined) return 0;
  return deep ? row.all - hidden.size : row.own - Array.from(hidden).filter((key) => namespaceOfDocument(key) === namespace).length;
}

function deletedJson(deleted: number): JsonText {
  return toJson({ deleted });
}
