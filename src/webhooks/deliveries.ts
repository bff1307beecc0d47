/**
 * Looking at what a webhook was sent, sending it again, and sending a test.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, BARE_ID_LENGTH, firstBareIdAt, isId, NO_PARTITION, withPrefix, type BareId, type Id } from "../lib/ids.ts";
import { jsonWith, toJson, type JsonText } from "../lib/json.ts";
import { isoOrNull, toIso } from "../lib/time.ts";
import { LIMITS } from "../lib/limits.ts";
import { isEventErased } from "../storage/erasure.ts";
import { MAX_KEY, hashKey } from "../storage/keys.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import { EVERYBODY } from "../storage/owner.ts";
import { pageOfBatches, type PageEntry, type Page } from "../storage/page.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { deliveries, deliveryCode, shownPayloads, type DeliveryRow, type WebhookRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { posting } from "../storage/walk.ts";
import { TEST_EVENT } from "../traces/events.ts";
import { commitAdmin, commitFor, type Caller, type Deps } from "../traces/record.ts";
import { newDelivery, payloadJson, addEvent } from "./outbox.ts";
import { putDelivery } from "./queue.ts";
import { findWebhook, webhookJson, type WebhookDeps } from "./webhooks.ts";

export type DeliveryId = Id<"dlv">;

const { ahead, byStatus, byType, failed } = deliveries.index;

export interface DeliveryFilter extends CreatedFilter {
  status?: DeliveryRow["status"] | undefined;
  eventType?: string | undefined;
}

/** Newest first. */
export async function listDeliveries(
  { store, listProbesMax }: Deps,
  webhookId: string,
  filter: DeliveryFilter,
  page: Page<DeliveryId>,
): Promise<JsonText> {
  const { status, eventType } = filter;
  const { key: webhook } = await store.read((reader) => findWebhook(reader, webhookId));
  const postings = [
    ...(status === undefined ? [] : [posting(byStatus, webhook + deliveryCode(status))]),
    ...(eventType === undefined ? [] : [posting(byType, webhook + hashKey(eventType))]),
  ];
  const listing = {
    prefix: "dlv",
    table: deliveries,
    ahead,
    filter: postings.length > 0 ? postings : [posting(deliveries, webhook)],
    owner: EVERYBODY,
    created: filter,
    probesMax: listProbesMax,
  } as const;
  return store.list(listing, page, (reader, delivery) => {
    const row = reader.get(deliveries, webhook + delivery);
    return row !== undefined && isCreatedWithin(row.createdAt, filter) && !isEventErased(reader, row)
      ? deliveryJson(webhook, delivery, row)
      : undefined;
  });
}

/** Deliveries of all webhooks that are not tried again, newest first. */
export async function listFailedDeliveries({ store, listProbesMax }: Deps, { limit, startingAfter }: Page<DeliveryId>): Promise<JsonText> {
  async function* found(): AsyncGenerator<PageEntry[], void, undefined> {
    let to = startingAfter === undefined ? MAX_KEY : bare(startingAfter);
    for (;;) {
      const { batch, last, isEnd } = await store.read((reader) => {
        const atOnce = Math.min(limit + 1, reader.recordsAtOnce);
        const entries = reader.keys(failed, { from: "", to, limit: atOnce, descending: true });
        const keys = entries.map((entry) => failed.recordOf(entry));
        reader.ahead(deliveries, keys);
        return { batch: eachFetched(keys, (key) => listedFailure(reader, key)), last: entries.at(-1), isEnd: entries.length < atOnce };
      });
      yield batch.flat();
      if (isEnd || last === undefined) return;
      to = last;
    }
  }
  return pageOfBatches(found(), limit, listProbesMax);
}

/** A delivery, unless it cannot be read, or its event is being erased. */
function listedFailure(reader: Reader, key: string): PageEntry[] {
  const [webhook, delivery] = [key.slice(0, BARE_ID_LENGTH), key.slice(BARE_ID_LENGTH)];
  const id = withPrefix("dlv", delivery);
  const row = unlessUnreadable(() => reader.get(deliveries, key));
  const isShown = row !== undefined && !isEventErased(reader, row);
  return [...(isShown ? [{ id, json: deliveryJson(webhook, delivery, row) }] : []), { passed: id, probes: 1 }];
}

/** One delivery with what is posted, and its latest attempts, the last one first. */
export function getDelivery({ store }: Deps, webhookId: string, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const { webhook, delivery, row } = findDelivery(reader, webhookId, id);
    const attempts = row.recent.toReversed().map(({ at, durationMs, status, body, error }) => {
      return {
        at: toIso(at),
        duration_ms: durationMs,
        response_code: status,
        response_body: body,
        response_withheld: isWithheld({ status, body }),
        error,
      };
    });
    return jsonWith(deliveryMembers(webhook, delivery, row), {
      payload: reader.get(shownPayloads, row.payload) ?? toJson({}),
      recent_attempts: toJson(attempts),
    });
  });
}

function findDelivery(
  reader: Reader,
  webhookId: string,
  id: string,
): { webhook: BareId; delivery: BareId; row: DeliveryRow; hook: WebhookRow } {
  const { key: webhook, row: hook } = findWebhook(reader, webhookId);
  const delivery = isId("dlv", id) ? bare(id) : undefined;
  const row = delivery === undefined ? undefined : reader.get(deliveries, webhook + delivery);
  if (delivery === undefined || row === undefined || isEventErased(reader, row)) {
    throw new ApiError("resource_not_found", `Webhook ${webhookId} has no delivery ${id.slice(0, 64)}; they are kept for 7 days.`, {
      param: "delivery_id",
    });
  }
  return { webhook, delivery, row, hook };
}

