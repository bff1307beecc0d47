/**
 * Turns events into deliveries: one for each webhook that wants the event.
 *
 * `traces/record.ts` writes one row for a change whose events some webhook wants, in the transaction of the change; here it leaves
 * the outbox in the transaction that writes its deliveries, so that it becomes all of them or none. The task is woken after a
 * commit.
 *
 * @module
 */
import { partitionOf, NO_PARTITION, withPrefix, type BareId } from "../lib/ids.ts";
import { jsonWith, type JsonText } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import { toIso } from "../lib/time.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { BadRows, readable, type Isolate } from "../storage/bad-rows.ts";
import { MAX_KEY } from "../storage/keys.ts";
import { leasedTask, type Leases } from "../storage/leases.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { outbox, payloads, traces, webhooks, type DeliveryRow, type OutboxRow } from "../storage/tables.ts";
import type { Activator, Task } from "../tasks/task.ts";
import type { Deps } from "../traces/record.ts";
import { traceJson } from "../traces/traces.ts";
import { putDelivery } from "./queue.ts";

const NAME = "webhook outbox";

const CHANGES_PER_COMMIT = 200;
/** A commit ends early when it has copied this much: records can be large, and webhooks many. */
const BYTES_PER_COMMIT = 4 * 1024 * 1024;
const DELIVERIES_PER_COMMIT = 1_000;
const IDLE_MS = 10_000;

/**
 * @param leases - of several servers its holder drains the outbox, so that deliveries are made in the order of their events
 * @param deliveries - woken when there are new ones
 */
export function outboxDrain({ store }: Deps, leases: Leases, log: Log, activator: Activator, deliveries: Activator): Task {
  return leasedTask(leases, store, (leased) => drainTask(leased, log, activator, deliveries));
}

function drainTask(store: RecordStore, log: Log, activator: Activator, deliveries: Activator): Task {
  const bad = new BadRows(store, log, NAME);
  return {
    name: NAME,
    activator,
    async run() {
      const keys = await bad.keysOfOthers(outbox, { from: "", to: MAX_KEY, limit: CHANGES_PER_COMMIT });
      if (keys.length === 0) return IDLE_MS;
      const done = await bad.commit((tx, isolate) => drain(tx, keys, isolate));
      if (done.deliveries > 0) deliveries.wake();
      return done.changes === CHANGES_PER_COMMIT || done.changes < keys.length ? 0 : IDLE_MS;
    },
  };
}

function drain(tx: Tx, keys: readonly BareId[], isolate: Isolate): { changes: number; deliveries: number } {
  const done = { changes: 0, deliveries: 0 };
  let bytes = 0;
  for (const key of keys) {
    isolate(key, () => {
      const row = tx.get(outbox, key);
      for (const made of row === undefined ? [] : addDeliveries(tx, row)) {
        done.deliveries += made.deliveries;
        bytes += made.length;
      }
      tx.remove(outbox, key);
    });
    done.changes++;
    if (bytes >= BYTES_PER_COMMIT || done.deliveries >= DELIVERIES_PER_COMMIT) break;
  }
  return done;
}

/** @returns of each event how many deliveries it has, and the length of what they deliver */
function addDeliveries(tx: Tx, row: OutboxRow): { deliveries: number; length: number }[] {
  const receivers = row.webhooks.flatMap((key) => {
    const webhook = readable(() => tx.get(webhooks, key));
    return webhook?.enabled === true ? [{ key, webhook }] : [];
  });
  return row.types.flatMap((type) => {
    const wanting = receivers.filter(({ webhook }) => webhook.events.includes(type));
    const data = wanting.length === 0 ? undefined : dataOf(tx, row, type);
    if (data === undefined) return [];
    const event = tx.bareId(row.sessionId === null ? NO_PARTITION : partitionOf(row.sessionId));
    const payload = payloadJson(event, { type, createdAt: row.createdAt }, data);
    addEvent(
      tx,
      payload,
      wanting.map(({ key: webhook }) => ({ webhook, row: newDelivery(event, type, row, tx.now) })),
    );
    return [{ deliveries: wanting.length, length: payload.length }];
  });
}

/** Writes a payload and its deliveries. @returns the ids of these */
export function addEvent(tx: Tx, body: JsonText, receivers: readonly { webhook: BareId; row: Omit<DeliveryRow, "payload"> }[]): BareId[] {
  const partition = partitionOf(receivers[0]?.row.eventId ?? "");
  const given = receivers.map(() => tx.bareId(partition));
  // The last of these ids: its key is the newest that a start finds, so that none of them is given again.
  const payload = tx.bareId(partition);
  tx.add(payloads, payload, body);
  receivers.forEach(({ webhook, row }, index) => putDelivery(tx, { webhook, delivery: given[index]!, row: { ...row, payload } }));
  return given;
}

/** One of a session waits until it is the first of its line. */
export function newDelivery(
  eventId: BareId,
  type: string,
  { sessionId, user, record }: Pick<OutboxRow, "sessionId" | "user" | "record">,
  now: number,
): Omit<DeliveryRow, "payload"> {
  const nextAttemptAt = sessionId === null ? now : null;
  const owner = { ...(user === undefined ? {} : { user }), ...(record === undefined ? {} : { record }) };
  return { eventId, type, sessionId, ...owner, createdAt: now, status: "pending", attempts: 0, failures: 0, nextAttemptAt, recent: [] };
}

/** Body that a receiver gets. */
export function payloadJson(eventId: BareId, { type, createdAt }: { type: string; createdAt: number }, data: JsonText): JsonText {
  return jsonWith({ id: withPrefix("evt", eventId), type, created_at: toIso(createdAt) }, { data });
}

const CREATED_AT = '"created_at":"';

/** The `created_at` of a payload, in Unix milliseconds; it precedes anything a caller sent. */
export function payloadTime(payload: string): number {
  const start = payload.indexOf(CREATED_AT) + CREATED_AT.length;
  return Date.parse(payload.slice(start, payload.indexOf('"', start)));
}

/** A trace event carries the trace; undefined when that has been removed, after its time. */
function dataOf(reader: Reader, { trace, body }: OutboxRow, type: string): JsonText | undefined {
  if (!type.startsWith("trace.")) return body;
  const row = reader.get(traces, trace);
  return row === undefined ? undefined : traceJson({ key: trace, row });
}
