/**
 * The combined read: the state, the memories that matter, the latest turns. It owns no data and changes none.
 *
 * It looks in the session's own memories and, when the session has a user, in all memories of that user; never in another
 * user's. With a query the best come first, without one the newest.
 *
 * @module
 */
import { withPrefix } from "../lib/ids.ts";
import { jsonArray, jsonObject, toJson, type JsonText } from "../lib/json.ts";
import { rememberingFor } from "../lib/remember.ts";
import { toIso } from "../lib/time.ts";
import { newestMemories, type MemoryParts } from "../memories/memories.ts";
import { explanationJson, rank } from "../memories/search.ts";
import { liveSession, type LiveSession } from "../sessions/live-session.ts";
import { readState } from "../sessions/versions.ts";
import { hashKey } from "../storage/keys.ts";
import { memoriesBySession, memoriesByUser, type MemoryRow } from "../storage/tables.ts";
import { posting, type Filter } from "../storage/walk.ts";
import { latestTurns } from "../turns/latest-turns.ts";

export interface ContextRequest {
  query?: string | undefined;
  memoryLimit: number;
  turnLimit: number;
  explain: boolean;
}

export async function getContext(parts: MemoryParts, id: string, request: ContextRequest): Promise<JsonText> {
  const asked = liveSession(parts.store, parts.clock.now(), id);
  const memories =
    request.query === undefined
      ? newest(parts, scopeOf(asked), request.memoryLimit)
      : await relevant(parts, scopeOf(asked), request.query, request);
  // Read after the search, so that all of the answer that can change is of one moment.
  const session = liveSession(parts.store, parts.clock.now(), id);
  return jsonObject({
    state: readState(parts.store, session.key, session.row.version),
    memories: jsonArray(memories),
    recent_turns: latestTurns(parts.store, session.key, session.row.turnCount, request.turnLimit),
  });
}

/** The memories of a session with a user are among that user's. */
function scopeOf({ key, row }: LiveSession): Filter {
  return [row.userId === null ? posting(memoriesBySession, key) : posting(memoriesByUser, hashKey(row.userId))];
}

function newest(parts: MemoryParts, scope: Filter, limit: number): JsonText[] {
  const found: JsonText[] = [];
  if (limit === 0) return found;
  for (const { key, row } of newestMemories(parts.store, scope)) {
    found.push(itemJson(key, row, 0));
    if (found.length === limit) break;
  }
  return found;
}

async function relevant(parts: MemoryParts, scope: Filter, text: string, request: ContextRequest): Promise<JsonText[]> {
  if (request.memoryLimit === 0) return [];
  const ranking = await rank(parts, text, scope, { threshold: 0, limit: request.memoryLimit });
  // Nothing to look for in signs alone: then the newest, as without a query.
  if (ranking.query.lexical.size === 0) return newest(parts, scope, request.memoryLimit);
  return ranking.matches.map((match) =>
    itemJson(match.key, match.row, match.score, request.explain ? explanationJson(ranking, match) : undefined),
  );
}

function itemJson(key: string, row: MemoryRow, score: number, explanation?: JsonText): JsonText {
  const { before, after } = aroundScore(row);
  const end = explanation === undefined ? "}" : `,"explanation":${explanation}}`;
  return `{"id":"${withPrefix("mem", key)}",${before}${score}${after}${end}` as JsonText;
}

/** As in `memories/search.ts`. */
const aroundScore = rememberingFor(({ content, type, createdAt }: MemoryRow) => ({
  before: ['"content":', toJson(content), ',"type":', toJson(type), ',"score":'].join(""),
  after: [',"created_at":"', toIso(createdAt), '"'].join(""),
}));
