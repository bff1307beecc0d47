/**
 * Turns events into deliveries: one for each webhook that wants the event.
 *
 * `traces/record.ts` writes an event in the transaction of its change; here it leaves the outbox in the transaction that
 * writes its deliveries, so that it becomes all of them or none. The task is woken after a commit. Where there is no
 * webhook nobody wakes it, and it clears the outbox now and then: what happened before a webhook was there is not for it.
 *
 * @module
 */
import { withPrefix, type BareId } from "../lib/ids.ts";
import { jsonObject, toJson, type JsonText } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import { toIso } from "../lib/time.ts";
import { BadRows, readable, type Isolate } from "../storage/bad-rows.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import type { Reader, Tx } from "../storage/store.ts";
import { outbox, payloads, traces, webhooks, type DeliveryRow, type OutboxRow, type WebhookRow } from "../storage/tables.ts";
import type { Activator, Task } from "../tasks/task.ts";
import type { Records } from "../traces/record.ts";
import { putDelivery } from "./queue.ts";

const NAME = "webhook outbox";

const EVENTS_PER_COMMIT = 200;
/** A commit ends early when it has copied this much: records can be large, and webhooks many. */
const BYTES_PER_COMMIT = 4 * 1024 * 1024;
const DELIVERIES_PER_COMMIT = 1_000;
const DROPPED_PER_COMMIT = 2_000;
const IDLE_MS = 10_000;

/** @param deliveries - woken when there are new ones */
export function outboxDrain(records: Records, log: Log, activator: Activator, deliveries: Activator): Task {
  const { store } = records;
  const bad = new BadRows(store, log, NAME);
  return {
    name: NAME,
    activator,
    async run() {
      const isWanted = enabledWebhooks(store).length > 0;
      const limit = isWanted ? EVENTS_PER_COMMIT : DROPPED_PER_COMMIT;
      const keys = bad.keysOfOthers(outbox, { from: "", to: AFTER_ALL, limit });
      if (keys.length === 0) return IDLE_MS;
      const done = await bad.commit((tx, isolate) => drain(tx, records, keys, isolate));
      if (done.deliveries > 0) deliveries.wake();
      return done.events === limit || done.events < keys.length ? 0 : IDLE_MS;
    },
  };
}

function drain(tx: Tx, records: Records, keys: readonly BareId[], isolate: Isolate): { events: number; deliveries: number } {
  const receivers = enabledWebhooks(tx);
  const done = { events: 0, deliveries: 0 };
  let bytes = 0;
  for (const key of keys) {
    isolate(key, () => {
      const made = receivers.length === 0 ? undefined : putDeliveries(tx, records, key, receivers);
      tx.remove(outbox, key);
      done.deliveries += made?.deliveries ?? 0;
      bytes += made?.length ?? 0;
    });
    done.events++;
    if (bytes >= BYTES_PER_COMMIT || done.deliveries >= DELIVERIES_PER_COMMIT) break;
  }
  return done;
}

/** @returns how many there are of an event, and the length of what they deliver */
function putDeliveries(
  tx: Tx,
  records: Records,
  event: BareId,
  receivers: readonly { key: BareId; row: WebhookRow }[],
): { deliveries: number; length: number } | undefined {
  const row = tx.get(outbox, event);
  const wanting = row === undefined ? [] : receivers.filter((one) => one.row.since < event && one.row.events.includes(row.type));
  const data = row === undefined || wanting.length === 0 ? undefined : dataOf(tx, row);
  if (row === undefined || data === undefined) return undefined;
  const payload = payloadJson(event, row, data);
  const now = records.clock.now();
  putEvent(
    tx,
    records,
    payload,
    wanting.map(({ key: webhook }) => ({ webhook, row: newDelivery(event, row.type, row.sessionId, now) })),
  );
  return { deliveries: wanting.length, length: payload.length };
}

/** Writes a payload and its deliveries. @returns the ids of these */
export function putEvent(
  tx: Tx,
  { ids, clock }: Records,
  body: JsonText,
  receivers: readonly { webhook: BareId; row: Omit<DeliveryRow, "payload"> }[],
): BareId[] {
  const given = receivers.map(() => ids.bare());
  // The last of these ids: its key is the newest that a start finds, so that none of them is given again.
  const payload = ids.bare();
  tx.put(payloads, payload, body);
  const now = clock.now();
  receivers.forEach(({ webhook, row }, index) =>
    putDelivery(tx, { webhook, delivery: given[index] as BareId, row: { ...row, payload } }, now),
  );
  return given;
}

/** One of a session waits until it is the first of its line. */
export function newDelivery(eventId: BareId, type: string, sessionId: string | null, now: number): Omit<DeliveryRow, "payload"> {
  const nextAttemptAt = sessionId === null ? now : null;
  return { eventId, type, sessionId, createdAt: now, status: "pending", attempts: 0, failures: 0, nextAttemptAt, last: null };
}

/** What a receiver gets. */
export function payloadJson(eventId: BareId, { type, createdAt }: { type: string; createdAt: number }, data: JsonText): JsonText {
  return jsonObject({
    id: toJson(withPrefix("evt", eventId)),
    type: toJson(type),
    created_at: toJson(toIso(createdAt)),
    data,
  });
}

const CREATED_AT = '"created_at":"';

/** Unix milliseconds: the `created_at` of a payload, which stands before anything of a caller's. */
export function payloadTime(payload: string): number {
  const start = payload.indexOf(CREATED_AT) + CREATED_AT.length;
  return Date.parse(payload.slice(start, payload.indexOf('"', start)));
}

/** A trace event has its record in the traces; undefined when that has been removed, after its time. */
function dataOf(reader: Reader, row: OutboxRow): JsonText | undefined {
  return row.traceId === undefined ? row.body : reader.get(traces, row.traceId.slice("trace_".length))?.body;
}

/** Without one whose row cannot be read, so that the others go on. */
export function enabledWebhooks(reader: Reader): { key: BareId; row: WebhookRow }[] {
  return reader.keys(webhooks, { from: "", to: AFTER_ALL }).flatMap((key) => {
    const row = readable(() => reader.get(webhooks, key));
    return row?.enabled === true ? [{ key, row }] : [];
  });
}
