/**
 * The combined read: the state, the memories that matter, the latest turns. It owns no data and changes none.
 *
 * It looks in the memories that the session shows and, when the session has a user, in all memories of that user; never in another
 * user's. With a query the best come first, without one the newest.
 *
 * @module
 */
import { withPrefix, type BareId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import type { MemoryDeps } from "../memories/deps.ts";
import { newestMemories, type MemoryScope } from "../memories/memories.ts";
import { memoryMembers, visibleMemories } from "../memories/record.ts";
import type { RankingParts } from "../memories/ranking-score.ts";
import { explanationsJson, rank, scoreJson, type Ranking, type Searcher } from "../memories/search.ts";
import { liveSession, type LiveSession } from "../sessions/live-session.ts";
import { memoriesIn, shownMemoryRanges } from "../sessions/shared-memories.ts";
import { readState } from "../sessions/versions.ts";
import type { Reader } from "../storage/access.ts";
import { ownedPostings, type Owner } from "../storage/owner.ts";
import { memories as memoryTable, type MemoryRow } from "../storage/tables.ts";
import type { RecentTurns } from "../turns/recent-turns.ts";
import { answerOf, NO_STATE, type Found, type FoundMemory } from "./fit.ts";
import type { ContextPart, ContextRequest } from "./request.ts";

export interface ContextDeps extends MemoryDeps {
  readonly recentTurns: RecentTurns;
}

export async function getContext(deps: ContextDeps, searcher: Searcher, id: string, request: ContextRequest): Promise<JsonText> {
  const { ranking, ...found } = await find(deps, searcher, id, request);
  const answer = await answerOf(found, request);
  // Logged last: a budget that is too small is refused, and then nothing was given out.
  if (ranking !== undefined && deps.retrievals.isOn) {
    const limit = limitsOf(request).memoryLimit;
    const asked = { sessionId: id, query: request.query ?? "", limit, threshold: 0, isFiltered: false };
    deps.retrievals.note(searcher, { operation: "context", ...asked, matches: ranking.matches });
  }
  return answer;
}

async function find(
  deps: ContextDeps,
  searcher: Searcher,
  id: string,
  request: ContextRequest,
): Promise<Found & { ranking: Ranking | undefined }> {
  const { limitsId, owner } = searcher;
  using permit = deps.searches.permitOf(limitsId);
  const { store } = deps;
  const { query } = request;
  const { memoryLimit, turnLimit } = limitsOf(request);
  const scope = await store.read((reader) => scopeOf(reader, liveSession(reader, owner, id), owner, request.memoryScope));
  const options = { threshold: 0, limit: memoryLimit, explain: request.explain, limitsId, shown: request };
  const ranked = query === undefined || memoryLimit === 0 ? undefined : await rank(deps, query, scope, options, permit);
  // With nothing to look for in a query of spaces alone, the newest as without one.
  const ranking = ranked?.query.lexical.ids.length === 0 ? undefined : ranked;
  const newest = ranking === undefined ? await newestMemories(deps, scope, memoryLimit, request) : [];
  const explanations = ranking === undefined || !request.explain ? [] : await explanationsJson(deps, ranking);
  // Read last, so that all of the answer that can change is of one moment, and nothing large is held while others are let through.
  return store.read((reader) => {
    const session = liveSession(reader, owner, id);
    const state = shows(request, "state") ? readState(reader, session.key, session.row.version) : NO_STATE;
    const turns = deps.recentTurns.of(reader, session, turnLimit);
    const memories =
      ranking === undefined ? itemsOf(reader, newest) : ranking.matches.map((match, i) => itemOf(reader, match, explanations[i]));
    return { state, turns, memories, ranking };
  });
}

function shows({ include }: ContextRequest, part: ContextPart): boolean {
  return include === undefined || include.includes(part);
}

/** Where a budget decides how much there is, as much is looked for as there may be. */
function limitsOf(request: ContextRequest): { memoryLimit: number; turnLimit: number } {
  const hasBudget = request.maxTokens !== undefined;
  const memoryLimit = request.memoryLimit ?? (hasBudget ? LIMITS.contextMemoriesMax : LIMITS.contextMemoriesDefault);
  const turnLimit = request.turnLimit ?? (hasBudget ? LIMITS.contextTurnsMax : LIMITS.contextTurnsDefault);
  return { memoryLimit: shows(request, "memories") ? memoryLimit : 0, turnLimit: shows(request, "turns") ? turnLimit : 0 };
}

/** The memories of a session with a user are among that user's, of whom a key may see those of one agent alone. */
function scopeOf(reader: Reader, session: LiveSession, { agentId }: Owner, scope: ContextRequest["memoryScope"]): MemoryScope {
  const { userId } = session.row;
  if (userId !== null && scope !== "session") return { filter: ownedPostings({ userId, agentId }, memoryTable.index) };
  const ranges = shownMemoryRanges(reader, session);
  return { filter: [memoriesIn(ranges)], ranges };
}

function itemsOf(reader: Reader, keys: readonly BareId[]): FoundMemory[] {
  const visible = visibleMemories(reader);
  return keys.flatMap((key) => {
    const row = visible(key);
    return row === undefined ? [] : [itemOf(reader, { key, row, score: 0 })];
  });
}

interface Scored {
  key: BareId;
  row: MemoryRow;
  score: number;
  parts?: RankingParts;
}

function itemOf(reader: Reader, found: Scored, explanation?: JsonText): FoundMemory {
  const { key, row } = found;
  const { content, createdAt } = memoryMembers(reader, key, row);
  const end = explanation === undefined ? "}" : `,"explanation":${explanation}}`;
  const json = `{"id":"${withPrefix("mem", key)}",${content},"score":${scoreJson(found)}${createdAt}${end}` as JsonText;
  return { key, row, content: row.content, tokens: row.tokens, json };
}
