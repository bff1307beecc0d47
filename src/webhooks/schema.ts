/**
 * Webhooks on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Created, Default, Instant, OneOf, OrNull, RecordId, Text, Timestamp, UserObject } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { DELIVERY_STATUSES } from "../storage/tables.ts";
import { EVENT_TYPES, TEST_EVENT } from "../traces/events.ts";
import { URL_LENGTH_MAX } from "./target.ts";

const Url = Text(1, URL_LENGTH_MAX, {
  description:
    "Where events are posted: `http` or `https`, no user name. It must not lead into a private network unless the operator allows that.",
  examples: ["https://agents.example.com/hooks/cairn"],
});
const Events = Type.Array(OneOf(EVENT_TYPES), {
  minItems: 1,
  description:
    "The events it subscribes to. Those of sessions, turns and memories carry the record; those of traces the trace, `trace.error` that of a turn whose output has the type `error`.",
  examples: [["session.created"]],
});
const Description = Text(0, LIMITS.webhookDescriptionLengthMax, {
  description: "What the webhook is for.",
  examples: ["the support desk"],
});
const Secret = Text(LIMITS.webhookSecretLengthMin, LIMITS.webhookSecretLengthMax, {
  description: "The signing secret: printable ASCII, or `whsec_` followed by base64. A new one is made if none is given.",
});

export const SECRET_EXAMPLE = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

export const Webhook = Type.Object(
  {
    object: Type.Literal("webhook"),
    id: RecordId("whk", "`whk_` and 12 characters."),
    url: Url,
    events: Events,
    description: OrNull(Type.String({ description: "What the webhook is for.", examples: ["the support desk"] })),
    enabled: Type.Boolean({ description: "Whether events are delivered.", examples: [true] }),
    disabled_reason: OrNull(Type.String({ description: "Why Cairn disabled it: the receiver answered 410, or failed for 5 days." })),
    failing_since: OrNull(Timestamp("When the first attempt since the last success failed; null while attempts succeed.", null)),
    last_failure: OrNull(
      Type.Object(
        {
          at: Timestamp("When the attempt began."),
          response_code: OrNull(Type.Integer({ description: "Status of the answer; null without one.", examples: [500] })),
          error: Type.String({ description: "Why it failed.", examples: ["The receiver answered 500."] }),
        },
        { description: "The last attempt that failed; null while attempts succeed." },
      ),
    ),
    next_attempt_at: OrNull(
      Timestamp("When the next attempt is due; null while there is nothing to deliver, and while it is disabled.", null),
    ),
    secret: Type.Optional(
      Type.String({ description: "The signing secret: only in the answers to the requests that create and rotate it." }),
    ),
    created_at: Timestamp("When the webhook was created."),
    updated_at: Timestamp("When the webhook was last changed."),
  },
  { title: "Webhook", description: "A webhook." },
);

export const NewWebhook = Type.Object(
  {
    url: Url,
    events: Events,
    description: Type.Optional(Description),
    enabled: Default(Type.Boolean({ description: "Whether events are delivered; default true." }), true),
    secret: Type.Optional(Secret),
  },
  { title: "NewWebhook", description: "A webhook to create." },
);

export const WebhookChanges = Type.Object(
  {
    url: Type.Optional(Url),
    events: Type.Optional(Events),
    description: Type.Optional(Description),
    enabled: Type.Optional(Type.Boolean({ description: "Enabling does not deliver events of the time while it was disabled." })),
  },
  { title: "WebhookChanges", description: "What changes; the rest stays." },
);

export const NewSecret = Type.Object({ secret: Type.Optional(Secret) }, { title: "NewWebhookSecret", description: "The new secret." });

/** Differences of the delivery of a test, before its only attempt. */
export const TEST_EXAMPLE = {
  event_type: TEST_EVENT,
  session_id: undefined,
  status: "pending",
  attempts: 0,
  failed_attempts: 0,
  last_attempt_at: null,
  next_attempt_at: "2026-05-07T08:00:00.000Z",
  response_code: null,
  response_body: null,
  duration_ms: null,
} as const;

/** Nobody subscribes to the last one: it is what a test sends. */
const DELIVERED_TYPES = [...EVENT_TYPES, TEST_EVENT] as const;

const Withheld = Type.Boolean({
  description: "Whether there was an answer that is not shown, because the receiver is on this machine or in a private network.",
  examples: [false],
});

