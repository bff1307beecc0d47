/**
 * Users and agents: those whom sessions and memories name, which their indexes say, a look for each. Users have a table of their own
 * besides, so that they can be listed by name and by when their newest session was created, those of whom there are documents alone, too.
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
import { MAX_KEY, successor, documentsOfUser, hashKey, HASH_KEY_LENGTH, nameKey } from "../storage/keys.ts";
import { pageOf, pageOfBatches, type PageEntry } from "../storage/page.ts";
import {
  documentRemovals,
  erasures,
  memories,
  namespaces,
  sessions,
  traces,
  users,
  type Index,
  type MemoryRow,
  type SessionRow,
  type UserRow,
} from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Deps } from "../traces/record.ts";
import { documentsOf, erasedUntil, hasContent } from "./presence.ts";

/** Kind of a name: a user's or an agent's. */
interface Naming {
  readonly sessions: Index<SessionRow>;
  readonly memories: Index<MemoryRow>;
  readonly nameOf: (row: SessionRow | MemoryRow) => string | null;
}

export const USERS: Naming = {
  sessions: sessions.index.byUser,
  memories: memories.index.byUser,
  nameOf: ({ userId }) => userId,
};
const AGENTS: Naming = {
  sessions: sessions.index.byAgent,
  memories: memories.index.byAgent,
  nameOf: ({ agentId }) => agentId,
};

export interface NamePage {
  limit: number;
  /** The name of the last one of the page before. */
  startingAfter?: string | undefined;
}

export interface UserPage extends NamePage {
  order: (typeof USER_ORDERS)[number];
  /** Prefix of the names. */
  prefix?: string | undefined;
}

/** By name, or those with the newest session first. */
export const USER_ORDERS = ["name", "last_seen"] as const;
const ENTRIES_PER_LOOK = 10;

/** @throws {ApiError} `invalid_request` for a prefix where the order is another one, and for a cursor that leads nowhere in it */
export async function listUsers({ store, listProbesMax }: Deps, { order, prefix = "", limit, startingAfter }: UserPage): Promise<JsonText> {
  if (prefix !== "" && order !== "name")
    throw new ApiError("invalid_request", "prefix is for the order name: by last_seen, names that begin alike do not follow each other.", {
      param: "prefix",
    });
  const { byName, bySeen } = users.index;
  const [index, descending] = order === "name" ? [byName, false] : [bySeen, true];
  const span = await store.read((reader) => (order === "name" ? spanOfNames(prefix, startingAfter) : spanOfSeen(reader, startingAfter)));
  async function* found(): AsyncGenerator<PageEntry[], void, undefined> {
    for (;;) {
      const { items, last, isEnd } = await store.read((reader) => {
        reader.aheadOf([erasures, documentRemovals], FIRST);
        const atOnce = Math.min(limit + 1, reader.recordsAtOnce);
        const entries = reader.keys(index, { ...span, limit: atOnce, descending });
        const hashes = entries.map((entry) => index.recordOf(entry));
        reader.ahead(users, hashes);
        const read = eachFetched(hashes, (hash) => listedUser(reader, hash, prefix));
        return { items: read, last: entries.at(-1), isEnd: entries.length < atOnce };
      });
      for (const one of items) yield one;
      if (isEnd || last === undefined) return;
      if (descending) span.to = last;
      else span.from = successor(last);
    }
  }
  return pageOfBatches(found(), limit, listProbesMax);
}

/** A name that is gone is a cursor too. */
function spanOfNames(prefix: string, after: string | undefined): { from: string; to: string } {
  const begin = nameKey(prefix);
  const behindName = after === undefined ? begin : successor(`${nameKey(after)}!${hashKey(after)}`);
  return { from: behindName > begin ? behindName : begin, to: begin + MAX_KEY };
}

function spanOfSeen(reader: Reader, after: string | undefined): { from: string; to: string } {
  if (after === undefined) return { from: "", to: MAX_KEY };
  const hash = hashKey(after);
  const row = reader.get(users, hash);
  if (row === undefined)
    throw new ApiError("invalid_request", "starting_after is a user of whom nothing is left: start the list again.", {
      param: "starting_after",
    });
  return { from: "", to: users.index.bySeen.entriesOf(hash, row)[0]! };
}

const NO_RECORDS = { sessions: 0, memories: 0 };

/** A user with what is counted, unless nothing is left, or it is being erased. */
function listedUser(reader: Reader, hash: string, prefix: string): PageEntry[] {
  const span = { from: hash, to: hash + MAX_KEY, limit: LIMITS.listedUserRecordsCountedMax + 1, descending: true };
  const [ofSessions = [], ofMemories = []] = eachFetched([USERS.sessions, USERS.memories], (index) => reader.keys(index, span));
  const row = unlessUnreadable(() => reader.get(users, hash));
  if (row === undefined) return [];
  const { userId } = row;
  const passed: PageEntry = { passed: userId, probes: 1 + (ofSessions.length + ofMemories.length) / ENTRIES_PER_LOOK };
  reader.ahead(namespaces, [documentsOfUser(userId)]);
  const found = unlessUnreadable(() => foundBy(reader, USERS, { session: ofSessions[0], memory: ofMemories[0] }));
  const documents = documentsOf(reader, userId);
  if ((found === undefined && documents === 0) || !userId.startsWith(prefix)) return [passed];
  const records = { sessions: ofSessions.length, memories: ofMemories.length };
  // Sessions and memories that are there with documents that came since the beginning of an erasure are those that it removes.
  const counts = countsOf(found === undefined ? NO_RECORDS : records, LIMITS.listedUserRecordsCountedMax);
  const last = { last_session_at: isoOrNull(found?.newestAt ?? null), last_seen_at: lastSeen(row) };
  return [{ id: userId, json: toJson({ object: "user", id: userId, ...last, documents, ...counts }) }, passed];
}

