/**
 * The public API, and nothing else. The types are those of the server's schemas: a field that is renamed there does not
 * compile here.
 *
 * @module
 */
import type { Static } from "@sinclair/typebox";
import type { Backup as BackupSchema, BackupTicket } from "../../backups/schema.ts";
import type { ApiKey } from "../../keys/schema.ts";
import type { ContextReplay as ContextReplaySchema } from "../../context/schema.ts";
import type { Forgotten, Memory as MemorySchema, MemoryHistory as MemoryHistorySchema } from "../../memories/schema.ts";
import type { OAuthGrant, OAuthRequest } from "../../oauth/schema.ts";
import type { Retrieval as RetrievalSchema, SearchAnswer } from "../../retrievals/schema.ts";
import type { Session as SessionSchema, StateVersion as StateVersionSchema } from "../../sessions/schema.ts";
import type { TimelineEntry as TimelineEntrySchema } from "../../timeline/schema.ts";
import type { EmbeddingTrial as EmbeddingTrialSchema } from "../../trial/schema.ts";
import type {
  Delivery as DeliverySchema,
  DeliveryDetails as DeliveryDetailsSchema,
  Webhook as WebhookSchema,
  WebhookStats as WebhookStatsSchema,
} from "../../webhooks/schema.ts";
import type { Stats as StatsSchema } from "../../stats/schema.ts";
import type { Trace as TraceSchema } from "../../traces/schema.ts";
import type {
  Agent as AgentSchema,
  Erasure as ErasureSchema,
  User as UserSchema,
  UserDetails as UserDetailsSchema,
} from "../../users/schema.ts";
import type { Turn as TurnSchema } from "../../turns/schema.ts";
import { CairnError } from "../../client/errors.ts";
import { Http, newKey, type Call } from "../../client/http.ts";
import { forgetKey, hasEnded, keepKey, key } from "./session.ts";

export { CairnError };
export type { ApiKey, OAuthRequest };
export type Session = Static<typeof SessionSchema>;
export type StateVersion = Static<typeof StateVersionSchema>;
export type Turn = Static<typeof TurnSchema>;
export type Retrieval = Static<typeof RetrievalSchema>;
export type ContextReplay = Static<typeof ContextReplaySchema>;
export type ForgetResult = Static<typeof Forgotten>;
export type Memory = Static<typeof MemorySchema>;
export type MemoryHistory = Static<typeof MemoryHistorySchema>;
/** The schema of settings is made of their table, without types of its own. */
export interface Settings {
  embedding: {
    state: { available: boolean; reason?: string };
    vectors: { ready: number; pending: number };
    separation: number | null;
    vector_length: number | null;
  };
}
/** A user or an agent. */
export type Named = Static<typeof UserSchema> | Static<typeof AgentSchema>;
export type UserDetails = Static<typeof UserDetailsSchema>;
export type Erasure = Static<typeof ErasureSchema>;
export type Backup = Static<typeof BackupSchema>;
export type Webhook = Static<typeof WebhookSchema>;
export type WebhookStats = Static<typeof WebhookStatsSchema>;
export type Delivery = Static<typeof DeliverySchema>;
export type DeliveryDetails = Static<typeof DeliveryDetailsSchema>;
export type EmbeddingTrial = Static<typeof EmbeddingTrialSchema>;
export type Stats = Static<typeof StatsSchema>;
export type Trace = Static<typeof TraceSchema>;
export type Match = Static<typeof SearchAnswer>["data"][number];
export type TimelineEntry = Static<typeof TimelineEntrySchema>;
export type Scope = ApiKey["scopes"][number];

export interface List<Item> {
  data: Item[];
  has_more: boolean;
  last_id: string | null;
  /** Records that a screen has read and left out of this. */
  hidden?: number;
}

interface PageOfDocuments<Item> {
  data: Item[];
  next_cursor: string | null;
}

type Query = Readonly<Record<string, string | number | undefined | null>>;

