/**
 * Writes down what searches and contexts found, while the setting `retrieval_log` is on.
 *
 * A read is answered at once, whatever becomes of its row: the row waits in memory and is written along with the next commit, before
 * it, or after a tenth of a second. So it has a lower id than the turn that comes of it, and a crash forgets a tenth of a second. What
 * cannot be written is dropped and counted: with a full disk, or a store at its limit, reads go on.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import type { Clock } from "../lib/clock.ts";
import { within } from "../lib/deadline.ts";
import { DAY_MS } from "../lib/duration.ts";
import { bare, bareIdTime, homeOfUser, partitionOf, withPrefix, type BareId, type Id, type SessionId } from "../lib/ids.ts";
import { toJson, type JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { describeError, type Log } from "../lib/log.ts";
import { memoize } from "../lib/memoize.ts";
import { copyOf, firstCodePoints, snakeCase } from "../lib/text.ts";
import { toIso } from "../lib/time.ts";
import { isLive } from "../sessions/live-session.ts";
import { eachFetched, type Tx } from "../storage/access.ts";
import { isErased } from "../storage/erasure.ts";
import { hashKey, MAX_KEY } from "../storage/keys.ts";
import type { CreatedFilter } from "../storage/list.ts";
import { narrowed, type Owner } from "../storage/owner.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { retrievals, sessions, traces, type MemoryRow, type RetrievalRow } from "../storage/tables.ts";
import type { SecretPolicy } from "../secrets/secret-policy.ts";
import { Activator, type Task } from "../tasks/task.ts";
import { actionOf } from "../traces/events.ts";
import type { Quotas } from "../traces/record.ts";

const NAME = "log of retrievals";
/** Rows are collected for as long, unless another commit comes sooner. */
const COLLECT_MS = 100;
/** One commit holds the request thread for a few milliseconds at most; with 50 rows each costs a third more. */
const ROWS_PER_COMMIT = 100;
/** A read of the log waits no longer for what is still to be written. */
const CATCH_UP_MS_MAX = 1_000;
const IDLE_MS = 60_000;
const WARN_EVERY_MS = 60_000;

/** Caller, as far as the log needs to know. */
export interface Asking {
  readonly limitsId: string;
  readonly actor: string;
}

/** Request of a search or a context, and its result. */
export interface Retrieval {
  /** Left out for a search that named none: it is logged for its user and agent, of whom it has one at least. */
  readonly sessionId?: string | undefined;
  readonly userId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly operation: RetrievalRow["operation"];
  readonly query: string;
  readonly limit: number;
  readonly threshold: number;
  readonly isFiltered: boolean;
  /** The rest of the request, as it was sent. */
  readonly request: JsonObject;
  /** The version of the state that a context showed, and the ids of its turns. */
  readonly stateVersion?: number;
  readonly turns?: readonly Id<"turn">[];
  /** Best first. */
  readonly matches: readonly LoggedMemory[];
  /** Memories that a context showed before those, as they are pinned. */
  readonly pinned?: readonly Pick<LoggedMemory, "key" | "row">[];
  /** Users whom the request names, and those of its turns. */
  readonly users?: readonly string[];
}

interface LoggedMemory {
  readonly key: BareId;
  readonly row: OwnerOfMemory;
  readonly score: number;
  readonly parts?: { readonly rankingScore: number };
}

type OwnerOfMemory = Pick<MemoryRow, "userId" | "agentId">;

/** A row that waits. Of rows of memories it keeps nothing, as those can be large. */
interface Waiting {
  readonly limitsId: string;
  readonly id: BareId;
  readonly expiresAfterMs: number;
  readonly row: Omit<RetrievalRow, "expiresAt" | "at">;
  /** Owner of each of its memories, and of those that are pinned. */
  readonly owners: readonly OwnerOfMemory[];
  readonly ownersOfPinned: readonly OwnerOfMemory[];
  /** All users whom it shows or names. */
  readonly users: readonly string[];
}

