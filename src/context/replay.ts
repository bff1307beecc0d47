/**
 * Rebuilds a context from its entry in the log of retrievals, as the agent got it.
 *
 * The entry names the memories, the turns and the version of the state, and has the request; texts are read where they are kept. A memory
 * that was edited since is shown with the content that it had then, from its history. What cannot be shown as it was is marked.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, BARE_ID_LENGTH, withPrefix, type BareId, type Id } from "../lib/ids.ts";
import { jsonWith, toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { toIso } from "../lib/time.ts";
import { visibleMemories } from "../memories/record.ts";
import { createdAt, findRetrieval, isLoggedFor, type FoundRetrieval, type RetrievalDeps } from "../retrievals/retrievals.ts";
import { allRanges, hiddenAt, isIn } from "../sessions/branches.ts";
import type { LiveSession } from "../sessions/live-session.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { MAX_KEY, turnKey, versionKey } from "../storage/keys.ts";
import { mayBeOwned, type Owner } from "../storage/owner.ts";
import { memories, memoryVersions, states, turns, type MemoryRow, type RetrievalRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { RecentTurn } from "../turns/recent-turns.ts";
import { answerAgain, NO_STATE, type ContextRecords, type FoundMemory } from "./fit.ts";
import { CONTEXT_FORMATS, type ContextRequest } from "./request.ts";

export const REPLAY_KINDS = ["memory", "turn", "state", "request"] as const;
export const REPLAY_CHANGES = ["edited", "rewritten", "rolled_back", "gone", "hidden"] as const;

/** A record that is not as it was when the context was made. */
interface Change {
  readonly kind: (typeof REPLAY_KINDS)[number];
  /** Null for the state and the request, and for memories that the key may not see. */
  readonly id: string | null;
  readonly change: (typeof REPLAY_CHANGES)[number];
}

/** @throws {ApiError} `resource_not_found` for the entry of a search, too */
export async function replayContext(deps: RetrievalDeps, owner: Owner, id: string): Promise<JsonText> {
  await deps.retrievals.caughtUp();
  const { found, changes, request, at } = await deps.store.read((reader) => {
    const retrieval = findRetrieval(reader, owner, id);
    const { key, row, place } = retrieval;
    if (row.operation !== "context" || place.session === undefined)
      throw new ApiError("resource_not_found", `Retrieval ${id} is of a search: there is no context of it.`, { param: "retrieval_id" });
    return { ...foundAgain(reader, owner, retrieval, place.session), request: requestOf(row), at: createdAt(key, row) };
  });
  const context = await answerAgain(found, request);
  const isExact = changes.every(({ change }) => change === "rolled_back");
  return jsonWith({ object: "context_replay", retrieval_id: id, exact: isExact, changes, created_at: toIso(at) }, { context });
}

type LoggedMemory = NonNullable<RetrievalRow["pinned"]>[number];

/** The part of a request that says how what was found is shown. */
function requestOf({ request = {} }: RetrievalRow): Pick<ContextRequest, "format" | "maxTokens"> {
  const { max_tokens: maxTokens, format } = request;
  const known = CONTEXT_FORMATS.find((one) => one === format) ?? "json";
  return { format: known, ...(typeof maxTokens === "number" ? { maxTokens } : {}) };
}

