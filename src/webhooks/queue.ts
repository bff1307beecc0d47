/**
 * The queue of a webhook's deliveries: which one is next, and its entries in the store.
 *
 * The deliveries of a session form a line, in the order of their events, and only the first one has a time at which it is
 * due. When it leaves the line, the next one is due at once, behind those of other sessions that are due already. So
 * the index `due` has one entry for each line, however long the lines are.
 *
 * ```
 * inLine   S1: a b c d      S2: e f      g: g      (a line each; g has no session and is a line of its own)
 * due      a                e            g
 * ```
 *
 * A delivery that failed stays first in its line, and blocks it, while its next attempt is near (head-of-line blocking).
 * A next attempt that is far away means that the delivery leaves for a line of its own and the others overtake it, so that one event that a
 * receiver does not take delays no other for long.
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { readable } from "../storage/bad-rows.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { MAX_KEY, successor, NUMBER_KEY_LENGTH } from "../storage/keys.ts";
import { deliveries, lineOf, type DeliveryRow } from "../storage/tables.ts";

const { due, inLine } = deliveries.index;

/** The first entry that is not in flight is nearly always among these. */
const KEYS_PER_READ = 16;

export interface Queued {
  webhook: BareId;
  delivery: BareId;
  row: DeliveryRow;
}

/** Next step: this delivery now, or look again at a time, or nothing. */
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
    const keys = reader.keys(due, { from, to: webhook + MAX_KEY, limit: KEYS_PER_READ });
    for (const key of keys) {
      const delivery = key.slice(-BARE_ID_LENGTH);
      if (isInFlight(delivery)) continue;
      const at = dueAt(key);
      if (at > now) return { kind: "later", at };
      const row = readable(
        () => reader.get(deliveries, webhook + delivery),
        (error) => onUnreadable(webhook + delivery, error),
      );
      if (row !== undefined) return { kind: "now", queued: { webhook, delivery, row } };
    }
    if (keys.length < KEYS_PER_READ) return { kind: "none" };
    from = keys.at(-1) + MAX_KEY;
  }
}

/** Time at which the first delivery of a webhook is due; undefined where none is pending. */
export function firstDueAt(reader: Reader, webhook: BareId): number | undefined {
  const [entry] = reader.keys(due, { from: webhook, to: webhook + MAX_KEY, limit: 1 });
  return entry === undefined ? undefined : dueAt(entry);
}

const dueAt = (entry: string): number => fromBase62(entry.slice(BARE_ID_LENGTH, BARE_ID_LENGTH + NUMBER_KEY_LENGTH));

/** Writes a delivery. One of a session is due, at `now`, once it is the first of its line. */
export function putDelivery(tx: Tx, { webhook, delivery, row }: Queued): void {
  const key = webhook + delivery;
  const before = tx.get(deliveries, key);
  tx.put(deliveries, key, row);
  const lines = new Set([before, row].flatMap((one) => (one?.status === "pending" ? [lineOf(key, one)] : [])));
  for (const line of lines) makeFirstDue(tx, line);
}

/** Removes deliveries, by their keys; of lines that have others the first is due now. */
export function removeDeliveries(tx: Tx, keys: readonly string[]): void {
  const lines = new Set<string>();
  for (const key of keys) {
    const row = tx.get(deliveries, key);
    if (row === undefined) continue;
    tx.remove(deliveries, key);
    lines.add(lineOf(key, row));
  }
  for (const line of lines) makeFirstDue(tx, line);
}

/** Passes over rows that cannot be read: they would block their line for ever. */
function makeFirstDue(tx: Tx, line: string): void {
  for (let from = line; ;) {
    const [entry] = tx.keys(inLine, { from, to: line + MAX_KEY, limit: 1 });
    if (entry === undefined) return;
    const key = inLine.recordOf(entry);
    const row = readable(() => tx.get(deliveries, key));
    if (row?.nextAttemptAt === null) tx.put(deliveries, key, { ...row, nextAttemptAt: tx.now });
    if (row !== undefined) return;
    from = successor(entry);
  }
}