interface Parts {
  readonly store: RecordStore;
  readonly clock: Clock;
  readonly quotas: Pick<Quotas, "hasRoomForLogs">;
  readonly log: Log;
  readonly secrets: Pick<SecretPolicy, "logged">;
  /** The setting. */
  readonly isOn: () => boolean;
  /** The setting of how many days a row is kept. */
  readonly days: () => number;
}

interface Wishes extends CreatedFilter {
  readonly asOf?: number | undefined;
  readonly filter?: RecordFilter | undefined;
}

const nameOf = memoize(snakeCase);

/** Names the members of a request as the API does, with its times as these are there. */
export function sentAs({ filter, asOf, createdAfter, createdBefore, ...more }: Wishes): JsonObject {
  const sent: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(more)) if (value !== undefined) sent[nameOf(name)] = value;
  for (const [name, at] of Object.entries({ asOf, createdAfter, createdBefore })) if (at !== undefined) sent[nameOf(name)] = toIso(at);
  return (filter === undefined ? sent : { ...sent, filter: filter.sent }) as JsonObject;
}

/** Owner of a search that names no session: of the key, of the request, or the only one whose records its filter lets pass. */
export function ownerOfSearch(owner: Owner, search: Owner & Pick<Wishes, "filter">): Owner | undefined {
  const named = narrowed(owner, search);
  const only = (path: string): string | undefined => {
    const values = search.filter?.required.flatMap(({ path: of, operator, operand }) =>
      of === path && (operator === "$eq" || operator === "$in") ? [[operand].flat()] : [],
    );
    return values?.find((one): one is [string] => one.length === 1)?.[0];
  };
  return (named && narrowed(named, { userId: only("user_id"), agentId: only("agent_id") })) ?? named;
}

/** Users whom a request names, as its own or anywhere in its filter. */
export function usersNamedBy({ userId, filter }: Owner & Pick<Wishes, "filter">): string[] {
  const compared = filter?.comparisons.flatMap(({ path, operand }) => (path === "user_id" ? [operand].flat() : [])) ?? [];
  return [userId, ...compared].filter((one) => typeof one === "string");
}

