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
import { homeOfUser, NO_PARTITION } from "../lib/ids.ts";
import { invariant } from "../lib/invariant.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { BACKGROUND, type Active, type Embeddings, type MadeEmbedding } from "../embeddings/embeddings.ts";
import { eachFetched, eachRead, FIRST, type Reader } from "../storage/access.ts";
import { hiddenIn, namespaceRow, visibleDocument } from "../storage/document-records.ts";
import { refuseUnfilled } from "../storage/fills.ts";
import { documentKey, documentSpace, namespaceKey, namespaceOfDocument } from "../storage/keys.ts";
import { ownerOfNew, type Owner } from "../storage/owner.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { documentRemovals, documents, namespaces, type DocumentRow } from "../storage/tables.ts";
import type { Activator } from "../tasks/task.ts";
import { commitFor, type Caller, type Deps } from "../traces/record.ts";
import type { CandidateIndex } from "../search/candidate-index.ts";
import { documentJson, resultsJson, tooLarge, type Shown } from "./answers.ts";
import { Batch, type Change, type Prepared } from "./batch.ts";
import { Budget, COUNT_CHARACTERS } from "./budget.ts";
import { textOf } from "./embedded-text.ts";
import {
  firstOf,
  listDocuments,
  listNamespaces,
  nextDocuments,
  type Listing,
  type Namespace,
  type NamespaceListing,
  type NextDocuments,
} from "./lists.ts";
import { searchDocuments, type Search } from "./search.ts";

export type Query =
  | { op: "get"; namespace: Namespace; key: string; shown: Shown }
  | { op: "count"; namespace: Namespace; deep: boolean }
  | Listing
  | Search
  | NamespaceListing;

/**
 * Makes all changes, or none.
 *
 * @param named - the user and the agent whose documents they are
 * @throws {ApiError} `version_conflict`, or `session_not_found` for a session of somebody else
 */
export async function changeDocuments(deps: DocumentDeps, caller: Caller, named: Owner, changes: readonly Change[]): Promise<JsonText> {
  const owner = ownerOfNew(caller.owner, named);
  const hasCopies = changes.some(({ op }) => op === "copy_all");
  if (hasCopies || changes.some(({ op }) => op === "put")) deps.quotas?.refuseGrowth();
  const prepared = await prepareAll(changes);
  const { active } = deps.embeddings;
  const embeddings = await embedAll(deps, active, prepared, caller.limitsId ?? BACKGROUND.limitsId);
  const answer = await commitFor(deps, caller, owner.userId === undefined ? NO_PARTITION : homeOfUser(owner.userId), (tx) => {
    const batch = new Batch(tx, owner, active, changes);
    const results = eachFetched(Array.from(changes.entries()), ([i, change]) =>
      batch.run(change, `operations.${i}`, prepared[i], embeddings[i]),
    );
    return batch.end(results);
  });
  deps.documentVectors.changed();
  if (hasCopies || prepared.some((one, i) => one !== undefined && one.text !== "" && embeddings[i]?.isPending === true))
    deps.backfill.wake();
  return answer;
}

/** Characters that paths of an index may lead through, one after another, before other requests are let through. */
const FOLLOWED_CHARACTERS_PER_TURN = 50_000;

/** Sources of the puts, in the order of changes; undefined for another change. */
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
  // A provider that lets others be answered meanwhile is asked for all at once.
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

/** Dependencies of operations on documents besides the store. */
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
    // Matches are not held while waiting: they are read again.
    results.length = 0;
    await permit.take();
  }
}

/** Rows that the operations of one kind in a query read first, each once and in their order; some of it is read together. */
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
    lists: new Reads(store, lists, (reader, query) => {
      if (query.orderBy === "updated_at") refuseUnfilled(reader, documents.index.byChange, `operations.${queries.indexOf(query)}.order_by`);
      return nextDocuments(reader, firstOf(space, query));
    }),
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
      const json = documentJson(key, row, { shown: query.shown });
      if (!budget.takes(json)) throw tooLarge(param);
      await budget.look(row.body.length, undefined, query.shown);
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