function foundAgain(
  reader: Reader,
  owner: Owner,
  { key, row, place }: FoundRetrieval,
  session: LiveSession,
): { found: ContextRecords; changes: Change[] } {
  const changes: Change[] = [];
  const at = createdAt(key, row);
  const scores = new Map(row.memories.map((one) => [one.id, one]));
  const pinned = row.pinned ?? [];
  const others = row.memories.filter(({ id }) => !pinned.some((pin) => pin.id === id));
  const find = visibleMemories(reader);
  if ([...row.memories, ...pinned].some((memory) => !isLoggedFor(owner, place, memory)))
    changes.push({ kind: "memory", id: null, change: "hidden" });
  const memoriesOf = (logged: readonly LoggedMemory[], isPinned: boolean) =>
    eachFetched(
      logged.filter((memory) => isLoggedFor(owner, place, memory)),
      ({ id }) => {
        const now = mayBeOwned(reader, owner, memories.index, bare(id)) ? find(bare(id)) : undefined;
        return { id, now, content: now && contentAt(reader, bare(id), now, at) };
      },
    ).flatMap(({ id, now, content }) => {
      if (now === undefined || (now.updatedAt ?? now.createdAt) > at)
        changes.push({ kind: "memory", id, change: now === undefined ? "gone" : content === undefined ? "rewritten" : "edited" });
      return now === undefined ? [] : [memoryItem(bare(id), now, content, scores.get(id), isPinned)];
    });
  const pins = memoriesOf(pinned, true);
  const found = [...pins, ...memoriesOf(others, false)];
  const state = stateOf(reader, session, row, changes);
  const shownTurns = turnsOf(reader, session, row.turns ?? [], changes);
  if (row.request === undefined) changes.push({ kind: "request", id: null, change: "gone" });
  return { found: { state, memories: found, pinned: pins.length, turns: shownTurns }, changes };
}

/** Contents of a memory that are read at once: all that are kept unless set otherwise. */
const CONTENTS_AT_ONCE = LIMITS.memoryVersionsKeptDefault;

/** The content that a memory had; undefined where its history does not go back as far. */
function contentAt(
  reader: Reader,
  memory: BareId,
  { content, createdAt: created, writtenAt = created }: MemoryRow,
  at: number,
): string | undefined {
  if (writtenAt <= at) return content;
  for (let to = memory + MAX_KEY; ;) {
    const before = reader.rows(memoryVersions, { from: memory, to, limit: CONTENTS_AT_ONCE, descending: true });
    const then = before.find(({ row }) => row.writtenAt <= at);
    if (then !== undefined || before.length < CONTENTS_AT_ONCE) return then?.row.content;
    to = before.at(-1)!.key;
  }
}

function memoryItem(
  key: BareId,
  now: MemoryRow,
  then: string | undefined,
  { score, rankingScore }: { score: number; rankingScore?: number } = { score: 0 },
  isPinned: boolean,
): FoundMemory {
  const content = then ?? now.content;
  const { type, source = "agent" } = now;
  const json = toJson({
    id: withPrefix("mem", key),
    content,
    type,
    source,
    score,
    ranking_score: rankingScore,
    created_at: toIso(now.createdAt),
    ...(isPinned ? { pinned: true } : {}),
  });
  return { key, row: now, content, tokens: content === now.content ? now.tokens : undefined, json };
}

/** The state of the version that was shown, unless that is too old to be kept. */
function stateOf(reader: Reader, session: LiveSession, { stateVersion, request }: RetrievalRow, changes: Change[]): JsonText {
  const include = request?.["include"];
  if (stateVersion === undefined || (Array.isArray(include) && !include.includes("state"))) return NO_STATE;
  const state = reader.get(states, versionKey(session.key, stateVersion));
  if (state === undefined) changes.push({ kind: "state", id: null, change: "gone" });
  return state ?? NO_STATE;
}

/** Turns never change, but a rollback may have hidden them. */
function turnsOf(reader: Reader, session: LiveSession, ids: readonly Id<"turn">[], changes: Change[]): RecentTurn[] {
  const ranges = [...allRanges(reader, session)];
  const found = eachFetched(ids, (id) => {
    const range = ranges.find((one) => isIn(one, bare(id)));
    const key = range && turnKey(range.session, bare(id));
    const row = key === undefined ? undefined : unlessUnreadable(() => reader.get(turns, key));
    const isHidden = key !== undefined && key.slice(0, BARE_ID_LENGTH) === session.key && hiddenAt(reader, session, bare(id)) !== undefined;
    return { id, row, isHidden };
  });
  return found.flatMap(({ id, row, isHidden }) => {
    if (row === undefined || isHidden) changes.push({ kind: "turn", id, change: row === undefined ? "gone" : "rolled_back" });
    return row === undefined ? [] : [{ shown: row.shown, tokens: row.more?.tokens }];
  });
}