const lastSeen = (row: UserRow | undefined): string | null => isoOrNull(row?.seenAt ?? null);

/** Counts as far as they go, and whether one goes further. */
function countsOf<Name extends string>(counted: Record<Name, number>, max: number): object {
  const counts = Object.entries<number>(counted).map(([name, count]) => [name, Math.min(count, max)]);
  return { ...Object.fromEntries(counts), more: Object.values<number>(counted).some((count) => count > max) };
}

export function listAgents(deps: Deps, page: NamePage): JsonText | Promise<JsonText> {
  return listAgentsOf(deps, page);
}

/** In the order of the hashes of their names, which is none, but stays. */
function listAgentsOf({ store }: Deps, { limit, startingAfter }: NamePage): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const items: { id: string; json: JsonText }[] = [];
    let after = startingAfter === undefined ? "" : hashKey(startingAfter) + MAX_KEY;
    for (let wanted = limit + 1; wanted > 0; wanted = limit + 1 - items.length) {
      const newest = nextNewest(reader, AGENTS, after, wanted);
      eachFetched(newest, (entries) => {
        const found = unlessUnreadable(() => foundBy(reader, AGENTS, entries));
        if (found === undefined) return;
        const { name, newestAt } = found;
        items.push({ id: name, json: toJson({ object: "agent", id: name, last_session_at: isoOrNull(newestAt) }) });
      });
      if (newest.length < wanted) break;
      after = newest.at(-1)!.hash + MAX_KEY;
    }
    return pageOf(items, limit);
  });
}

/** The entries of the newest session and of the newest memory that name somebody, who has at least one of them. */
interface NewestEntries {
  session?: string | undefined;
  memory?: string | undefined;
}

/** Entries of the next `limit` names, in the order of their hashes. */
export function nextNewest(reader: Reader, naming: Naming, after: string, limit: number): (NewestEntries & { readonly hash: string })[] {
  const [ofSessions = [], ofMemories = []] = eachFetched([naming.sessions, naming.memories], (index) =>
    reader.lastOfEach(index, HASH_KEY_LENGTH, { from: after, to: MAX_KEY, limit }),
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

export function newestOf(reader: Reader, naming: Naming, hash: string): NewestEntries {
  const span = { from: hash, to: hash + MAX_KEY, limit: 1, descending: true };
  const [session, memory] = eachFetched([naming.sessions, naming.memories], (index) => reader.keys(index, span)[0]);
  return { session, memory };
}

interface FoundName {
  name: string;
  /** The newest session, and when it was made. */
  newest: BareId | undefined;
  newestAt: number | null;
  /** Time at which that, or else the newest memory, was created. */
  seenAt: number;
}

/** Person that is named, unless all that is found first of theirs is being erased. */
export function foundBy(reader: Reader, naming: Naming, { session, memory }: NewestEntries): FoundName | undefined {
  const newest = session && naming.sessions.recordOf(session);
  const id = newest ?? (memory && naming.memories.recordOf(memory));
  if (id === undefined) return undefined;
  const row = newest === undefined ? reader.get(memories, id) : reader.get(sessions, id);
  const name = row === undefined ? undefined : naming.nameOf(row);
  if (row === undefined || typeof name !== "string" || (naming === USERS && isErased(reader, row, id))) return undefined;
  return { name, newest, newestAt: newest === undefined ? null : row.createdAt, seenAt: row.createdAt };
}

/** @throws {ApiError} `resource_not_found` for a user of whom an erasure would remove nothing */
export function getUser({ store }: Deps, userId: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const hash = hashKey(userId);
    const records = [sessions.index.byUser, memories.index.byUser, traces.index.byUser];
    reader.aheadOf([erasures], FIRST);
    reader.ahead(users, [hash]);
    const span = { from: hash + erasedUntil(reader, hash), to: hash + MAX_KEY, limit: LIMITS.userRecordsCountedMax + 1 };
    reader.aheadOf(records, span);
    for (const table of [namespaces, documentRemovals]) reader.ahead(table, [documentsOfUser(userId)]);
    const found = foundBy(reader, USERS, newestOf(reader, USERS, hash));
    if (found === undefined && !hasContent(reader, userId)) throw noUser(userId);
    const [ofSessions = 0, ofMemories = 0, ofTraces = 0] = records.map((index) => reader.keys(index, span).length);
    const { newest, newestAt = null } = found ?? {};
    return toJson({
      object: "user",
      id: userId,
      last_session_at: isoOrNull(newestAt),
      last_seen_at: lastSeen(reader.get(users, hash)),
      last_session_id: newest === undefined ? null : withPrefix("sess", newest),
      documents: documentsOf(reader, userId),
      ...countsOf({ sessions: ofSessions, memories: ofMemories, traces: ofTraces }, LIMITS.userRecordsCountedMax),
    });
  });
}

export function noUser(userId: string): ApiError {
  return new ApiError("resource_not_found", `There is no user ${JSON.stringify(userId.slice(0, 64))}.`, { param: "user_id" });
}
