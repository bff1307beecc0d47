/**
 * Finds the documents of a namespace that a query is about, in the way and by the scores that memories are found by.
 *
 * The index gives candidates, those of the namespace that are nearest. What has ended meanwhile and what a filter leaves out are passed
 * over. Where these leave too few, all documents of the namespace are looked at, newest first, as far as the budget goes.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import { nextTurn } from "../lib/clock.ts";
import type { BareId } from "../lib/ids.ts";
import { jsonArray, jsonWith, type JsonObject, type JsonText } from "../lib/json.ts";
import type { EmbeddedQuery } from "../embeddings/embedder.ts";
import type { Active, Embeddings } from "../embeddings/embeddings.ts";
import { inOrder } from "../memories/in-order.ts";
import { candidatesFrom, looksAt, looksAtOne, indexQuery, scoresOf, TERMS_PER_TURN } from "../memories/search.ts";
import type { Embedded } from "../memories/backfill.ts";
import { relevance } from "../memories/relevance.ts";
import { LIMITS } from "../lib/limits.ts";
import { eachFetched, eachRead, FIRST, type Reader } from "../storage/access.ts";
import { DOCUMENTS, hasVector } from "../storage/collections.ts";
import { emptiedUntil, visibleDocument } from "../storage/document-records.ts";
import { successor, hashKey, namespaceKey } from "../storage/keys.ts";
import { generationOf } from "../storage/memory-records.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { documentRemovals, documents, indexedDocuments, type DocumentRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { posting, type Filter } from "../storage/walk.ts";
import { CandidateReader, type Candidate } from "../search/candidates.ts";
import type { Query } from "../search/query.ts";
import type { CandidateIndex } from "../search/candidate-index.ts";
import { documentJson, type Shown } from "./answers.ts";
import { textOf } from "./embedded-text.ts";
import type { Budget } from "./budget.ts";

export interface Search {
  readonly op: "search";
  /** Its documents are found, and those below it. */
  readonly namespace: readonly string[];
  readonly query: string;
  readonly filter?: RecordFilter | undefined;
  readonly threshold: number;
  readonly limit: number;
  readonly offset: number;
  readonly shown: Shown;
}

export interface SearchDeps {
  readonly store: RecordStore;
  readonly embeddings: Embeddings;
  readonly documentVectors: CandidateIndex;
}

/** A filter leaves out most of what is found: then more candidates cost less than looking at all documents. */
const FILTERED_CANDIDATES_MIN = 200;
/** Number that is found at once where all are looked at. */
const DOCUMENTS_AT_ONCE = 100;
/** Documents that are put again while a search is under way have it begin again, up to this often. */
const ATTEMPTS = 3;

/** Matches by the key of `indexedDocuments`. */
interface Match {
  readonly id: BareId;
  readonly score: number;
}
interface SearchPage {
  /** Best first; of equal ones the newer first. */
  readonly matches: readonly Match[];
  /** True if there may be more. */
  readonly hasMore: boolean;
}

/**
 * One page of the best documents, each with its score.
 *
 * @param space - whose documents they are
 * @throws {ApiError} `service_unavailable` while the provider or the index cannot answer
 */
export async function searchDocuments(deps: SearchDeps, space: string, search: Search, budget: Budget): Promise<JsonText> {
  const { limit, offset } = search;
  for (let attempt = 1; ; attempt++) {
    const { matches, hasMore } = await find(deps, namespaceKey(space, search.namespace), search, budget);
    const page = matches.slice(offset, offset + limit);
    const found = await deps.store.read((reader) => {
      reader.ahead(
        indexedDocuments,
        page.map(({ id }) => id),
      );
      // Put again since, a document would be missing.
      if (attempt < ATTEMPTS && !page.every(({ id }) => reader.has(indexedDocuments, id))) return undefined;
      return documentsOf(reader, page, search.shown);
    });
    if (found !== undefined) return pageOf(found.data, budget, found.isCut || hasMore || matches.length > offset + limit);
  }
}

