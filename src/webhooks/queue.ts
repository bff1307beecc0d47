/**
 * The deliveries of a webhook: which one is next, and what stands in the store for each.
 *
 * They go out in the order of their events. One that failed waits for its next attempt, and while that is near, later ones
 * of its session wait with it; when it is far they overtake it, so that one event that a receiver will not take holds
 * back nobody for long. Other sessions go on meanwhile.
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { fromBase62 } from "../lib/base62.ts";
import { AFTER_ALL, numberKey } from "../storage/keys.ts";
import type { Reader, Tx } from "../storage/store.ts";
import { deliveries, deliveriesBySession, deliveriesDue, type DeliveryRow } from "../storage/tables.ts";

/** A delivery holds back its session while its next attempt is at most so far away. */
const HOLD_MS = 10_000;
/** Looked at to find the next one; the rest is looked at when these are done. */
const DUE_LOOKED_AT = 256;
const DUE_AT_ONCE = 16;
const OF_SESSION_LOOKED_AT = 64;
const MS_WIDTH = numberKey(0).length;

export interface Queued {
  webhook: BareId;
  delivery: BareId;
  row: DeliveryRow;
}

/** What to do next: this one now, or look again at a time, or nothing. */
export type Next = { kind: "now"; queued: Queued } | { kind: "later"; at: number } | { kind: "none" };

/**
 * The next delivery of a webhook.
 *
 * @param isSettling - deliveries whose attempt has ended, though the store does not say so yet
 */
export function nextOf(reader: Reader, webhook: BareId, now: number, isSettling: (delivery: BareId) => boolean): Next {
  const held = new Set<string>();
  let at = Number.POSITIVE_INFINITY;
  for (const key of dueKeys(reader, webhook)) {
    const ms = fromBase62(key.slice(BARE_ID_LENGTH, BARE_ID_LENGTH + MS_WIDTH));
    if (ms > now) {
      at = Math.min(at, ms);
      break;
    }
    const delivery = key.slice(-BARE_ID_LENGTH);
    const row = isSettling(delivery) ? undefined : reader.get(deliveries, webhook + delivery);
    if (row === undefined) continue;
    if (row.sessionId === null) return { kind: "now", queued: { webhook, delivery, row } };
    if (held.has(row.sessionId)) continue;
    const next = nextOfSession(reader, { webhook, delivery, row }, row.sessionId, now, isSettling);
    if (next.kind === "now") return next;
    held.add(row.sessionId);
    at = Math.min(at, next.at);
  }
  return Number.isFinite(at) ? { kind: "later", at } : { kind: "none" };
}

/** In the order of their times, a few at a time: mostly the first one is taken. */
function* dueKeys(reader: Reader, webhook: BareId): Generator<string, void, undefined> {
  let from: string = webhook;
  for (let looked = 0; looked < DUE_LOOKED_AT; looked += DUE_AT_ONCE) {
    const keys = reader.keys(deliveriesDue, { from, to: webhook + AFTER_ALL, limit: DUE_AT_ONCE });
    yield* keys;
    const last = keys.at(-1);
    if (last === undefined || keys.length < DUE_AT_ONCE) return;
    from = last + AFTER_ALL;
  }
}

/** One that is due, or one of its session that comes before it. */
function nextOfSession(
  reader: Reader,
  due: Queued,
  sessionId: string,
  now: number,
  isSettling: (delivery: BareId) => boolean,
): Extract<Next, { kind: "now" | "later" }> {
  const { webhook } = due;
  const prefix = sessionPrefix(webhook, sessionId);
  const earlier = reader.keys(deliveriesBySession, { from: prefix, to: prefix + due.delivery, limit: OF_SESSION_LOOKED_AT });
  for (const delivery of earlier.map((key) => key.slice(-BARE_ID_LENGTH))) {
    const row = isSettling(delivery) ? undefined : reader.get(deliveries, webhook + delivery);
    const at = row?.nextAttemptAt;
    if (row === undefined || at === null || at === undefined) continue;
    if (at <= now) return { kind: "now", queued: { webhook, delivery, row } };
    if (at <= now + HOLD_MS) return { kind: "later", at };
  }
  return { kind: "now", queued: due };
}

/** Writes a delivery, and where it stands in the queue. */
export function putDelivery(tx: Tx, { webhook, delivery, row }: Queued): void {
  const before = tx.get(deliveries, webhook + delivery);
  if (before !== undefined) removeFromQueue(tx, webhook, delivery, before);
  tx.put(deliveries, webhook + delivery, row);
  if (row.nextAttemptAt === null) return;
  tx.put(deliveriesDue, webhook + numberKey(row.nextAttemptAt) + delivery, "");
  if (row.sessionId !== null) tx.put(deliveriesBySession, sessionPrefix(webhook, row.sessionId) + delivery, "");
}

export function removeDelivery(tx: Tx, key: string): void {
  const row = tx.get(deliveries, key);
  if (row === undefined) return;
  removeFromQueue(tx, key.slice(0, BARE_ID_LENGTH), key.slice(BARE_ID_LENGTH), row);
  tx.remove(deliveries, key);
}

function removeFromQueue(tx: Tx, webhook: BareId, delivery: BareId, row: DeliveryRow): void {
  if (row.nextAttemptAt === null) return;
  tx.remove(deliveriesDue, webhook + numberKey(row.nextAttemptAt) + delivery);
  if (row.sessionId !== null) tx.remove(deliveriesBySession, sessionPrefix(webhook, row.sessionId) + delivery);
}

function sessionPrefix(webhook: BareId, sessionId: string): string {
  return webhook + sessionId.slice("sess_".length);
}
