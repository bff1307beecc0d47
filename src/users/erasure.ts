/**
 * Erases a user: grants, sessions with their states, turns and retrievals, memories with their vectors, documents, events on their way,
 * what webhooks were sent, and answers that are kept for retries. Traces stay, without their content.
 *
 * The first commit writes down who is erased, and from then on no read shows anything of them (`storage/erasure.ts`). The rest is
 * taken away in pieces, phase by phase, each in a commit that says how far it came: whatever ends the process, the next start
 * continues there.
 *
 * At the end the embedded store overwrites the pages of its file that are free by then: rows that were changed or removed earlier are in
 * them, too. Which of them are is not known, so it is all; one that holds nothing is only looked at.
 *
 * @module
 */
import { bare, BARE_ID_LENGTH, homeOfUser, type BareId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import { toIso } from "../lib/time.ts";
import { removeEmptied } from "../documents/removal.ts";
import { removeKey } from "../keys/keys.ts";
import { ownTurnCount } from "../sessions/branches.ts";
import { isHiddenWithSession, removeLeftovers, removeSession } from "../sessions/removal.ts";
import { eachFetched, FIRST, type Reader, type Tx } from "../storage/access.ts";
import { BadRows, passingOver, readable } from "../storage/bad-rows.ts";
import { MEMORIES } from "../storage/collections.ts";
import { isEventOf, isKeptSince, usersOfAnswer } from "../storage/erasure.ts";
import { MAX_KEY, successor, documentsOfUser, hashKey } from "../storage/keys.ts";
import { DocumentWriter, namespaceRow } from "../storage/document-records.ts";
import { removeRecord } from "../storage/memory-records.ts";
import { EVERYBODY } from "../storage/owner.ts";
import {
  apiKeys,
  deliveries,
  documentRemovals,
  ERASURE_PHASES,
  erasures,
  idempotency,
  kindCode,
  memories,
  outbox,
  payloads,
  removals,
  retrievals,
  sessions,
  traces,
  users,
  type ErasureRow,
} from "../storage/tables.ts";
import type { RecordStore, Wiping } from "../storage/record-store.ts";
import type { Task } from "../tasks/task.ts";
import { Removals } from "../audit/removals.ts";
import { actionOf, isAdminAction } from "../traces/events.ts";
import { record, type Caller, type Deps } from "../traces/record.ts";
import { ERASED_DETAILS } from "../traces/traces.ts";
import { removeDeliveries } from "../webhooks/queue.ts";
import { removeRetrievals } from "../retrievals/removal.ts";
import { isUnnamed } from "./directory.ts";
import { hasRecords } from "./presence.ts";
import { noUser } from "./users.ts";
import { nextEntries, nextKeys } from "./walk.ts";

/** One commit holds the request thread for a few milliseconds; each session can bring two hundred records with it. */
const SESSIONS_PER_COMMIT = 4;
const ROWS_PER_COMMIT = 200;
/** Each can be as large as a page of a list. */
const ANSWERS_PER_COMMIT = 20;
/** A request waits for this many commits; what is left then is done in the background, as is what a reader holds back. */
const COMMITS_PER_REQUEST = 32;
const ERASURES_LOOKED_AT = 100;
const TRACES_SEARCHED = 100;
/** Rows that cannot be read are in the way. */
const REMOVALS_LOOKED_AT = 100;
const IDLE_MS = 1_000;
const NO_REQUEST = { keyId: null, owner: EVERYBODY, requestId: null, startedAt: null };
const NO_COUNTS = { sessions: 0, turns: 0, versions: 0, retrievals: 0, memories: 0, documents: 0, traces: 0, deliveries: 0, answers: 0 };

/**
 * Begins to erase a user, and waits for a while for the end.
 *
 * @throws {ApiError} `resource_not_found` for a user of whom there is nothing
 */
export async function eraseUser({ store }: Deps, caller: Caller & { actor: string }, userId: string): Promise<JsonText> {
  const hash = hashKey(userId);
  let erasure = await store.commit(homeOfUser(userId), (tx) => {
    const begun = tx.get(erasures, hash);
    if (begun !== undefined) return begun;
    if (!hasRecords(tx, userId)) throw noUser(userId);
    const row: ErasureRow = {
      userId,
      startedAt: tx.now,
      until: untilNow(tx, hash),
      phase: ERASURE_PHASES[0],
      after: "",
      actor: caller.actor,
      retentionDays: caller.retentionDays,
      counts: { ...NO_COUNTS, documents: emptyDocuments(tx, userId) },
    };
    tx.put(erasures, hash, row);
    return row;
  });
  let isDone = false;
  const wipe = store.wipe?.();
  const step = async () => {
    const freed = wipe === undefined ? "vacuum" : isWiping(erasure) && (await wipe()) === "done" ? "overwritten" : "pending";
    return store.commit(homeOfUser(userId), (tx) => eraseSome(store, tx, hash, freed));
  };
  for (let commits = 0; !isDone && commits < COMMITS_PER_REQUEST; commits++) {
    // The rest is done in the background: that it began is committed.
    const next = await step().catch(() => undefined);
    if (next === undefined) break;
    ({ erasure, isDone } = next);
  }
  return reportJson(store, erasure, isDone);
}

/** An id that none of a user's records is after: a server whose clock is ahead may have made the newest. */
function untilNow(tx: Tx, hash: string): BareId {
  const newest = [...[sessions, memories, retrievals, traces].map(({ index }) => index.byUser), retrievals.index.byOther].flatMap((index) =>
    tx
      .keys(index, { from: hash, to: hash + MAX_KEY, limit: 1, descending: true })
      .map((entry) => entry.slice(hash.length, hash.length + BARE_ID_LENGTH)),
  );
  return tx.bareId(undefined, newest.toSorted().at(-1));
}

/** Progress of the erasure of a user, or the result of the last one. @throws {ApiError} `resource_not_found` when there is none */
export function getErasure({ store }: Deps, userId: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const erasure = reader.get(erasures, hashKey(userId));
    if (erasure !== undefined) return reportJson(store, erasure, false);
    const details = lastErasure(reader, hashKey(userId));
    if (details === undefined) throw noUser(userId);
    return toJson({ object: "user_erasure", status: "done", ...(JSON.parse(details) as object) });
  });
}

