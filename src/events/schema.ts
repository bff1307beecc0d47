/**
 * Bodies that receivers of webhooks get, by type of event: for the document, and so for the types that are made of it.
 *
 * @module
 */
import { Type, type TSchema } from "@sinclair/typebox";
import { Backup } from "../backups/schema.ts";
import type { Callback } from "../http/endpoint.ts";
import { exampleOf, RecordId, Timestamp } from "../http/types.ts";
import { pascalCase } from "../lib/text.ts";
import { Memory } from "../memories/schema.ts";
import { Session } from "../sessions/schema.ts";
import { TEST_EVENT, type EventType } from "../traces/events.ts";
import { Trace } from "../traces/schema.ts";
import { Turn } from "../turns/schema.ts";
import { Webhook } from "../webhooks/schema.ts";

type DeliveredType = EventType | typeof TEST_EVENT;

/** Occasion of an event, and its data. */
const EVENTS: Readonly<Record<DeliveredType, { when: string; data: TSchema; example?: object }>> = {
  "session.created": { when: "A session was created, or forked from another one. The data is the session.", data: Session },
  "session.updated": {
    when: "The state of a session was updated or rolled back, or its metadata or time to live changed. The data is the session as it is then.",
    data: Session,
  },
  "session.deleted": { when: "A session was deleted, with its turns and memories. The data is the session as it was last.", data: Session },
  "session.expired": { when: "The time of a session has passed. The data is the session as it was last.", data: Session },
  "turn.added": { when: "A turn was logged. The data is the turn.", data: Turn },
  "memory.created": { when: "A memory was added. The data is the memory.", data: Memory },
  "memory.superseded": { when: "Another memory has taken the place of one. The data is the one whose place it took.", data: Memory },
  "memory.expired": { when: "The time of a memory has passed. The data is the memory as it was last.", data: Memory },
  "backup.created": { when: "A backup was made, and is on disk. The data is the backup.", data: Backup },
  "backup.failed": {
    when: "A backup failed, or its copy in a bucket: then it is `ready`. `error` says why. The data is the backup.",
    data: Backup,
    example: { status: "failed", bytes: null, version: null, error: "The backup cannot be written: the disk is full." },
  },
  "trace.created": {
    when: "Something was changed, whatever it was: every trace, also those of administration, which concern no session. The data is the trace.",
    data: Trace,
  },
  "trace.rollback": {
    when: "A session was rolled back. The data is the trace, whose action is `state.rolled_back`; `details` say from which version to which.",
    data: Trace,
    example: { action: "state.rolled_back", details: { from_version: 1, to_version: 0, reason: "The customer took it back." } },
  },
  "trace.error": {
    when: "An agent failed: a turn was logged whose output has the type `error`. The data is the trace of that turn, whose action is `turn.added`. What goes wrong in Cairn itself is no event.",
    data: Trace,
    example: { action: "turn.added", details: { turn_number: 3, input_type: "text", output_type: "error", reasoning: null } },
  },
  [TEST_EVENT]: { when: "Somebody tests the webhook. Nobody subscribes to it. The data is the webhook.", data: Webhook },
};

const DELIVERED_TYPES = Object.keys(EVENTS) as DeliveredType[];
const titleOf = (type: DeliveredType) => `${pascalCase(type.replace(".", "_"))}Event`;

function schemaOf(type: DeliveredType) {
  const { when, data } = EVENTS[type];
  return Type.Object(
    {
      id: RecordId("evt", "The event: the header `webhook-id`, the same in every attempt."),
      type: Type.Literal(type),
      created_at: Timestamp("When it happened."),
      data,
    },
    { title: titleOf(type), description: when },
  );
}

function exampleOfEvent(type: DeliveredType): object {
  const { data, example } = EVENTS[type];
  return { ...(exampleOf(schemaOf(type)) as object), data: { ...(exampleOf(data) as object), ...example } };
}

const WebhookEvent = Type.Union(DELIVERED_TYPES.map(schemaOf), {
  title: "WebhookEvent",
  description: "An event, as a webhook receives it; `type` says what `data` is.",
  discriminator: {
    propertyName: "type",
    mapping: Object.fromEntries(DELIVERED_TYPES.map((type) => [type, `#/components/schemas/${titleOf(type)}`])),
  },
});

/** Body of a delivery. */
export const EVENT_CALLBACK: Callback = {
  name: "event",
  url: "{$request.body#/url}",
  summary: "Receive an event",
  description:
    "What Cairn posts to the URL of a webhook, in the order of each session as far as retries allow, and at least once: the same `id` may come again.",
  headers: {
    "webhook-id": "Id of the event.",
    "webhook-timestamp": "When this attempt was made, in Unix seconds.",
    "webhook-signature":
      "`v1,` and the base64 HMAC-SHA256 of id, timestamp and body, as Standard Webhooks defines; several with spaces between them.",
    "X-Webhook-Signature": "The hex HMAC-SHA256 of the body, keyed with the text of the secret.",
  },
  body: WebhookEvent,
  examples: Object.fromEntries(DELIVERED_TYPES.map((type) => [type, exampleOfEvent(type)])),
  answers: { "2XX": "It is delivered.", "410": "The webhook is disabled.", default: "It is tried again later." },
};
