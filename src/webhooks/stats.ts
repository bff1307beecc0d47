/**
 * Counts of deliveries by webhook and outcome in the last day, and failed attempts hour by hour.
 *
 * Failed attempts are counted when they are recorded (`outcome.ts`), from the first one of a delivery on.
 * Entries of the index of statuses are counted, the newest first: of each status `deliveriesCountedMax`, and without reading a row
 * unless its id is ahead of the clock. Where there are more, everything is counted from the time on from which all are known, so that
 * the statuses can be compared.
 *
 * @module
 */
import { HOUR_MS } from "../lib/duration.ts";
import { bare, bareIdTime, BARE_ID_LENGTH, firstBareIdAt, withPrefix, type BareId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { toIso } from "../lib/time.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { MAX_KEY } from "../storage/keys.ts";
import { pageOfBatches, rowsOf, type PageEntry, type Page } from "../storage/page.ts";
import { deliveries, DELIVERY_STATUSES, deliveryCode, webhookFailures, webhooks } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Deps } from "../traces/record.ts";
import { countedHours } from "./outcome.ts";
import { findWebhook, type WebhookId } from "./webhooks.ts";

/** Entries that follow each other are read ten times as fast as those that are looked up. */
const ENTRIES_PER_LOOK = 10;

/** @throws {ApiError} `resource_not_found` */
export function webhookStats({ store }: Deps, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => countedDay(reader, findWebhook(reader, id).key).json);
}

/** Counts of all webhooks, newest webhook first. A page ends early where there is much to count. */
export async function listWebhookStats({ store, listProbesMax }: Deps, { limit, startingAfter }: Page<WebhookId>): Promise<JsonText> {
  async function* found(): AsyncGenerator<PageEntry[], void, undefined> {
    let to = startingAfter === undefined ? MAX_KEY : bare(startingAfter);
    for (;;) {
      const before = to;
      const { next, isEnd } = await store.read((reader) => {
        const atOnce = Math.min(limit + 1, reader.recordsAtOnce);
        const some = reader.keys(webhooks, { from: "", to: before, limit: atOnce, descending: true });
        return { next: eachFetched(some, (webhook) => ({ webhook, ...countedDay(reader, webhook) })), isEnd: some.length < atOnce };
      });
      for (const { webhook, json, entries } of next) {
        to = webhook;
        const id = withPrefix("whk", webhook);
        const probes = DELIVERY_STATUSES.length + entries / ENTRIES_PER_LOOK;
        yield [
          { id, json },
          { passed: id, probes },
        ];
      }
      if (isEnd) return;
    }
  }
  return pageOfBatches(found(), limit, listProbesMax);
}

/** Count that a delivery of each status adds to: `failed` counts attempts. */
const COUNTED_AS = { pending: "pending", delivered: "delivered", failed: "exhausted" } as const;

/** @returns the answer, and how many entries were read for it */
function countedDay(reader: Reader, webhook: BareId): { json: JsonText; entries: number } {
  const starts = countedHours(reader.now);
  const [begin = 0] = starts;
  const ofStatuses = eachFetched(DELIVERY_STATUSES, (status) => {
    const of = webhook + deliveryCode(status);
    const span = { from: of + firstBareIdAt(begin), to: of + MAX_KEY, limit: LIMITS.deliveriesCountedMax + 1, descending: true };
    const ids = reader.keys(deliveries.index.byStatus, span).map((entry) => entry.slice(-BARE_ID_LENGTH));
    return { status, ids, last: ids.length > LIMITS.deliveriesCountedMax ? ids[LIMITS.deliveriesCountedMax - 1] : undefined };
  });
  const first = ofStatuses.reduce<BareId>((latest, { last = "" }) => (last > latest ? last : latest), "");
  const timeOf = timesOf(
    reader,
    webhook,
    ofStatuses.values().flatMap(({ ids }) => ids),
  );
  const since = first === "" ? begin : Math.min(timeOf(first), reader.now);
  const hourOf = (at: number) => Math.floor((at - begin) / HOUR_MS);
  const failed = new Map(
    unlessUnreadable(() => reader.get(webhookFailures, webhook))?.hours.map(({ start, attempts }) => [start, attempts]),
  );
  const hours = starts.map((start) => ({ start, pending: 0, delivered: 0, failed: failed.get(start) ?? 0, exhausted: 0 }));
  for (const { status, ids } of ofStatuses) {
    for (const id of ids) {
      if (id < first) break;
      const at = timeOf(id);
      if (at < since || at > reader.now) continue;
      hours[hourOf(at)]![COUNTED_AS[status]]++;
    }
  }
  const shown = hours.slice(hourOf(since));
  const total = (name: "pending" | "delivered" | "failed" | "exhausted") => shown.reduce((sum, hour) => sum + hour[name], 0);
  const json = toJson({
    object: "webhook_stats",
    webhook_id: withPrefix("whk", webhook),
    since: toIso(since),
    pending: total("pending"),
    delivered: total("delivered"),
    failed: total("failed"),
    exhausted: total("exhausted"),
    more: first !== "",
    hours: shown.map(({ start, ...counted }) => ({ start: toIso(start), ...counted })),
  });
  return { json, entries: ofStatuses.reduce((sum, { ids }) => sum + ids.length, 0) };
}

/** Attempts of all webhooks that failed in the hours that are counted. Each webhook that ever failed has a row, a hundred at most. */
export function failedAttempts(reader: Reader): number {
  const [begin = 0] = countedHours(reader.now);
  const rows = rowsOf(reader, webhookFailures, { from: "", to: MAX_KEY }, LIMITS.webhooksMax);
  const hours = rows.flatMap(({ row }) => row.hours).filter(({ start }) => start >= begin && start <= reader.now);
  return hours.reduce((sum, { attempts }) => sum + attempts, 0);
}

/** Times at which these deliveries were created. Ids of those created after the clock was set back are later; only their rows say it. */
function timesOf(reader: Reader, webhook: BareId, ids: Iterable<BareId>): (id: BareId) => number {
  const { now } = reader;
  const later = firstBareIdAt(now + 1);
  const ahead = Array.from(ids).filter((id) => id >= later);
  const rows = eachFetched(ahead, (id) => unlessUnreadable(() => reader.get(deliveries, webhook + id)));
  const times = new Map(ahead.map((id, i) => [id, rows[i]?.createdAt ?? now]));
  return (id) => times.get(id) ?? bareIdTime(id);
}