export class RetrievalLog {
  /** Numbers of entries written since the start, and not written. */
  readonly counts = { logged: 0, dropped: 0 };
  readonly #parts: Parts;
  readonly #activator = new Activator();
  #waiting: Waiting[] = [];
  /** Entries that wait or are being written, by API key, and all of them. */
  readonly #heldByKey = new Map<string, number>();
  #held = 0;
  #commits = new Set<Promise<void>>();
  #collectedAt = Number.NEGATIVE_INFINITY;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get isOn(): boolean {
    return this.#parts.isOn();
  }

  /**
   * Notes what was found, while the log is on. What concerns very many users is nobody's, and not logged.
   *
   * @returns the id that its row will have; undefined where there will be none
   */
  note(
    { limitsId, actor }: Asking,
    {
      sessionId,
      userId,
      agentId,
      query,
      matches,
      pinned = [],
      isFiltered,
      request,
      stateVersion,
      turns,
      users: named = [],
      ...asked
    }: Retrieval,
  ): Id<"ret"> | undefined {
    if (!this.isOn || (sessionId ?? userId ?? agentId) === undefined) return undefined;
    const users = usersOf(named, matches, pinned);
    if (users.length > LIMITS.retrievalUsersMax) return undefined;
    const ofKey = this.#heldByKey.get(limitsId) ?? 0;
    if (this.#held >= LIMITS.retrievalsWaitingMax || ofKey >= LIMITS.retrievalsWaitingMax / 2) {
      this.#drop(1, "more retrievals wait than may");
      return undefined;
    }
    this.#heldByKey.set(limitsId, ofKey + 1);
    this.#held++;
    const { secrets } = this.#parts;
    const logged = secrets.logged(query);
    const shown = firstCodePoints(logged, LIMITS.retrievalQueryLengthMax);
    const sent = secrets.logged(request);
    const id = this.#parts.store.newId(sessionId === undefined ? homeOfUser(userId ?? null) : partitionOf(sessionId));
    this.#waiting.push({
      limitsId,
      id,
      expiresAfterMs: this.#parts.days() * DAY_MS,
      row: {
        ...ownerOf({ sessionId, userId, agentId }),
        actor,
        ...asked,
        query: shown === logged ? logged : copyOf(shown),
        ...(isFiltered ? { filtered: true as const } : {}),
        ...(toJson(sent).length > LIMITS.retrievalRequestLengthMax ? {} : { request: sent }),
        ...(stateVersion === undefined ? {} : { stateVersion }),
        ...(turns === undefined ? {} : { turns: [...turns] }),
        memories: matches.map(({ key, score, parts }) => {
          return { id: withPrefix("mem", key), score, ...(parts === undefined ? {} : { rankingScore: parts.rankingScore }) };
        }),
        ...(pinned.length === 0 ? {} : { pinned: pinned.map(({ key }) => ({ id: withPrefix("mem", key) })) }),
      },
      owners: matches.map(({ row }) => ownerOfRow(row)),
      ownersOfPinned: pinned.map(({ row }) => ownerOfRow(row)),
      users,
    });
    if (this.#waiting.length >= ROWS_PER_COMMIT) this.flush();
    else if (this.#waiting.length === 1) this.#activator.wake();
    return withPrefix("ret", id);
  }

  /** Commits what waits, without waiting for that. */
  flush(): void {
    if (this.#waiting.length === 0) return;
    const rows = this.#waiting;
    this.#waiting = [];
    const commit = this.#write(rows).finally(() => {
      this.#commits.delete(commit);
      for (const { limitsId } of rows) this.#release(limitsId);
    });
    this.#commits.add(commit);
  }

  /** For readers of the log: waits until it is settled, but not for a disk that does not answer. */
  async caughtUp(): Promise<void> {
    this.flush();
    if (this.#commits.size > 0) await within(this.#parts.clock, CATCH_UP_MS_MAX, this.settled());
  }

  /** Resolves when everything that was found before is in the store, or was dropped. */
  async settled(): Promise<void> {
    this.flush();
    if (this.#commits.size > 0) await Promise.all(this.#commits);
  }

  task(): Task {
    const { clock } = this.#parts;
    return {
      name: NAME,
      activator: this.#activator,
      run: async () => {
        if (this.#waiting.length === 0) return IDLE_MS;
        const now = clock.elapsed();
        const waitMs = this.#collectedAt + COLLECT_MS - now;
        if (waitMs > 0) return waitMs;
        this.#collectedAt = now;
        await this.settled();
        return COLLECT_MS;
      },
    };
  }

  async #write(rows: readonly Waiting[]): Promise<void> {
    const { store, quotas } = this.#parts;
    if (!quotas.hasRoomForLogs || !store.health.hasRoomForLogs) return this.#drop(rows.length, "the store or its disk is nearly full");
    try {
      const partition = partitionOf(rows[0]?.id ?? "");
      const written = await store.commit(partition, (tx) => {
        const wasErased = erasureCheck(
          tx,
          rows.reduce((first, { id }) => (id < first ? id : first), MAX_KEY),
        );
        return rows.filter((row) => put(tx, row, wasErased)).length;
      });
      this.counts.logged += written;
    } catch (error) {
      this.#drop(rows.length, describeError(error));
    }
  }

  #drop(count: number, problem: string): void {
    const { clock, log } = this.#parts;
    this.counts.dropped += count;
    const now = clock.elapsed();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    log.warn("retrievals are not being logged", { problem, dropped: this.counts.dropped });
  }

  #release(limitsId: string): void {
    this.#held--;
    const ofKey = (this.#heldByKey.get(limitsId) ?? 0) - 1;
    if (ofKey > 0) this.#heldByKey.set(limitsId, ofKey);
    else this.#heldByKey.delete(limitsId);
  }
}