interface CallOptions {
  query?: Query;
  body?: object;
  signal?: AbortSignal;
  /** Instead of that of who is signed in. */
  key?: string;
}

/** Sends each request once: screens read again by themselves, and a change is sent again by the person who wanted it. */
function clientOf(apiKey: string): Http {
  return new Http({ apiKey, baseUrl: location.origin, fetch: (request) => fetch(request, { credentials: "omit", cache: "no-store" }) });
}

/** Client of who is signed in. Without a key the server says that one is missing. */
export const signedIn = () => clientOf(key.value ?? "none");

/** Idempotency keys of changes whose answers were lost, by what was sent: sent again, they are not made twice. */
const unanswered = new Map<string, string>();

async function call<Answer>(method: Call["method"], path: string, options: CallOptions = {}): Promise<Answer> {
  const http = options.key === undefined ? signedIn() : clientOf(options.key);
  const used = key.value;
  const sent = JSON.stringify([used, method, path, options.body]);
  const idempotencyKey = options.key === undefined ? (unanswered.get(sent) ?? newKey()) : undefined;
  const exchange = http.exchange(options.signal);
  try {
    const request = { method, path: `/v1/${path}`, query: filled(options.query), body: options.body };
    const response = await http.send(exchange, request, idempotencyKey);
    const answer = (await exchange.part(response.json())) as Answer;
    unanswered.delete(sent);
    return answer;
  } catch (error) {
    const isLost = error instanceof CairnError && (error.status === undefined || error.status === 502 || error.status === 504);
    if (isLost && method !== "GET" && idempotencyKey !== undefined) unanswered.set(sent, idempotencyKey);
    else unanswered.delete(sent);
    // An answer to an earlier key says nothing about the one that is there now.
    if (error instanceof CairnError && error.status === 401 && options.key === undefined && used !== null && used === key.value) {
      hasEnded.value = true;
      forgetKey();
    }
    throw error;
  } finally {
    exchange.close();
  }
}

function filled(query: Query = {}): Query {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""));
}

const get = <Answer>(path: string, query: Query, signal?: AbortSignal) => call<Answer>("GET", path, { query, ...(signal && { signal }) });

/** Records of a page of a list. */
const PAGE = 50;
const list = <Item>(path: string, query: Query, signal?: AbortSignal, limit = PAGE) => get<List<Item>>(path, { ...query, limit }, signal);

const post = <Answer>(path: string, body: object) => call<Answer>("POST", path, { body });
const patch = <Answer>(path: string, body: object) => call<Answer>("PATCH", path, { body });
const remove = (path: string, query: Query) => call<unknown>("DELETE", path, { query });

/** Exchanges a key, or that of a sign-in link, for a session key of this browser, which is the only one that is kept. */
export async function signIn(presented: string): Promise<void> {
  const made = await call<ApiKey>("POST", "sign_in", { key: presented, body: { name: browserName() } });
  keepKey(made.key ?? "");
}

/** Signs out even where the server cannot be told: the key then ends by itself. */
export async function signOut(): Promise<void> {
  await call("DELETE", "api_keys/current").catch(() => undefined);
  forgetKey();
}

function browserName(): string {
  const [, name] = /(Firefox|Edg|Chrome|Safari)\//.exec(navigator.userAgent) ?? [];
  return `Dashboard in ${name === "Edg" ? "Edge" : (name ?? "a browser")}`;
}

interface Health {
  status: "ready" | "degraded";
  reason?: string;
  version: string;
  durability: string;
  region?: string;
}

