/**
 * Webhooks: the table of URLs.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpoint, type Endpoint } from "../http/endpoint.ts";
import { Deleted, ListOf, Reason } from "../http/types.ts";
import { cursorOf } from "../http/validate.ts";
import { LIMITS } from "../lib/limits.ts";
import { listDeliveries, retryDelivery, testWebhook } from "./deliveries.ts";
import { Delivery, DeliveryPage, NewSecret, NewWebhook, Nothing, Webhook, WebhookChanges, WebhookPage } from "./schema.ts";
import { createWebhook, deleteWebhook, getWebhook, listWebhooks, rotateSecret, updateWebhook, type WebhookParts } from "./subscriptions.ts";

const EXAMPLE = {
  object: "webhook",
  id: "whk_0VQk39zYxWvU",
  url: "https://agents.example.com/hooks/cairn",
  events: ["session.created", "turn.added"],
  description: "the support desk",
  enabled: true,
  disabled_reason: null,
  failing_since: null,
  created_at: "2026-05-07T07:59:00.000Z",
  updated_at: "2026-05-07T07:59:00.000Z",
};
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PENDING = {
  object: "webhook_delivery",
  id: "dlv_0VQk3bD4w8Vu",
  webhook_id: EXAMPLE.id,
  event_id: "evt_0VQk3bD4z9Xw",
  event_type: "turn.added",
  session_id: "sess_0VQk3aB4x1Zq",
  status: "pending",
  attempts: 0,
  created_at: "2026-05-07T08:00:03.000Z",
  last_attempt_at: null,
  next_attempt_at: "2026-05-07T08:00:03.000Z",
  response_code: null,
  response_body: null,
  duration_ms: null,
  error: null,
};
const DELIVERED = {
  ...PENDING,
  status: "delivered",
  attempts: 1,
  last_attempt_at: "2026-05-07T08:00:03.002Z",
  next_attempt_at: null,
  response_code: 200,
  response_body: "ok",
  duration_ms: 41.7,
};
const { session_id: _, ...OF_NO_SESSION } = PENDING;
const tag = "Webhooks";
const path = "/v1/webhooks/{webhook_id}";

export function webhookEndpoints(parts: WebhookParts): Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/v1/webhooks",
      tag,
      scope: "admin",
      status: 201,
      summary: "Create a webhook",
      description:
        "Events from now on are posted to the URL, signed. `trace.created` includes the traces of changes of keys, settings and webhooks. The secret is in this answer only, which a replay with the same Idempotency-Key gives again.",
      query: Type.Object({}),
      body: NewWebhook,
      response: Webhook,
      errors: [],
      example: {
        request: { url: EXAMPLE.url, events: EXAMPLE.events, description: EXAMPLE.description },
        response: { ...EXAMPLE, secret: SECRET },
      },
      run: ({ body, caller }) =>
        createWebhook(parts, caller, { ...body, description: body.description ?? null, enabled: body.enabled ?? true }),
    }),
    endpoint({
      method: "GET",
      path: "/v1/webhooks",
      tag,
      scope: "admin",
      status: 200,
      summary: "List webhooks",
      query: WebhookPage,
      body: null,
      response: ListOf(Webhook, "A page of webhooks."),
      errors: [],
      example: { response: { object: "list", data: [EXAMPLE], has_more: false, first_id: EXAMPLE.id, last_id: EXAMPLE.id } },
      run: ({ query }) =>
        listWebhooks(parts, { limit: query.limit ?? LIMITS.listDefault, startingAfter: cursorOf("whk", query.starting_after) }),
    }),
    endpoint({
      method: "GET",
      path,
      tag,
      scope: "admin",
      status: 200,
      summary: "Get a webhook",
      query: Type.Object({}),
      body: null,
      response: Webhook,
      errors: ["resource_not_found"],
      example: { response: EXAMPLE },
      run: ({ params }) => getWebhook(parts, params.webhook_id),
    }),
    endpoint({
      method: "PATCH",
      path,
      tag,
      scope: "admin",
      status: 200,
      summary: "Update a webhook",
      query: Type.Object({}),
      body: WebhookChanges,
      response: Webhook,
      errors: ["resource_not_found"],
      example: { request: { events: ["session.created"] }, response: { ...EXAMPLE, events: ["session.created"] } },
      run: ({ params, body, caller }) => updateWebhook(parts, caller, params.webhook_id, body),
    }),
    endpoint({
      method: "DELETE",
      path,
      tag,
      scope: "admin",
      status: 200,
      summary: "Delete a webhook",
      description: "What was not delivered yet is not delivered any more.",
      query: Reason,
      body: null,
      response: Deleted("webhook"),
      errors: ["resource_not_found"],
      example: { response: { object: "webhook", id: EXAMPLE.id, deleted: true } },
      run: ({ params, query, caller }) => deleteWebhook(parts, caller, params.webhook_id, query.reason),
    }),
    endpoint({
      method: "POST",
      path: `${path}/rotate_secret`,
      tag,
      scope: "admin",
      status: 200,
      summary: "Rotate the secret of a webhook",
      description: `The previous secret keeps signing together with the new one for ${LIMITS.webhookSecretOverlapHours} hours: \`webhook-signature\` then has both, \`X-Webhook-Signature\` is of the new one and \`X-Webhook-Signature-Previous\` of the one before. The secret is in this answer only, which a replay with the same Idempotency-Key gives again.`,
      query: Type.Object({}),
      body: NewSecret,
      response: Webhook,
      errors: ["resource_not_found"],
      example: { request: {}, response: { ...EXAMPLE, secret: SECRET } },
      run: ({ params, body, caller }) => rotateSecret(parts, caller, params.webhook_id, body.secret),
    }),
    endpoint({
      method: "POST",
      path: `${path}/test`,
      tag,
      scope: "admin",
      status: 201,
      summary: "Test a webhook",
      description:
        "Posts one event of the type `webhook.test`, with the webhook as its record; it is tried once. The deliveries show what came back.",
      query: Type.Object({}),
      body: Nothing,
      response: Delivery,
      errors: ["resource_not_found"],
      example: { request: {}, response: { ...OF_NO_SESSION, event_type: "webhook.test" } },
      run: ({ params, caller }) => testWebhook(parts, caller, params.webhook_id),
    }),
    endpoint({
      method: "GET",
      path: `${path}/deliveries`,
      tag,
      scope: "admin",
      status: 200,
      summary: "List the deliveries of a webhook",
      description: `Kept for ${LIMITS.deliveryDays} days.`,
      query: DeliveryPage,
      body: null,
      response: ListOf(Delivery, "A page of deliveries."),
      errors: ["resource_not_found"],
      example: { response: { object: "list", data: [DELIVERED], has_more: false, first_id: DELIVERED.id, last_id: DELIVERED.id } },
      run: ({ params, query }) =>
        listDeliveries(parts, params.webhook_id, {
          limit: query.limit ?? LIMITS.listDefault,
          startingAfter: cursorOf("dlv", query.starting_after),
        }),
    }),
    endpoint({
      method: "POST",
      path: `${path}/deliveries/{delivery_id}/retry`,
      tag,
      scope: "admin",
      status: 200,
      summary: "Retry a delivery of a webhook",
      description: "At once and with all its retries, whatever became of it before. The event keeps its id.",
      query: Type.Object({}),
      body: Nothing,
      response: Delivery,
      errors: ["resource_not_found"],
      example: { request: {}, response: { ...DELIVERED, status: "pending", next_attempt_at: "2026-05-07T09:00:00.000Z" } },
      run: ({ params, caller }) => retryDelivery(parts, caller, params.webhook_id, params.delivery_id),
    }),
  ];
}
