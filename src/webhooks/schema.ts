/**
 * Webhooks on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Default, OneOf, OrNull, RecordId, Text, Timestamp } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { EVENT_TYPES } from "../traces/events.ts";
import { URL_LENGTH_MAX } from "./target.ts";

const STATUSES = ["pending", "delivered", "failed"] as const;

const Url = Text(1, URL_LENGTH_MAX, {
  description:
    "Where events are posted: `http` or `https`, no user name. It must not lead into a private network unless the operator allows that.",
  examples: ["https://agents.example.com/hooks/cairn"],
});
const Events = Type.Array(OneOf(EVENT_TYPES), {
  minItems: 1,
  description: "The events it subscribes to.",
  examples: [["session.created"]],
});
const Description = Text(0, LIMITS.webhookDescriptionLengthMax, { description: "What the webhook is for." });
const Secret = Text(LIMITS.webhookSecretLengthMin, LIMITS.webhookSecretLengthMax, {
  description: "The signing secret: printable ASCII; after a prefix `whsec_` base64. Default: a new one.",
});

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
export const SECRET_EXAMPLE = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

export const Webhook = Type.Object(
  {
    object: Type.Literal("webhook"),
    id: RecordId("whk", "`whk_` and 12 characters."),
    url: Url,
    events: Events,
    description: OrNull(Type.String({ description: "What the webhook is for." })),
    enabled: Type.Boolean({ description: "Whether events are delivered." }),
    disabled_reason: OrNull(Type.String({ description: "Why Cairn disabled it: the receiver answered 410, or failed for 5 days." })),
    failing_since: OrNull(Timestamp("When the first attempt since the last success failed; null while attempts succeed.")),
    secret: Type.Optional(Type.String({ description: "The signing secret; only in the answer that created it." })),
    created_at: Timestamp("When the webhook was created."),
    updated_at: Timestamp("When the webhook was last changed."),
  },
  { title: "Webhook", description: "A webhook, without its secret.", examples: [EXAMPLE] },
);

export const NewWebhook = Type.Object(
  {
    url: Url,
    events: Events,
    description: Type.Optional(Description),
    enabled: Default(Type.Boolean({ description: "Default true." }), true),
    secret: Type.Optional(Secret),
  },
  {
    title: "NewWebhook",
    description: "A webhook to create.",
    examples: [{ url: EXAMPLE.url, events: EXAMPLE.events, description: EXAMPLE.description }],
  },
);

export const WebhookChanges = Type.Object(
  {
    url: Type.Optional(Url),
    events: Type.Optional(Events),
    description: Type.Optional(Description),
    enabled: Type.Optional(Type.Boolean({ description: "Enabling does not deliver events of the time while it was disabled." })),
  },
  { title: "WebhookChanges", description: "What changes; the rest stays.", examples: [{ events: ["session.created"] }] },
);

export const NewSecret = Type.Object(
  { secret: Type.Optional(Secret) },
  { title: "NewWebhookSecret", description: "The new secret.", examples: [{}] },
);

/** The body of a request that needs none. */
export const Nothing = Type.Object({}, { title: "Nothing", description: "No fields.", examples: [{}] });

const DELIVERED_EXAMPLE = {
  object: "webhook_delivery",
  id: "dlv_0VQk3bD4w8Vu",
  webhook_id: EXAMPLE.id,
  event_id: "evt_0VQk3bD4z9Xw",
  event_type: "turn.added",
  session_id: "sess_0VQk3aB4x1Zq",
  status: "delivered",
  attempts: 1,
  created_at: "2026-05-07T08:00:03.000Z",
  last_attempt_at: "2026-05-07T08:00:03.002Z",
  next_attempt_at: null,
  response_code: 200,
  response_body: "ok",
  duration_ms: 41.7,
  error: null,
};
/** How the delivery of a test differs, before its only attempt. */
export const TEST_EXAMPLE = {
  event_type: "webhook.test",
  session_id: undefined,
  status: "pending",
  attempts: 0,
  last_attempt_at: null,
  next_attempt_at: DELIVERED_EXAMPLE.created_at,
  response_code: null,
  response_body: null,
  duration_ms: null,
} as const;

export const Delivery = Type.Object(
  {
    object: Type.Literal("webhook_delivery"),
    id: RecordId("dlv", "`dlv_` and 12 characters."),
    webhook_id: RecordId("whk", "The webhook."),
    event_id: RecordId("evt", "The event: the header `webhook-id`, the same in every attempt."),
    event_type: OneOf([...EVENT_TYPES, "webhook.test"], { description: "The event's type." }),
    session_id: Type.Optional(RecordId("sess", "The session the event is about; left out for one without a session.")),
    status: OneOf(STATUSES, { description: "`failed`: not tried again." }),
    attempts: Type.Integer({ description: "Attempts made so far." }),
    created_at: Timestamp("When the delivery was created."),
    last_attempt_at: OrNull(Timestamp("When the last attempt began.")),
    next_attempt_at: OrNull(
      Timestamp("When the next attempt is due; null when there is none, and while an earlier event of the session is pending."),
    ),
    response_code: OrNull(Type.Integer({ description: "Status of the last answer; null without one." })),
    response_body: OrNull(
      Type.String({ description: "The first 2 KiB of the last answer; null for a receiver on this machine or in a private network." }),
    ),
    duration_ms: OrNull(Type.Number({ description: "Milliseconds that the last attempt took." })),
    error: OrNull(Type.String({ description: "Why the last attempt failed." })),
  },
  { title: "WebhookDelivery", description: "One event for one webhook, and its outcome.", examples: [DELIVERED_EXAMPLE] },
);
