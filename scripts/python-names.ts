/**
 * Names of the Python client's methods where the OpenAPI document does not say them.
 *
 * @module
 */

/** The method of each operation: a part of the client and a name in it, or a name of the client itself. */
export const NAMES: Readonly<Record<string, string>> = {
  createSession: "sessions.create",
  listSessions: "sessions.list",
  getSession: "sessions.get",
  updateSession: "sessions.update",
  deleteSession: "sessions.delete",
  updateState: "sessions.set_state",
  getState: "sessions.state",
  patchState: "sessions.patch_state",
  rollBackSession: "sessions.rollback",
  forkSession: "sessions.fork",
  listVersions: "sessions.versions",
  getVersion: "sessions.version",
  getContext: "sessions.context",
  listTimeline: "sessions.timeline",
  listRetrievals: "sessions.retrievals",
  listSearches: "sessions.searches",
  getRetrieval: "sessions.retrieval",
  rateRetrieval: "sessions.rate_retrieval",
  addTurn: "turns.add",
  addTurns: "turns.add_batch",
  listTurns: "turns.list",
  getTurn: "turns.get",
  searchTurns: "turns.search",
  listTurnsByTheirWords: "turns.list_by_words",
  addMemory: "memories.add",
  addManyMemories: "memories.add_many",
  forgetMemories: "memories.forget",
  listMemories: "memories.list",
  searchMemories: "memories.search",
  getMemory: "memories.get",
  getMemoryHistory: "memories.history",
  updateMemory: "memories.update",
  deleteMemory: "memories.delete",
  changeDocuments: "documents.batch",
  queryDocuments: "documents.query",
  listTraces: "traces.list",
  getTrace: "traces.get",
  watchTraces: "events",
  signIn: "keys.sign_in",
  signOut: "keys.sign_out",
  getCurrentApiKey: "keys.current",
  createApiKey: "keys.create",
  listApiKeys: "keys.list",
  getApiKey: "keys.get",
  revokeApiKey: "keys.revoke",
  rollApiKey: "keys.roll",
  createWebhook: "webhooks.create",
  listWebhooks: "webhooks.list",
  getWebhook: "webhooks.get",
  updateWebhook: "webhooks.update",
  deleteWebhook: "webhooks.delete",
  rotateSecret: "webhooks.rotate_secret",
  testWebhook: "webhooks.test",
  listDeliveries: "webhooks.deliveries",
  getDelivery: "webhooks.delivery",
  getWebhookStatistics: "webhooks.stats",
  listWebhookStatistics: "webhooks.stats_of_all",
  listFailedDeliveries: "webhooks.failed_deliveries",
  recoverFailedDeliveries: "webhooks.recover",
  retryDelivery: "webhooks.retry",
  getSettings: "settings.get",
  changeSettings: "settings.update",
  tryEmbeddingProvider: "settings.try_embedding",
  listUsers: "users.list",
  getUser: "users.get",
  eraseUser: "users.erase",
  getErasure: "users.erasure",
  listAgents: "agents.list",
  getStatistics: "stats",
  createBackup: "backups.create",
  listBackups: "backups.list",
  getBackup: "backups.get",
  deleteBackup: "backups.delete",
  createTicketForBackup: "backups.ticket",
  downloadBackup: "backups.download",
  getHealth: "health",
};

/** Fields that are no keywords, with the names of their arguments. */
export const POSITIONAL: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  updateState: { state: "state" },
  patchState: { state: "changes" },
  addTurns: { turns: "turns" },
  addManyMemories: { memories: "memories" },
};

/** A method that is one operation of a batch or a query of documents. */
export interface DocumentMethod {
  readonly name: string;
  readonly op: string;
  readonly kind: "batch" | "query";
  /** The fields that are no keywords, and those that are. */
  readonly takes: readonly string[];
  readonly more: readonly string[];
  readonly gives: string;
  readonly doc: string;
  /** Its result is this member of what the operation gives. */
  readonly member?: string;
  /** Items of the pages of a list. */
  readonly of?: string;
}

export const DOCUMENT_METHODS: readonly DocumentMethod[] = [
  {
    name: "get",
    op: "get",
    kind: "query",
    takes: ["namespace", "key"],
    more: ["values", "fields"],
    gives: "Document | None",
    doc: "Returns a document; None if there is none.",
  },
  {
    name: "put",
    op: "put",
    kind: "batch",
    takes: ["namespace", "key", "value"],
    more: ["index", "if_version", "if_exists", "session_id", "ttl_seconds"],
    gives: "DocumentWritten",
    doc: "Creates or replaces a document.",
  },
  {
    name: "append",
    op: "put",
    kind: "batch",
    takes: ["namespace", "value"],
    more: ["index", "session_id", "ttl_seconds"],
    gives: "DocumentWritten",
    doc: "Puts a document under a new key, which is greater than all before it.",
  },
  {
    name: "touch",
    op: "touch",
    kind: "batch",
    takes: ["namespace", "key"],
    more: ["ttl_seconds"],
    gives: "DocumentTouched | None",
    doc: "Has a document expire later, or never, without another version of it; None if there is none.",
  },
  {
    name: "delete",
    op: "delete",
    kind: "batch",
    takes: ["namespace", "key"],
    more: ["if_version"],
    gives: "DocumentsDeleted",
    doc: "Deletes a document.",
  },
  {
    name: "delete_all",
    op: "delete_all",
    kind: "batch",
    takes: ["namespace"],
    more: ["filter", "cursor"],
    gives: "DocumentsDeleted",
    doc: "Deletes all documents of a namespace and below it, or a piece of those that pass a filter: the next is from `next_cursor` on.",
  },
  {
    name: "copy_all",
    op: "copy_all",
    kind: "batch",
    takes: ["namespace", "to"],
    more: ["cursor"],
    gives: "DocumentsCopied",
    doc: "Copies a piece of the documents of a namespace, and below it, to the same keys under another one: the next is from `next_cursor` on.",
  },
  {
    name: "pop",
    op: "pop",
    kind: "batch",
    takes: ["namespace"],
    more: ["order"],
    gives: "Document | None",
    doc: "Removes the last document of a namespace, or the first, and returns it; None if there is none.",
  },
  {
    name: "search",
    op: "search",
    kind: "query",
    takes: ["namespace", "query"],
    more: ["filter", "threshold", "limit", "offset", "values", "fields"],
    gives: "DocumentSearchPage",
    doc: "Searches the documents of a namespace and below it by meaning, among those that were put with `index`.",
  },
  {
    name: "count",
    op: "count",
    kind: "query",
    takes: ["namespace"],
    more: ["deep"],
    gives: "int",
    member: "count",
    doc: "Counts the documents of a namespace.",
  },
  {
    name: "namespaces",
    op: "namespaces",
    kind: "query",
    takes: [],
    more: ["prefix", "suffix", "max_depth", "limit", "offset", "cursor"],
    gives: "",
    of: "builtins.list[str]",
    doc: "Lists the namespaces that have documents.",
  },
  {
    name: "list",
    op: "list",
    kind: "query",
    takes: ["namespace"],
    more: ["deep", "order", "order_by", "after", "before", "filter", "limit", "offset", "cursor", "values", "fields"],
    gives: "",
    of: "Document",
    doc: "Lists the documents of a namespace, by their keys.",
  },
];