/**
 * Has failed deliveries of events since a time made again, the oldest first; as many as one commit should hold.
 *
 * @param since - Unix milliseconds
 */
export async function recoverDeliveries(deps: WebhookDeps, caller: Caller, webhookId: string, since: number): Promise<JsonText> {
  const answer = await commitAdmin(deps, caller, (tx) => {
    const { key: webhook, row: hook } = findWebhook(tx, webhookId);
    refuseDisabled(webhookId, hook);
    const from = webhook + deliveryCode("failed");
    const span = { from: from + firstBareIdAt(since), to: from + MAX_KEY, limit: LIMITS.recoveredAtOnceMax + 1 };
    const entries = tx.keys(byStatus, span);
    const taken = entries.slice(0, LIMITS.recoveredAtOnceMax);
    const made = eachFetched(taken, (entry) => {
      const key = byStatus.recordOf(entry);
      const row = unlessUnreadable(() => tx.get(deliveries, key));
      if (row === undefined || isEventErased(tx, row)) return false;
      putDelivery(tx, { webhook, delivery: key.slice(BARE_ID_LENGTH), row: madeAgain(row, tx.now) });
      return true;
    });
    return toJson({
      object: "webhook_recovery",
      webhook_id: withPrefix("whk", webhook),
      recovered: made.filter((isMade) => isMade).length,
      complete: taken.length === entries.length,
    });
  });
  deps.webhooks.deliveries.wake();
  return answer;
}

/** A delivery that is due at once, with all its retries. */
function madeAgain(before: DeliveryRow, now: number): DeliveryRow {
  const isFirst = before.status === "pending" && before.nextAttemptAt !== null;
  return { ...before, status: "pending", failures: 0, nextAttemptAt: now, ...(isFirst ? {} : { unordered: true }) };
}

/** Has a delivery made again, at once and with all its retries, whatever became of it before. Its event keeps its id. */
export async function retryDelivery(deps: WebhookDeps, caller: Caller, webhookId: string, id: string): Promise<JsonText> {
  const answer = await commitFor(deps, caller, NO_PARTITION, (tx) => {
    const { webhook, delivery, row: before, hook } = findDelivery(tx, webhookId, id);
    refuseDisabled(webhookId, hook);
    const row = madeAgain(before, tx.now);
    putDelivery(tx, { webhook, delivery, row });
    // It shows what the receiver answered, which may repeat what it was sent.
    return { json: deliveryJson(webhook, delivery, row), users: row.user === undefined ? [] : [row.user], asksForRoom: "never" };
  });
  deps.webhooks.deliveries.wake();
  return answer;
}

/** Sends the webhook itself, once: an event of the type `webhook.test`. */
export async function testWebhook(deps: WebhookDeps, caller: Caller, webhookId: string): Promise<JsonText> {
  const answer = await commitAdmin(deps, caller, (tx) => {
    const { key, row: webhook } = findWebhook(tx, webhookId);
    refuseDisabled(webhookId, webhook);
    const eventId = tx.bareId();
    const event = newDelivery(eventId, TEST_EVENT, { sessionId: null }, tx.now);
    const payload = payloadJson(eventId, event, webhookJson(tx, key, webhook));
    const row = { ...event, once: true as const };
    const [delivery = ""] = addEvent(tx, payload, [{ webhook: key, row }]);
    return deliveryJson(key, delivery, row);
  });
  deps.webhooks.deliveries.wake();
  return answer;
}

function refuseDisabled(id: string, { enabled, disabledReason }: WebhookRow): void {
  if (enabled) return;
  const why = disabledReason === null ? "" : ` ${disabledReason}`;
  throw new ApiError("invalid_request", `Webhook ${id} is disabled.${why} Enable it first.`, { param: "webhook_id" });
}

/** An answer without a text, which is kept only where the address is public. */
function isWithheld({ status, body }: Pick<DeliveryRow["recent"][number], "status" | "body">): boolean {
  return status !== null && body === null;
}

function deliveryJson(webhook: BareId, delivery: BareId, row: Omit<DeliveryRow, "payload">): JsonText {
  return toJson(deliveryMembers(webhook, delivery, row));
}

function deliveryMembers(webhook: BareId, delivery: BareId, row: Omit<DeliveryRow, "payload">): object {
  const last = row.recent.at(-1);
  return {
    object: "webhook_delivery",
    id: withPrefix("dlv", delivery),
    webhook_id: withPrefix("whk", webhook),
    event_id: withPrefix("evt", row.eventId),
    event_type: row.type,
    session_id: row.sessionId ?? undefined,
    status: row.status,
    attempts: row.attempts,
    failed_attempts: row.failures,
    created_at: toIso(row.createdAt),
    last_attempt_at: isoOrNull(last?.at ?? null),
    next_attempt_at: isoOrNull(row.nextAttemptAt),
    response_code: last?.status ?? null,
    response_body: last?.body ?? null,
    response_withheld: last !== undefined && isWithheld(last),
    duration_ms: last?.durationMs ?? null,
    error: last?.error ?? null,
  };
}
