/**
 * What every change leaves behind: a trace, the events that follow from it, and the answer to an idempotent request.
 *
 * All of it is written inside the transaction of the change, so that it stands or falls with it. Nothing is sent from
 * here: events wait in the outbox for their receivers.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { DAY_MS } from "../lib/duration.ts";
import { bare, type IdSource, type KeyId } from "../lib/ids.ts";
import { EMPTY_OBJECT, jsonObject, toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import { isIdAhead, traceIndexKeys } from "../storage/indexes.ts";
import type { Store, Tx } from "../storage/store.ts";
import { outbox, traces, type OutboxRow, type TraceRow } from "../storage/tables.ts";
import type { Activator } from "../tasks/task.ts";
import { recordEventOf, traceEventsOf, type AdminAction, type EventType, type TraceAction } from "./events.ts";

/** What limits the records that callers make. */
export interface Quotas {
  /** @throws {ApiError} `service_unavailable` when the store may not become larger */
  refuseGrowth(): void;
  /** How many of the newest versions of a session's state are kept; version 0 is kept besides. */
  readonly versionsKept: number;
}

/** What every operation on records is given. */
export interface Records {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** Woken after a commit that may have left events. */
  readonly outbox?: Pick<Activator, "wake">;
  /** Left out for commands, which the operator runs. */
  readonly quotas?: Quotas;
  /** How much one page of a list may look at; the usual limit unless a test has its own. */
  readonly listLooksMax?: number | undefined;
}

/** Who asks for a change, as far as its record needs to know. */
export interface Caller {
  /** First 8 characters of the API key, or `system` for a timer. */
  readonly actor: string;
  readonly keyId: KeyId | null;
  /** How long the traces of this caller are kept. */
  readonly retentionDays: number;
  readonly requestId: string | null;
  /** `clock.elapsed()` when the request came in; null for a timer. */
  readonly startedAt: number | null;
  /** Writes down the answer of a request with an idempotency key. */
  readonly keep?: (tx: Tx, answer: JsonText, how?: { hasSecret: boolean }) => void;
}

export interface TraceEntry {
  action: TraceAction;
  /** null for a change that concerns no session: then only a key with the scope `admin` reads the trace. */
  sessionId: string | null;
  userId: string | null;
  /** Members that are undefined are left out. */
  details: Record<string, JsonText | undefined>;
  /** The affected record, for the event that carries it. */
  record?: JsonText;
  /** Whether this is the trace of something that failed. */
  isError?: boolean;
}

/** Who changes something when no request asks for it: a timer, a start, or a command of the operator's. */
export function systemCaller(retentionDays: () => number): Caller {
  return {
    actor: "system",
    keyId: null,
    get retentionDays() {
      return retentionDays();
    },
    requestId: null,
    startedAt: null,
  };
}

/** One change asked for by a caller: commits what `work` writes together with the answer it returns. */
export function commitFor(records: Records, caller: Caller, work: (tx: Tx) => JsonText): Promise<JsonText> {
  return commitAndKeep(records, caller, work, { hasSecret: false });
}

/** The same for an answer that shows a secret: for a replay of the request it is kept encrypted. */
export function commitSecret(records: Records, caller: Caller, work: (tx: Tx) => JsonText): Promise<JsonText> {
  return commitAndKeep(records, caller, work, { hasSecret: true });
}

async function commitAndKeep(records: Records, caller: Caller, work: (tx: Tx) => JsonText, how: { hasSecret: boolean }): Promise<JsonText> {
  const answer = await records.store.commit((tx) => {
    const given = work(tx);
    caller.keep?.(tx, given, how);
    return given;
  });
  records.outbox?.wake();
  return answer;
}

/** Writes the trace of a change and the events that follow from it. */
export function record(tx: Tx, records: Records, caller: Caller, entry: TraceEntry): void {
  const id = records.ids.next("trace");
  const key = bare(id);
  const timestamp = records.clock.now();
  const user = entry.userId === null ? "" : `,"user_id":${toJson(entry.userId)}`;
  const metadata =
    caller.startedAt === null
      ? EMPTY_OBJECT
      : `{"request_id":${toJson(caller.requestId)},"latency_ms":${Math.round((records.clock.elapsed() - caller.startedAt) * 100) / 100}}`;
  const body =
    `{"object":"trace","id":"${id}","session_id":${toJson(entry.sessionId)}${user},"action":"${entry.action}","actor":${toJson(caller.actor)},` +
    `"timestamp":"${toIso(timestamp)}","details":${jsonObject(entry.details)},"metadata":${metadata}}`;
  const row: TraceRow = {
    expiresAt: timestamp + caller.retentionDays * DAY_MS,
    ...(isIdAhead(key, timestamp) ? { at: timestamp } : {}),
    ...(entry.sessionId === null ? { adminOnly: true } : {}),
    body: body as JsonText,
  };
  tx.put(traces, key, row);
  const members = { session_id: entry.sessionId, user_id: entry.userId ?? undefined, action: entry.action };
  for (const index of traceIndexKeys(key, row, members)) tx.put(index.table, index.key, "");

  const emit = (type: EventType, content: Pick<OutboxRow, "traceId" | "body">) =>
    tx.put(outbox, records.ids.bare(), { type, createdAt: timestamp, sessionId: entry.sessionId, ...content });
  const recordEvent = recordEventOf(entry.action);
  if (recordEvent !== undefined && entry.record !== undefined) emit(recordEvent, { body: entry.record });
  for (const type of traceEventsOf(entry.action, entry.isError === true)) emit(type, { traceId: id, body: toJson(null) });
}

/** Writes the trace of a change of keys, settings or webhooks. `details` must hold no secret. */
export function recordAdmin(tx: Tx, records: Records, caller: Caller, action: AdminAction, details: Record<string, unknown>): void {
  const members: TraceEntry["details"] = {};
  for (const [name, value] of Object.entries(details)) members[name] = toJson(value);
  record(tx, records, caller, { action, sessionId: null, userId: null, details: members });
}