export const api = {
  sessions: (query: Query, signal?: AbortSignal, limit = PAGE) => list<Session>("sessions", query, signal, limit),
  session: (id: string, signal?: AbortSignal) => get<Session>(`sessions/${encodeURIComponent(id)}`, {}, signal),
  /** Turns that have all of some words. */
  turns: (query: Query, signal?: AbortSignal, limit = PAGE) => list<Turn>("turns", query, signal, limit),
  turn: (sessionId: string, id: string, signal?: AbortSignal) => get<Turn>(`sessions/${sessionId}/turns/${id}`, {}, signal),
  turnsOf: (sessionId: string, query: Query) => get<List<Turn>>(`sessions/${encodeURIComponent(sessionId)}/turns`, query),
  updateSession: (id: string, body: { metadata?: object; ttl_seconds?: number | "never" }) => patch<Session>(`sessions/${id}`, body),
  deleteSession: (id: string, reason: string) => remove(`sessions/${id}`, { reason }),
  timeline: (id: string, query: Query, signal?: AbortSignal) =>
    get<List<TimelineEntry>>(`sessions/${encodeURIComponent(id)}/timeline`, query, signal),
  version: (id: string, version: number, signal?: AbortSignal) => get<StateVersion>(`sessions/${id}/versions/${version}`, {}, signal),
  setState: (id: string, body: { state: object; reasoning?: string; expected_version: number }) =>
    post<Session>(`sessions/${id}/state`, body),
  rollBack: (id: string, body: { version: number; expected_version: number; reason?: string; turns?: "hide" }) =>
    post<Session>(`sessions/${id}/rollback`, body),
  fork: (id: string, body: object) => post<Session>(`sessions/${id}/fork`, body),
  /** Searches of no session. */
  searches: (query: Query, signal?: AbortSignal, limit = PAGE) => list<Retrieval>("retrievals", query, signal, limit),
  retrieval: (id: string, signal?: AbortSignal) => get<Retrieval>(`retrievals/${id}`, {}, signal),
  replay: (retrievalId: string, signal?: AbortSignal) => get<ContextReplay>(`retrievals/${retrievalId}/context`, {}, signal),
  rateRetrieval: (id: string, feedback: object) => post<Retrieval>(`retrievals/${id}/feedback`, feedback),
  memories: (query: Query, signal?: AbortSignal, limit = PAGE) => list<Memory>("memory", query, signal, limit),
  /** All that can be found, whatever its score: the screen says where the threshold is. */
  search: (body: object, signal?: AbortSignal) =>
    call<Static<typeof SearchAnswer>>("POST", "memory/search", {
      body: { ...body, threshold: 0, limit: 50, explain: true },
      ...(signal && { signal }),
    }),
  /** The few that are about it. */
  searchFew: (query: string, limit: number, signal?: AbortSignal) =>
    call<Static<typeof SearchAnswer>>("POST", "memory/search", { body: { query, threshold: 0.4, limit }, ...(signal && { signal }) }),
  traces: (query: Query, signal?: AbortSignal, limit = PAGE) => list<Trace>("traces", query, signal, limit),
  memory: (id: string, signal?: AbortSignal) => get<Memory>(`memory/${encodeURIComponent(id)}`, {}, signal),
  trace: (id: string, signal?: AbortSignal) => get<Trace>(`traces/${encodeURIComponent(id)}`, {}, signal),
  stats: (query: Query, signal?: AbortSignal) => get<Stats>("stats", query, signal),
  /** Outside of the API's paths, and 503 with the same body when something is wrong. */
  health: async (signal: AbortSignal): Promise<Health> =>
    (await fetch("/health", { signal, credentials: "omit" })).json() as Promise<Health>,
  /** Any request that makes something. */
  post: (path: string, body: object) => post<{ id?: string }>(path, body),
  memoryHistory: (id: string, signal?: AbortSignal) => get<MemoryHistory>(`memory/${encodeURIComponent(id)}/history`, {}, signal),
  addMemory: (body: object) => post<Memory>("memory", body),
  updateMemory: (id: string, body: object) => patch<Memory>(`memory/${id}`, body),
  forget: (body: object) => post<ForgetResult>("memory/forget", body),
  deleteMemory: (id: string, reason: string) => remove(`memory/${id}`, { reason }),
  settings: (signal?: AbortSignal) => get<Settings>("settings", {}, signal),
  changeSettings: (body: object) => patch<Settings>("settings", body),
  tryEmbedding: (body: object) => post<EmbeddingTrial>("settings/embedding/try", body),
  webhooks: (query: Query, signal?: AbortSignal) => list<Webhook>("webhooks", query, signal),
  webhook: (id: string, signal?: AbortSignal) => get<Webhook>(`webhooks/${encodeURIComponent(id)}`, {}, signal),
  /** Figures of all webhooks. */
  webhooksStats: (query: Query, signal?: AbortSignal) => list<WebhookStats>("webhook_stats", query, signal),
  webhookStats: (id: string, signal?: AbortSignal) => get<WebhookStats>(`webhooks/${id}/stats`, {}, signal),
  createWebhook: (body: object) => post<Webhook>("webhooks", body),
  updateWebhook: (id: string, body: object) => patch<Webhook>(`webhooks/${id}`, body),
  deleteWebhook: (id: string, reason: string) => remove(`webhooks/${id}`, { reason }),
  rotateSecret: (id: string) => post<Webhook>(`webhooks/${id}/rotate_secret`, {}),
  testWebhook: (id: string) => post<Delivery>(`webhooks/${id}/test`, {}),
  recover: (id: string, since: string) => post<{ recovered: number; complete: boolean }>(`webhooks/${id}/recover`, { since }),
  deliveries: (id: string, query: Query, signal?: AbortSignal) => list<Delivery>(`webhooks/${id}/deliveries`, query, signal),
  failedDeliveries: (query: Query, signal?: AbortSignal) => list<Delivery>("failed_deliveries", query, signal),
  delivery: (webhookId: string, id: string, signal?: AbortSignal) =>
    get<DeliveryDetails>(`webhooks/${webhookId}/deliveries/${id}`, {}, signal),
  retryDelivery: (webhookId: string, id: string) => post<Delivery>(`webhooks/${webhookId}/deliveries/${id}/retry`, {}),
  named: (kind: "users" | "agents", query: Query, signal?: AbortSignal, limit = PAGE) => list<Named>(kind, query, signal, limit),
  /** One question about documents of a user, those that an agent keeps or those that none does. */
  documents: async <Item>(of: { user_id: string; agent_id?: string }, operation: object, signal?: AbortSignal) => {
    const body = { ...of, operations: [operation] };
    const answer = await call<{ data: [PageOfDocuments<Item>] }>("POST", "documents/query", { body, ...(signal && { signal }) });
    return answer.data[0];
  },
  user: (id: string, signal?: AbortSignal) => get<UserDetails>(`users/${encodeURIComponent(id)}`, {}, signal),
  eraseUser: (id: string) => call<Erasure>("DELETE", `users/${encodeURIComponent(id)}`),
  erasure: (id: string, signal?: AbortSignal) => get<Erasure>(`users/${encodeURIComponent(id)}/erasure`, {}, signal),
  keys: (query: Query, signal?: AbortSignal, limit = PAGE) => list<ApiKey>("api_keys", query, signal, limit),
  key: (id: string, signal?: AbortSignal) => get<ApiKey>(`api_keys/${encodeURIComponent(id)}`, {}, signal),
  createKey: (body: object) => post<ApiKey>("api_keys", body),
  rollKey: (id: string, body: object) => post<ApiKey>(`api_keys/${id}/roll`, body),
  revokeKey: (id: string, query: Query) => remove(`api_keys/${id}`, query),
  describeOAuthRequest: (asked: object) => post<OAuthRequest>("oauth/requests", asked),
  connectApplication: (consent: object) => post<OAuthGrant>("oauth/grants", consent),
  backups: (query: Query, signal?: AbortSignal) => list<Backup>("backups", query, signal),
  backup: (id: string, signal?: AbortSignal) => get<Backup>(`backups/${id}`, {}, signal),
  createBackup: () => post<Backup>("backups", {}),
  backupTicket: (id: string) => post<Static<typeof BackupTicket>>(`backups/${id}/ticket`, {}),
  deleteBackup: (id: string, reason: string) => remove(`backups/${id}`, { reason }),
  me: (signal?: AbortSignal) => get<ApiKey>("api_keys/current", {}, signal),
};
