/**
 * The combined read: the state, the memories that matter, the latest turns. It owns no data and changes none.
 *
 * It looks in the memories that the session shows and, when the session has a user, in all memories of that user; never in another
 * user's. With a query the best come first, without one the newest.
 *
 * @module
 */
import { withPrefix, type BareId } from "../lib/ids.ts";
import { jsonArray, jsonWith, type JsonText } from "../lib/json.ts";
import type { MemoryDeps } from "../memories/deps.ts";
import { newestMemories, type MemoryScope } from "../memories/memories.ts";
import { memoryMembers, visibleMemories } from "../memories/record.ts";
import { explanationsJson, rank, type Ranking, type Searcher } from "../memories/search.ts";
import { liveSession, type LiveSession } from "../sessions/live-session.ts";
import { memoriesIn, shownMemoryRanges } from "../sessions/shared-memories.ts";
import { readState } from "../sessions/versions.ts";
import type { Reader } from "../storage/access.ts";
import { ownedPostings, type Owner } from "../storage/owner.ts";
import { memories as memoryTable, type MemoryRow } from "../storage/tables.ts";
import type { RecentTurns } from "../turns/recent-turns.ts";

export interface ContextDeps extends MemoryDeps {
  readonly recentTurns: RecentTurns;
}

export interface ContextRequest {
  query?: string | undefined;
  memoryLimit: number;
  turnLimit: number;
  explain: boolean;
  /** The moment whose memories are shown; now unless given. */
  asOf?: number | undefined;
}

export async function getContext(deps: ContextDeps, searcher: Searcher, id: string, request: ContextRequest): Promise<JsonText> {
  const { limitsId, owner } = searcher;
  using permit = deps.searches.permitOf(limitsId);
  const { store } = deps;
  const { query, memoryLimit, turnLimit } = request;
  const scope = await store.read((reader) => scopeOf(reader, liveSession(reader, owner, id), owner));
  const options = { threshold: 0, limit: memoryLimit, explain: request.explain, limitsId, shown: request };
  const found = query === undefined || memoryLimit === 0 ? undefined : await rank(deps, query, scope, options, permit);
  // With nothing to look for in a query of spaces alone, the newest as without one.
  const ranking = found?.query.lexical.ids.length === 0 ? undefined : found;
  const newest = ranking === undefined ? await newestMemories(deps, scope, memoryLimit, request) : [];
  const explanations = ranking === undefined || !request.explain ? [] : await explanationsJson(deps, ranking);
  if (ranking !== undefined && deps.retrievals.isOn) {
    const asked = { sessionId: id, query: query ?? "", limit: memoryLimit, threshold: 0, isFiltered: false };
    deps.retrievals.note(searcher, { operation: "context", ...asked, matches: ranking.matches });
  }
  // Read last, so that all of the answer that can change is of one moment, and nothing large is held while others are let through.
  return store.read((reader) => {
    const session = liveSession(reader, owner, id);
    const state = readState(reader, session.key, session.row.version);
    const recentTurns = deps.recentTurns.of(reader, session, turnLimit);
    const memories = ranking === undefined ? itemsOf(reader, newest) : relevant(reader, ranking, explanations);
    return jsonWith({}, { state, memories: jsonArray(memories), recent_turns: recentTurns });
  });
}

/** The memories of a session with a user are among that user's, of whom a key may see those of one agent alone. */
function scopeOf(reader: Reader, session: LiveSession, { agentId }: Owner): MemoryScope {
  const { userId } = session.row;
  if (userId !== null) return { filter: ownedPostings({ userId, agentId }, memoryTable.index) };
  const ranges = shownMemoryRanges(reader, session);
  return { filter: [memoriesIn(ranges)], ranges };
}

function itemsOf(reader: Reader, keys: readonly BareId[]): JsonText[] {
  const find = visibleMemories(reader);
  return keys.flatMap((key) => {
    const row = find(key);
    return row === undefined ? [] : [itemJson(reader, key, row, 0)];
  });
}

function relevant(reader: Reader, ranking: Ranking, explanations: readonly JsonText[]): JsonText[] {
  return ranking.matches.map(({ key, row, score }, i) => itemJson(reader, key, row, score, explanations[i]));
}

function itemJson(reader: Reader, key: BareId, row: MemoryRow, score: number, explanation?: JsonText): JsonText {
  const { content, createdAt } = memoryMembers(reader, key, row);
  const end = explanation === undefined ? "}" : `,"explanation":${explanation}}`;
  return `{"id":"${withPrefix("mem", key)}",${content},"score":${score}${createdAt}${end}` as JsonText;
}
