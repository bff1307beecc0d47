/**
 * Finds the memories a query is about.
 *
 * Two steps. The index gives the `CANDIDATES` memories nearest by cosine among those that the filter lets through, and those
 * with the query's very words where it looks at all; then each is scored from the two texts alone, by what of the query it
 * covers. The context endpoint ranks by the same function.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import { bare, withPrefix, type BareId } from "../lib/ids.ts";
import type { Permit } from "../lib/fair-semaphore.ts";
import { jsonArray, jsonWith, toJson, type JsonText } from "../lib/json.ts";
import { codePointLength } from "../lib/text.ts";
import { type EmbeddedQuery, hasMeaning } from "../embeddings/embedder.ts";
import { passagesOf } from "../embeddings/builtin/passages.ts";
import type { Active } from "../embeddings/embeddings.ts";
import { BUILTIN_CALIBRATION } from "../embeddings/score.ts";
import type { Asking } from "../retrievals/log.ts";
import { isAnyMemoryHidden } from "../sessions/removal.ts";
import type { Reader } from "../storage/access.ts";
import { MAX_KEY } from "../storage/keys.ts";
import type { Owner } from "../storage/owner.ts";
import { generationOf } from "../storage/memory-records.ts";
import { memories, vectors, type MemoryRow } from "../storage/tables.ts";
import { except, type Filter } from "../storage/walk.ts";
import type { Candidate } from "../search/candidates.ts";
import { nearestPassage, passageCount, quantize } from "../search/encoding.ts";
import type { Query } from "../search/query.ts";
import type { MemoryDeps } from "./deps.ts";
import { amongFirst, inOrder } from "./in-order.ts";
import { rowFilterOf } from "./filter.ts";
import { filteredCandidates } from "./filtered.ts";
import { memoryScope, type MemoryScope } from "./memories.ts";
import { firstByRanking, leastFactor, weightsOf, type RankingParts, type RankingWishes, type Weights } from "./ranking-score.ts";
import { memoryMembers } from "./record.ts";
import { trackSearch, type Search } from "./search-log.ts";
import { explainer, relevance, scoreOf } from "./relevance.ts";
import type { Shown } from "./status.ts";
import { shownMemories } from "./validity.ts";

/** Least number of memories that are looked at closely. */
const CANDIDATES_MIN = 48;
/** More than are wanted, where all are scored before: scores that differ by less than a millionth are shown as equal. */
const EQUALS = 6;
/**
 * If more than the score counts, this many are compared for each that is wanted, and as many times more while one that is not compared
 * could be among the first.
 */
const WEIGHED_FACTOR = 4;
/** At most this many are compared for that. */
const WEIGHED_MAX = 2_000;

export interface Match {
  key: BareId;
  row: MemoryRow;
  /** 0.0 to 1.0, higher is more relevant; 0.7 and more is about the query. */
  score: number;
  cosine: number;
  terms: Uint32Array;
  /** Parts of the ranking score, if more than the score counts. */
  parts?: RankingParts;
}

/** Matches, and the query that found them. */
export interface Ranking {
  query: EmbeddedQuery;
  active: Active;
  /** Best first; of equal ones the newer first. */
  matches: Match[];
  /** True if there may be better ones among memories that were not compared with a filter. */
  isPartial: boolean;
}

/**
 * The best memories for a query.
 *
 * @param permit - taken where something large is held while other requests are answered; the caller disposes of it
 * @throws {ApiError} `service_unavailable` while the provider or the index cannot answer
 */
export async function rank(
  deps: MemoryDeps,
  text: string,
  { filter, ranges }: MemoryScope,
  options: { threshold: number; limit: number; explain: boolean; limitsId: string; shown: Shown & RankingWishes },
  permit: Permit,
): Promise<Ranking> {
  const { limitsId } = options;
  const shown = { ...options.shown, ranges };
  const weights = weightsOf(shown);
  let wanted = weights === undefined ? options.limit : WEIGHED_FACTOR * options.limit;
  for (let isAgain = false; ;) {
    const { active } = deps.embeddings;
    try {
      const query = await deps.embeddings.embedQuery(active, text, limitsId);
      if (options.explain || shown.rowFilter !== undefined) await permit.take();
      // Without words or symbols everything scores 0. Vectors of another generation are the previous provider's.
      const isVain =
        (query.lexical.ids.length === 0 && options.threshold > 0) || (await deps.store.read(generationOf)) !== active.generation;
      const looking = { wanted, threshold: options.threshold, isAgain, shown };
      const found = isVain ? NOTHING : await candidatesFor(deps, query, active, filter, looking, permit.isTaken);
      // Long texts are not held while waiting: they are read again.
      if (found === undefined || (!permit.isTaken && looksAt(query, found.candidates) > TERMS_PER_TURN)) {
        await permit.take();
        continue;
      }
      const { candidates, isPartial } = found;
      const scores = await scoresOf(query, active, candidates);
      // If another provider was set meanwhile, its vectors may be among them: they mean something else.
      const isSame = deps.embeddings.active.generation === active.generation;
      const choice = { ...options, shown, weights, wanted, isPartial };
      const matches = isSame ? await deps.store.read((reader) => best(reader, candidates, scores, choice)) : undefined;
      if (matches === "more") {
        wanted = Math.min(WEIGHED_FACTOR * wanted, WEIGHED_MAX);
        continue;
      }
      if (matches !== undefined) return { query, active, matches, isPartial };
      isAgain = true;
    } catch (error) {
      // The failure may be of the provider before, which drops its requests in flight.
      if (deps.embeddings.active === active) throw error;
    }
  }
}