/** The details of the trace of a user's last erasure, if it is among their newest traces. */
function lastErasure(reader: Reader, hash: string): JsonText | undefined {
  const { byUser } = traces.index;
  for (const entry of reader.keys(byUser, { from: hash, to: hash + MAX_KEY, limit: TRACES_SEARCHED, descending: true })) {
    const key = byUser.recordOf(entry);
    if (actionOf(key) === "user.erased") return reader.get(traces, key)?.body;
  }
  return undefined;
}

function reportJson(store: RecordStore, erasure: ErasureRow, isDone: boolean): JsonText {
  const freed = store.wipe === undefined ? "vacuum" : isDone ? "overwritten" : "pending";
  return toJson({ object: "user_erasure", status: isDone ? "done" : "running", ...reportOf(erasure, freed) });
}

/** Fate of the space that removed rows have left. */
type FreedSpace = "pending" | "overwritten" | "vacuum";

/** Checks whether all rows are removed, and the transaction that has removed the last of them is not the last one. */
function isWiping({ phase, after }: ErasureRow): boolean {
  return phase === "pages" && after !== "";
}

function reportOf({ userId, startedAt, counts }: ErasureRow, freed: FreedSpace): object {
  return { user_id: userId, started_at: toIso(startedAt), freed_space: freed, ...counts };
}

/**
 * Empties the user's documents, those that are kept with an agent too, in one step: a task removes what is hidden by it.
 *
 * @returns how many there were
 */
function emptyDocuments(tx: Tx, userId: string): number {
  const ofUser = documentsOfUser(userId);
  const count = namespaceRow(tx, ofUser)?.all ?? 0;
  const writer = new DocumentWriter(tx);
  writer.empty(ofUser, 0);
  writer.flush();
  return count;
}

/** Continues erasures, those too that a process has begun that is gone. */
export function userErasure({ store }: Deps, log: Log): Task {
  const name = "user erasure";
  const bad = new BadRows(store, log, name);
  // For all erasures that have no rows left, together.
  let wiping: { of: string; step: Wiping } | undefined;
  const wipe = async (hashes: readonly string[]): ReturnType<Wiping> => {
    const of = hashes.join(" ");
    if (store.wipe !== undefined && wiping?.of !== of) wiping = { of, step: store.wipe() };
    const state = (await wiping?.step()) ?? "done";
    if (state === "done") wiping = undefined;
    return state;
  };
  return {
    name,
    async run() {
      const begun = await bad.keysOfOthers(erasures, { ...FIRST, limit: ERASURES_LOOKED_AT });
      if (begun.length === 0) return IDLE_MS;
      const rows = await store.read((reader) => eachFetched(begun, (hash) => readable(() => reader.get(erasures, hash))));
      // A reader that holds pages back holds back no rows.
      const first = begun.find((_, i) => rows[i] === undefined || !isWiping(rows[i]));
      const state = first === undefined ? await wipe(begun) : "more";
      if (state === "waits") return IDLE_MS;
      const freed = store.wipe === undefined ? "vacuum" : state === "done" ? "overwritten" : "pending";
      const hashes = first === undefined ? begun : [first];
      await bad.commit((tx, isolate) => {
        for (const hash of hashes) isolate(hash, () => void eraseSome(store, tx, hash, freed));
      });
      return 0;
    },
  };
}