export const Delivery = Type.Object(
  {
    object: Type.Literal("webhook_delivery"),
    id: RecordId("dlv", "`dlv_` and 12 characters."),
    webhook_id: RecordId("whk", "The webhook."),
    event_id: RecordId("evt", "The event: the header `webhook-id`, the same in every attempt."),
    event_type: OneOf(DELIVERED_TYPES, { description: "The event's type.", examples: ["turn.added"] }),
    session_id: Type.Optional(RecordId("sess", "The session the event is about; left out for one without a session.")),
    status: OneOf(DELIVERY_STATUSES, { description: "`failed`: not tried again.", examples: ["delivered"] }),
    attempts: Type.Integer({ description: "Attempts made so far.", examples: [1] }),
    failed_attempts: Type.Integer({
      description: "Attempts that have failed since the last one that did not, or since it was retried by hand.",
      examples: [0],
    }),
    created_at: Timestamp("When the delivery was created."),
    last_attempt_at: OrNull(Timestamp("When the last attempt began.")),
    next_attempt_at: OrNull(
      Timestamp("When the next attempt is due; null when there is none, and while an earlier event of the session is pending.", null),
    ),
    response_code: OrNull(Type.Integer({ description: "Status of the last answer; null without one.", examples: [200] })),
    response_body: OrNull(
      Type.String({ description: "The first 2 KiB of the last answer; null without one, and where it is withheld.", examples: ["ok"] }),
    ),
    response_withheld: Withheld,
    duration_ms: OrNull(Type.Number({ description: "Milliseconds that the last attempt took.", examples: [41.7] })),
    error: OrNull(Type.String({ description: "Why the last attempt failed." })),
  },
  { title: "WebhookDelivery", description: "One event for one webhook, and its outcome." },
);

export const DELIVERY_FILTER = {
  status: Type.Optional(OneOf(DELIVERY_STATUSES, { description: "Only deliveries of this status." })),
  event_type: Type.Optional(OneOf(DELIVERED_TYPES, { description: "Only deliveries of events of this type." })),
  ...Created("deliveries"),
};

export const DeliveryDetails = Type.Object(
  {
    ...Delivery.properties,
    payload: UserObject({
      description: "What is posted: an event, as the operation that creates a webhook describes it. Empty once its user has been erased.",
      examples: [{ id: "evt_0VQk3aB4x1Zq", type: "turn.added", created_at: "2026-05-07T08:00:00.000Z", data: { object: "turn" } }],
    }),
    recent_attempts: Type.Array(
      Type.Object({
        at: Timestamp("When the attempt began."),
        duration_ms: Type.Number({ description: "Milliseconds that it took.", examples: [41.7] }),
        response_code: OrNull(Type.Integer({ description: "Status of the answer; null without one.", examples: [200] })),
        response_body: OrNull(
          Type.String({ description: "The first 2 KiB of the answer; null without one, and where it is withheld.", examples: ["ok"] }),
        ),
        response_withheld: Withheld,
        error: OrNull(Type.String({ description: "Why it failed." })),
      }),
      { description: `The latest attempts, at most ${LIMITS.deliveryAttemptsKept}, the last one first.` },
    ),
  },
  { title: "WebhookDeliveryDetails", description: "One event for one webhook, with what is posted and the latest attempts." },
);

export const Recovery = Type.Object(
  { since: Instant("Failed deliveries of events from this time on are made again.") },
  { title: "WebhookRecovery", description: "Which deliveries are made again." },
);

export const Recovered = Type.Object(
  {
    object: Type.Literal("webhook_recovery"),
    webhook_id: RecordId("whk", "The webhook."),
    recovered: Type.Integer({ description: "Deliveries that are made again.", examples: [3] }),
    complete: Type.Boolean({ description: "Whether these were all; if not, repeat the request.", examples: [true] }),
  },
  { title: "WebhookRecovered", description: "How many deliveries are made again." },
);

const count = (description: string, example: number) => Type.Integer({ description, examples: [example] });
const COUNTS = {
  pending: count("Deliveries that are tried, or tried again.", 1),
  delivered: count("Deliveries that the receiver took.", 1_180),
  failed: count("Attempts that failed in this time, the first ones of a delivery included.", 61),
  exhausted: count("Deliveries that are not tried again: all their attempts have failed.", 7),
};

export const WebhookStats = Type.Object(
  {
    object: Type.Literal("webhook_stats"),
    webhook_id: RecordId("whk", "The webhook."),
    since: Timestamp("Deliveries created since then are counted: the beginning of the hour a day ago, or later if there are `more`."),
    ...COUNTS,
    more: Type.Boolean({
      description: `Whether there were more than ${LIMITS.deliveriesCountedMax} of one status in the last day: the newest are counted, and of the others those since then.`,
      examples: [false],
    }),
    hours: Type.Array(Type.Object({ start: Timestamp("When the hour begins."), ...COUNTS }), {
      description: "The hours of the clock (UTC) since then, the oldest first.",
    }),
  },
  { title: "WebhookStats", description: "What became of the deliveries of the last day, and the attempts that failed." },
);
