/**
 * What became of the deliveries of webhooks in the last day, hour by hour.
 *
 * Entries of the index of statuses are counted, the newest first: of each status `deliveriesCountedMax`, and without reading a row
 * unless its id is ahead of the clock. Where there are more, everything is counted from the time on from which all are known, so that
 * the statuses can be compared.
 *
 * @module
 */
import { DAY_MS, HOUR_MS } from "../lib/duration.ts";
import { bare, bareIdTime, BARE_ID_LENGTH, firstBareIdAt, withPrefix, type BareId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { toIso } from "../lib/time.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { pageOfBatches, type Found, type Page } from "../storage/page.ts";
import { deliveries, DELIVERY_STATUSES, deliveryCode, webhooks } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Deps } from "../traces/record.ts";
import { findWebhook, type WebhookId } from "./webhooks.ts";

const HOURS = DAY_MS / HOUR_MS;
/** Entries that follow each other are read ten times as fast as those that are looked up. */
const ENTRIES_PER_LOOK = 10;

/** @throws {ApiError} `resource_not_found` */
export function webhookStats({ store }: Deps, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => countedDay(reader, findWebhook(reader, id).key).json);
}

/** Those of all webhooks, newest webhook first. A page ends early where there is much to count. */
export async function listWebhookStats({ store, listLooksMax }: Deps, { limit, startingAfter }: Page<WebhookId>): Promise<JsonText> {
  async function* found(): AsyncGenerator<Found[], void, undefined> {
    let to = startingAfter === undefined ? AFTER_ALL : bare(startingAfter);
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
        const looks = DELIVERY_STATUSES.length + entries / ENTRIES_PER_LOOK;
        yield [
          { id, json },
          { passed: id, looks },
        ];
      }
      if (isEnd) return;
    }
  }
  return pageOfBatches(found(), limit, listLooksMax);
}

/** @returns the answer, and how many entries were read for it */
function countedDay(reader: Reader, webhook: BareId): { json: JsonText; entries: number } {
  const dayAgo = reader.now - DAY_MS;
  const ofStatuses = eachFetched(DELIVERY_STATUSES, (status) => {
    const of = webhook + deliveryCode(status);
    const span = { from: of + firstBareIdAt(dayAgo), to: of + AFTER_ALL, limit: LIMITS.deliveriesCountedMax + 1, descending: true };
    const ids = reader.keys(deliveries.index.byStatus, span).map((entry) => entry.slice(-BARE_ID_LENGTH));
    return { status, ids, last: ids.length > LIMITS.deliveriesCountedMax ? ids[LIMITS.deliveriesCountedMax - 1] : undefined };
  });
  const first = ofStatuses.reduce<BareId>((latest, { last = "" }) => (last > latest ? last : latest), "");
  const timeOf = timesOf(
    reader,
    webhook,
    ofStatuses.values().flatMap(({ ids }) => ids),
  );
  const since = first === "" ? dayAgo : Math.min(timeOf(first), reader.now);
  const hourOf = (at: number) => Math.min(Math.floor((at - dayAgo) / HOUR_MS), HOURS - 1);
  const hours = Array.from({ length: HOURS }, (_, hour) => ({ start: dayAgo + hour * HOUR_MS, pending: 0, delivered: 0, failed: 0 }));
  const counts = { pending: 0, delivered: 0, failed: 0 };
  for (const { status, ids } of ofStatuses) {
    for (const id of ids) {
      if (id < first) break;
      const at = timeOf(id);
      if (at < since || at > reader.now) continue;
      hours[hourOf(at)]![status]++;
      counts[status]++;
    }
  }
  const json = toJson({
    object: "webhook_stats",
    webhook_id: withPrefix("whk", webhook),
    since: toIso(since),
    ...counts,
    more: first !== "",
    hours: hours.slice(hourOf(since)).map(({ start, ...counted }) => ({ start: toIso(start), ...counted })),
  });
  return { json, entries: ofStatuses.reduce((sum, { ids }) => sum + ids.length, 0) };
}

/** When each of these deliveries was made. The ids of those made after the clock was set back are later, and only their rows say it. */
function timesOf(reader: Reader, webhook: BareId, ids: Iterable<BareId>): (id: BareId) => number {
  const { now } = reader;
  const later = firstBareIdAt(now + 1);
  const ahead = Array.from(ids).filter((id) => id >= later);
  const rows = eachFetched(ahead, (id) => unlessUnreadable(() => reader.get(deliveries, webhook + id)));
  const times = new Map(ahead.map((id, i) => [id, rows[i]?.createdAt ?? now]));
  return (id) => times.get(id) ?? bareIdTime(id);
}
