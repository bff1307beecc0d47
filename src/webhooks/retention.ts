/**
 * Removes deliveries after 7 days, made or not, and those of webhooks that are gone.
 *
 * A bounded number per commit. What was posted goes with the last delivery that could still need it.
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import { BARE_ID_LENGTH, firstBareIdAt } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Log } from "../lib/log.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { deliveries, payloads, webhooks } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { Records } from "../traces/record.ts";
import { removeDeliveries } from "./queue.ts";

const ROWS_PER_COMMIT = 200;
const IDLE_MS = 60_000;
/** Ids of one event are drawn at once, but the last of them may be of the next millisecond: a payload stays a little longer. */
const PAYLOAD_MARGIN_MS = 60_000;

export function deliveryRetention({ store, clock }: Records, log: Log): Task {
  const name = "webhook retention";
  const bad = new BadRows(store, log, name);
  return {
    name,
    async run() {
      const keptFrom = clock.now() - LIMITS.deliveryDays * DAY_MS;
      const old = oldDeliveries(firstBareIdAt(keptFrom));
      // Not before all the deliveries that have it are found.
      const limit = old.length < ROWS_PER_COMMIT ? ROWS_PER_COMMIT : 0;
      const unneeded = limit === 0 ? [] : store.keys(payloads, { from: "", to: firstBareIdAt(keptFrom - PAYLOAD_MARGIN_MS), limit });
      if (old.length > 0 || unneeded.length > 0) {
        const now = clock.now();
        await bad.commit((tx, isolate) => {
          for (const key of old) isolate(key, () => removeDeliveries(tx, [key], now));
          for (const key of unneeded) tx.remove(payloads, key);
        });
      }
      return old.length >= ROWS_PER_COMMIT || unneeded.length >= ROWS_PER_COMMIT ? 0 : IDLE_MS;
    },
  };

  /** Webhook by webhook: the first ones of each, or all of one that is gone. */
  function oldDeliveries(keptFrom: string): string[] {
    const found: string[] = [];
    let from = "";
    while (found.length < ROWS_PER_COMMIT) {
      const [first] = store.keys(deliveries, { from, to: AFTER_ALL, limit: 1 });
      if (first === undefined) break;
      const webhook = first.slice(0, BARE_ID_LENGTH);
      const to = webhook + (store.has(webhooks, webhook) ? keptFrom : AFTER_ALL);
      found.push(...bad.keysOfOthers(deliveries, { from: webhook, to, limit: ROWS_PER_COMMIT - found.length }));
      from = webhook + AFTER_ALL;
    }
    return found;
  }
}