/** Owner of a row: its session, which has a user and an agent of its own, or those of the search. */
function ownerOf({ sessionId, userId, agentId }: Pick<Retrieval, "sessionId" | "userId" | "agentId">): RetrievalOwner {
  if (sessionId !== undefined) return { sessionId: sessionId as SessionId };
  return { ...(userId === undefined ? {} : { userId }), ...(agentId === undefined ? {} : { agentId }) };
}
type RetrievalOwner = Pick<RetrievalRow, "sessionId" | "userId" | "agentId">;

function ownerOfRow({ userId, agentId }: OwnerOfMemory): OwnerOfMemory {
  return { userId, agentId };
}

/** The users whom a request names and whose memories it found, each once. */
function usersOf(named: readonly string[], ...found: readonly (readonly Pick<LoggedMemory, "row">[])[]): string[] {
  const users = new Set(named);
  for (const { row } of found.flat()) if (row.userId !== null) users.add(row.userId);
  return [...users];
}

/** @returns whether it was written: not when the session has ended meanwhile, or a user was erased */
function put(tx: Tx, { id, expiresAfterMs, row, owners, ownersOfPinned, users }: Waiting, wasErased: ErasureCheck): boolean {
  const session = row.sessionId === undefined ? undefined : tx.get(sessions, bare(row.sessionId));
  if (row.sessionId !== undefined && (session === undefined || !isLive(tx, bare(row.sessionId), session))) return false;
  const { userId = null, agentId = null } = session ?? row;
  const others = users.filter((user) => user !== userId);
  const concerned = row.userId === undefined ? others : [row.userId, ...others];
  if (eachFetched(concerned, (user) => wasErased(user, id)).includes(true)) return false;
  tx.add(retrievals, id, {
    expiresAt: tx.now + expiresAfterMs,
    ...(bareIdTime(id) > tx.now ? { at: tx.now } : {}),
    ...row,
    ...(others.length === 0 ? {} : { others: others.map(hashKey) }),
    memories: withOwners(row.memories, owners, userId, agentId),
    ...(row.pinned === undefined ? {} : { pinned: withOwners(row.pinned, ownersOfPinned, userId, agentId) }),
  });
  return true;
}

/** Names the users and agents of memories that are not of the ones that all others are of. */
function withOwners<Memory extends object>(
  memories: Memory[],
  owners: readonly OwnerOfMemory[],
  userId: string | null,
  agentId: string | null,
): (Memory & Partial<OwnerOfMemory>)[] {
  if (owners.every((own) => own.userId === userId && own.agentId === agentId)) return memories;
  return memories.map((memory, i) => {
    const own = owners[i]!;
    return {
      ...memory,
      ...(own.userId === userId ? {} : { userId: own.userId }),
      ...(own.agentId === agentId ? {} : { agentId: own.agentId }),
    };
  });
}

type ErasureCheck = (userId: string, id: BareId) => boolean;

/**
 * Checks whether an erasure of a user has begun since an id was given: one that has ended by now has left its trace. Of each user the
 * traces are looked at once for all rows of a commit, as that took longer than to write a row.
 *
 * @param since - the first of the ids
 */
function erasureCheck(tx: Tx, since: BareId): ErasureCheck {
  const { byUser } = traces.index;
  const ended = new Map<string, string | undefined>();
  return (userId, id) => {
    if (isErased(tx, { userId }, id)) return true;
    const hash = hashKey(userId);
    if (!ended.has(hash)) {
      const entries = tx.keys(byUser, { from: hash + since, to: hash + MAX_KEY });
      ended.set(
        hash,
        entries.findLast((entry) => actionOf(byUser.recordOf(entry)) === "user.erased"),
      );
    }
    return (ended.get(hash) ?? "") >= hash + id;
  };
}
