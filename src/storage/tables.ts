/**
 * Every table of the store: its key, its row, and what else is written whenever a row is.
 *
 * ```
 * table                key                          row
 * meta                 name                         text: schema, nextLabel, firstLabel, backupNumber
 * sessions             session                      SessionRow
 *   sessionsByAgent    #agent session               -
 *   sessionsByUser     #user session                -
 *   sessionsByExpiry   ms session                   -
 *   sessionsAhead      session                      -, if its id is later than its time
 * versions             session number               VersionRow: one of the session's states
 * turns                session turn                 TurnRow
 * memories             memory                       MemoryRow
 *   memoriesBySession  session memory               -
 *   memoriesByUser     #user memory                 -
 *   memoriesByType     #type memory                 -
 *   memoriesByTag      #tag memory                  -
 *   memoriesAhead      memory                       -, if its id is later than its time
 * vectors              memory                       1536 float32, the terms as uint32, the label as uint32, little endian
 * owed                 memory                       text: empty, or the firstLabel of the provider that refuses it
 * provider             current                      ProviderRow: what the vectors are of
 * labels               label                        memory: which vector a point of the index is
 * traces               trace                        TraceRow
 *   tracesBySession    session trace                -
 *   tracesByUser       #user trace                  -
 *   tracesByAction     action / trace               -
 *   tracesByExpiry     day trace                    -
 *   tracesAhead        trace                        -, if its id is later than its time
 * outbox               event                        OutboxRow: an event not yet handed to its receivers
 * webhooks             webhook                      WebhookRow: who wants which events
 * payloads             payload                      what is posted to receivers, as text
 * deliveries           webhook delivery             DeliveryRow: one event for one webhook
 *   deliveriesDue      webhook ms delivery          -, while it is pending and the first of its line
 *   deliveriesBySession webhook line delivery       -, while it is pending; a line is a session, or the delivery itself
 * idempotency          #(key id, idempotency key)   IdempotencyRow
 *   idempotencyByTime  ms #(...)                    -
 * apiKeys              SHA-256 of the key, hex      ApiKeyRow
 *   apiKeysById        key                          SHA-256 of the key, hex
 * deletedKeys          SHA-256 of the key, hex      DeletedKeyRow: a tombstone, so that it is never a key again
 * removals             session                      RemovalRow: what is left of a removed session
 * settings             current                      SettingsRow
 * ```
 * Ids stand without their prefix (12 characters), `#x` is `hashKey(x)`, `ms`, `day` and numbers are `numberKey`.
 *
 * @module
 */
import type { JsonObject, JsonText } from "../lib/json.ts";
import { memoize } from "../lib/memoize.ts";

/** Any table, for what concerns keys alone. */
export interface AnyTable {
  readonly name: string;
}

/** A table and how its rows become text. */
export interface Table<Row> extends AnyTable {
  encode(row: Row): string;
  decode(text: string): Row;
}

/** An index: only its keys say something. */
export type Index = Table<"">;

export const SCHEMA_VERSION = 1;

const json = <Row>(name: string): Table<Row> => ({
  name,
  encode: (row) => JSON.stringify(row),
  decode: (value) => JSON.parse(value) as Row,
});
const text = (name: string): Table<string> => ({ name, encode: (row) => row, decode: (value) => value });
const index = (name: string): Index => ({ name, encode: () => "", decode: () => "" });
/** A row of which a part is ready JSON: first line the rest of the row, then that part as it is. `JSON.stringify` writes no line feed. */
const withBody = <Row extends { body: JsonText }>(name: string): Table<Row> => ({
  name,
  encode: ({ body, ...head }) => `${JSON.stringify(head)}\n${body}`,
  decode: (value) => {
    const end = value.indexOf("\n");
    return { ...JSON.parse(value.slice(0, end)), body: value.slice(end + 1) } as Row;
  },
});

/**
 * For the few rows that are read with every request: a text that was parsed before is not parsed again. Such a row is never
 * changed in place.
 */
const withDecodeCache = <Row>(table: Table<Row>): Table<Row> => ({ ...table, decode: memoize((value: string) => table.decode(value)) });

