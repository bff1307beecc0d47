/**
 * Tables of webhooks: events that are not yet handed over, receivers, and deliveries.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { bare, BARE_ID_LENGTH } from "../../lib/ids.ts";
import type { JsonText } from "../../lib/json.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { HASH_KEY_LENGTH, hashKey, numberKey } from "../keys.ts";
import { AnyObject, BareIdText, Finite, IdText, ObjectText, OneOf, OrNull, Text, Truth, Whole } from "../row-types.ts";
import { rowsOfTable } from "../unreadable.ts";
import { assertObject, changedAt, having, json, jsonText, withBody } from "./codecs.ts";
import { ahead, HASH, ID, lastId, type Readable, table, TWO_IDS } from "./table.ts";

/** Left out where there is none, and by a Cairn that did not write it. */
const UserHash = Type.Optional(Type.String({ pattern: HASH.source }));

const OutboxRow = Type.Object({
  /** Types of the events of one change that some webhook wants, in the order in which they are delivered. */
  types: Type.Array(Text),
  /** Webhooks that want at least one of them. */
  webhooks: Type.Array(BareIdText),
  createdAt: Whole,
  sessionId: OrNull(IdText("sess")),
  /** `hashKey` of the user whose content it shows, which outlives the session. */
  user: UserHash,
  /** Owner of its record, where that is somebody's without a session. */
  record: Type.Optional(BareIdText),
  /** Key of the change's trace, which trace events carry. */
  trace: Text,
  /** The affected record as it was, with `object` and `id`; null where only trace events are wanted. */
  body: OrNull(ObjectText),
});
export type OutboxRow = Omit<Static<typeof OutboxRow>, "body"> & { body: JsonText };
export const outbox = table("outbox", ID, OutboxRow, having(withBody<OutboxRow>(), { notifies: "events" }));

const WebhookRow = Type.Object({
  url: Text,
  events: Type.Array(Text),
  description: OrNull(Text),
  enabled: Truth,
  /** Reason why it was disabled by itself. */
  disabledReason: OrNull(Text),
  /** In clear, because it signs; an export can leave it out. */
  secret: Text,
  /** Previous secrets that are still valid, newest first. */
  previousSecrets: Type.Array(Type.Object({ secret: Text, until: Whole })),
  createdAt: Whole,
  updatedAt: Whole,
  /** The first attempt that failed since the last one that did not. */
  failingSince: OrNull(Whole),
  /** Nothing is sent before: the receiver has asked for that. */
  pausedUntil: Type.Optional(OrNull(Whole)),
});
export type WebhookRow = Static<typeof WebhookRow>;
export const webhooks = table(
  "webhooks",
  ID,
  Type.Object({ ...WebhookRow.properties, secret: Type.Optional(Text) }),
  having(json<WebhookRow>(), { changedAt, cachedBytesMax: CACHE_BYTES_MAX.webhooks, isGlobal: true }),
);

const WebhookFailuresRow = Type.Object({
  /** Attempts that failed, by the hour in which they began: Unix milliseconds, the oldest hour first. */
  hours: Type.Array(Type.Object({ start: Whole, attempts: Whole })),
  /** The last one that failed. */
  last: Type.Object({
    at: Whole,
    /** HTTP status; null without an answer. */
    status: OrNull(Whole),
    error: Text,
  }),
});
export type WebhookFailuresRow = Static<typeof WebhookFailuresRow>;
/** Apart from the webhooks, which every change reads. */
export const webhookFailures = table("webhook_failures", ID, WebhookFailuresRow, json<WebhookFailuresRow>());

export const payloads = table("payloads", ID, AnyObject, jsonText);
/** The same table, for callers that show what is posted. */
export const shownPayloads: Readable<JsonText> = {
  name: payloads.name,
  decode: rowsOfTable(payloads.name, (value) => (assertObject(value), value as JsonText)),
};

const DeliveryRow = Type.Object({
  /** Key of what is posted. */
  payload: BareIdText,
  eventId: BareIdText,
  type: Text,
  sessionId: OrNull(IdText("sess")),
  /** As those of the change in the outbox. */
  user: UserHash,
  record: Type.Optional(BareIdText),
  createdAt: Whole,
  status: OneOf(["pending", "delivered", "failed"]),
  /** Made in all. */
  attempts: Whole,
  /** Failed attempts of the present schedule; a retry by hand starts a new one. */
  failures: Whole,
  /** null while it waits for an earlier one of its session, and when it is not tried again. */
  nextAttemptAt: OrNull(Whole),
  /** Set once later ones of its session have overtaken it, or it was retried by hand: nothing waits for it any more. */
  unordered: Type.Optional(Type.Literal(true)),
  /** Set for a delivery that is not tried again. */
  once: Type.Optional(Type.Literal(true)),
  /** The latest attempts, the last one last. */
  recent: Type.Array(
    Type.Object({
      at: Whole,
      durationMs: Finite,
      /** HTTP status; null without an answer. */
      status: OrNull(Whole),
      /** Beginning of the answer; null where the address was not public. */
      body: OrNull(Text),
      /** Reason why it does not count as delivered. */
      error: OrNull(Text),
    }),
  ),
});
export type DeliveryRow = Static<typeof DeliveryRow>;
const deliveryOf = (entry: string) => entry.slice(0, BARE_ID_LENGTH) + lastId(entry);
/** The delivery before its webhook, or the other way round. */
const turned = (ids: string) => lastId(ids) + ids.slice(0, BARE_ID_LENGTH);
/** Each with one character of the keys of `byStatus`. */
const DELIVERY_CODES = { pending: "p", delivered: "d", failed: "f" } as const;
export const DELIVERY_STATUSES = Object.keys(DELIVERY_CODES) as (keyof typeof DELIVERY_CODES)[];
/** Rest of the entries of a status after the webhook. */
export const deliveryCode = (status: DeliveryRow["status"]): string => DELIVERY_CODES[status];
/** The entries of a line begin with this. Events without a session have no order; each is a line of its own. */
export const lineOf = (key: string, { sessionId, unordered }: Pick<DeliveryRow, "sessionId" | "unordered">): string =>
  sessionId === null || unordered === true ? key : key.slice(0, BARE_ID_LENGTH) + bare(sessionId);
export const deliveries = table("deliveries", TWO_IDS, DeliveryRow, json<DeliveryRow>(), {
  due: {
    of: (key, { status, nextAttemptAt }) =>
      status === "pending" && nextAttemptAt !== null ? key.slice(0, BARE_ID_LENGTH) + numberKey(nextAttemptAt) + lastId(key) : undefined,
    record: deliveryOf,
  },
  inLine: { of: (key, row) => (row.status === "pending" ? lineOf(key, row) + lastId(key) : undefined), record: deliveryOf },
  byStatus: { of: (key, { status }) => key.slice(0, BARE_ID_LENGTH) + deliveryCode(status) + lastId(key), record: deliveryOf },
  byType: { of: (key, { type }) => key.slice(0, BARE_ID_LENGTH) + hashKey(type) + lastId(key), record: deliveryOf },
  failed: { of: (key, { status }) => (status === "failed" ? turned(key) : undefined), record: turned },
  byUser: { of: (key, { user }) => (user === undefined ? undefined : user + key), record: (entry) => entry.slice(HASH_KEY_LENGTH) },
  ahead: { of: (key, { createdAt }) => ahead(lastId(key), createdAt, turned(key)), record: turned },
});
