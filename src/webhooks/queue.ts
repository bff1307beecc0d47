/**
 * The queue of a webhook's deliveries: which one is next, and its entries in the store.
 *
 * The deliveries of a session form a line, in the order of their events, and only the first one has a time at which it is
 * due. When it leaves the line, the next one is due at once, behind those of other sessions that are due already. So
 * the index `deliveriesDue` has one entry for each line, however long the lines are.
 *
 * ```
 * deliveriesBySession   S1: a b c d      S2: e f      g: g      (a line each; g has no session and is a line of its own)
 * deliveriesDue         a                e            g
 * ```
 *
 * A delivery that failed stays first in its line, and blocks it, while its next attempt is near (head-of-line blocking).
 * When that is far away the delivery leaves for a line of its own and the others overtake it, so that one event that a
 * receiver does not take delays no other for long.
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { readable } from "../storage/bad-rows.ts";
import { AFTER_ALL, NUMBER_KEY_LENGTH, numberKey } from "../storage/keys.ts";
import type { Reader, Tx } from "../storage/store.ts";
import { deliveries, deliveriesBySession, deliveriesDue, type AnyTable, type DeliveryRow } from "../storage/tables.ts";

/** The first entry that is not in flight is nearly always among these. */
const KEYS_PER_READ = 16;

export interface Queued {
  webhook: BareId;
  delivery: BareId;
  row: DeliveryRow;
}

/** What to do next: this one now, or look again at a time, or nothing. */
export type Next = { kind: "now"; queued: Queued } | { kind: "later"; at: number } | { kind: "none" };

/**
 * Returns the delivery of a webhook that has been due for longest.
 *
 * @param isInFlight - whether an attempt is under way, or its result not saved yet; such a delivery is passed over
 * @param onUnreadable - called with the key of a row that cannot be read, which is passed over too
 */
export function nextDue(
  reader: Reader,
  webhook: BareId,
  now: number,
  isInFlight: (delivery: BareId) => boolean,
  onUnreadable: (key: string, error: unknown) => void = () => undefined,
): Next {
  for (let from: string = webhook; ;) {
    const keys = reader.keys(deliveriesDue, { from, to: webhook + AFTER_ALL, limit: KEYS_PER_READ });
    for (const key of keys) {
      const delivery = key.slice(-BARE_ID_LENGTH);
      if (isInFlight(delivery)) continue;
      const at = fromBase62(key.slice(BARE_ID_LENGTH, BARE_ID_LENGTH + NUMBER_KEY_LENGTH));
      if (at > now) return { kind: "later", at };
      const row = readable(
        () => reader.get(deliveries, webhook + delivery),
        (error) => onUnreadable(webhook + delivery, error),
      );
      if (row !== undefined) return { kind: "now", queued: { webhook, delivery, row } };
    }
    if (keys.length < KEYS_PER_READ) return { kind: "none" };
    from = keys.at(-1) + AFTER_ALL;
  }
}

/** Writes a delivery and its entries. One of a session is due, at `now`, once it is the first of its line. */
export function putDelivery(tx: Tx, queued: Queued, now: number): void {
  const { webhook, delivery, row } = queued;
  const before = tx.get(deliveries, webhook + delivery);
  if (before !== undefined) removeEntries(tx, { webhook, delivery, row: before });
  write(tx, queued);
  const lines = new Set([before, row].flatMap((one) => (one?.status === "pending" ? [lineOf(webhook, delivery, one)] : [])));
  for (const line of lines) makeFirstDue(tx, line, now);
}

/** Removes deliveries, by their keys; lines that have others go on with these at `now`. */
export function removeDeliveries(tx: Tx, keys: readonly string[], now: number): void {
  const lines = new Set<string>();
  for (const key of keys) {
    const row = tx.get(deliveries, key);
    if (row === undefined) continue;
    const [webhook, delivery] = [key.slice(0, BARE_ID_LENGTH), key.slice(BARE_ID_LENGTH)];
    removeEntries(tx, { webhook, delivery, row });
    tx.remove(deliveries, key);
    lines.add(lineOf(webhook, delivery, row));
  }
  for (const line of lines) makeFirstDue(tx, line, now);
}

/** The entries of a delivery in the indexes: none once it is delivered or given up. */
export function queueEntries(
  webhook: BareId,
  delivery: BareId,
  row: DeliveryRow,
): { table: AnyTable & typeof deliveriesDue; key: string }[] {
  if (row.status !== "pending") return [];
  return [
    { table: deliveriesBySession, key: lineOf(webhook, delivery, row) + delivery },
    ...(row.nextAttemptAt === null ? [] : [{ table: deliveriesDue, key: webhook + numberKey(row.nextAttemptAt) + delivery }]),
  ];
}

function write(tx: Tx, { webhook, delivery, row }: Queued): void {
  tx.put(deliveries, webhook + delivery, row);
  for (const { table, key } of queueEntries(webhook, delivery, row)) tx.put(table, key, "");
}

function removeEntries(tx: Tx, { webhook, delivery, row }: Queued): void {
  for (const { table, key } of queueEntries(webhook, delivery, row)) tx.remove(table, key);
}

function makeFirstDue(tx: Tx, line: string, now: number): void {
  const [key] = tx.keys(deliveriesBySession, { from: line, to: line + AFTER_ALL, limit: 1 });
  if (key === undefined) return;
  const [webhook, delivery] = [key.slice(0, BARE_ID_LENGTH), key.slice(-BARE_ID_LENGTH)];
  const row = readable(() => tx.get(deliveries, webhook + delivery));
  if (row !== undefined && row.nextAttemptAt === null) write(tx, { webhook, delivery, row: { ...row, nextAttemptAt: now } });
}

/** The keys of a line begin with this. Events without a session have no order; each is a line of its own. */
function lineOf(webhook: BareId, delivery: BareId, { sessionId, unordered }: DeliveryRow): string {
  return webhook + (sessionId === null || unordered === true ? delivery : sessionId.slice("sess_".length));
}
