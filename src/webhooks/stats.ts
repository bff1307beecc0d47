/**
 * What became of a webhook's deliveries in the last day, hour by hour.
 *
 * @module
 */
import { DAY_MS, HOUR_MS } from "../lib/duration.ts";
import { bareIdTime, BARE_ID_LENGTH, firstBareIdAt } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { toIso } from "../lib/time.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { deliveries, DELIVERY_STATUSES, deliveryCode } from "../storage/tables.ts";
import type { Deps } from "../traces/record.ts";
import { findWebhook } from "./webhooks.ts";

const HOURS = DAY_MS / HOUR_MS;

/** Counts entries of the index of statuses, the newest first, without reading a row. @throws {ApiError} `resource_not_found` */
export function webhookStats({ store }: Deps, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const { key: webhook } = findWebhook(reader, id);
    const { byStatus } = deliveries.index;
    const since = reader.now - DAY_MS;
    const hours = Array.from({ length: HOURS }, (_, i) => ({ start: toIso(since + i * HOUR_MS), pending: 0, delivered: 0, failed: 0 }));
    const counts = { pending: 0, delivered: 0, failed: 0 };
    let more = false;
    for (const status of DELIVERY_STATUSES) {
      const of = webhook + deliveryCode(status);
      const limit = LIMITS.deliveriesCountedMax + 1;
      const entries = reader.keys(byStatus, { from: of + firstBareIdAt(since), to: of + AFTER_ALL, limit, descending: true });
      more ||= entries.length === limit;
      for (const entry of entries.slice(0, limit - 1)) {
        const hour = Math.floor((bareIdTime(entry.slice(-BARE_ID_LENGTH)) - since) / HOUR_MS);
        // The id of one that was made just now, or under a clock that was ahead, is later than the last hour.
        hours[Math.min(hour, HOURS - 1)]![status]++;
        counts[status]++;
      }
    }
    return toJson({ object: "webhook_stats", webhook_id: id, since: toIso(since), ...counts, more, hours });
  });
}
