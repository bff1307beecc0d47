/**
 * Users and agents: those whom sessions and memories name. They have no records of their own: the indexes of sessions and memories say
 * who there is, a look for each.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { withPrefix, type BareId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { isoOrNull } from "../lib/time.ts";
import { eachFetched, FIRST, type Reader } from "../storage/access.ts";
import { isErased } from "../storage/erasure.ts";
import { AFTER_ALL, hashKey, HASH_KEY_LENGTH } from "../storage/keys.ts";
import { pageOf } from "../storage/page.ts";
import { erasures, memories, sessions, traces, type Index, type MemoryRow, type SessionRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Deps } from "../traces/record.ts";

/** What names somebody: a user or an agent. */
interface Naming {
  readonly object: "user" | "agent";
  readonly sessions: Index<SessionRow>;
  readonly memories: Index<MemoryRow>;
  readonly nameOf: (row: SessionRow | MemoryRow) => string | null;
}

const USERS: Naming = {
  object: "user",
  sessions: sessions.index.byUser,
  memories: memories.index.byUser,
  nameOf: ({ userId }) => userId,
};
const AGENTS: Naming = {
  object: "agent",
  sessions: sessions.index.byAgent,
  memories: memories.index.byAgent,
  nameOf: ({ agentId }) => agentId,
};

export interface NamePage {
  limit: number;
  /** The name of the last one of the page before. */
  startingAfter?: string | undefined;
}

export function listUsers(deps: Deps, page: NamePage): JsonText | Promise<JsonText> {
  return listNamed(deps, USERS, page);
}

export function listAgents(deps: Deps, page: NamePage): JsonText | Promise<JsonText> {
  return listNamed(deps, AGENTS, page);
}

/** In the order of the hashes of their names, which is none, but stays. */
function listNamed({ store }: Deps, naming: Naming, { limit, startingAfter }: NamePage): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    if (naming === USERS) reader.aheadOf([erasures], FIRST);
    const items: { id: string; json: JsonText }[] = [];
    let after = startingAfter === undefined ? "" : hashKey(startingAfter) + AFTER_ALL;
    for (let wanted = limit + 1; wanted > 0; wanted = limit + 1 - items.length) {
      const newest = nextNewest(reader, naming, after, wanted);
      eachFetched(newest, (entries) => {
        const found = unlessUnreadable(() => foundBy(reader, naming, entries));
        if (found === undefined) return;
        const { name, newestAt } = found;
        items.push({ id: name, json: toJson({ object: naming.object, id: name, last_session_at: isoOrNull(newestAt) }) });
      });
      if (newest.length < wanted) break;
      after = newest.at(-1)!.hash + AFTER_ALL;
    }
    return pageOf(items, limit);
  });
}

/** The entries of the newest session and of the newest memory that name somebody, who has at least one of them. */
interface NewestEntries {
  session?: string | undefined;
  memory?: string | undefined;
}

/** Those of the next `limit` names, in the order of their hashes. */
function nextNewest(reader: Reader, naming: Naming, after: string, limit: number): (NewestEntries & { readonly hash: string })[] {
  const [ofSessions = [], ofMemories = []] = eachFetched([naming.sessions, naming.memories], (index) =>
    reader.lastOfEach(index, HASH_KEY_LENGTH, { from: after, to: AFTER_ALL, limit }),
  );
  const found = new Map<string, NewestEntries>();
  for (const session of ofSessions) found.set(session.slice(0, HASH_KEY_LENGTH), { session });
  for (const memory of ofMemories) {
    const hash = memory.slice(0, HASH_KEY_LENGTH);
    found.set(hash, { ...found.get(hash), memory });
  }
  const all = Array.from(found, ([hash, entries]) => ({ hash, ...entries }));
  return all.sort((a, b) => (a.hash < b.hash ? -1 : 1)).slice(0, limit);
}

function newestOf(reader: Reader, naming: Naming, hash: string): NewestEntries {
  const span = { from: hash, to: hash + AFTER_ALL, limit: 1, descending: true };
  const [session, memory] = eachFetched([naming.sessions, naming.memories], (index) => reader.keys(index, span)[0]);
  return { session, memory };
}

interface FoundName {
  name: string;
  /** The newest session, and when it was made. */
  newest: BareId | undefined;
  newestAt: number | null;
}

/** Who is named, unless all that is found first of theirs is being erased. */
function foundBy(reader: Reader, naming: Naming, { session, memory }: NewestEntries): FoundName | undefined {
  const newest = session && naming.sessions.recordOf(session);
  const id = newest ?? (memory && naming.memories.recordOf(memory));
  if (id === undefined) return undefined;
  const row = newest === undefined ? reader.get(memories, id) : reader.get(sessions, id);
  const name = row === undefined ? undefined : naming.nameOf(row);
  if (row === undefined || typeof name !== "string" || (naming === USERS && isErased(reader, row, id))) return undefined;
  return { name, newest, newestAt: newest === undefined ? null : row.createdAt };
}

/** @throws {ApiError} `resource_not_found` for a user who has nothing */
export function getUser({ store }: Deps, userId: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const hash = hashKey(userId);
    const records = [sessions.index.byUser, memories.index.byUser, traces.index.byUser];
    const span = { from: hash, to: hash + AFTER_ALL, limit: LIMITS.userRecordsCountedMax + 1 };
    reader.aheadOf(records, span);
    const found = foundBy(reader, USERS, newestOf(reader, USERS, hash));
    if (found === undefined) throw noUser(userId);
    const counted = records.map((index) => reader.keys(index, span).length);
    const [ofSessions, ofMemories, ofTraces] = counted.map((count) => Math.min(count, LIMITS.userRecordsCountedMax));
    const { newest, newestAt } = found;
    return toJson({
      object: "user",
      id: userId,
      last_session_at: isoOrNull(newestAt),
      last_session_id: newest === undefined ? null : withPrefix("sess", newest),
      sessions: ofSessions,
      memories: ofMemories,
      traces: ofTraces,
      more: counted.some((count) => count > LIMITS.userRecordsCountedMax),
    });
  });
}

export function noUser(userId: string): ApiError {
  return new ApiError("resource_not_found", `There is no user ${JSON.stringify(userId.slice(0, 64))}.`, { param: "user_id" });
}
