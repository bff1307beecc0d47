/**
 * Cairn from a program: a method for each operation of the API. Bodies, filters and answers are those of the API.
 *
 * @example
 * const cairn = new Cairn({ apiKey: "crn_…" });
 * const session = await cairn.sessions.create({ agent_id: "support-bot", user_id: "user-42" });
 * await cairn.memories.add({ session_id: session.id, content: "Prefers e-mail to phone calls." });
 * const { state, memories, recent_turns } = await cairn.sessions.context(session.id, { query: "How to contact the customer?" });
 *
 * @module
 */
import { Documents } from "./documents.ts";
import { download } from "./download.ts";
import { events, type EventOptions } from "./events.ts";
import { checkFilters, type Filters } from "./filters.ts";
import { Http, type CairnOptions, type CallOptions, type Runtime } from "./http.ts";
import { path, Rest } from "./rest.ts";
import type * as Api from "./types.ts";

export class Cairn {
  readonly sessions: ReturnType<typeof sessionsOf>;
  readonly turns: ReturnType<typeof turnsOf>;
  readonly memories: ReturnType<typeof memoriesOf>;
  readonly documents: Documents;
  readonly traces: ReturnType<typeof tracesOf>;
  readonly users: ReturnType<typeof usersOf>;
  readonly agents: ReturnType<typeof agentsOf>;
  readonly keys: ReturnType<typeof keysOf>;
  readonly webhooks: ReturnType<typeof webhooksOf>;
  readonly settings: ReturnType<typeof settingsOf>;
  readonly backups: ReturnType<typeof backupsOf>;
  readonly #http: Http;
  readonly #rest: Rest;