/**
 * Takes the next piece away, but rows that cannot be read.
 *
 * @param freed - what became of the space that it has left, where all of it was removed before
 * @returns undefined when somebody else has ended the erasure
 */
function eraseSome(store: RecordStore, tx: Tx, hash: string, freed: FreedSpace): { erasure: ErasureRow; isDone: boolean } | undefined {
  const before = tx.get(erasures, hash);
  if (before === undefined) return undefined;
  if (before.phase === "pages" && freed !== "pending") return end(tx, hash, before, freed);
  if (isWiping(before)) return { erasure: before, isDone: false };
  const erasure = { ...before, counts: { ...before.counts } };
  const after = PHASES[erasure.phase](tx, hash, erasure, store);
  if (after !== undefined) erasure.after = after;
  else {
    const next = ERASURE_PHASES[ERASURE_PHASES.indexOf(erasure.phase) + 1] ?? "pages";
    [erasure.phase, erasure.after] = [next, ""];
  }
  tx.put(erasures, hash, erasure);
  return { erasure, isDone: false };
}

function end(tx: Tx, hash: string, erasure: ErasureRow, freed: FreedSpace): { erasure: ErasureRow; isDone: boolean } {
  tx.remove(erasures, hash);
  if (isUnnamed(tx, hash)) tx.remove(users, hash);
  const { userId } = erasure;
  record(
    tx,
    { ...NO_REQUEST, ...erasure },
    { action: "user.erased", sessionId: null, userId, agentId: null, details: toJson(reportOf(erasure, freed)) },
  );
  return { erasure, isDone: true };
}

/** Takes a piece away and counts it. @returns the key behind which the phase continues; undefined at its end */
type Phase = (tx: Tx, hash: string, erasure: ErasureRow, store: RecordStore) => string | undefined;