/** Scoring a candidate looks at each of its terms and at each of the query's: this many take about 1 ms. */
export const TERMS_PER_TURN = 100_000;

export function looksAt(query: EmbeddedQuery, candidates: readonly Candidate[]): number {
  return candidates.reduce((sum, candidate) => sum + looksAtOne(query, candidate), 0);
}

/** Terms are not asked for where the score is known: nobody else may. */
export function looksAtOne({ lexical }: EmbeddedQuery, candidate: Candidate): number {
  return candidate.closeness === undefined ? candidate.terms.length + lexical.ids.length : 0;
}

/** Scores each candidate. Long texts take long, so other requests are answered in between. */
export async function scoresOf(query: EmbeddedQuery, { calibration }: Active, candidates: readonly Candidate[]): Promise<Float64Array> {
  const scores = new Float64Array(candidates.length);
  let compared = 0;
  for (let i = 0; i < scores.length; i++) {
    const candidate = candidates[i]!;
    const needed = looksAtOne(query, candidate);
    if (compared > 0 && compared + needed > TERMS_PER_TURN) {
      compared = 0;
      await nextTurn();
    }
    compared += needed;
    const { closeness: known, cosine } = candidate;
    scores[i] = known === undefined ? relevance(query, cosine, candidate.terms, calibration) : scoreOf(known, calibration);
  }
  return scores;
}

interface Choice {
  readonly threshold: number;
  readonly limit: number;
  readonly shown: Shown;
  readonly weights: Weights | undefined;
  /** Number of candidates that were asked for. */
  readonly wanted: number;
  readonly isPartial: boolean;
}

/**
 * @returns undefined when one of them has got another vector meanwhile, or is gone and others might take its place; "more" where one that
 *   is no candidate might be among the first by its ranking score
 */
function best(
  reader: Reader,
  candidates: readonly Candidate[],
  scored: Float64Array,
  { threshold, limit, shown, weights, wanted, isPartial }: Choice,
): Match[] | "more" | undefined {
  const scores = scored.map((score) => (score >= threshold ? score : LEFT_OUT));
  const find = shownMemories(reader, shown);
  let isAnyGone = false;
  let hasOtherVector = false;
  reader.ahead(memories, amongFirst(candidates, scores, limit, weights && leastFactor(weights)));
  const inScoreOrder = function* (): Generator<Match> {
    for (const i of inOrder(candidates, scores, limit)) {
      const { memory, id, cosine, terms } = candidates[i]!;
      const row = find(memory);
      if (row === undefined) isAnyGone = true;
      else {
        hasOtherVector = row.embedding?.id !== withPrefix("emb", id) && !reader.has(vectors, id);
        if (hasOtherVector) return;
        yield { key: memory, row, score: scores[i] as number, cosine, terms };
      }
    }
  };
  const matches =
    weights === undefined
      ? Array.from(inScoreOrder().take(limit))
      : firstByRanking(inScoreOrder(), weights, { limit, at: shown.asOf ?? reader.now });
  if (hasOtherVector) return undefined;
  // Fewer candidates than are enough are all that pass.
  const mayBeOthers = !isPartial && candidates.length >= wanted + EQUALS;
  if (isAnyGone && matches.length < limit && mayBeOthers) return undefined;
  if (weights === undefined || !mayBeOthers || wanted === WEIGHED_MAX) return matches;
  const scoreMin = Math.max(threshold, matches[limit - 1]?.parts?.rankingScore ?? 0);
  return scored.every((score) => score > scoreMin) ? "more" : matches;
}

