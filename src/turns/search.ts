/**
 * Finds the turns that a query is about, in the way and by the scores that memories are found by, and the passage of each that it found.
 *
 * The index gives candidates among the turns of a session, a user or an agent. Whether a session shows them is seen when they are
 * answered: those that a rollback has hidden are passed over, and those that a fork has from its parent are found under the fork.
 *
 * @module
 */
import type { EmbeddedQuery } from "../embeddings/embedder.ts";
import { passagesOf } from "../embeddings/builtin/passages.ts";
import { hasMeaning } from "../embeddings/embedder.ts";
import type { Active } from "../embeddings/embeddings.ts";
import { WORDS_CALIBRATION } from "../embeddings/score.ts";
import type { RecordFilter } from "../filters/filter.ts";
import { nextTurn } from "../lib/clock.ts";
import type { Permit } from "../lib/fair-semaphore.ts";
import { withPrefix, type BareId, type Id, type TurnId } from "../lib/ids.ts";
import { jsonArray, jsonWith, toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { ComparedRows, ROWS_AT_ONCE, rowsAtOnce } from "../memories/filter.ts";
import { inOrder } from "../memories/in-order.ts";
import { candidatesFrom, indexQuery, looksAt, scoresOf, TERMS_PER_TURN, type Searcher } from "../memories/search.ts";
import { ownerOfSearch, sentAs, usersNamedBy } from "../retrievals/log.ts";
import { eachRead, type Reader } from "../storage/access.ts";
import { TURNS } from "../storage/collections.ts";
import { generationOf, vectorOf } from "../storage/memory-records.ts";
import type { TurnIndex, TurnRow } from "../storage/tables.ts";
import type { Candidate } from "../search/candidates.ts";
import { nearestPassage, passageCount, quantize } from "../search/encoding.ts";
import { catchUp } from "./catch-up.ts";
import { compareTurn, type ComparedTurn } from "./filter.ts";
import { indexedText, textsOf } from "./indexed-text.ts";
import { turnIndexOf, type TurnDeps } from "./indexed-turns.ts";
import { passageOf, type ShownPassage } from "./passage.ts";
import { scopeOf, shownTurnReader, type ShownTurn, type TurnFilter, type TurnScope } from "./scope.ts";

export interface TurnSearch extends TurnFilter {
  readonly query: string;
  readonly filter?: RecordFilter | undefined;
  readonly limit: number;
  readonly threshold: number;
}

interface Match extends ShownTurn {
  readonly turn: BareId;
  readonly score: number;
  /** The part of the turn's text that is nearest in meaning, by its number; undefined where the text has no parts. */
  readonly passage: number | undefined;
  /** Result of the comparison with a filter, where one was made. */
  readonly compared: ComparedTurn | undefined;
}

/** Filter of a request, with what was compared with it. */
interface Comparing {
  readonly filter: RecordFilter;
  readonly rows: ComparedRows;
}

interface Matches {
  readonly matches: readonly Match[];
  /** True if others that pass the filter may be about the query, too. */
  readonly isPartial: boolean;
}

/** The query and the provider that it is compared by. */
interface ActiveQuery {
  readonly query: EmbeddedQuery;
  readonly active: Active;
}

/** Candidates at least: many turns have as much of the query's words, and of these the first is the one that says it. */
const CANDIDATES_MIN = 1_000;
/** Candidates at most: more than that are looked at only where nearly all that is found is hidden. */
const CANDIDATES_MAX = 10_000;

export async function searchTurns(deps: TurnDeps, searcher: Searcher, search: TurnSearch): Promise<JsonText> {
  const scope = await scopeOf(deps.store, searcher.owner, search);
  const index = turnIndexOf(deps, scope?.session?.row);
  using permit = deps.searches.permitOf(searcher.limitsId);
  const isAll = scope === undefined || index === "off" || (await catchUp(deps, searcher.owner, search, scope));
  const found = scope === undefined || index === "off" ? undefined : await rank(deps, searcher, search, scope, index, permit);
  const data: JsonText[] = [];
  const shownIds: TurnId[] = [];
  const users = new Set(usersNamedBy(search));
  let bytes = 0;
  for (const { turn, row, session, json, score, passage } of found?.matches ?? []) {
    if (bytes > LIMITS.pageBytesMax) break;
    // Of a long turn this takes milliseconds.
    await nextTurn();
    const shown = shownPassage(row, found!.query, passage);
    data.push(`${json.slice(0, -1)},"score":${score},"passage":${toJson(shown ?? null)}}` as JsonText);
    shownIds.push(withPrefix("turn", turn));
    if (session.row.userId !== null) users.add(session.row.userId);
    bytes += Buffer.byteLength(json);
  }
  const retrieval = scope && trackTurnSearch(deps, searcher, search, { turns: shownIds, users: [...users] });
  const partial = isAll && found?.isPartial !== true ? undefined : toJson(true);
  const members = { data: jsonArray(data), partial, retrieval_id: retrieval && toJson(retrieval) };
  return jsonWith({ object: "list", query: search.query, index_turns: index }, members);
}

/** A search that names no session is logged for its user or agent, be they those of the key or of a filter. */
function trackTurnSearch(
  { retrievals }: TurnDeps,
  searcher: Searcher,
  search: TurnSearch,
  found: { readonly turns: readonly TurnId[]; readonly users: readonly string[] },
): Id<"ret"> | undefined {
  if (!retrievals.isOn) return undefined;
  const { sessionId, query, limit, threshold, ...more } = search;
  const asked = { sessionId, ...ownerOfSearch(searcher.owner, search), query, limit, threshold, isFiltered: search.filter !== undefined };
  return retrievals.note(searcher, { operation: "turn_search", ...asked, request: sentAs(more), ...found, matches: [] });
}

function shownPassage(row: TurnRow, { lexical }: EmbeddedQuery, passage: number | undefined): ShownPassage | undefined {
  const texts = textsOf(row);
  const text = indexedText(texts);
  const near = passage === undefined ? undefined : passagesOf(text)[passage];
  return passageOf(texts, text, lexical, near) ?? passageOf(texts, text, lexical, undefined);
}

/** The best turns, best first; of equal ones the older first: what was said again is found where it was said. */
async function rank(
  deps: TurnDeps,
  searcher: Searcher,
  search: TurnSearch,
  scope: TurnScope,
  index: Exclude<TurnIndex, "off">,
  permit: Permit,
): Promise<Matches & { query: EmbeddedQuery }> {
  const { limitsId } = searcher;
  const comparing = search.filter && { filter: search.filter, rows: new ComparedRows() };
  for (;;) {
    const { active } = deps.embeddings;
    try {
      const asked: ActiveQuery =
        index === "words"
          ? { query: deps.embeddings.wordsQuery(search.query), active: { ...active, calibration: WORDS_CALIBRATION } }
          : { query: await deps.embeddings.embedQuery(active, search.query, limitsId), active };
      const isVain = asked.query.lexical.ids.length === 0 && search.threshold > 0;
      const found = isVain ? undefined : await bestOf(deps, searcher, search, scope, asked, permit, comparing);
      // Vectors of a provider that was set meanwhile may be among them: they mean something else.
      if (deps.embeddings.active.generation === active.generation)
        return { query: asked.query, ...(found ?? { matches: [], isPartial: false }) };
    } catch (error) {
      // The provider before may have failed, which drops its requests in flight.
      if (deps.embeddings.active === active) throw error;
    }
  }
}

/** Asks for more candidates while too many of those found are not shown. @returns undefined where vectors are another provider's */
async function bestOf(
  deps: TurnDeps,
  searcher: Searcher,
  search: TurnSearch,
  scope: TurnScope,
  { query, active }: ActiveQuery,
  permit: Permit,
  comparing: Comparing | undefined,
): Promise<Matches | undefined> {
  for (let limit = Math.max(CANDIDATES_MIN, candidatesFrom(search.limit)); ;) {
    const candidates = await deps.turnVectors.nearest(indexQuery(query, active, limit), scope.filter, permit.isTaken);
    // Long texts are not held while waiting: they are read again.
    if (candidates === undefined || (!permit.isTaken && looksAt(query, candidates) > TERMS_PER_TURN)) {
      await permit.take();
      continue;
    }
    const scores = await scoresOf(query, active, candidates);
    const matches = await shownOf(deps, searcher, search, scope, { query, active }, { candidates, scores, comparing });
    if (matches === undefined) return undefined;
    const isAll = candidates.length < limit || scores.some((score) => score < search.threshold);
    const isCut = limit >= CANDIDATES_MAX || comparing?.rows.isSpent === true;
    if (isAll || isCut || matches.length >= search.limit) {
      const isShort = comparing !== undefined && matches.length < search.limit;
      return { matches, isPartial: isShort && (comparing.rows.isSpent || !isAll) };
    }
    limit = Math.min(CANDIDATES_MAX, 4 * limit);
  }
}

/** Candidates of a search, with their scores. */
interface Scored {
  readonly candidates: readonly Candidate[];
  readonly scores: Float64Array;
  readonly comparing: Comparing | undefined;
}

/** The best of the candidates that are shown and pass; undefined where their vectors are of another generation than the query. */
async function shownOf(
  { store }: TurnDeps,
  { owner }: Searcher,
  search: TurnSearch,
  { ranges }: TurnScope,
  { query, active }: ActiveQuery,
  { candidates, scores, comparing }: Scored,
): Promise<Match[] | undefined> {
  const kept = scores.map((score) => (score >= search.threshold ? score : LEFT_OUT));
  const order = Array.from(
    inOrder(candidates, kept, search.limit, "older").filter((i) => comparing?.rows.get(candidates[i]!.memory) !== false),
  );
  const numbers = hasMeaning(query) ? quantize(query.vector) : undefined;
  const reading = (reader: Reader) => {
    const find = shownTurnReader(reader, owner, search, ranges);
    return (i: number): Match | "of another generation" | undefined => {
      if (generationOf(reader) !== active.generation) return "of another generation";
      const turn = candidates[i]!.memory;
      const shown = find(turn);
      if (shown === undefined) return undefined;
      const compared = comparing && comparing.rows.get(turn) === undefined ? compareTurn(comparing.filter, shown) : undefined;
      return { ...shown, turn, score: scores[i]!, passage: numbers && passageNumber(reader, turn, numbers), compared };
    };
  };
  const matches: Match[] = [];
  let atOnce = comparing === undefined ? order.length : rowsAtOnce(comparing.filter);
  for (let at = 0; at < order.length && comparing?.rows.isSpent !== true;) {
    const some = order.slice(at, at + Math.max(1, Math.floor(atOnce)));
    let rows = 0;
    for await (const found of eachRead(store, some, reading)) {
      for (const match of found) {
        if (match === undefined) continue;
        if (match === "of another generation") return undefined;
        const { turn, compared } = match;
        if (compared !== undefined) comparing!.rows.note(turn, compared.isPassing, compared.rows);
        rows += compared?.rows ?? 0;
        if (compared?.isPassing === false) continue;
        matches.push(match);
        if (matches.length === search.limit) return matches;
      }
    }
    at += some.length;
    if (comparing !== undefined) await nextTurn();
    // As many next time as were cheap before.
    if (rows > 0) atOnce = (ROWS_AT_ONCE * some.length) / rows;
  }
  return matches;
}

/** Less than any score. */
const LEFT_OUT = -1;

function passageNumber(reader: Reader, turn: BareId, numbers: Int16Array): number | undefined {
  const bytes = vectorOf(reader, TURNS, turn)?.bytes;
  return bytes === undefined || passageCount(bytes) === 1 ? undefined : nearestPassage(numbers, bytes).passage;
}
