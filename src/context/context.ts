/**
 * The combined read: the state, the memories that matter, the latest turns. It owns no data and changes none.
 *
 * It looks in the memories that the session shows and, when the session has a user, in all memories of that user; never in another
 * user's. With a query the best come first, without one the newest, by when they happened. Before them come those that are pinned,
 * whatever the query.
 *
 * @module
 */
import { withPrefix, type BareId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import type { Permit } from "../lib/fair-semaphore.ts";
import { LIMITS } from "../lib/limits.ts";
import type { MemoryDeps } from "../memories/deps.ts";
import { postingsOf, rowFilterOf } from "../memories/filter.ts";
import type { MemoryScope } from "../memories/memories.ts";
import { newestMemories, timesOfOwners, timesOfSessions } from "../memories/newest.ts";
import { pinnedMemories } from "../memories/pins.ts";
import { memoryMembers, visibleMemories } from "../memories/record.ts";
import type { RankingParts } from "../memories/ranking-score.ts";
import { explanationsJson, rank, scoreJson, type Ranking, type Searcher } from "../memories/search.ts";
import type { Shown } from "../memories/status.ts";
import { sentAs, usersNamedBy, type Retrieval } from "../retrievals/log.ts";
import { liveSession, type LiveSession } from "../sessions/live-session.ts";
import { memoriesIn, shownMemoryRanges } from "../sessions/shared-memories.ts";
import { readState } from "../sessions/versions.ts";
import type { Reader } from "../storage/access.ts";
import { refuseUnfilled } from "../storage/fills.ts";
import { hashKey, NOBODY, type OwnerOfMemory } from "../storage/keys.ts";
import { ownedPostings, type Owner } from "../storage/owner.ts";
import { memories as memoryTable, type MemoryRow } from "../storage/tables.ts";
import { posting } from "../storage/walk.ts";
import { idOfTurn, type RecentTurns } from "../turns/recent-turns.ts";
import { answerOf, NO_STATE, type ContextRecords, type FoundMemory } from "./fit.ts";
import type { ContextPart, ContextRequest } from "./request.ts";

export interface ContextDeps extends MemoryDeps {
  readonly recentTurns: RecentTurns;
}

export async function getContext(deps: ContextDeps, searcher: Searcher, id: string, request: ContextRequest): Promise<JsonText> {
  const { ranking, stateVersion, pins, ...found } = await find(deps, searcher, id, request);
  const answer = await answerOf(found, request);
  // Logged last: a budget that is too small is refused, and then nothing was given out.
  if (ranking === undefined || !deps.retrievals.isOn) return answer;
  const { query = "", explain: _, ...more } = request;
  const asked = {
    sessionId: id,
    query,
    limit: limitsOf(request).memoryLimit,
    threshold: 0,
    isFiltered: request.filter !== undefined,
    request: sentAs(more),
  };
  const { matches } = ranking;
  const shown = { stateVersion, turns: found.turns.map(idOfTurn), matches, ...(pins && { pinned: pins }), users: usersNamedBy(request) };
  const retrieval = deps.retrievals.note(searcher, { operation: "context", ...asked, ...shown });
  return retrieval === undefined ? answer : (`${answer.slice(0, -1)},"retrieval_id":"${retrieval}"}` as JsonText);
}

async function find(deps: ContextDeps, searcher: Searcher, id: string, request: ContextRequest): Promise<RankedFound> {
  const { limitsId, owner } = searcher;
  using permit = deps.searches.permitOf(limitsId);
  const { scope, pinOwners } = await deps.store.read((reader) => {
    const session = liveSession(reader, owner, id);
    const memoryScope = scopeOf(reader, session, owner, request);
    return { scope: memoryScope, pinOwners: pinOwnersOf(session, memoryScope, request) };
  });
  const { memoryLimit, turnLimit } = limitsOf(request);
  const pinsOf = (reader: Reader) => pinnedMemories(reader, owner, pinOwners, { asOf: request.asOf, ranges: scope.ranges });
  // At the same time as the first search: a database answers both together.
  const pinning = Promise.resolve(deps.store.read(pinsOf));
  pinning.catch(() => undefined);
  // Pinned memories come besides as many as are wanted: where some were found, others are looked for in their place.
  const shown = { ...request, rowFilter: rowFilterOf(request) };
  for (let limit = memoryLimit; ;) {
    const { ranking, count, items, isPartial } = await findMemories(deps, searcher, scope, { ...shown, limit }, permit);
    const pins = await pinning;
    // Read last, so that all of the answer that can change is of one moment, and nothing large is held while others are let through.
    const found = await deps.store.read((reader) => {
      const session = liveSession(reader, owner, id);
      const state = shows(request, "state") ? readState(reader, session.key, session.row.version) : NO_STATE;
      const turns = deps.recentTurns.of(reader, session, turnLimit);
      return { state, stateVersion: session.row.version, turns, isPartial, ...withPinned(items(reader), visibleItems(reader, pins)) };
    });
    const others = found.memories.length - found.pinned;
    if (others >= memoryLimit || count < limit || limit >= memoryLimit + found.pinned) {
      const shown = found.memories.slice(0, found.pinned + memoryLimit);
      const matches = ranking?.matches.filter((match) => shown.some(({ key }) => key === match.key)) ?? [];
      const first = shown.slice(0, found.pinned);
      const pinned = pins.filter(({ key }) => first.some((one) => one.key === key));
      return { ...found, memories: shown, pins: pinned, ranking: ranking && { ...ranking, matches } };
    }
    limit = memoryLimit + found.pinned;
  }
}

interface RankedFound extends ContextRecords {
  /** Rows of those that are pinned. */
  readonly pins: Retrieval["pinned"];
  /** Matches of the query among what is shown; undefined where there was nothing to look for. */
  readonly ranking: Ranking | undefined;
  readonly stateVersion: number;
}

interface FoundMemories {
  readonly ranking: Ranking | undefined;
  readonly count: number;
  readonly items: (reader: Reader) => FoundMemory[];
  readonly isPartial: boolean;
}

/** The best memories for the query, or the newest ones. */
async function findMemories(
  deps: ContextDeps,
  { limitsId }: Searcher,
  scope: MemoryScope,
  shown: ContextRequest & Shown & { limit: number },
  permit: Permit,
): Promise<FoundMemories> {
  const { query, limit, explain } = shown;
  const options = { threshold: 0, limit, explain, limitsId, shown };
  const ranked = query === undefined || limit === 0 ? undefined : await rank(deps, query, scope, options, permit);
  // With nothing to look for in a query of spaces alone, the newest as without one.
  if (ranked === undefined || ranked.query.lexical.ids.length === 0) {
    const { keys, isPartial } = await newestMemories(deps.store, scope, limit, shown);
    const newest = keys.map((key) => ({ key }));
    return { ranking: undefined, count: keys.length, items: (reader) => visibleItems(reader, newest), isPartial };
  }
  const explanations = explain ? await explanationsJson(deps, ranked) : [];
  const items = (reader: Reader) => ranked.matches.map((match, i) => itemOf(reader, match, explanations[i]));
  return { ranking: ranked, count: ranked.matches.length, items, isPartial: ranked.isPartial };
}

/** Memories that were found after those that are pinned. */
function withPinned(found: readonly FoundMemory[], pins: readonly FoundMemory[]): Pick<ContextRecords, "memories" | "pinned"> {
  const pinned = pins.map((pin) => {
    const item = found.find(({ key }) => key === pin.key) ?? pin;
    return { ...item, json: `${item.json.slice(0, -1)},"pinned":true}` as JsonText };
  });
  const others = found.filter(({ key }) => !pins.some((pin) => pin.key === key));
  return { memories: [...pinned, ...others], pinned: pinned.length };
}

function shows({ include }: ContextRequest, part: ContextPart): boolean {
  return include === undefined || include.includes(part);
}

/** Limits under a budget: as much is looked for as there may be. */
function limitsOf(request: ContextRequest): { memoryLimit: number; turnLimit: number } {
  const hasBudget = request.maxTokens !== undefined;
  const memoryLimit = request.memoryLimit ?? (hasBudget ? LIMITS.contextMemoriesMax : LIMITS.contextMemoriesDefault);
  const turnLimit = request.turnLimit ?? (hasBudget ? LIMITS.contextTurnsMax : LIMITS.contextTurnsDefault);
  return { memoryLimit: shows(request, "memories") ? memoryLimit : 0, turnLimit: shows(request, "turns") ? turnLimit : 0 };
}

/** Memories that a context looks among, as far as indexes tell. */
function scopeOf(reader: Reader, session: LiveSession, owner: Owner, { memoryScope, filter }: ContextRequest): MemoryScope {
  const scope = wholeScope(reader, session, owner, memoryScope);
  return filter === undefined ? scope : { ...scope, filter: [...scope.filter, ...postingsOf(reader, filter)] };
}

/**
 * The memories of a session with a user are among that user's, of whom a key may see those of one agent alone. Those of its agent belong
 * to no user, which a key of a user does not see, or to this one.
 *
 * @throws {ApiError} `service_unavailable` while an index has not all memories without a user
 */
function wholeScope(reader: Reader, session: LiveSession, owner: Owner, scope: ContextRequest["memoryScope"]): MemoryScope {
  const { userId, agentId: agent } = session.row;
  const { agentId } = owner;
  if (scope === "agent") {
    const { byUser, byAgent } = memoryTable.index;
    const users = [...(userId === null ? [] : [hashKey(userId)]), ...(owner.userId === undefined ? [NOBODY] : [])];
    refuseUnfilled(reader, byUser, "memory_scope");
    const times = timesOfOwners(userId, owner.userId === undefined ? agent : undefined);
    return { filter: [posting(byUser, ...users), posting(byAgent, hashKey(agent))], times };
  }
  if (userId !== null && scope !== "session")
    return { filter: ownedPostings({ userId, agentId }, memoryTable.index), times: timesOfOwners(userId, undefined) };
  const ranges = shownMemoryRanges(reader, session);
  return { filter: [memoriesIn(ranges)], ranges, times: timesOfSessions(ranges) };
}

/** Owners whose pinned memories a session's contexts show: its user, or else it and the sessions that it was forked from. */
function pinOwnersOf({ id, row }: LiveSession, { ranges = [] }: MemoryScope, request: ContextRequest): OwnerOfMemory[] {
  if (!shows(request, "pinned")) return [];
  const { userId } = row;
  const ofAgent = request.memoryScope === "agent" ? [{ userId: null, agentId: row.agentId }] : [];
  if (userId !== null) return [{ userId, agentId: null }, ...ofAgent];
  if (request.memoryScope === "agent") return [...ofAgent, { userId: null, agentId: null, sessionId: id }];
  return ranges.map(({ session }) => ({ userId: null, agentId: null, sessionId: withPrefix("sess", session) }));
}

function visibleItems(reader: Reader, found: readonly { key: BareId }[]): FoundMemory[] {
  const visible = visibleMemories(reader);
  return found.flatMap(({ key }) => {
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