/** Less than any score. */
const LEFT_OUT = -1;

interface CandidatesFound {
  readonly candidates: readonly Candidate[];
  readonly isPartial: boolean;
}
const NOTHING: CandidatesFound = { candidates: [], isPartial: false };

/**
 * While a large session is being removed its memories can be better than all others: then more are asked for.
 *
 * @param isAgain - some that were found before were gone when they were to be returned
 * @returns undefined when it takes a permit
 */
async function candidatesFor(
  deps: MemoryDeps,
  embedded: EmbeddedQuery,
  active: Active,
  filter: Filter,
  { wanted, threshold, isAgain, shown }: { wanted: number; threshold: number; isAgain: boolean; shown: Shown },
  hasPermit: boolean,
): Promise<CandidatesFound | undefined> {
  const searched = await withoutPast(deps, filter, shown);
  const { rowFilter } = shown;
  if (rowFilter !== undefined) {
    const postings = (await deps.store.read(isAnyMemoryHidden)) ? filter : searched;
    return filteredCandidates(
      deps,
      { postings, shown: { ...shown, rowFilter } },
      {
        queryFor: (limit) => indexQuery(embedded, active, limit),
        wanted: candidatesFrom(wanted),
        isAnyBelow: async (candidates) =>
          threshold > 0 && (await scoresOf(embedded, active, candidates)).some((score) => score < threshold),
      },
    );
  }
  for (let limit = candidatesFrom(wanted); ; limit *= 4) {
    const isAnyHidden = await deps.store.read(isAnyMemoryHidden);
    const mayBeGone = isAgain || isAnyHidden;
    const query = { ...indexQuery(embedded, active, limit, mayBeGone ? limit : wanted + EQUALS), isZeroLeftOut: threshold > 0 };
    // A hidden memory supersedes nothing, though its links are there still.
    const found = await deps.vectors.nearest(query, isAnyHidden ? filter : searched, hasPermit);
    if (found === undefined) return undefined;
    if (!mayBeGone) return { candidates: found, isPartial: false };
    const visible = await deps.store.read((reader) => {
      const find = shownMemories(reader, shown);
      reader.ahead(
        memories,
        found.map(({ memory }) => memory),
      );
      return found.filter(({ memory }) => find(memory) !== undefined);
    });
    if (found.length < limit || visible.length >= candidatesFrom(wanted)) return { candidates: visible, isPartial: false };
  }
}

/** Share of past memories from which a search among all leaves them out: with fewer that costs more than it spares. */
const PAST_SHARE_MIN = 1 / 8;

/** Leaves out by their index what is past for good, where a search is for what is current now. */
async function withoutPast(
  { store }: Pick<MemoryDeps, "store">,
  filter: Filter,
  { status = "current", asOf, ranges = [] }: Shown,
): Promise<Filter> {
  if (status !== "current" || asOf !== undefined) return filter;
  // A memory that is past for the parent of a fork can be current in the fork.
  if (ranges.length > 1) return filter;
  const { past, bySession, byUser, byAgent } = memories.index;
  if (!filter.some(({ table }) => [bySession, byUser, byAgent].some(({ name }) => name === table))) {
    if ((await store.read((reader) => reader.keys(past, { from: "", to: MAX_KEY, limit: 1 }))).length === 0) return filter;
    const [pastCount, all] = await Promise.all([store.count(past), store.count(vectors)]);
    if (pastCount < PAST_SHARE_MIN * all) return filter;
  }
  return [...filter, except(past)];
}

/**
 * Query of the index.
 *
 * @param limit - how many candidates are wanted
 * @param enough - how many where all that pass are scored before
 */
export function indexQuery(embedded: EmbeddedQuery, active: Active, limit: number, enough = limit): Query {
  const calibration = active.calibration ?? BUILTIN_CALIBRATION;
  return { vector: quantize(embedded.vector), words: embedded.lexical, calibration, limit, enough };
}

/** Caller of a search: how much at once is limited for each key. */
export interface Searcher extends Asking {
  readonly owner: Owner;
}

/** The index chooses by words and cosine as they count here, its words a little less exactly: some more than are wanted will do. */
export function candidatesFrom(wanted: number): number {
  return Math.max(CANDIDATES_MIN, 2 * wanted);
}

