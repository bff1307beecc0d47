/**
 * Webhooks: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Callback, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf, Nothing } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { getDelivery, listDeliveries, listFailedDeliveries, recoverDeliveries, retryDelivery, testWebhook } from "./deliveries.ts";
import {
  Delivery,
  DELIVERY_FILTER,
  DeliveryDetails,
  NewSecret,
  NewWebhook,
  Recovered,
  Recovery,
  SECRET_EXAMPLE,
  TEST_EXAMPLE,
  Webhook,
  WebhookChanges,
  WebhookStats,
} from "./schema.ts";
import { listWebhookStats, webhookStats } from "./stats.ts";
import { createWebhook, deleteWebhook, getWebhook, listWebhooks, rotateSecret, updateWebhook, type WebhookDeps } from "./webhooks.ts";

const description = `Where events are posted. Events are delivered at least once, in the order of each session as far as retries allow; up to ${LIMITS.webhookSessionsAtOnceMax} sessions of a webhook are delivered at once, and events that belong to no session in any order.

Each is a POST of \`{"id", "type", "created_at", "data"}\`, signed in \`X-Webhook-Signature\` (the hex HMAC-SHA256 of the body, keyed with
the secret's text) and as Standard Webhooks defines (\`webhook-id\`, \`webhook-timestamp\`, \`webhook-signature\`). Any 2xx counts as delivered; unless
the settings say otherwise it must come within 15 s, and what fails is tried again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h.`;
const webhooks = endpointGroup({ name: "Webhooks", description }, "admin");
const path = "/v1/webhooks/{webhook_id}";

/** @param callback - what the receivers get */
export function webhookEndpoints(deps: WebhookDeps, callback: Callback): Endpoint[] {
  return [
    webhooks.post("/v1/webhooks", {
      summary: "Create a webhook",
      description:
        "Events from now on are posted to the URL, signed. `trace.created` includes the traces of administration (keys, settings, webhooks, backups, erasures of users). The secret is in this answer only, which a replay with the same Idempotency-Key gives again.",
      status: 201,
      callback,
      body: NewWebhook,
      response: Webhook,
      example: { secret: SECRET_EXAMPLE },
      run: ({ body, caller }) => createWebhook(deps, caller, { ...body, description: body.description ?? null }),
    }),
    webhooks.list("/v1/webhooks", {
      summary: "List webhooks",
      cursor: Cursor("whk"),
      response: ListOf(Webhook, "A page of webhooks."),
      run: ({ page }) => listWebhooks(deps, page),
    }),
    webhooks.get(path, {
      summary: "Get a webhook",
      response: Webhook,
      run: ({ params }) => getWebhook(deps, params.webhook_id),
    }),
    webhooks.patch(path, {
      summary: "Update a webhook",
      body: WebhookChanges,
      response: Webhook,
      run: ({ params, body, caller }) => updateWebhook(deps, caller, params.webhook_id, body),
    }),
    webhooks.delete(path, {
      summary: "Delete a webhook",
      description: "Events that are not delivered yet are dropped.",
      deletes: Webhook,
      run: ({ params, query, caller }) => deleteWebhook(deps, caller, params.webhook_id, query.reason),
    }),
    webhooks.post(`${path}/rotate_secret`, {
      summary: "Rotate the secret of a webhook",
      description: `The previous secret keeps signing together with the new one for ${LIMITS.webhookSecretOverlapHours} hours: \`webhook-signature\` then has both, \`X-Webhook-Signature\` is of the new one and \`X-Webhook-Signature-Previous\` of the previous one. The secret is in this answer only, which a replay with the same Idempotency-Key gives again.`,
      body: NewSecret,
      response: Webhook,
      example: { secret: SECRET_EXAMPLE },
      run: ({ params, body, caller }) => rotateSecret(deps, caller, params.webhook_id, body.secret),
    }),
    webhooks.post(`${path}/test`, {
      summary: "Test a webhook",
      description:
        "Posts one event of the type `webhook.test`, with the webhook as its record, in a single attempt. The deliveries show the answer.",
      status: 201,
      body: Nothing,
      response: Delivery,
      example: TEST_EXAMPLE,
      run: ({ params, caller }) => testWebhook(deps, caller, params.webhook_id),
    }),
    webhooks.list(`${path}/deliveries`, {
      summary: "List the deliveries of a webhook",
      description: `Newest first. Filters combine with AND. Kept for ${LIMITS.deliveryDays} days.`,
      filter: DELIVERY_FILTER,
      cursor: Cursor("dlv"),
      response: ListOf(Delivery, "A page of deliveries."),
      run: ({ params, filter, page }) => listDeliveries(deps, params.webhook_id, filter, page),
    }),
    webhooks.get(`${path}/stats`, {
      summary: "Get webhook statistics",
      description: "How many deliveries of the last 24 hours were delivered, have failed or are pending, hour by hour.",
      response: WebhookStats,
      run: ({ params }) => webhookStats(deps, params.webhook_id),
    }),
    webhooks.list("/v1/webhook_stats", {
      summary: "List webhook statistics",
      description: "Those of all webhooks, the newest webhook first. A page can be short where there is much to count.",
      cursor: Cursor("whk"),
      response: ListOf(WebhookStats, "A page of statistics, one for each webhook."),
      example: { first_id: "whk_0VQk3aB4x1Zq", last_id: "whk_0VQk3aB4x1Zq" },
      run: ({ page }) => listWebhookStats(deps, page),
    }),
    webhooks.list("/v1/failed_deliveries", {
      summary: "List failed deliveries",
      description: `Those of all webhooks that are not tried again. Kept for ${LIMITS.deliveryDays} days.`,
      cursor: Cursor("dlv"),
      response: ListOf(Delivery, "A page of deliveries."),
      run: ({ page }) => listFailedDeliveries(deps, page),
    }),
    webhooks.get(`${path}/deliveries/{delivery_id}`, {
      summary: "Get a delivery of a webhook",
      description: "With what is posted, and the latest attempts.",
      response: DeliveryDetails,
      run: ({ params }) => getDelivery(deps, params.webhook_id, params.delivery_id),
    }),
    webhooks.post(`${path}/recover`, {
      summary: "Recover failed deliveries of a webhook",
      description:
        "Has failed deliveries since a time made again, with all retries, the oldest first: after a receiver was down for long. " +
        `A request takes at most ${LIMITS.recoveredAtOnceMax}; until \`complete\` is true, repeat it.`,
      body: Recovery,
      response: Recovered,
      run: ({ params, body, caller }) => recoverDeliveries(deps, caller, params.webhook_id, body.since),
    }),
    webhooks.post(`${path}/deliveries/{delivery_id}/retry`, {
      summary: "Retry a delivery of a webhook",
      description: "Immediately, and with all retries again, whatever its status. The event keeps its id.",
      body: Nothing,
      response: Delivery,
      example: { status: "pending", next_attempt_at: "2026-05-07T09:00:00.000Z" },
      run: ({ params, caller }) => retryDelivery(deps, caller, params.webhook_id, params.delivery_id),
    }),
  ];
}