const PHASES: Record<ErasureRow["phase"], Phase> = {
  /** Grants are few, and no index has their users. */
  grants(tx, _, erasure) {
    const { keys, last } = nextEntries(tx, apiKeys.index.byKind, kindCode("oauth"), erasure.after, ROWS_PER_COMMIT);
    eachFetched(keys, (hash) => {
      const row = readable(() => tx.get(apiKeys, hash));
      if (row?.userId !== erasure.userId || bare(row.id) > erasure.until) return;
      removeKey(tx, { ...NO_REQUEST, ...erasure }, { hash, row }, "its user was erased");
    });
    return last;
  },

  sessions(tx, hash, { until, after, counts }) {
    const { byUser } = sessions.index;
    const entries = tx.keys(byUser, { from: after === "" ? hash : successor(after), to: hash + until, limit: SESSIONS_PER_COMMIT });
    tx.ahead(
      sessions,
      entries.map((entry) => byUser.recordOf(entry)),
    );
    let budget = ROWS_PER_COMMIT;
    let done = after;
    for (const entry of entries) {
      const session = byUser.recordOf(entry);
      const row = readable(() => tx.get(sessions, session));
      if (row === undefined) continue;
      const { bySession } = retrievals.index;
      const found = tx.keys(bySession, { from: session, to: session + MAX_KEY, limit: budget });
      for (const one of found) tx.remove(retrievals, bySession.recordOf(one));
      counts.retrievals += found.length;
      budget -= found.length;
      // There may be more of them, which the next commit begins with.
      if (budget === 0) return done;
      done = entry;
      counts.sessions++;
      counts.turns += ownTurnCount(tx, session, row);
      counts.versions += row.version + 1;
      counts.memories += row.memoryCount;
      removeSession(tx, session, { memories: true, ofUser: true });
    }
    return entries.length < SESSIONS_PER_COMMIT ? undefined : entries.at(-1);
  },

  memories(tx, hash, { until, after, counts }) {
    const { byUser } = memories.index;
    const entries = tx.keys(byUser, { from: after === "" ? hash : successor(after), to: hash + until, limit: ROWS_PER_COMMIT });
    eachFetched(entries, (entry) => {
      const memory = byUser.recordOf(entry);
      const row = readable(() => tx.get(memories, memory));
      if (row === undefined) return;
      // Memories of a session that was just removed are counted with it.
      if (!isHiddenWithSession(tx, memory, row.sessionId)) counts.memories++;
      removeRecord(tx, MEMORIES, memory);
    });
    return entries.length < ROWS_PER_COMMIT ? undefined : entries.at(-1);
  },

  retrievals: (tx, hash, erasure) => removeRetrievals(tx, "byUser", hash, erasure, ROWS_PER_COMMIT),

  "retrievals of others": (tx, hash, erasure) => removeRetrievals(tx, "byOther", hash, erasure, ROWS_PER_COMMIT),

  traces(tx, hash, { until, after, counts }, store) {
    const { byUser } = traces.index;
    const removals = new Removals(tx, store);
    const entries = tx.keys(byUser, { from: after === "" ? hash : successor(after), to: hash + until, limit: ROWS_PER_COMMIT });
    eachFetched(entries, (entry) => {
      const key = byUser.recordOf(entry);
      const [row, action] = [readable(() => tx.get(traces, key)), actionOf(key)];
      // An act of an administrator, such as an earlier erasure, is no content of the user's.
      if (row === undefined || row.body === ERASED_DETAILS || action === undefined || isAdminAction(action)) return;
      removals.erase(key, row, ERASED_DETAILS);
      counts.traces++;
    });
    removals.write();
    return entries.length < ROWS_PER_COMMIT ? undefined : entries.at(-1);
  },

  outbox(tx, hash, erasure) {
    const { keys, last } = nextKeys(tx, outbox, erasure.after, ROWS_PER_COMMIT);
    eachFetched(keys, (key) => {
      const row = readable(() => tx.get(outbox, key));
      if (row === undefined || !isEventOf(tx, row, hash, erasure)) return;
      tx.remove(outbox, key);
      erasure.counts.deliveries++;
    });
    return last;
  },

  deliveries(tx, hash, erasure) {
    const { byUser } = deliveries.index;
    const { keys, last } = nextEntries(tx, byUser, hash, erasure.after, ROWS_PER_COMMIT);
    eraseDeliveries(tx, hash, keys, erasure);
    return last;
  },

  /** Rows of a Cairn that did not save whose content they show. */
  "older deliveries"(tx, hash, erasure) {
    const { keys, last } = nextKeys(tx, deliveries, erasure.after, ROWS_PER_COMMIT);
    eraseDeliveries(tx, hash, keys, erasure);
    return last;
  },

  answers(tx, hash, erasure) {
    const { byUser } = idempotency.index;
    const { keys, last } = nextEntries(tx, byUser, hash, erasure.after, ANSWERS_PER_COMMIT);
    eraseAnswers(tx, hash, keys, erasure);
    return last;
  },

  /** Rows of a Cairn that did not save whose content they show. */
  "older answers"(tx, hash, erasure) {
    const { keys, last } = nextKeys(tx, idempotency, erasure.after, ROWS_PER_COMMIT);
    eraseAnswers(tx, hash, keys, erasure);
    return last;
  },

  /** Rows that removed sessions have left, of this user and of others: hidden, and still stored. */
  leftovers(tx, _, { after, until }) {
    const [session] = tx.keys(removals, { from: after, to: successor(until), limit: 1 });
    if (session !== undefined) return readable(() => removeLeftovers(tx, session)) === false ? session : successor(session);
    // A fork that was the last to show turns of a session leaves a note for that one, which comes before it.
    const again = after === "" ? [] : tx.keys(removals, { from: "", to: successor(until), limit: REMOVALS_LOOKED_AT });
    return again.some((one) => readable(() => removeLeftovers(tx, one)) !== undefined) ? "" : undefined;
  },

  documents(tx, _, { userId, after }) {
    const ofUser = documentsOfUser(userId);
    if (after === "" && !tx.has(documentRemovals, ofUser)) return undefined;
    return passingOver((isolate) => removeEmptied(tx, ofUser, after, isolate));
  },

  /** Begins with a transaction of its own, after which the pages that the one before has freed can be overwritten. */
  pages: () => "begun",
};

function eraseDeliveries(tx: Tx, hash: string, keys: readonly string[], erasure: ErasureRow): void {
  tx.ahead(deliveries, keys);
  eachFetched(keys, (key) => {
    const row = readable(() => tx.get(deliveries, key));
    if (row === undefined || !isEventOf(tx, row, hash, erasure)) return;
    removeDeliveries(tx, [key]);
    tx.remove(payloads, row.payload);
    erasure.counts.deliveries++;
  });
}

function eraseAnswers(tx: Tx, hash: string, keys: readonly string[], erasure: ErasureRow): void {
  tx.ahead(idempotency, keys);
  eachFetched(keys, (key) => {
    const row = readable(() => tx.get(idempotency, key));
    if (row === undefined || !usersOfAnswer(tx, row).includes(hash) || isKeptSince(tx, row, erasure)) return;
    tx.remove(idempotency, key);
    erasure.counts.answers++;
  });
}
