/**
 * Records that every change leaves: a trace, the events that follow from it, and the answer to an idempotent request.
 *
 * All of it is written inside the transaction of the change, so that all of it is there or nothing. Nothing is sent from
 * here: events wait in the outbox for their receivers.
 *
 * @module
 */
import type { Answered, AnswerJson } from "../lib/answer.ts";
import type { Clock } from "../lib/clock.ts";
import { DAY_MS } from "../lib/duration.ts";
import { bareIdTime, partitionOf, NO_PARTITION, type BareId, type Partition, type KeyId, type SessionId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { readable } from "../storage/bad-rows.ts";
import { MAX_KEY, hashKey } from "../storage/keys.ts";
import { EVERYBODY, type Owner } from "../storage/owner.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { outbox, traces, webhooks, type TraceRow, type WebhookRow } from "../storage/tables.ts";
import { actionCode, recordEventOf, traceEventsOf, type AdminAction, type TraceAction } from "./events.ts";

/** Limits of the records that callers make. */
export interface Quotas {
  /**
   * @param bytes - that are to be written, where that can be said before
   * @throws {ApiError} `service_unavailable` when the store may not become larger
   */
  refuseGrowth(bytes?: number): void;
  /** True if logs that nobody waits for may make the store larger. */
  readonly hasRoomForLogs: boolean;
  /** Number of the newest versions of a session's state that are kept; version 0 is kept besides. */
  readonly versionsKept: number;
  /** Number of contents kept that a memory had. */
  readonly memoryVersionsKept: number;
  /** True if keys without the scope `admin` may ask for sessions that do not expire. */
  readonly areEndlessSessionsForAll: boolean;
  /** Largest size of a state that is changed a part at a time. */
  readonly stateBytesMax: number;
}

/** Dependencies of every operation on records. */
export interface Deps {
  readonly store: RecordStore;
  readonly clock: Clock;
  /** Left out for commands, which the operator runs. */
  readonly quotas?: Quotas;
  /** Scan budget of one page of a list; the usual limit unless a test has its own. */
  readonly listProbesMax?: number | undefined;
}

/** Caller of a change, as far as its record needs to know. */
export interface Caller {
  /** First 8 characters of the API key, or `system` for a timer. */
  readonly actor: string;
  readonly keyId: KeyId | null;
  /** Key whose limits count for it; none for a timer. */
  readonly limitsId?: string;
  /** Owner whose records it sees and changes. */
  readonly owner: Owner;
  /** Retention of the traces of this caller. */
  readonly retentionDays: number;
  readonly requestId: string | null;
  /** `clock.elapsed()` when the request came in; null for a timer. */
  readonly startedAt: number | null;
  /** Set for a request with an idempotency key: throws where it was answered before, and saves the answer. */
  readonly once?: {
    claim(reader: Reader): void;
    save(tx: Tx, answer: Answered<AnswerJson>, how: { hasSecret: boolean }): void;
  };
  /** Kinds of secrets in the request, where records are to be marked with them. */
  readonly secrets?: readonly string[];
}

/** The answer to a change of a user's records; of nobody's where there is none. */
export function ofUser<Json extends AnswerJson>(
  { userId }: { userId?: string | null | undefined },
  json: Json,
  asksForRoom: Answered<Json>["asksForRoom"] = "always",
): Answered<Json> {
  return { json, users: typeof userId === "string" ? [hashKey(userId)] : [], asksForRoom };
}

export interface TraceEntry {
  action: TraceAction;
  /** null for a change that concerns no session. */
  sessionId: SessionId | null;
  /** Owner of the record; null where it is nobody's: then only a key with the scope `admin` reads the trace. */
  userId: string | null;
  agentId: string | null;
  /** The record that it is about, where that is somebody's without a session. */
  recordId?: BareId;
  details: JsonText;
  /** The affected record, for the event that carries it. */
  record?: JsonText;
  /** True if this is the trace of something that failed. */
  isError?: boolean;
}

/** Actor of a change that no request asks for: a timer, a start, or a command of the operator's. */
export function systemCaller(retentionDays: () => number): Caller {
  return {
    actor: "system",
    keyId: null,
    owner: EVERYBODY,
    get retentionDays() {
      return retentionDays();
    },
    requestId: null,
    startedAt: null,
  };
}

/**
 * One change asked for by a caller: commits what `work` writes together with the answer it returns.
 *
 * @param partition - of the records that it changes
 */
export function commitFor<Answer extends AnswerJson>(
  deps: Deps,
  caller: Caller,
  partition: Partition,
  work: (tx: Tx) => Answered<Answer>,
): Promise<Answer> {
  return commitOnce(deps, caller, partition, work, { hasSecret: false });
}

/** The same for a change of keys, webhooks, settings or backups, whose answer shows no content of a user's. */
export function commitAdmin(deps: Deps, caller: Caller, work: (tx: Tx) => JsonText): Promise<JsonText> {
  return commitOnce(deps, caller, NO_PARTITION, (tx) => ofNobody(work(tx)), { hasSecret: false });
}

/** The same for an answer that shows a secret: for a replay of the request it is kept encrypted. */
export function commitSecret(deps: Deps, caller: Caller, work: (tx: Tx) => JsonText): Promise<JsonText> {
  return commitOnce(deps, caller, NO_PARTITION, (tx) => ofNobody(work(tx)), { hasSecret: true });
}

function ofNobody(json: JsonText): Answered<JsonText> {
  return { json, users: [], asksForRoom: "never" };
}

function commitOnce<Answer extends AnswerJson>(
  deps: Deps,
  { once }: Caller,
  partition: Partition,
  work: (tx: Tx) => Answered<Answer>,
  how: { hasSecret: boolean },
): Promise<Answer> {
  return deps.store.commit(partition, (tx) => {
    once?.claim(tx);
    const given = work(tx);
    once?.save(tx, given, how);
    return given.json;
  });
}

/** Writes the trace of a change, and the events that follow from it for the webhooks that want them. */
export function record(tx: Tx, caller: Caller, entry: TraceEntry): void {
  const { action, sessionId, userId, agentId, recordId } = entry;
  const partition = sessionId === null ? recordId && partitionOf(recordId) : partitionOf(sessionId);
  const id = tx.bareId(partition);
  const key = actionCode(action) + id;
  const { startedAt, requestId } = caller;
  const row: TraceRow = {
    expiresAt: tx.now + caller.retentionDays * DAY_MS,
    ...(bareIdTime(id) > tx.now ? { at: tx.now } : {}),
    actor: caller.actor,
    ...(sessionId === null ? {} : { sessionId }),
    ...(userId === null ? {} : { userId }),
    ...(agentId === null ? {} : { agentId }),
    ...(startedAt === null || requestId === null ? {} : { requestId, latencyMs: Math.round((tx.elapsed - startedAt) * 100) / 100 }),
    body: entry.details,
  };
  tx.add(traces, key, row);
  const receivers = enabledWebhooks(tx);
  if (receivers.length > 0) putEvents(tx, entry, key, partition, receivers);
}

function putEvents(
  tx: Tx,
  entry: TraceEntry,
  trace: string,
  partition: Partition | undefined,
  receivers: readonly { key: BareId; row: WebhookRow }[],
): void {
  const recordEvent = entry.record === undefined ? undefined : recordEventOf(entry.action);
  const events = [...(recordEvent === undefined ? [] : [recordEvent]), ...traceEventsOf(entry.action, entry.isError === true)];
  const types = events.filter((type) => receivers.some(({ row }) => row.events.includes(type)));
  if (types.length === 0) return;
  const wanting = receivers.filter(({ row }) => types.some((type) => row.events.includes(type)));
  tx.add(outbox, tx.bareId(partition), {
    types,
    webhooks: wanting.map(({ key }) => key),
    createdAt: tx.now,
    sessionId: entry.sessionId,
    ...(entry.userId === null ? {} : { user: hashKey(entry.userId) }),
    ...(entry.recordId === undefined ? {} : { record: entry.recordId }),
    trace,
    body: (types.some((type) => type === recordEvent) ? entry.record : undefined) ?? toJson(null),
  });
}

/** Without one whose row cannot be read, so that the others continue. */
export function enabledWebhooks(reader: Reader): { key: BareId; row: WebhookRow }[] {
  if (reader.isEmpty(webhooks)) return [];
  return reader.keys(webhooks, { from: "", to: MAX_KEY }).flatMap((key) => {
    const row = readable(() => reader.get(webhooks, key));
    return row?.enabled === true ? [{ key, row }] : [];
  });
}

/** Writes the trace of a change of keys, settings, webhooks or backups. `details` must hold no secret. */
export function recordAdmin(tx: Tx, caller: Caller, action: AdminAction, details: Record<string, unknown>, affected?: JsonText): void {
  const of = { sessionId: null, userId: null, agentId: null };
  record(tx, caller, { action, ...of, details: toJson(details), ...(affected === undefined ? {} : { record: affected }) });
}