/** Existing documents as JSON, up to the one that makes any page too large, or with which as much was read for a part of it. */
function documentsOf(reader: Reader, page: readonly Match[], shown: Shown): { data: JsonText[]; isCut: boolean } {
  const atOnce = reader.recordsAtOnce;
  const documentOf = documentReader(reader);
  const data: JsonText[] = [];
  let bytes = 0;
  for (let i = 0; i < page.length; i += atOnce) {
    const some = page.slice(i, i + atOnce);
    for (const [at, document] of eachFetched(some, ({ id }) => documentOf(id)).entries()) {
      if (document === undefined) continue;
      const json = documentJson(document.key, document.row, { shown, more: { score: some[at]!.score } });
      data.push(json);
      bytes += Math.max(Buffer.byteLength(json), document.row.body.length);
      if (bytes > LIMITS.pageBytesMax) return { data, isCut: true };
    }
  }
  return { data, isCut: false };
}

function pageOf(found: readonly JsonText[], budget: Budget, hasMore: boolean): JsonText {
  const data: JsonText[] = [];
  for (const json of found) {
    if (!budget.takes(json)) return jsonWith({ object: "list" }, { data: jsonArray(data) }, { has_more: true });
    data.push(json);
  }
  return jsonWith({ object: "list" }, { data: jsonArray(data) }, { has_more: hasMore });
}

async function find(deps: SearchDeps, namespace: string, search: Search, budget: Budget): Promise<SearchPage> {
  for (;;) {
    const { active } = deps.embeddings;
    if (!budget.mayWait()) return { matches: [], hasMore: true };
    try {
      const query = await deps.embeddings.embedQuery(active, search.query, budget.limitsId);
      const isVain =
        (query.lexical.ids.length === 0 && search.threshold > 0) || (await deps.store.read(generationOf)) !== active.generation;
      const found =
        isVain || budget.isSpent
          ? { matches: [], hasMore: budget.isSpent }
          : await new Finding(deps, namespace, search, budget).find(query, active);
      // If another provider was set meanwhile, its vectors may be among them: they mean something else.
      if (deps.embeddings.active.generation === active.generation) return found;
    } catch (error) {
      // The failure may be of the provider before, which drops its requests in flight.
      if (deps.embeddings.active === active) throw error;
    }
  }
}

class Finding {
  readonly #deps: SearchDeps;
  readonly #namespace: string;
  readonly #search: Search;
  readonly #budget: Budget;
  readonly #filter: Filter;
  /** One more than the page ends with, which tells whether there are more. */
  readonly #wanted: number;

  constructor(deps: SearchDeps, namespace: string, search: Search, budget: Budget) {
    this.#deps = deps;
    this.#namespace = namespace;
    this.#search = search;
    this.#budget = budget;
    this.#filter = [posting(indexedDocuments.index.inNamespace, hashKey(namespace))];
    this.#wanted = search.offset + search.limit + 1;
  }

