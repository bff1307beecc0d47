/**
 * Looking at what a webhook was sent, sending it again, and sending a test.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, isId, NO_HOME, withPrefix, type BareId, type Id } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { isoOrNull, toIso } from "../lib/time.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { deliveries, type DeliveryRow, type WebhookRow } from "../storage/tables.ts";
import { commitFor, type Caller, type Deps } from "../traces/record.ts";
import { newDelivery, payloadJson, addEvent } from "./outbox.ts";
import { putDelivery } from "./queue.ts";
import { findWebhook, webhookJson, type WebhookDeps } from "./webhooks.ts";

export type DeliveryId = Id<"dlv">;

/** The type of the event that a test sends; nobody subscribes to it. */
const TEST_EVENT = "webhook.test";

/** Newest first. */
export function listDeliveries({ store }: Deps, webhookId: string, page: Page<DeliveryId>): JsonText {
  return store.read((reader) => {
    const { key: webhook } = findWebhook(reader, webhookId);
    const to = webhook + (page.startingAfter === undefined ? AFTER_ALL : bare(page.startingAfter));
    const rows = reader.rows(deliveries, { from: webhook, to, limit: page.limit + 1, descending: true });
    const items = rows.map(({ key, row }) => {
      const delivery = key.slice(webhook.length);
      return { id: withPrefix("dlv", delivery), json: deliveryJson(webhook, delivery, row) };
    });
    return pageOf(items, page.limit);
  });
}

/** Has a delivery made again, at once and with all its retries, whatever became of it before. Its event keeps its id. */
export async function retryDelivery(deps: WebhookDeps, caller: Caller, webhookId: string, id: string): Promise<JsonText> {
  const answer = await commitFor(deps, caller, NO_HOME, (tx) => {
    const { key, row: webhook } = findWebhook(tx, webhookId);
    const delivery = isId("dlv", id) ? bare(id) : undefined;
    const before = delivery === undefined ? undefined : tx.get(deliveries, key + delivery);
    if (delivery === undefined || before === undefined) {
      throw new ApiError("resource_not_found", `Webhook ${webhookId} has no delivery ${id.slice(0, 64)}; they are kept for 7 days.`, {
        param: "delivery_id",
      });
    }
    refuseDisabled(webhookId, webhook);
    const isFirst = before.status === "pending" && before.nextAttemptAt !== null;
    const row: DeliveryRow = { ...before, status: "pending", failures: 0, nextAttemptAt: tx.now, ...(isFirst ? {} : { unordered: true }) };
    putDelivery(tx, { webhook: key, delivery, row });
    return deliveryJson(key, delivery, row);
  });
  deps.webhooks.deliveries.wake();
  return answer;
}

/** Sends the webhook itself, once: an event of the type `webhook.test`. */
export async function testWebhook(deps: WebhookDeps, caller: Caller, webhookId: string): Promise<JsonText> {
  const answer = await commitFor(deps, caller, NO_HOME, (tx) => {
    const { key, row: webhook } = findWebhook(tx, webhookId);
    refuseDisabled(webhookId, webhook);
    const eventId = tx.bareId();
    const event = newDelivery(eventId, TEST_EVENT, null, tx.now);
    const payload = payloadJson(eventId, event, webhookJson(key, webhook));
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

function deliveryJson(webhook: BareId, delivery: BareId, row: Omit<DeliveryRow, "payload">): JsonText {
  const { last } = row;
  return toJson({
    object: "webhook_delivery",
    id: withPrefix("dlv", delivery),
    webhook_id: withPrefix("whk", webhook),
    event_id: withPrefix("evt", row.eventId),
    event_type: row.type,
    session_id: row.sessionId ?? undefined,
    status: row.status,
    attempts: row.attempts,
    created_at: toIso(row.createdAt),
    last_attempt_at: isoOrNull(last?.at ?? null),
    next_attempt_at: isoOrNull(row.nextAttemptAt),
    response_code: last?.status ?? null,
    response_body: last?.body ?? null,
    duration_ms: last?.durationMs ?? null,
    error: last?.error ?? null,
  });
}
