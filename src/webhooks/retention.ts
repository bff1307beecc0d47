/**
 * Removes deliveries after 7 days, made or not, and those of webhooks that are gone.
 *
 * A bounded number per commit. What was posted goes with the last delivery that could still need it.
 *
 * Ids tell how old they are, unless the clock was set back: then they stay ahead of it until it has caught up. Once an hour
 * the task looks at the rows of such ids, a few at a time; there are none as a rule.
 *
 * @module
 */
import { DAY_MS, HOUR_MS } from "../lib/duration.ts";
import { BARE_ID_LENGTH, firstBareIdAt, NO_HOME } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Log } from "../lib/log.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { behind } from "../storage/page.ts";
import type { Tx } from "../storage/access.ts";
import { deliveries, payloads, webhooks, type DeliveryRow } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { Records } from "../traces/record.ts";
import { payloadTime } from "./outbox.ts";
import { putDelivery, removeDeliveries } from "./queue.ts";

const ROWS_PER_COMMIT = 200;
const IDLE_MS = 60_000;
/** Ids of one event are drawn at once, but the last of them may be of the next millisecond: a payload stays a little longer. */
const PAYLOAD_MARGIN_MS = 60_000;
const SWEEP_EVERY_MS = HOUR_MS;
const SWEPT_PER_COMMIT = 50;
/** An id that is further ahead of the clock was made when the clock showed another time. */
const AHEAD_MS = DAY_MS;
/** No wait is longer, with its jitter: a schedule is at most as long as deliveries are kept. */
const WAIT_MS_MAX = 2 * LIMITS.deliveryDays * DAY_MS;

export function deliveryRetention({ store, clock }: Records, log: Log): Task {
  const name = "webhook retention";
  const bad = new BadRows(store, log, name);
  let sweepAt = 0;
  /** Where the sweep continues: a key of `deliveries`, then one of `payloads`. */
  let position: { table: "deliveries" | "payloads"; from: string } | undefined;
  return {
    name,
    async run() {
      const keptFrom = clock.now() - LIMITS.deliveryDays * DAY_MS;
      const old = oldDeliveries(firstBareIdAt(keptFrom));
      // Not before all the deliveries that have it are found.
      const limit = old.length < ROWS_PER_COMMIT ? ROWS_PER_COMMIT : 0;
      const unneeded = limit === 0 ? [] : store.latest.keys(payloads, { from: "", to: firstBareIdAt(keptFrom - PAYLOAD_MARGIN_MS), limit });
      if (old.length > 0 || unneeded.length > 0) {
        await bad.commit((tx, isolate) => {
          for (const key of old) isolate(key, () => removeDeliveries(tx, [key]));
          for (const key of unneeded) tx.remove(payloads, key);
        });
      }
      if (clock.elapsed() >= sweepAt) {
        position ??= { table: "deliveries", from: "" };
        await (position.table === "deliveries" ? sweepDeliveries(position.from) : sweepPayloads(position.from));
        if (position !== undefined) return 0;
        sweepAt = clock.elapsed() + SWEEP_EVERY_MS;
      }
      return old.length >= ROWS_PER_COMMIT || unneeded.length >= ROWS_PER_COMMIT ? 0 : IDLE_MS;
    },
  };

  /** Removes those of ids ahead that are old, and has those that a clock ahead has put off for years made now. */
  async function sweepDeliveries(from: string): Promise<void> {
    const [first] = store.latest.keys(deliveries, { from, to: AFTER_ALL, limit: 1 });
    if (first === undefined) {
      position = { table: "payloads", from: "" };
      return;
    }
    const now = clock.now();
    const webhook = first.slice(0, BARE_ID_LENGTH);
    const start = webhook + firstBareIdAt(now + AHEAD_MS);
    const keys = store.latest.keys(deliveries, { from: start > from ? start : from, to: webhook + AFTER_ALL, limit: SWEPT_PER_COMMIT });
    if (keys.length > 0) {
      await bad.commit((tx, isolate) => {
        for (const key of keys) isolate(key, () => settle(tx, key));
      });
    }
    const last = keys.at(-1);
    position = { table: "deliveries", from: keys.length < SWEPT_PER_COMMIT || last === undefined ? webhook + AFTER_ALL : behind(last) };
  }

  async function sweepPayloads(from: string): Promise<void> {
    const now = clock.now();
    const start = firstBareIdAt(now + AHEAD_MS);
    const rows = store.latest.rows(payloads, { from: start > from ? start : from, to: AFTER_ALL, limit: SWEPT_PER_COMMIT });
    const keptFrom = now - LIMITS.deliveryDays * DAY_MS - PAYLOAD_MARGIN_MS;
    const old = rows.filter(({ row }) => payloadTime(row) < keptFrom).map(({ key }) => key);
    if (old.length > 0) {
      await store.commit(NO_HOME, (tx) => {
        for (const key of old) tx.remove(payloads, key);
      });
    }
    const last = rows.at(-1);
    position = rows.length < SWEPT_PER_COMMIT || last === undefined ? undefined : { table: "payloads", from: behind(last.key) };
  }

  /** Webhook by webhook: the first ones of each, or all of one that is gone. */
  function oldDeliveries(keptFrom: string): string[] {
    const found: string[] = [];
    let from = "";
    while (found.length < ROWS_PER_COMMIT) {
      const [first] = store.latest.keys(deliveries, { from, to: AFTER_ALL, limit: 1 });
      if (first === undefined) break;
      const webhook = first.slice(0, BARE_ID_LENGTH);
      const to = webhook + (store.latest.has(webhooks, webhook) ? keptFrom : AFTER_ALL);
      found.push(...bad.keysOfOthers(deliveries, { from: webhook, to, limit: ROWS_PER_COMMIT - found.length }));
      from = webhook + AFTER_ALL;
    }
    return found;
  }
}

/** Removes a delivery whose time has passed; one of a time that a clock ahead has shown becomes one of now. */
function settle(tx: Tx, key: string): void {
  const { now } = tx;
  const row = tx.get(deliveries, key);
  if (row === undefined) return;
  if (isAhead(row, now)) {
    const [webhook, delivery] = [key.slice(0, BARE_ID_LENGTH), key.slice(BARE_ID_LENGTH)];
    const nextAttemptAt = row.nextAttemptAt === null ? null : Math.min(row.nextAttemptAt, now);
    putDelivery(tx, { webhook, delivery, row: { ...row, createdAt: Math.min(row.createdAt, now), nextAttemptAt } });
  } else if (row.createdAt < now - LIMITS.deliveryDays * DAY_MS) {
    removeDeliveries(tx, [key]);
  }
}

/** Made, or to be tried again, at times that a clock ahead has shown. */
function isAhead({ createdAt, nextAttemptAt }: DeliveryRow, now: number): boolean {
  return createdAt > now + AHEAD_MS || (nextAttemptAt ?? 0) > now + WAIT_MS_MAX;
}