export interface SessionRow {
  agentId: string;
  userId: string | null;
  createdAt: number;
  updatedAt: number;
  metadata: JsonObject;
  memoryCount: number;
  turnCount: number;
  /** Length the session was given, for forks and the trace of its expiry. */
  ttlSeconds: number;
  expiresAt: number;
  /** Number of the current state version. */
  version: number;
}

export type VersionSource = "initial" | "update" | "rollback";

export interface VersionRow {
  createdAt: number;
  reasoning?: string;
  actor: string;
  source: VersionSource;
  /** The state, as it goes over the wire. */
  body: JsonText;
}

/** A turn never changes: it is kept as the two halves of its JSON object, because the context shows only the first. */
export interface TurnRow {
  /** `"id":…,"input":…,"output":…,"created_at":…` */
  shown: string;
  /** `"session_id":…` and all other members. */
  rest: string;
}

export interface MemoryRow {
  sessionId: string;
  userId: string | null;
  content: string;
  type: string;
  tags: string[];
  metadata: JsonObject;
  createdAt: number;
  /** false when the caller asked for none: then a new content gets none either. */
  embed: boolean;
  /** Set while there is a vector. */
  embedding?: {
    /** `emb_…`, for clients. */
    id: string;
    /** Its point in the index; never given twice. */
    label: number;
  };
}

export interface TraceRow {
  expiresAt: number;
  /** Set where the time of the id is later than the trace's own, which this is: the clock was behind an earlier id. */
  at?: number;
  /** Set for a change that concerns no session; others than keys with the scope `admin` must not see it. */
  adminOnly?: true;
  body: JsonText;
}

export interface OutboxRow {
  type: string;
  createdAt: number;
  sessionId: string | null;
  /** Trace events carry the trace's id: its record is in `traces`. */
  traceId?: string;
  /** The affected record as it was, with `object` and `id`; `null` for trace events. */
  body: JsonText;
}

export interface WebhookRow {
  url: string;
  events: string[];
  description: string | null;
  enabled: boolean;
  /** Why it was disabled by itself. */
  disabledReason: string | null;
  /** Has to stand here in clear: it signs. */
  secret: string;
  /** Those before it that are still valid, newest first. */
  previousSecrets: { secret: string; until: number }[];
  createdAt: number;
  updatedAt: number;
  /** Events with smaller ids are from before it was there, or enabled, and are not for it. */
  since: string;
  /** The first attempt that failed since the last one that did not. */
  failingSince: number | null;
  /** Nothing is sent before: the receiver has asked for that. */
  pausedUntil?: number | null;
}

export type DeliveryStatus = "pending" | "delivered" | "failed";

export interface DeliveryRow {
  /** Key of what is posted. */
  payload: string;
  eventId: string;
  type: string;
  sessionId: string | null;
  createdAt: number;
  status: DeliveryStatus;
  /** Made in all. */
  attempts: number;
  /** Failed attempts of the present schedule; a retry by hand starts a new one. */
  failures: number;
  /** null while it waits for an earlier one of its session, and when it is not tried again. */
  nextAttemptAt: number | null;
  /** Set once later ones of its session have overtaken it, or it was retried by hand: nothing waits for it any more. */
  unordered?: true;
  /** Set for a delivery that is not tried again. */
  once?: true;
  last: {
    at: number;
    durationMs: number;
    /** HTTP status; null without an answer. */
    status: number | null;
    /** How the answer began; null where the address was not public. */
    body: string | null;
    /** Why it does not count as delivered. */
    error: string | null;
  } | null;
}

export interface IdempotencyRow {
  /** Hash of method, path and body: another request under the same key is refused. */
  fingerprint: string;
  status: number;
  createdAt: number;
  /** Set when the body is the answer encrypted, since it shows a secret. */
  sealed?: true;
  body: JsonText;
}

export interface ApiKeyRow {
  id: string;
  name: string | null;
  /** First 8 characters of the key: the actor in traces. */
  prefix: string;
  scopes: string[];
  tier: string;
  perMinute: number;
  burst: number;
  createdAt: number;
  expiresAt: number | null;
  /** Up to a minute behind while a server runs; left out until the key is used. */
  lastUsedAt?: number;
  /** Ids: the key in whose place this one came, and the one that came in its place. */
  rolledFrom?: string;
  rolledTo?: string;
}