export async function searchMemories(deps: MemoryDeps, searcher: Searcher, search: Search): Promise<JsonText> {
  const scope = await deps.store.read((reader) => memoryScope(reader, searcher.owner, search));
  if (scope === undefined) return resultsJson(search, []);
  using permit = deps.searches.permitOf(searcher.limitsId);
  const shown = { ...search, rowFilter: rowFilterOf(search) };
  const ranking = await rank(deps, search.query, scope, { ...search, shown, limitsId: searcher.limitsId }, permit);
  const explanations = search.explain ? await explanationsJson(deps, ranking, filtersOf(search)) : undefined;
  const retrieval = trackSearch(deps, searcher, search, ranking.matches);
  return deps.store.read((reader) => {
    const data = ranking.matches.map((match, i) => {
      return resultJson(reader, match, explanations?.[i]);
    });
    return resultsJson(search, data, { isPartial: ranking.isPartial, retrieval });
  });
}

/** The score of a match, and after it what became of that where more counts. */
export function scoreJson({ score, parts }: { score: number; parts?: RankingParts }): string {
  return parts === undefined ? String(score) : `${score},"ranking_score":${parts.rankingScore}`;
}

const FILTERS = {
  sessionId: "session_id",
  userId: "user_id",
  agentId: "agent_id",
  type: "type",
  types: "types",
  tags: "tags",
  filter: "filter",
  createdAfter: "created_after",
  createdBefore: "created_before",
} as const;

/** The filters that a search gave, which all that it found has passed. */
function filtersOf(search: Search): string[] {
  return Object.entries(FILTERS).flatMap(([field, name]) => {
    const given = search[field as keyof typeof FILTERS];
    return given === undefined || (Array.isArray(given) && given.length === 0) ? [] : [name];
  });
}

/** A match as the wire has it. */
export function resultJson(reader: Reader, match: Match, explanation?: JsonText): JsonText {
  const { key, row } = match;
  const { beforeScore, createdAt } = memoryMembers(reader, key, row);
  const end = explanation === undefined ? "}" : `,"explanation":${explanation}}`;
  return `{"id":"${withPrefix("mem", key)}",${beforeScore}${scoreJson(match)}${createdAt}${end}` as JsonText;
}

function resultsJson(
  { query }: Search,
  data: readonly JsonText[],
  { isPartial = false, retrieval }: { isPartial?: boolean; retrieval?: string | undefined } = {},
): JsonText {
  const id = retrieval === undefined ? undefined : toJson(retrieval);
  return jsonWith({ object: "list", query }, { data: jsonArray(data), partial: isPartial ? toJson(true) : undefined, retrieval_id: id });
}

/** The explanation of each match, in their order. One of two long texts takes milliseconds, so it yields in between. */
export async function explanationsJson(
  { store }: Pick<MemoryDeps, "store">,
  ranking: Ranking,
  filters: readonly string[] = [],
): Promise<JsonText[]> {
  const { query, active, matches } = ranking;
  const explain = explainer(query, active.calibration);
  const passages = await store.read((reader) => nearestPassages(reader, ranking));
  const explanations: JsonText[] = [];
  const filtered = filters.length === 0 ? {} : { filters };
  for (const [i, { cosine, terms, row, parts }] of matches.entries()) {
    await nextTurn();
    const nearest = passages[i];
    const passage = nearest === undefined ? undefined : passagePlace(row.content, nearest);
    explanations.push(toJson({ ...explain(cosine, terms, row.content), passage, ...filtered, ...explainedParts(parts, row) }));
  }
  return explanations;
}

function explainedParts(parts: RankingParts | undefined, { importance }: MemoryRow): object {
  if (parts === undefined) return {};
  const { ageDays, recency, importance: factor } = parts;
  return { recency: { age_days: ageDays, factor: recency }, importance: { importance: importance ?? null, factor } };
}

/** Passage of each match that is nearest to the query; undefined where its text has only one. */
function nearestPassages(reader: Reader, { query, matches }: Ranking): (number | undefined)[] {
  if (!hasMeaning(query)) return [];
  const numbers = quantize(query.vector);
  const ids = matches.map(({ row }) => (row.embedding === undefined ? undefined : bare(row.embedding.id)));
  reader.ahead(
    vectors,
    ids.filter((id) => id !== undefined),
  );
  return ids.map((id) => {
    // It is gone where the text was changed meanwhile.
    const bytes = id === undefined ? undefined : reader.vectorBytes(vectors, id);
    return bytes === undefined || passageCount(bytes) === 1 ? undefined : nearestPassage(numbers, bytes).passage;
  });
}

/** Position of a passage in its text, in code points. */
function passagePlace(text: string, passage: number): { start: number; end: number } | undefined {
  const place = passagesOf(text)[passage];
  if (place === undefined) return undefined;
  const start = codePointLength(text.slice(0, place.from));
  return { start, end: start + codePointLength(text.slice(place.from, place.to)) };
}