  async find(query: EmbeddedQuery, active: Active): Promise<SearchPage> {
    const limit = Math.max(candidatesFrom(this.#wanted), this.#search.filter === undefined ? 0 : FILTERED_CANDIDATES_MIN);
    const scored = indexQuery(query, active, limit);
    const candidates = await this.#deps.documentVectors.nearest(scored, this.#filter, this.#budget.mayHoldMuch);
    // Long texts are not held while waiting: they are found again.
    if (candidates === undefined || (looksAt(query, candidates) > TERMS_PER_TURN && !this.#budget.mayHoldMuch)) {
      this.#budget.requirePermit();
      return { matches: [], hasMore: true };
    }
    const scores = await scoresOf(query, active, candidates);
    const matches = await this.#among(candidates, scores);
    // Fewer candidates than were asked for are all that there are; and where one is below the threshold, so is all that is less near.
    const isAll = candidates.length < limit || scores.some((score) => score < this.#search.threshold);
    if (isAll || matches.length >= this.#wanted) return { matches, hasMore: this.#budget.isSpent };
    return this.#amongAll(query, active, scored, matches);
  }

  /** The best of the candidates that are there and pass. */
  async #among(candidates: readonly Candidate[], scores: Float64Array): Promise<Match[]> {
    const { threshold } = this.#search;
    const found: Match[] = [];
    const kept = scores.map((score) => (score >= threshold ? score : LEFT_OUT));
    const order = inOrder(candidates, kept, this.#wanted);
    for (;;) {
      const some = nextOf(order, this.#search.filter === undefined ? this.#wanted - found.length : DOCUMENTS_AT_ONCE);
      const ids = some.map((i) => candidates[i]!.memory);
      for await (const at of this.#passing(ids)) {
        found.push({ id: ids[at]!, score: scores[some[at]!]! });
        if (found.length === this.#wanted) break;
      }
      if (some.length === 0 || found.length === this.#wanted || this.#budget.isSpent) return found;
    }
  }

  /** The best of all documents of the namespace, or of the newest and those found before where there are more than may be looked at. */
  async #amongAll(query: EmbeddedQuery, active: Active, scored: Query, before: readonly Match[]): Promise<SearchPage> {
    const { store } = this.#deps;
    const found = new Map(before.map(({ id, score }) => [id, score]));
    const emptied = await store.read((reader) => emptiedUntil(reader, this.#namespace));
    const from = emptied && successor(emptied);
    for (let last: BareId | undefined, isEnd = false; !isEnd && !this.#budget.isSpent;) {
      const { ids, next } = await store.walk(indexedDocuments, this.#filter, { from, before: last }, DOCUMENTS_AT_ONCE);
      const others = ids.filter((id) => !found.has(id));
      const passing: BareId[] = [];
      for await (const at of this.#passing(others)) passing.push(others[at]!);
      const read = eachRead(store, passing, (reader) => {
        const candidateReader = new CandidateReader(reader, DOCUMENTS, scored);
        return (id) => ({ id, candidate: candidateReader.ofMemory(id) });
      });
      for await (const some of read) {
        for (const { id, candidate } of some) {
          if (candidate === undefined) continue;
          if (!(await this.#budget.score(looksAtOne(query, candidate) / TERMS_PER_TURN))) return { matches: [], hasMore: true };
          const score = relevance(query, candidate.cosine, candidate.terms, active.calibration);
          if (score >= this.#search.threshold) found.set(id, score);
        }
      }
      last = next;
      isEnd = next === undefined;
      await nextTurn();
    }
    const matches = Array.from(found, ([id, score]) => ({ id, score }));
    matches.sort((a, b) => b.score - a.score || (a.id < b.id ? 1 : -1));
    return { matches, hasMore: this.#budget.isSpent };
  }

  /** Gives the places of documents that are there and whose values pass the filter, as far as the budget goes. */
  async *#passing(ids: readonly BareId[]): AsyncGenerator<number, void, undefined> {
    const { filter } = this.#search;
    let at = 0;
    for await (const some of eachRead(this.#deps.store, ids, documentReader)) {
      for (const document of some) {
        const length = document?.row.body.length ?? 0;
        const passes = document !== undefined && filter?.passes(JSON.parse(document.row.body) as JsonObject) !== false;
        await this.#budget.look(length, filter);
        if (passes) yield at;
        if (this.#budget.isSpent) return;
        at++;
      }
    }
  }
}

/** Leaves the others to the next call. */
function nextOf<Item>(items: Iterator<Item>, count: number): Item[] {
  const taken: Item[] = [];
  for (let next; taken.length < count && (next = items.next()).done !== true;) taken.push(next.value);
  return taken;
}

/** The documents whose vectors are to be made. */
export function documentTexts({ documentVectors: index }: Pick<SearchDeps, "documentVectors">): Embedded {
  return {
    collection: DOCUMENTS,
    index,
    textOf(reader, id, isMadeAgain = false) {
      const indexed = reader.get(indexedDocuments, id);
      const row = indexed === undefined || (hasVector(indexed) && !isMadeAgain) ? undefined : reader.get(documents, indexed.document);
      return row?.index === undefined || row.id !== id ? undefined : textOf(JSON.parse(row.body) as JsonObject, row.index);
    },
    nameOf: (id) => id,
  };
}

/** Less than any score. */
const LEFT_OUT = -1;

/** Reads the document that a vector is of, if it is there and can be read. */
function documentReader(reader: Reader): (id: BareId) => { key: string; row: DocumentRow } | undefined {
  reader.aheadOf([documentRemovals], FIRST);
  return (id) =>
    unlessUnreadable(() => {
      const key = reader.get(indexedDocuments, id)?.document;
      const row = key === undefined ? undefined : visibleDocument(reader, key);
      return key === undefined || row?.id !== id ? undefined : { key, row };
    });
}
