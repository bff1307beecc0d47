/**
 * Webhooks on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Cursor, Limit, OneOf, RecordId, Text, Timestamp } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { EVENT_TYPES } from "../traces/events.ts";
import { URL_LENGTH_MAX } from "./target.ts";

const STATUSES = ["pending", "delivered", "failed"] as const;

const OptionalTime = (description: string) =>
  Type.Unsafe<string | null>({ type: "string", format: "date-time", nullable: true, description });
const OptionalText = (description: string) => Type.Unsafe<string | null>({ type: "string", nullable: true, description });

const Url = Text(1, URL_LENGTH_MAX, {
  description:
    "Where events are posted: `http` or `https`, no user name. It must not lead into a private network unless the operator allows that.",
  examples: ["https://agents.example.com/hooks/cairn"],
});
const Events = Type.Array(OneOf(EVENT_TYPES), { minItems: 1, description: "The events it wants.", examples: [["session.created"]] });
const Description = Text(0, LIMITS.webhookDescriptionLengthMax, { description: "What it is for." });
const Secret = Text(LIMITS.webhookSecretLengthMin, LIMITS.webhookSecretLengthMax, {
  description: "What events are signed with: printable ASCII; what follows a `whsec_` must be base64. One is made when none is given.",
});

export const Webhook = Type.Object(
  {
    object: Type.Literal("webhook"),
    id: RecordId("whk", "`whk_` and 12 characters."),
    url: Url,
    events: Events,
    description: OptionalText("What it is for."),
    enabled: Type.Boolean({ description: "Whether events are delivered." }),
    disabled_reason: OptionalText("Why it was disabled by itself: the receiver answered 410, or failed for 5 days."),
    failing_since: OptionalTime("The first attempt that failed since the last that did not."),
    secret: Type.Optional(Type.String({ description: "What events are signed with; only in the answer that made it." })),
    created_at: Timestamp("When it was made."),
    updated_at: Timestamp("When it was last changed."),
  },
  { title: "Webhook", description: "A webhook, without its secret." },
);

export const NewWebhook = Type.Object(
  {
    url: Url,
    events: Events,
    description: Type.Optional(Description),
    enabled: Type.Optional(Type.Boolean({ description: "Default true.", default: true })),
    secret: Type.Optional(Secret),
  },
  { title: "NewWebhook", description: "A webhook to make." },
);

export const WebhookChanges = Type.Object(
  {
    url: Type.Optional(Url),
    events: Type.Optional(Events),
    description: Type.Optional(Description),
    enabled: Type.Optional(Type.Boolean({ description: "Enabling starts afresh: events from before are not delivered." })),
  },
  { title: "WebhookChanges", description: "What is to be changed of a webhook." },
);

export const NewSecret = Type.Object({ secret: Type.Optional(Secret) }, { title: "NewWebhookSecret", description: "The next secret." });

/** The body of a request that needs none. */
export const Nothing = Type.Object({}, { title: "Nothing", description: "No fields." });

export const Delivery = Type.Object(
  {
    object: Type.Literal("webhook_delivery"),
    id: RecordId("dlv", "`dlv_` and 12 characters."),
    webhook_id: RecordId("whk", "The webhook."),
    event_id: RecordId("evt", "The event: the header `webhook-id`, the same in every attempt."),
    event_type: OneOf([...EVENT_TYPES, "webhook.test"], { description: "The event's type." }),
    session_id: Type.Optional(RecordId("sess", "The session that the event is of.")),
    status: OneOf(STATUSES, { description: "`failed`: not tried again." }),
    attempts: Type.Integer({ description: "How many were made." }),
    created_at: Timestamp("When the event was taken up."),
    last_attempt_at: OptionalTime("When the last attempt began."),
    next_attempt_at: OptionalTime(
      "When the next one is due; null when there is none, and while an earlier event of the session comes first.",
    ),
    response_code: Type.Unsafe<number | null>({
      type: "integer",
      nullable: true,
      description: "Status of the last answer; null when there was none.",
    }),
    response_body: OptionalText(
      "How the last answer began: 2 KiB at most. Kept for a receiver at a public address only; null for one on this machine or in a private network.",
    ),
    duration_ms: Type.Unsafe<number | null>({ type: "number", nullable: true, description: "How long the last attempt took." }),
    error: OptionalText("Why the last attempt does not count as delivered."),
  },
  { title: "WebhookDelivery", description: "One event for one webhook, and what became of it." },
);

export const WebhookPage = Type.Object({ limit: Limit(), starting_after: Cursor("whk") });
export const DeliveryPage = Type.Object({ limit: Limit(), starting_after: Cursor("dlv") });