  /** @param runtime - time and chance, for tests */
  constructor(options: CairnOptions, runtime?: Runtime) {
    this.#http = new Http(options, runtime);
    this.#rest = new Rest(this.#http);
    this.sessions = sessionsOf(this.#rest);
    this.turns = turnsOf(this.#rest);
    this.memories = memoriesOf(this.#rest);
    this.documents = new Documents(this.#http);
    this.traces = tracesOf(this.#rest);
    this.users = usersOf(this.#rest);
    this.agents = agentsOf(this.#rest);
    this.keys = keysOf(this.#rest);
    this.webhooks = webhooksOf(this.#rest);
    this.settings = settingsOf(this.#rest);
    this.backups = backupsOf(this.#rest, this.#http);
  }

  /**
   * Streams traces as they happen, until the loop is left. It reconnects by itself, and misses nothing meanwhile.
   *
   * @example for await (const trace of cairn.events({ session_id })) console.log(trace.action, trace.details);
   */
  events<Given extends Api.WatchTracesQuery>(
    query?: Filters<Api.WatchTracesQuery, Given>,
    options: EventOptions = {},
  ): AsyncGenerator<Api.Trace, void> {
    checkFilters(query ?? {});
    return events(this.#http, query ?? {}, options);
  }

  stats(query: Api.GetStatisticsQuery = {}, options?: CallOptions): Promise<Api.Stats> {
    return this.#rest.get("/v1/stats", query, options);
  }

  /** Returns whether the server can read, write and search: `ready`, or `degraded` and why. */
  health(options?: CallOptions): Promise<Api.Health> {
    return this.#http.call({ method: "GET", path: "/health", accepts: 503 }, options);
  }
}

/** The answer to the deletion of a record. */
const deleted = <Kind extends string>(object: Kind, id: string) => ({ object, id, deleted: true as const });

const sessionsOf = (rest: Rest) => ({
  /** Creates a session. With `external_id` and `if_exists: "return"` it returns the session of that name if there is one. */
  create: (body: Api.NewSession, options?: CallOptions) => rest.post<Api.Session>("/v1/sessions", body, options),
  get: (id: string, options?: CallOptions) => rest.get<Api.Session>(path`/v1/sessions/${id}`, {}, options),
  list: <Given extends Api.ListSessionsQuery>(query?: Filters<Api.ListSessionsQuery, Given>, options?: CallOptions) =>
    rest.list<Api.SessionList>("/v1/sessions", query, options),
  update: (id: string, body: Api.SessionChanges, options?: CallOptions) => rest.patch<Api.Session>(path`/v1/sessions/${id}`, body, options),
  delete: (id: string, query: Api.DeleteSessionQuery = {}, options?: CallOptions) =>
    rest.delete<Api.DeletedSession>(path`/v1/sessions/${id}`, query, deleted("session", id), options),
  state: (id: string, options?: CallOptions) => rest.get<Api.State>(path`/v1/sessions/${id}/state`, {}, options),
  /** Replaces the state. */
  setState: (id: string, body: Api.StateUpdate, options?: CallOptions) =>
    rest.post<Api.Session>(path`/v1/sessions/${id}/state`, body, options),
  /** Changes some keys of the state; null removes one. */
  patchState: (id: string, body: Api.StateChanges, options?: CallOptions) =>
    rest.patch<Api.State>(path`/v1/sessions/${id}/state`, body, options),
  rollback: (id: string, body: Api.Rollback, options?: CallOptions) =>
    rest.post<Api.Session>(path`/v1/sessions/${id}/rollback`, body, options),
  fork: (id: string, body: Api.Fork = {}, options?: CallOptions) => rest.post<Api.Session>(path`/v1/sessions/${id}/fork`, body, options),
  versions: (id: string, query: Api.ListVersionsQuery = {}, options?: CallOptions) =>
    rest.list<Api.StateVersionList>(path`/v1/sessions/${id}/versions`, query, options),
  version: (id: string, version: number, options?: CallOptions) =>
    rest.get<Api.StateVersion>(path`/v1/sessions/${id}/versions/${version}`, {}, options),
  /** All an agent needs for its next step: state, memories and latest turns. */
  context: (id: string, body: Api.ContextRequest = {}, options?: CallOptions) =>
    rest.post<Api.Context>(path`/v1/sessions/${id}/context`, body, options),
  timeline: <Given extends Api.ListTimelineQuery>(id: string, query?: Filters<Api.ListTimelineQuery, Given>, options?: CallOptions) =>
    rest.list<Api.TimelineEntryList>(path`/v1/sessions/${id}/timeline`, query, options),
  /** Memories that searches and contexts found, unless the setting `retrieval_log` is off. */
  retrievals: <Given extends Api.ListRetrievalsQuery>(id: string, query?: Filters<Api.ListRetrievalsQuery, Given>, options?: CallOptions) =>
    rest.list<Api.RetrievalList>(path`/v1/sessions/${id}/retrievals`, query, options),
  /** Searches that named no session. */
  searches: <Given extends Api.ListSearchesQuery>(query?: Filters<Api.ListSearchesQuery, Given>, options?: CallOptions) =>
    rest.list<Api.RetrievalList>("/v1/retrievals", query, options),
  /** Builds a logged context again, as the agent got it, and says what has changed since. */
  replayContext: (retrievalId: string, options?: CallOptions) =>
    rest.get<Api.ContextReplay>(path`/v1/retrievals/${retrievalId}/context`, {}, options),
  /** Says which memories and turns of a retrieval helped. */
  rateRetrieval: (id: string, feedback: Api.NewFeedback, options?: CallOptions) =>
    rest.post<Api.Retrieval>(path`/v1/retrievals/${id}/feedback`, feedback, options),
  /** Returns one retrieval. */
  retrieval: (id: string, options?: CallOptions) => rest.get<Api.Retrieval>(path`/v1/retrievals/${id}`, {}, options),
});

const turnsOf = (rest: Rest) => ({
  /** Logs a turn; with `state` or `state_patch` it changes the state before, and with `memories` it adds them, in one step. */
  add: (sessionId: string, body: Api.NewStep, options?: CallOptions) =>
    rest.post<Api.Step>(path`/v1/sessions/${sessionId}/turns`, body, options),
  /** Logs up to 100 turns, all of them or none. */
  addBatch: (sessionId: string, body: Api.NewTurns, options?: CallOptions) =>
    rest.post<Api.AddedTurns>(path`/v1/sessions/${sessionId}/turns/batch`, body, options),
  get: (sessionId: string, id: string, options?: CallOptions) =>
    rest.get<Api.Turn>(path`/v1/sessions/${sessionId}/turns/${id}`, {}, options),
  list: (sessionId: string, query: Api.ListTurnsQuery = {}, options?: CallOptions) =>
    rest.list<Api.TurnList>(path`/v1/sessions/${sessionId}/turns`, query, options),
  /** Finds turns of a session, a user or an agent, each with the passage that was found. */
  search: <Given extends Api.TurnSearch>(body: Filters<Api.TurnSearch, Given>, options?: CallOptions) => {
    checkFilters(body);
    return rest.post<Api.TurnResults>("/v1/turns/search", body, options);
  },
  /** Lists the turns that have all the words of `q`. */
  listByWords: <Given extends Api.ListTurnsByTheirWordsQuery>(
    query: Filters<Api.ListTurnsByTheirWordsQuery, Given>,
    options?: CallOptions,
  ) => rest.list<Api.TurnList>("/v1/turns", query, options),
});

const memoriesOf = (rest: Rest) => ({
  add: (body: Api.NewMemory, options?: CallOptions) => rest.post<Api.AddedMemory>("/v1/memory", body, options),
  /** Adds all of them or none. */
  addMany: (memories: Api.MemoryBatch["memories"], options?: CallOptions) =>
    rest.post<Api.AddedMemories>("/v1/memory/batch", { memories }, options),
  /** Deletes the memories that pass a filter; a dry run unless told otherwise. */
  forget: (body: Api.Forgetting, options?: CallOptions) => rest.post<Api.ForgetResult>("/v1/memory/forget", body, options),
  search: <Given extends Api.MemorySearch>(body: Filters<Api.MemorySearch, Given>, options?: CallOptions) => {
    checkFilters(body);
    return rest.post<Api.MemoryResults>("/v1/memory/search", body, options);
  },
  get: (id: string, options?: CallOptions) => rest.get<Api.Memory>(path`/v1/memory/${id}`, {}, options),
  list: <Given extends Api.ListMemoriesQuery>(query?: Filters<Api.ListMemoriesQuery, Given>, options?: CallOptions) =>
    rest.list<Api.MemoryList>("/v1/memory", query, options),
  /** Returns the contents that a memory has had, newest first. */
  history: (id: string, options?: CallOptions) => rest.get<Api.MemoryHistory>(path`/v1/memory/${id}/history`, {}, options),
  update: (id: string, body: Api.MemoryChanges, options?: CallOptions) => rest.patch<Api.Memory>(path`/v1/memory/${id}`, body, options),
  delete: (id: string, query: Api.DeleteMemoryQuery = {}, options?: CallOptions) =>
    rest.delete<Api.DeletedMemory>(path`/v1/memory/${id}`, query, deleted("memory", id), options),
});

const tracesOf = (rest: Rest) => ({
  get: (id: string, options?: CallOptions) => rest.get<Api.Trace>(path`/v1/traces/${id}`, {}, options),
  list: <Given extends Api.ListTracesQuery>(query?: Filters<Api.ListTracesQuery, Given>, options?: CallOptions) =>
    rest.list<Api.TraceList>("/v1/traces", query, options),
  /** Returns the signed heads of the chains that traces form, to be kept elsewhere. */
  heads: (options?: CallOptions) => rest.get<Api.AuditHead>("/v1/audit/head", {}, options),
  /** Returns what leads from a trace to a signed head. */
  proof: (id: string, options?: CallOptions) => rest.get<Api.AuditProof>("/v1/audit/proof", { trace: id }, options),
});

const usersOf = (rest: Rest) => ({
  get: (id: string, options?: CallOptions) => rest.get<Api.UserDetails>(path`/v1/users/${id}`, {}, options),
  list: (query: Api.ListUsersQuery = {}, options?: CallOptions) => rest.list<Api.UserList>("/v1/users", query, options),
  /** Erases all data of a user. If there is much, the answer says `running`, and `erasure` returns the progress. */
  erase: (id: string, options?: CallOptions) => rest.delete<Api.UserErasure>(path`/v1/users/${id}`, {}, undefined, options),
  erasure: (id: string, options?: CallOptions) => rest.get<Api.UserErasure>(path`/v1/users/${id}/erasure`, {}, options),
});

const agentsOf = (rest: Rest) => ({
  list: (query: Api.ListAgentsQuery = {}, options?: CallOptions) => rest.list<Api.AgentList>("/v1/agents", query, options),
});

const keysOf = (rest: Rest) => ({
  /** Creates a key. Without a `user_id` it sees the records of all users. */
  create: <Given extends Api.NewApiKey>(body?: Filters<Api.NewApiKey, Given>, options?: CallOptions) => {
    checkFilters(body ?? {});
    return rest.post<Api.ApiKey>("/v1/api_keys", body ?? {}, options);
  },
  get: (id: string, options?: CallOptions) => rest.get<Api.ApiKey>(path`/v1/api_keys/${id}`, {}, options),
  /** Returns the key of this client. */
  current: (options?: CallOptions) => rest.get<Api.ApiKey>("/v1/api_keys/current", {}, options),
  list: <Given extends Api.ListApiKeysQuery>(query?: Filters<Api.ListApiKeysQuery, Given>, options?: CallOptions) =>
    rest.list<Api.ApiKeyList>("/v1/api_keys", query, options),
  /** Creates a key that replaces another one, which keeps working for `overlap_seconds`. */
  roll: (id: string, body: Api.ApiKeyRoll = {}, options?: CallOptions) =>
    rest.post<Api.ApiKey>(path`/v1/api_keys/${id}/roll`, body, options),
  revoke: (id: string, query: Api.RevokeApiKeyQuery = {}, options?: CallOptions) =>
    rest.delete<Api.DeletedApiKey>(path`/v1/api_keys/${id}`, query, deleted("api_key", id), options),
  /** Creates a session key for a browser, valid for twelve hours, with the rights of this client's key. */
  signIn: (body: Api.SignIn = {}, options?: CallOptions) => rest.post<Api.ApiKey>("/v1/sign_in", body, options),
  /** Says who asks for what in a request for access to `/mcp` (OAuth). */
  describeRequest: (body: Api.OAuthAsked, options?: CallOptions) => rest.post<Api.OAuthRequest>("/v1/oauth/requests", body, options),
  /** Connects the application that asked: `redirect_to` leads back to it. */
  connectApplication: (body: Api.OAuthConsent, options?: CallOptions) => rest.post<Api.OAuthGrant>("/v1/oauth/grants", body, options),
  /** Ends the key of this client, which must be a session key. */
  signOut: (options?: CallOptions) => rest.delete<Api.DeletedApiKey>("/v1/api_keys/current", {}, undefined, options),
});

const webhooksOf = (rest: Rest) => ({
  create: (body: Api.NewWebhook, options?: CallOptions) => rest.post<Api.Webhook>("/v1/webhooks", body, options),
  get: (id: string, options?: CallOptions) => rest.get<Api.Webhook>(path`/v1/webhooks/${id}`, {}, options),
  list: (query: Api.ListWebhooksQuery = {}, options?: CallOptions) => rest.list<Api.WebhookList>("/v1/webhooks", query, options),
  update: (id: string, body: Api.WebhookChanges, options?: CallOptions) => rest.patch<Api.Webhook>(path`/v1/webhooks/${id}`, body, options),
  delete: (id: string, query: Api.DeleteWebhookQuery = {}, options?: CallOptions) =>
    rest.delete<Api.DeletedWebhook>(path`/v1/webhooks/${id}`, query, deleted("webhook", id), options),
  rotateSecret: (id: string, body: Api.NewWebhookSecret = {}, options?: CallOptions) =>
    rest.post<Api.Webhook>(path`/v1/webhooks/${id}/rotate_secret`, body, options),
  /** Sends a test event. */
  test: (id: string, options?: CallOptions) => rest.post<Api.WebhookDelivery>(path`/v1/webhooks/${id}/test`, {}, options),
  /** Counts the deliveries of the last 24 hours by outcome. */
  stats: (id: string, options?: CallOptions) => rest.get<Api.WebhookStats>(path`/v1/webhooks/${id}/stats`, {}, options),
  /** The same for all webhooks. */
  statsOfAll: <Given extends Api.ListWebhookStatisticsQuery>(
    query?: Filters<Api.ListWebhookStatisticsQuery, Given>,
    options?: CallOptions,
  ) => rest.list<Api.WebhookStatsList>("/v1/webhook_stats", query, options),
  deliveries: <Given extends Api.ListDeliveriesQuery>(id: string, query?: Filters<Api.ListDeliveriesQuery, Given>, options?: CallOptions) =>
    rest.list<Api.WebhookDeliveryList>(path`/v1/webhooks/${id}/deliveries`, query, options),
  delivery: (id: string, deliveryId: string, options?: CallOptions) =>
    rest.get<Api.WebhookDeliveryDetails>(path`/v1/webhooks/${id}/deliveries/${deliveryId}`, {}, options),
  /** Failed deliveries of all webhooks. */
  failedDeliveries: (query: Api.ListFailedDeliveriesQuery = {}, options?: CallOptions) =>
    rest.list<Api.WebhookDeliveryList>("/v1/failed_deliveries", query, options),
  retry: (id: string, deliveryId: string, options?: CallOptions) =>
    rest.post<Api.WebhookDelivery>(path`/v1/webhooks/${id}/deliveries/${deliveryId}/retry`, {}, options),
  /** Repeats all failed deliveries since a time. */
  recover: (id: string, body: Api.WebhookRecovery, options?: CallOptions) =>
    rest.post<Api.WebhookRecovered>(path`/v1/webhooks/${id}/recover`, body, options),
});

const settingsOf = (rest: Rest) => ({
  get: (options?: CallOptions) => rest.get<Api.Settings>("/v1/settings", {}, options),
  update: (body: Api.SettingsChanges, options?: CallOptions) => rest.patch<Api.Settings>("/v1/settings", body, options),
  /** Tries an embedding provider, and the score it gives a pair of texts, without setting it. */
  tryEmbedding: (body: Api.EmbeddingTry, options?: CallOptions) =>
    rest.post<Api.EmbeddingTrial>("/v1/settings/embedding/try", body, options),
});

const backupsOf = (rest: Rest, http: Http) => ({
  /** Starts a backup; poll `get` until its status is `ready`. */
  create: (options?: CallOptions) => rest.post<Api.Backup>("/v1/backups", {}, options),
  get: (id: string, options?: CallOptions) => rest.get<Api.Backup>(path`/v1/backups/${id}`, {}, options),
  list: (query: Api.ListBackupsQuery = {}, options?: CallOptions) => rest.list<Api.BackupList>("/v1/backups", query, options),
  delete: (id: string, query: Api.DeleteBackupQuery = {}, options?: CallOptions) =>
    rest.delete<Api.DeletedBackup>(path`/v1/backups/${id}`, query, deleted("backup", id), options),
  /** Creates a URL that a browser can download once, without a key. */
  ticket: (id: string, options?: CallOptions) => rest.post<Api.BackupTicket>(path`/v1/backups/${id}/ticket`, {}, options),
  /**
   * Yields the file in pieces.
   *
   * @example for await (const piece of cairn.backups.download(id)) await file.write(piece);
   */
  download: (id: string, options: CallOptions = {}) => download(http, path`/v1/backups/${id}/file`, options),
});