export interface DeletedKeyRow {
  deletedAt: number;
}

export interface ProviderRow {
  /** Everything that decides what a vector means. */
  identity: string;
  /** The length of its vectors and what its cosines mean, once it has answered; never set for the built-in provider. */
  vectorLength?: number;
  measured?: { relevantCosine: number; cosineOfUnrelated: number; cosineOfSame: number; separation: number };
}

/** What was set through the API, by the names in `settings/schema.ts`: `region`, `webhooks.timeout`. */
export type SettingsRow = Readonly<Record<string, string | number | boolean>>;

export interface RemovalRow {
  /** Whether the memories go too. */
  memories: boolean;
}

export const meta = text("meta");
/** Key of a random number below 2^32 that no other store has: a restored or imported one gets another. */
export const BACKUP_NUMBER = "backupNumber";
export const sessions = json<SessionRow>("sessions");
export const sessionsByAgent = index("sessions_by_agent");
export const sessionsByUser = index("sessions_by_user");
export const sessionsByExpiry = index("sessions_by_expiry");
export const sessionsAhead = index("sessions_ahead");
export const versions = withBody<VersionRow>("versions");
/** The same table, for who wants the states alone. */
export const states: Pick<Table<JsonText>, "name" | "decode"> = {
  name: versions.name,
  decode: (value) => value.slice(value.indexOf("\n") + 1) as JsonText,
};
export const turns: Table<TurnRow> = {
  name: "turns",
  encode: (row) => `${row.shown}\n${row.rest}`,
  decode: (value) => {
    const end = value.indexOf("\n");
    return { shown: value.slice(0, end), rest: value.slice(end + 1) };
  },
};
export const memories = json<MemoryRow>("memories");
export const memoriesBySession = index("memories_by_session");
export const memoriesByUser = index("memories_by_user");
export const memoriesByType = index("memories_by_type");
export const memoriesByTag = index("memories_by_tag");
export const memoriesAhead = index("memories_ahead");
export const labels = text("labels");
export const traces = withBody<TraceRow>("traces");
export const tracesBySession = index("traces_by_session");
export const tracesByUser = index("traces_by_user");
export const tracesByAction = index("traces_by_action");
export const tracesByExpiry = index("traces_by_expiry");
export const tracesAhead = index("traces_ahead");
export const outbox = withBody<OutboxRow>("outbox");
export const webhooks = json<WebhookRow>("webhooks");
export const payloads = text("payloads");
export const deliveries = json<DeliveryRow>("deliveries");
export const deliveriesDue = index("deliveries_due");
export const deliveriesBySession = index("deliveries_by_session");
export const idempotency = withBody<IdempotencyRow>("idempotency");
export const idempotencyByTime = index("idempotency_by_time");
export const apiKeys = withDecodeCache(json<ApiKeyRow>("api_keys"));
export const apiKeysById = text("api_keys_by_id");
export const deletedKeys = json<DeletedKeyRow>("deleted_keys");
export const removals = json<RemovalRow>("removals");
export const settings = json<SettingsRow>("settings");
export const provider = json<ProviderRow>("provider");
/** Memories whose vector is to be made. */
export const owed = text("owed");

/** Its rows are bytes, not text: `Store` has calls of their own for them. */
export const vectors: AnyTable = { name: "vectors" };

export const TABLES: readonly AnyTable[] = [
  meta,
  sessions,
  sessionsByAgent,
  sessionsByUser,
  sessionsByExpiry,
  sessionsAhead,
  versions,
  turns,
  memories,
  memoriesBySession,
  memoriesByUser,
  memoriesByType,
  memoriesByTag,
  memoriesAhead,
  labels,
  traces,
  tracesBySession,
  tracesByUser,
  tracesByAction,
  tracesByExpiry,
  tracesAhead,
  outbox,
  webhooks,
  payloads,
  deliveries,
  deliveriesDue,
  deliveriesBySession,
  idempotency,
  idempotencyByTime,
  apiKeys,
  apiKeysById,
  deletedKeys,
  removals,
  settings,
  provider,
  owed,
];
