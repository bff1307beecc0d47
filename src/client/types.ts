/**
 * Requests and answers of Cairn, made by scripts/client-types.ts from the OpenAPI document. Do not edit.
 *
 * @module
 */

/** A JSON object of your own. */
// oxlint-disable-next-line typescript/no-explicit-any -- Interfaces fit it, and members can be read without a cast.
export type JsonObject = { [key: string]: any };
/** Any JSON value. */
export type JsonValue = JsonObject | JsonValue[] | string | number | boolean | null;

/** The memories of a batch. */
export interface AddedMemories {
  object: "list";
  /** In the order of the request. */
  data: AddedMemory[];
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** A memory that was added, or was there. */
export interface AddedMemory {
  object: "memory";
  /** `mem_` and 12 characters. */
  id: string;
  /** The session it was added to, which may have expired since; null without one. */
  session_id: string | null;
  /** The user it belongs to; null for an agent's alone. */
  user_id: string | null;
  /** The agent it belongs to; null for a user's alone. */
  agent_id: string | null;
  /** What to remember: 1 to 10000 characters; more is 413 `content_too_large`. */
  content: string;
  /** Standard types: fact, preference, event, policy, observation, general; others are accepted. */
  type: string;
  /** Tags. */
  tags: string[];
  /** Custom metadata. At most 64 KiB as JSON. */
  metadata: JsonObject;
  /** The name that you gave it. */
  external_id: string | null;
  /** Who says so. */
  source: "user" | "agent" | "tool" | "import";
  /** How important you said it is. */
  importance: number | null;
  /** Whether every context of its owner shows it. */
  pinned: boolean;
  /** When it happened, if that was given. */
  occurred_at: string | null;
  /** When the memory was added. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
  /** When it expires; null: never. */
  expires_at: string | null;
  /** Since when it holds; null: since ever. */
  valid_from: string | null;
  /** Until when it holds; null: for ever. */
  valid_until: string | null;
  /** Ids of the memories whose place it took; some may be gone. */
  supersedes: string[];
  /** The memory that took its place. */
  superseded_by: string | null;
  /** When that one took it, or will. */
  superseded_at: string | null;
  /** Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none. */
  secrets?: string[];
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
  /** ID of the vector, which changes with the content; left out when there is none. */
  embedding_id?: string;
  /** Whether it has a vector. Until one is made, its words find it. */
  vector_available: boolean;
  /** Set where the owner had said the same before (`on_duplicate`): then this is that memory. */
  duplicate?: true;
  /** With `similar`: the current memories of its owner that are like it, as they were before; best first. */
  similar?: MemoryResult[];
}

/** The turns of a batch. */
export interface AddedTurns {
  object: "list";
  /** In the order of the request. */
  data: Turn[];
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** An agent that sessions or memories name. */
export interface Agent {
  object: "agent";
  /** The `agent_id` of sessions. */
  id: string;
  /** When the newest session was created; null when none is left. */
  last_session_at: string | null;
}

/** A page of agents. */
export interface AgentList {
  object: "list";
  data: Agent[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** An API key. */
export interface ApiKey {
  object: "api_key";
  /** `key_` and 12 characters. */
  id: string;
  /**
   * `key`: made to be kept. `session`: made by signing in, for at most 12 hours. `link`: good for signing in once, within 10 minutes, and
   * for nothing else. `oauth`: an application that was connected by OAuth, whose tokens open `/mcp` alone.
   */
  kind: "key" | "session" | "link" | "oauth";
  name: string | null;
  /** First 8 characters of the key: the actor in traces. */
  prefix: string;
  /** The key itself: only in the answer to the request that created it. */
  key?: string;
  /**
   * `read`: every GET, search and context. `write`: changes of records. `admin`: also keys, settings, webhooks, backups and erasures;
   * implies the others.
   */
  scopes: Array<"read" | "write" | "admin">;
  tier: "free" | "pro" | "enterprise";
  /** The key is bound to this user; null: to none. */
  user_id: string | null;
  /** The key is bound to this agent; null: to none. */
  agent_id: string | null;
  rate_limit: RateLimit;
  /** When the key was created. */
  created_at: string;
  /** When it stops working. */
  expires_at: string | null;
  /** When the key was last used; null: never. A crash of the server loses at most the last minute. */
  last_used_at: string | null;
  /** ID of the key this one replaced. */
  rolled_from: string | null;
  /** ID of the key that replaced this one. */
  rolled_to: string | null;
  /**
   * ID of the key that a session key, or the consent to an application, came from, and ends with; null where a link signed in, and for
   * other kinds.
   */
  source: string | null;
  /** `client_id` of the application: only of a key of the kind `oauth`. */
  client_id?: string;
}

/** A page of API keys. */
export interface ApiKeyList {
  object: "list";
  data: ApiKey[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** How a key is replaced. */
export interface ApiKeyRoll {
  /** How long the previous key keeps working; 0 ends it at once. Default 86400, a day. */
  overlap_seconds?: number;
  /** When the new key stops working; unless given, when the previous one would have. */
  expires_at?: string;
  /** Allow the new key to expire, or expire sooner, although no other admin key is valid. Default false. */
  force?: boolean;
}

/** What all traces lead to. Kept elsewhere, it shows later that none of them was changed or cut off. */
export interface AuditHead {
  object: "audit_head";
  /** The heads of the chains that no later one names, oldest first. */
  chains: SignedHead[];
}

/** What leads from a trace to a signed head. */
export interface AuditProof {
  object: "audit_proof";
  /** The trace. */
  trace_id: string;
  /** Key of its row: the code of its action and the id. */
  key: string;
  /** Its row as an export has it, without `link`, byte for byte. */
  row: string;
  /** Salt of its hash: SHA-256 of salt, line feed, key, line feed, row is the leaf. */
  salt: string;
  /** Number of the trace in the chain, from 0. */
  place: number;
  /** Digest of the chain before the first of `leaves`. 32 bytes in base64url. */
  before: string;
  /**
   * Leaves of its segment: SHA-256 of digest and leaf is the next digest, and the last of them that of `head`. The one of the trace is at
   * `place` modulo 256.
   */
  leaves: string[];
  head: SignedHead;
  erasure: SignedErasure;
}

/** The whole store at one moment, in one file. */
export interface Backup {
  object: "backup";
  /** `bkp_` and 12 characters. */
  id: string;
  /** What had it made: a request, or the setting `backups.schedule`. */
  trigger: "request" | "schedule";
  /** `running`: it is being made; `failed`: there is none, and the next one takes its place. */
  status: "running" | "ready" | "failed";
  /** When it was asked for. It holds all that was there then, and what came until it was made. */
  created_at: string;
  /** Length of the file; null unless it is ready. */
  bytes: number | null;
  /** Version of the Cairn that made it; null unless it is ready. */
  version: string | null;
  /** Why it failed; in an event also why it could not be copied. */
  error: string | null;
}

/** A backup was made, and is on disk. The data is the backup. */
export interface BackupCreatedEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "backup.created";
  /** When it happened. */
  created_at: string;
  data: Backup;
}

/** A backup failed, or its copy in a bucket: then it is `ready`. `error` says why. The data is the backup. */
export interface BackupFailedEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "backup.failed";
  /** When it happened. */
  created_at: string;
  data: Backup;
}

/** The file, which `cairn restore` takes. */
export type BackupFile = string;

/** A page of backups. */
export interface BackupList {
  object: "list";
  data: Backup[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** A download that needs no key. */
export interface BackupTicket {
  object: "backup_ticket";
  /** The backup. */
  backup_id: string;
  /** Where the file is, without a key, for one download. */
  url: string;
  /** When the ticket ends unless it was used: after 60 s. */
  expires_at: string;
}

/** A version of a session's state, with what changed in it. */
export interface ChangedVersion {
  object: "version";
  /** 0, 1, 2 … without gaps. Version 0 and the newest are kept (the setting `state_versions_kept`). */
  version: number;
  /** When the version was made. */
  created_at: string;
  /** Why the state changed, if that was given. */
  reasoning?: string;
  /** First 8 characters of the API key that made it, or `local`, as in traces. */
  actor: string;
  /** What made it. */
  source: "initial" | "update" | "rollback";
  /** The version whose state a rollback restored; left out where there was no rollback, and for one of an earlier Cairn. */
  restored_from_version?: number;
  /** Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none. */
  secrets?: string[];
  /** What changed from the version before, from `{}` for version 0; null when that version is not kept any more. */
  state_diff: {
    /** Keys that the version before did not have, with their values. */
    added: JsonObject;
    /** Keys that only the version before had, with their values. */
    removed: JsonObject;
    /** Keys whose values differ, each with `from` and `to`. */
    modified: JsonObject;
  } | null;
}

/** All an agent needs for its next step. */
export interface Context {
  /** The current state. */
  state: JsonObject;
  /**
   * First those that are pinned, newest first, then the best; without a query the newest. What is new goes by `occurred_at`, or
   * `created_at` without one.
   */
  memories: Array<{
    /** `mem_` and 12 characters. */
    id: string;
    /** What to remember: 1 to 10000 characters; more is 413 `content_too_large`. */
    content: string;
    /** Standard types: fact, preference, event, policy, observation, general; others are accepted. */
    type: string;
    /** Who says so. */
    source: "user" | "agent" | "tool" | "import";
    /** 0.0 to 1.0; 0.0 without a query, and of a pinned one that the query would not have found. */
    score: number;
    /** With `recency` or `importance_weight`: what it is ordered by, the score after both; never more than the score. */
    ranking_score?: number;
    /** When the memory was added. */
    created_at: string;
    /** Set where it is pinned. Left out for others. */
    pinned?: true;
    /** Set where not all of it fitted: its text ends with `…`. Left out for others. */
    truncated?: true;
    explanation?: MemoryExplanation;
  }>;
  /** Set where 10,000 memories were compared with the filter, and others were not: there may be better ones. */
  partial?: true;
  /** Newest first, by when they happened (`occurred_at`, or `created_at` without one). */
  recent_turns: RecentTurn[];
  /** How many tokens it has as a block of text, counted from above. Set with `max_tokens`, or another `format` than `json`. */
  token_count?: number;
  omitted?: Omitted;
  /**
   * With `format: "text"`: all of it as a block for a prompt. Each text of yours is a JSON string within a line, so that none can pass for
   * a heading or a role. The same records give the same text.
   */
  text?: string;
  /** With `format: "messages"`: state and memories in the first one, then the turns, oldest first. */
  messages?: ContextMessage[];
  /** Where it is logged (`retrieval_log`): for `GET /v1/retrievals/{retrieval_id}` and feedback. Left out where it is not. */
  retrieval_id?: string;
}

/** A message for a chat API. */
export interface ContextMessage {
  /** Who says so. */
  role: "user" | "assistant";
  /** State and memories as a block, or a text of a turn as it is. */
  content: string;
}

/** A context of before, built again from the log of retrievals. */
export interface ContextReplay {
  object: "context_replay";
  /** Its entry in the log of retrievals. */
  retrieval_id: string;
  /** True if nothing of it was edited or deleted since: then it is what the agent got, but for `explanation` and `partial`. */
  exact: boolean;
  /** What was edited, hidden or deleted since. */
  changes: ReplayChange[];
  /** When the agent got it. */
  created_at: string;
  context: Context;
}

/** What the context should hold. */
export interface ContextRequest {
  /** What the agent is about to do or was asked; finds memories by meaning. Without one, the newest are given, by when they happened. */
  query?: string;
  /** How many memories at most; default 5, with `max_tokens` 20. */
  memory_limit?: number;
  /** How many turns at most; default 10, with `max_tokens` 50. */
  turn_limit?: number;
  /**
   * Show the memories that were current then, instead of now. Of records that still exist, whenever they were added. ISO 8601, such as
   * `2027-05-07T08:00:00Z`.
   */
  as_of?: string;
  /**
   * How many tokens the context may have as a block of text, counted from above: no more by the tokenizers of GPT (`o200k`) and Claude.
   * What does not fit is left out and counted in `omitted`, but something of each kind is always there; too few for that are refused with
   * the least.
   */
  max_tokens?: number;
  /** `text` adds a block for a prompt, `messages` messages for a chat API; default `json`, neither. */
  format?: "json" | "text" | "messages";
  /**
   * Whose memories: those of the session alone, all of its user's (`user`, the default; of a session without a user its own), or of its
   * `agent`: what belongs to no user, and what this user has with it.
   */
  memory_scope?: "session" | "user" | "agent";
  /**
   * What the context is to hold; everything unless given. What is left out is empty in the answer. `pinned` are the memories that are
   * pinned, which come besides the `memory_limit`.
   */
  include?: Array<"state" | "pinned" | "memories" | "turns">;
  /**
   * Puts what is newer first: orders by `ranking_score`, which is the score × (1 − weight + weight × 2^(−age / half-life)). Ages count from
   * `occurred_at`, or else `created_at`, to now or `as_of`. `score` and `threshold` stay as they are.
   */
  recency?: {
    /** After how many days half of what depends on age is left; with 0 nothing is left of what is not of this moment. */
    half_life_days: number;
    /** How much depends on age: 0 nothing, 1 everything. */
    weight: number;
  };
  /**
   * Puts what is more important first: orders by `ranking_score`, here × (1 − weight + weight × importance); an importance that nobody has
   * said counts as 0.5.
   */
  importance_weight?: number;
  filter?: Filter;
  /** Add to each memory why it was found. */
  explain?: boolean;
}

export interface DeleteBackupQuery {
  /** Why; kept in the trace. */
  reason?: string;
}

export interface DeleteMemoryQuery {
  /** Why; kept in the trace. */
  reason?: string;
}

export interface DeleteSessionQuery {
  /** Why; kept in the trace. */
  reason?: string;
}

export interface DeleteWebhookQuery {
  /** Why; kept in the trace. */
  reason?: string;
}

/** What was deleted. */
export interface DeletedApiKey {
  object: "api_key";
  id: string;
  deleted: true;
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** What was deleted. */
export interface DeletedBackup {
  object: "backup";
  id: string;
  deleted: true;
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** What was deleted. */
export interface DeletedMemory {
  object: "memory";
  id: string;
  deleted: true;
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** What was deleted. */
export interface DeletedSession {
  object: "session";
  id: string;
  deleted: true;
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** What was deleted. */
export interface DeletedWebhook {
  object: "webhook";
  id: string;
  deleted: true;
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** A document. */
export interface Document {
  object: "document";
  /** 1 to 16 texts, from the general to the particular. */
  namespace: string[];
  /** Its key in the namespace. */
  key: string;
  /** Counts the changes since it was created: 1, 2, 3 … */
  version: number;
  /** When the document was created. */
  created_at: string;
  /** When it was last put; `touch` leaves that as it is. */
  updated_at: string;
  /** When the document expires, by the year 9999 at the latest; left out of one that does not. */
  expires_at?: string;
  /** What of the value `search` finds it by, if anything: all of it, or what these paths lead to. */
  index?: boolean | string[];
  /** The JSON object, or the `fields` of it that were asked for. */
  value: JsonObject;
}

/** Changes that are made together. */
export interface DocumentBatch {
  /**
   * Use the documents of this user instead of those that belong to nobody. A bound key has its own. Not `.` or `..`, which a path cannot
   * name.
   */
  user_id?: string;
  /** Use the documents of this agent, or of this agent for the user. */
  agent_id?: string;
  /** In their order. */
  operations: DocumentChange[];
}

/** A change of documents. */
export interface DocumentChange {
  /**
   * `put` creates or replaces a document, `touch` gives one another end, `delete` removes one, `delete_all` all of a namespace and below
   * it, `copy_all` puts those under another namespace too, `pop` gives back the last one of a namespace and removes it.
   */
  op: "put" | "touch" | "delete" | "delete_all" | "copy_all" | "pop";
  /** 1 to 16 texts, from the general to the particular. */
  namespace: string[];
  /** For `put`, `touch` and `delete`. Without one `put` gives the document a key that is greater than all given before: it appends. */
  key?: string;
  /** For `put`, which needs it. */
  value?: JsonObject;
  /**
   * For `put`: what `search` finds the document by: `true` for all texts and numbers of the value, each after the name of its member, or
   * paths to some of them, such as `title`, `author.name`, `lines[0].text`, `lines[*].text` or `$` for all. By default it is not found.
   * What they lead to has at most 10,000 characters.
   */
  index?: boolean | string[];
  /** For `put` and `delete`: change nothing unless this is the document's version, 0 for none (409 `version_conflict` otherwise). */
  if_version?: number;
  /** For `put` with a key: `keep` leaves a document that is there as it is, and its result says `kept`. `replace` is the default. */
  if_exists?: "replace" | "keep";
  /** For `put`: the document goes when this session does. */
  session_id?: string;
  /**
   * For `put` and `touch`: seconds until the document expires, however many and with fractions, or `never`. A `put` without it makes a
   * document that does not expire; a `touch` without it counts from now what the document was given last.
   */
  ttl_seconds?: number | "never";
  /** `asc` begins with the first, by key unless `order_by` says otherwise. */
  order?: "asc" | "desc";
  /**
   * For `copy_all`: the namespace that takes the place of `namespace` in the copies. A copy has the key, value, index, session and end of
   * its original, and replaces what is there. Neither namespace can be below the other.
   */
  to?: string[];
  filter?: Filter;
  /**
   * For `copy_all` and `delete_all` with a `filter`: the `next_cursor` of the operation before. A batch looks at 1,000 documents at most
   * for all of its operations, or at fewer large ones, and deletes or copies 200 of them.
   */
  cursor?: string;
}

/** What the operations have done. */
export interface DocumentChangeResults {
  object: "list";
  /** The result of each operation, in their order. */
  data: Array<DocumentWritten | DocumentTouched | DocumentsDeleted | DocumentsCopied | Document | null>;
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** How many documents there are. */
export interface DocumentCount {
  count: number;
}

/** A document without its value (`values: false`). */
export interface DocumentHead {
  object: "document";
  /** 1 to 16 texts, from the general to the particular. */
  namespace: string[];
  /** Its key in the namespace. */
  key: string;
  /** Counts the changes since it was created: 1, 2, 3 … */
  version: number;
  /** When the document was created. */
  created_at: string;
  /** When it was last put; `touch` leaves that as it is. */
  updated_at: string;
  /** When the document expires, by the year 9999 at the latest; left out of one that does not. */
  expires_at?: string;
  /** What of the value `search` finds it by, if anything: all of it, or what these paths lead to. */
  index?: boolean | string[];
}

/** A page of documents without their values. */
export interface DocumentHeadPage {
  object: "list";
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The next page's `cursor`; null on the last page. */
  next_cursor: string | null;
  data: DocumentHead[];
}

/** A document that was found by meaning. */
export interface DocumentMatch {
  object: "document";
  /** 1 to 16 texts, from the general to the particular. */
  namespace: string[];
  /** Its key in the namespace. */
  key: string;
  /** Counts the changes since it was created: 1, 2, 3 … */
  version: number;
  /** When the document was created. */
  created_at: string;
  /** When it was last put; `touch` leaves that as it is. */
  updated_at: string;
  /** When the document expires, by the year 9999 at the latest; left out of one that does not. */
  expires_at?: string;
  /** What of the value `search` finds it by, if anything: all of it, or what these paths lead to. */
  index?: boolean | string[];
  /** The JSON object, or the `fields` of it that were asked for. */
  value: JsonObject;
  /** 0 to 1, as of memories: 0.7 and more is about the query. */
  score: number;
}

/** A document that was found by meaning, without its value (`values: false`). */
export interface DocumentMatchHead {
  object: "document";
  /** 1 to 16 texts, from the general to the particular. */
  namespace: string[];
  /** Its key in the namespace. */
  key: string;
  /** Counts the changes since it was created: 1, 2, 3 … */
  version: number;
  /** When the document was created. */
  created_at: string;
  /** When it was last put; `touch` leaves that as it is. */
  updated_at: string;
  /** When the document expires, by the year 9999 at the latest; left out of one that does not. */
  expires_at?: string;
  /** What of the value `search` finds it by, if anything: all of it, or what these paths lead to. */
  index?: boolean | string[];
  /** 0 to 1, as of memories: 0.7 and more is about the query. */
  score: number;
}

/** A page of documents. */
export interface DocumentPage {
  object: "list";
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The next page's `cursor`; null on the last page. */
  next_cursor: string | null;
  data: Document[];
}

/** What to look for. */
export interface DocumentQuery {
  /**
   * Use the documents of this user instead of those that belong to nobody. A bound key has its own. Not `.` or `..`, which a path cannot
   * name.
   */
  user_id?: string;
  /** Use the documents of this agent, or of this agent for the user. */
  agent_id?: string;
  /** In their order. */
  operations: DocumentQueryOperation[];
}

/** What to look for. */
export interface DocumentQueryOperation {
  /**
   * `get` gives one document, `list` those of a namespace, `search` those of a namespace and below it that a query is about, `count` how
   * many there are, `namespaces` those that have documents.
   */
  op: "get" | "list" | "search" | "count" | "namespaces";
  /** 1 to 16 texts, from the general to the particular. */
  namespace?: string[];
  /** For `get`. */
  key?: string;
  /** For `list` and `count`: also all namespaces below. */
  deep?: boolean;
  /** `asc` begins with the first, by key unless `order_by` says otherwise. */
  order?: "asc" | "desc";
  /**
   * For `list` that is not `deep`: `updated_at` lists documents as they were put last, `key` is the default. One that is put again between
   * two pages comes at the end of the list.
   */
  order_by?: "key" | "updated_at";
  /** For `list` that is not `deep`: only keys after this one. */
  after?: string;
  /** For `list` that is not `deep`: only keys before this one. */
  before?: string;
  filter?: Filter;
  /** For `search`: what the documents are to be about. */
  query?: string;
  /** For `search`: the lowest score of a document that is found; default 0. */
  threshold?: number;
  /** For `namespaces`: how they begin; `*` is any text. */
  prefix?: string[];
  /** For `namespaces`: how they end; `*` is any text. */
  suffix?: string[];
  /** For `namespaces`: longer ones are cut to this length. */
  max_depth?: number;
  /** How many at most; default 100, for `search` 10. Of a search limit and offset together are at most 200. */
  limit?: number;
  /** How many to leave out first; default 0. None on further pages: what is left of it is in the `cursor`. */
  offset?: number;
  /** The `next_cursor` of the page before. */
  cursor?: string;
  /** For `get`, `list` and `search`: `false` leaves the values out; default true. */
  values?: boolean;
  /** For `get`, `list` and `search`: dotted paths; of each value only the members that they lead to are given, as far as they are there. */
  fields?: string[];
}

/** What the operations have found. */
export interface DocumentQueryResults {
  object: "list";
  /** The result of each operation, in their order. */
  data: Array<
    | Document
    | DocumentHead
    | DocumentPage
    | DocumentHeadPage
    | DocumentSearchPage
    | DocumentSearchHeadPage
    | DocumentCount
    | NamespacePage
    | null
  >;
}

/** The best documents first, without their values. */
export interface DocumentSearchHeadPage {
  object: "list";
  /**
   * Whether there may be more after this page: at the `offset` of this one plus the length of `data`, or with a filter among documents that
   * were not looked at.
   */
  has_more: boolean;
  data: DocumentMatchHead[];
}

/** The best documents first; of equal ones those that were put last. */
export interface DocumentSearchPage {
  object: "list";
  /**
   * Whether there may be more after this page: at the `offset` of this one plus the length of `data`, or with a filter among documents that
   * were not looked at.
   */
  has_more: boolean;
  data: DocumentMatch[];
}

/** What `touch` has renewed. */
export interface DocumentTouched {
  key: string;
  version: number;
  /** When the document expires now; null if it does not. */
  expires_at: string | null;
}

/** What `put` has written. */
export interface DocumentWritten {
  key: string;
  version: number;
  /** Set where `if_exists` kept the document that was there: this is its version. */
  kept?: true;
}

/** How many documents were copied. */
export interface DocumentsCopied {
  copied: number;
  /** The `cursor` of the operation that continues here; null once all is copied. */
  next_cursor: string | null;
}

/** How many documents were deleted. */
export interface DocumentsDeleted {
  deleted: number;
  /** The `cursor` of the operation that continues here, of a `delete_all` with a `filter`; null once all is looked at. */
  next_cursor?: string | null;
}

/** Whether a provider works, and what it does with a pair of texts. */
export interface EmbeddingTrial {
  object: "embedding_trial";
  /** Whether it answers with vectors that can be used. */
  works: boolean;
  /** Why it does not work. */
  reason: string | null;
  /** The setting that is most likely wrong. */
  param: string | null;
  /** Milliseconds that the vector of `query` took. */
  duration_ms: number | null;
  /** Length of the provider's own vectors; null for the built-in one. */
  vector_length: number | null;
  /** Share of the probes that it puts on the right side; null for the built-in one. */
  separation: number | null;
  /** The score that a search for `query` would give to `content`, 0.0 to 1.0. */
  score: number | null;
}

/** The provider to try, and a pair of texts. What is left out of `embedding` is as it is set. */
export interface EmbeddingTry {
  /**
   * The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds all memories again in the
   * background.
   */
  embedding?: {
    /**
     * `builtin` is a neural network of a hundred languages; `words` finds by words alone; `openai` is any server that speaks
     * `/v1/embeddings`. `local` is read as `builtin`.
     */
    provider?: "builtin" | "words" | "openai" | "local" | null;
    /**
     * Address of the provider's server, up to and including `/v1`. A key that was set for another server is not sent to it; an address of a
     * cloud metadata service is refused.
     */
    base_url?: string | null;
    /** The provider's model. */
    model?: string | null;
    /** The provider's key. It is kept, and never shown. */
    api_key?: string | null;
    /** Text that the model expects before a query. */
    query_prefix?: string | null;
    /** Text that the model expects before a memory. */
    document_prefix?: string | null;
    /**
     * Length of the vectors to ask the provider for; null for the model's own. For models that can shorten their vectors; without it one
     * with vectors of more than 1536 numbers is asked for 1536.
     */
    dimensions?: number | null;
    /**
     * From which cosine similarity to the query a memory counts as relevant, with a score of 0.7; null while it is not known, and for the
     * built-in provider. One that is set takes the place of what the probes measure.
     */
    relevant_cosine?: number | null;
  };
  /** What is looked for; default a question about the other text. */
  query?: string;
  /** A memory; default one that answers the question. */
  content?: string;
}

/** An error. */
export interface ErrorAnswer {
  error: {
    /** What went wrong, for a program. */
    code:
      | "invalid_request"
      | "authentication_failed"
      | "permission_denied"
      | "resource_not_found"
      | "request_timeout"
      | "session_not_found"
      | "memory_not_found"
      | "turn_not_found"
      | "trace_not_found"
      | "version_not_found"
      | "already_exists"
      | "version_conflict"
      | "payload_too_large"
      | "content_too_large"
      | "rate_limit_exceeded"
      | "internal_error"
      | "service_unavailable";
    /** What went wrong, for a person. */
    message: string;
    /** The kind of error. */
    type: "invalid_request_error" | "authentication_error" | "permission_error" | "rate_limit_error" | "api_error";
    /** The parameter, field or header at fault: `input.type`. */
    param?: string;
    /** With status 429, and with some of 503: seconds to wait. */
    retry_after?: number;
    /** The header `X-Request-Id` of this response. */
    request_id: string;
  };
}

/**
 * Server-sent events of the type `trace`: the data of each is a trace, and its id that of the trace. The stream begins with an event
 * without data, whose id continues from there.
 */
export type EventStream = string;

/**
 * Paths with dots, each with a value that the member must equal, or with operators; all of them must pass. `$and`, `$or` and `$not` combine
 * filters, up to 4 deep; 32 paths at most.
 */
export interface Filter {
  /** All of these filters pass. */
  $and?: Filter[];
  /** At least one of these filters passes. */
  $or?: Filter[];
  $not?: Filter;
  [path: string]: FilterOperators | string | null | number | boolean | JsonValue[] | JsonObject | undefined;
}

/** Operators, all of which must pass. */
export interface FilterOperators {
  /** Equal, whatever it is: a text, a number, an array or an object as a whole. */
  $eq?: JsonValue;
  /** Not equal, or missing. */
  $ne?: JsonValue;
  /** Greater: numbers are compared with numbers, texts and times with their like. */
  $gt?: string | number | boolean;
  /** Greater or equal. */
  $gte?: string | number | boolean;
  /** Less. */
  $lt?: string | number | boolean;
  /** Less or equal. */
  $lte?: string | number | boolean;
  /** Equal to one of them; `tags`: has one of them. */
  $in?: JsonValue[];
  /** Equal to none of them, or missing. */
  $nin?: JsonValue[];
  /** Whether there is such a member. */
  $exists?: boolean;
  /** An array that has all of them. */
  $all?: JsonValue[];
  /** A text that has this one in it, or an array that has this item. */
  $contains?: string | number | boolean;
  /** A text that begins with this one. */
  $starts_with?: string;
}

/** What was forgotten, or would be. */
export interface ForgetResult {
  object: "forget_result";
  /** true where nothing was deleted. */
  dry_run: boolean;
  /** How many memories were deleted, or would be. */
  count: number;
  /** Up to 10 of them, newest first; of a dry run alone. */
  examples?: Memory[];
  /**
   * Token of a dry run. With the same filter and `dry_run: false` exactly those go that it counted: if one was changed or is gone since, it
   * is 409 `version_conflict` and nothing goes.
   */
  token?: string;
  /** true where more pass: ask again for these. */
  has_more: boolean;
  /** Set where 10,000 memories were compared with the filter, and others were not: there may be better ones. */
  partial?: true;
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** Memories to delete. */
export interface Forgetting {
  filter: Filter;
  /** Delete nothing, and say what would go. */
  dry_run?: boolean;
  /** How many at most; default 100. */
  limit?: number;
  /** Why; for the history of the memory and the trace. */
  reason?: string;
  /**
   * Token of a dry run. With the same filter and `dry_run: false` exactly those go that it counted: if one was changed or is gone since, it
   * is 409 `version_conflict` and nothing goes.
   */
  token?: string;
}

/** Where to fork. */
export interface Fork {
  /** The version to start from; default the current one. A negative one counts back from it. */
  version?: number;
  /**
   * Which turns the fork begins with, of those that were shown when that version was current: `all`, the newest of them up to 1000, or
   * `none` (default). They are not copied, and stay when this session is deleted or expires.
   */
  turns?: number | "none" | "all";
  /**
   * `session`: lists, searches and contexts of the fork show the memories that this session has now, besides its own. They are the same
   * memories, not copies: `session_id` says where each was added, and they stay when this session is deleted or expires. Memories of a user
   * are in the contexts of all of the user's sessions anyway. Default `none`.
   */
  memories?: "none" | "session";
}

export interface GetProofQuery {
  /** Id of the trace. */
  trace: string;
}

export interface GetStatisticsQuery {
  /**
   * Add what the servers have seen: in the last hour by the minute, in the last day by the quarter of an hour, or in the last 7 days by two
   * hours.
   */
  history?: "1h" | "24h" | "7d";
}

/** What the server can do now. */
export interface Health {
  /** `degraded` while the store cannot be read or takes no changes, the vector index has failed, or the server is stopping. */
  status: "ready" | "degraded";
  /** Why it is degraded. */
  reason?: string;
  /** Version of Cairn. */
  version: string;
  /** Whether a write is answered after it is on disk (`strict`) or before (`relaxed`). */
  durability: "strict" | "relaxed";
  /** Label of this deployment, if it has one. */
  region?: string;
  /** Largest body of a request, as it comes out of gzip (setting `max_body_bytes`). */
  max_body_bytes: number;
  /** The certificate of a server that gets its own (`--domain`). */
  certificate?: {
    /** When it ends. */
    expires_at: string | null;
    /** True if it should have been renewed long before. */
    overdue: boolean;
    /** Why the last order failed; null once one has succeeded since. */
    error: string | null;
  };
}

/**
 * What the servers of this store have seen. It is kept over a restart; a crash forgets the last minute, which other servers do not know
 * yet.
 */
export interface History {
  /** Seconds that each point covers. */
  bucket_seconds: number;
  /** Oldest first; the last one is still being counted. */
  points: HistoryPoint[];
}

/** What happened in one part of the time span. */
export interface HistoryPoint {
  /** When this part of the time span began. */
  at: string;
  /** Requests answered. */
  requests: number;
  /** Requests answered with a status of 500 or more. */
  errors: number;
  /** Changes made, by requests and by the server itself. */
  changes: number;
  /** Memories created. */
  memories: number;
  /** Searches in memories and turns, and contexts. */
  searches: number;
  /** Milliseconds within which half of the requests were answered; null where there was none. */
  p50_ms: number | null;
  /** Milliseconds within which 99 % of the requests were answered; null where there was none. */
  p99_ms: number | null;
}

export interface ListAgentsQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page. */
  starting_after?: string;
}

export interface ListApiKeysQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`key_…`); its record may be gone. */
  starting_after?: string;
  /** Only keys of this kind. */
  kind?: "key" | "session" | "link" | "oauth";
}

export interface ListBackupsQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`bkp_…`); its record may be gone. */
  starting_after?: string;
}

export interface ListDeliveriesQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`dlv_…`); its record may be gone. */
  starting_after?: string;
  /** Only deliveries of this status. */
  status?: "pending" | "delivered" | "failed";
  /** Only deliveries of events of this type. */
  event_type?:
    | "session.created"
    | "session.updated"
    | "session.deleted"
    | "session.expired"
    | "turn.added"
    | "memory.created"
    | "memory.superseded"
    | "memory.expired"
    | "backup.created"
    | "backup.failed"
    | "trace.created"
    | "trace.rollback"
    | "trace.error"
    | "webhook.test";
  /** Only deliveries after this time (ISO 8601; without an offset it is UTC). */
  created_after?: string;
  /** Only deliveries before this time. */
  created_before?: string;
}

export interface ListFailedDeliveriesQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`dlv_…`); its record may be gone. */
  starting_after?: string;
}

export interface ListMemoriesQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`mem_…`); its record may be gone. */
  starting_after?: string;
  /** Only memories of this session. */
  session_id?: string;
  /** Only memories of this user, of sessions and without one. */
  user_id?: string;
  /** Only memories of this agent. */
  agent_id?: string;
  /** Only memories of this type. */
  type?: string;
  /**
   * Memories with ANY of these tags: one value with commas between the tags, or the parameter once for each tag, which may then contain
   * commas. Empty values are ignored, so that `tags=a%2Cb&tags=` means the one tag `a,b`.
   */
  tags?: string[];
  /** Whether a memory must have any of the tags, or all of them. Default `any`. */
  tags_match?: "any" | "all";
  /**
   * Paths with dots, each with a value that the member must equal, or with operators; all of them must pass. `$and`, `$or` and `$not`
   * combine filters, up to 4 deep; 32 paths at most.
   */
  filter?: Filter;
  /** Only memories that are `current`, `past`, or still to come (`future`), now or at `as_of`; or `all`. Default `current`. */
  status?: "current" | "past" | "future" | "all";
  /**
   * The moment at which memories have that status, instead of now. Of records that still exist, whenever they were added. ISO 8601, such as
   * `2027-05-07T08:00:00Z`.
   */
  as_of?: string;
  /** Only memories after this time (ISO 8601; without an offset it is UTC). */
  created_after?: string;
  /** Only memories before this time. */
  created_before?: string;
}

export interface ListRetrievalsQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`ret_…`); its record may be gone. */
  starting_after?: string;
  /** Only those of a `search` or of a `context` or of a `turn_search`. */
  operation?: "search" | "context" | "turn_search";
  /** Only retrievals after this time (ISO 8601; without an offset it is UTC). */
  created_after?: string;
  /** Only retrievals before this time. */
  created_before?: string;
}

export interface ListSearchesQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`ret_…`); its record may be gone. */
  starting_after?: string;
  /** Only searches of this user. */
  user_id?: string;
  /** Only searches of this agent. */
  agent_id?: string;
  /** Only searches after this time (ISO 8601; without an offset it is UTC). */
  created_after?: string;
  /** Only searches before this time. */
  created_before?: string;
}

export interface ListSessionsQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`sess_…`); its record may be gone. */
  starting_after?: string;
  /** Only sessions of this agent. */
  agent_id?: string;
  /** The user the agent acts for. Lists, searches and keys can be limited to a user. Not `.` or `..`, which a path cannot name. */
  user_id?: string;
  /** Only sessions of this name, of which each user can have one. */
  external_id?: string;
  /**
   * `true`: without `user_id` only sessions without a user, instead of those of all users; a key that is bound to a user lists its user's.
   * With `external_id` it is a look-up: at most the one session that `if_exists`: `return` gives the same key for that `user_id` and
   * `agent_id`, which may be another agent's. Default false.
   */
  exact_user?: boolean;
  /** `true`: only sessions whose state or metadata is marked with `secrets` (the setting `secrets` at `tag`); `false`: only others. */
  has_secrets?: boolean;
  /** Only forks of this session, which may be gone. */
  forked_from?: string;
  /** Only sessions after this time (ISO 8601; without an offset it is UTC). */
  created_after?: string;
  /** Only sessions before this time. */
  created_before?: string;
  /** Members to add: first_input, rollback_count, with commas between them. */
  include?: string;
}

export interface ListTimelineQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`entry_…`); its record may be gone. */
  starting_after?: string;
  /** Only entries of these kinds: turn, version, memory, retrieval, fork, with commas between them. */
  kinds?: string;
  /** `all`: with turns that a rollback has hidden, which have `rolled_back_at`. Default `current`. */
  status?: "current" | "all";
  /** `desc` (newest first) unless given. */
  order?: "asc" | "desc";
}

export interface ListTracesQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`trace_…`); its record may be gone. */
  starting_after?: string;
  /** Only traces of this session, which may be long gone. */
  session_id?: string;
  /** Only traces of this user's records. */
  user_id?: string;
  /** Only traces of this action. */
  action?:
    | "turn.added"
    | "state.updated"
    | "memory.created"
    | "session.created"
    | "session.expired"
    | "session.updated"
    | "session.deleted"
    | "session.forked"
    | "state.rolled_back"
    | "memory.updated"
    | "memory.deleted"
    | "memory.superseded"
    | "memory.expired"
    | "retrieval.rated"
    | "api_key.created"
    | "api_key.rolled"
    | "api_key.revoked"
    | "backup.started"
    | "backup.created"
    | "backup.failed"
    | "backup.copied"
    | "backup.copy_failed"
    | "backup.downloaded"
    | "backup.deleted"
    | "user.erased"
    | "settings.updated"
    | "webhook.created"
    | "webhook.updated"
    | "webhook.disabled"
    | "webhook.secret_rotated"
    | "webhook.deleted";
  /** Only traces after this time (ISO 8601; without an offset it is UTC). */
  created_after?: string;
  /** Only traces before this time. */
  created_before?: string;
}

export interface ListTurnsByTheirWordsQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`turn_…`); its record may be gone. */
  starting_after?: string;
  /** Only turns that have all of these words, whatever their endings. */
  q?: string;
  /** Only turns that this session shows. */
  session_id?: string;
  /** Only turns of sessions of this user. */
  user_id?: string;
  /** Only turns of sessions of this agent. */
  agent_id?: string;
  /**
   * Paths with dots, each with a value that the member must equal, or with operators; all of them must pass. `$and`, `$or` and `$not`
   * combine filters, up to 4 deep; 32 paths at most.
   */
  filter?: Filter;
}

export interface ListTurnsQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`turn_…`); its record may be gone. */
  starting_after?: string;
  /** `all`: with turns that a rollback has hidden, which have `rolled_back_at`. Default `current`. */
  status?: "current" | "all";
  /** `desc` (newest first) unless given. */
  order?: "asc" | "desc";
}

export interface ListUsersQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page. */
  starting_after?: string;
  /**
   * `name` (by code points; unless given), or `last_seen`: by when their newest session was created, the latest first. Turns, states,
   * memories and documents change nothing in it.
   */
  order?: "name" | "last_seen";
  /** Only users whose names begin with this, upper and lower case as given. Only by `name`. */
  prefix?: string;
}

export interface ListVersionsQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last version of the previous page. */
  starting_after?: number;
}

export interface ListWebhookStatisticsQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`whk_…`); its record may be gone. */
  starting_after?: string;
}

export interface ListWebhooksQuery {
  /** How many at most; default 20. */
  limit?: number;
  /** The last id of the previous page (`whk_…`); its record may be gone. */
  starting_after?: string;
}

/** A memory. */
export interface Memory {
  object: "memory";
  /** `mem_` and 12 characters. */
  id: string;
  /** The session it was added to, which may have expired since; null without one. */
  session_id: string | null;
  /** The user it belongs to; null for an agent's alone. */
  user_id: string | null;
  /** The agent it belongs to; null for a user's alone. */
  agent_id: string | null;
  /** What to remember: 1 to 10000 characters; more is 413 `content_too_large`. */
  content: string;
  /** Standard types: fact, preference, event, policy, observation, general; others are accepted. */
  type: string;
  /** Tags. */
  tags: string[];
  /** Custom metadata. At most 64 KiB as JSON. */
  metadata: JsonObject;
  /** The name that you gave it. */
  external_id: string | null;
  /** Who says so. */
  source: "user" | "agent" | "tool" | "import";
  /** How important you said it is. */
  importance: number | null;
  /** Whether every context of its owner shows it. */
  pinned: boolean;
  /** When it happened, if that was given. */
  occurred_at: string | null;
  /** When the memory was added. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
  /** When it expires; null: never. */
  expires_at: string | null;
  /** Since when it holds; null: since ever. */
  valid_from: string | null;
  /** Until when it holds; null: for ever. */
  valid_until: string | null;
  /** Ids of the memories whose place it took; some may be gone. */
  supersedes: string[];
  /** The memory that took its place. */
  superseded_by: string | null;
  /** When that one took it, or will. */
  superseded_at: string | null;
  /** Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none. */
  secrets?: string[];
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
  /** ID of the vector, which changes with the content; left out when there is none. */
  embedding_id?: string;
  /** Whether it has a vector. Until one is made, its words find it. */
  vector_available: boolean;
}

/** Memories to add together. */
export interface MemoryBatch {
  /** Each as for `POST /v1/memory`. An error names the one that is wrong: `memories[3].content`. */
  memories: NewMemory[];
}

/** What changes; the rest stays. */
export interface MemoryChanges {
  /** What to remember: 1 to 10000 characters; more is 413 `content_too_large`. */
  content?: string;
  /** Standard types: fact, preference, event, policy, observation, general; others are accepted. */
  type?: string;
  /** Replaces the tags. */
  tags?: string[];
  /** Merged into what is there, key by key; a null removes the key. At most 64 KiB as JSON. */
  metadata?: JsonObject;
  /** A name of your own; null takes it away. */
  external_id?: string | null;
  /** Who says so. */
  source?: "user" | "agent" | "tool" | "import";
  /** How important it is to you; null: unknown. */
  importance?: number | null;
  /**
   * Show it first in every context of its user, whatever the query: at most 20 current ones of a user, more are 409 `version_conflict`. Of
   * a session without a user, in that session's contexts.
   */
  pinned?: boolean;
  /**
   * When it expires: from that moment on nothing shows it, and it is removed with the event `memory.expired`. null: never. ISO 8601, such
   * as `2027-05-07T08:00:00Z`.
   */
  expires_at?: string | null;
  /** Instead of `expires_at`: seconds until then, from now. */
  ttl_seconds?: number;
  /**
   * Since when it holds; null: since ever, or since it was added where it supersedes another one. ISO 8601, such as `2027-05-07T08:00:00Z`.
   */
  valid_from?: string | null;
  /** Until when it holds; null: for ever. ISO 8601, such as `2027-05-07T08:00:00Z`. */
  valid_until?: string | null;
  /** Why; for the history of the memory and the trace. */
  reason?: string;
}

/** A content that a memory has or had. */
export interface MemoryContent {
  /** What to remember: 1 to 10000 characters; more is 413 `content_too_large`. */
  content: string;
  /** When it was written. */
  written_at: string;
  /** First characters of the API key that wrote it; null where that was not noted. */
  actor: string | null;
  /** Why, as given with that change. */
  reason: string | null;
}

/** A memory was added. The data is the memory. */
export interface MemoryCreatedEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "memory.created";
  /** When it happened. */
  created_at: string;
  data: Memory;
}

/** The time of a memory has passed. The data is the memory as it was last. */
export interface MemoryExpiredEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "memory.expired";
  /** When it happened. */
  created_at: string;
  data: Memory;
}

/** Why a memory was found, and stands where it does. */
export interface MemoryExplanation {
  /** Similarity in meaning, 0.0 to 1.0: half of the score, and up to three quarters with another provider. */
  semantic: number;
  /** The share of the query that the memory's words cover, 0.0 to 1.0: the rest of the score. */
  lexical: number;
  /** At most 50 words, those that cover most of the query, in its order. A word is cut after 64 characters. */
  matches: Array<{
    /** A word of the query. */
    word: string;
    /** `word`: the memory has the word. */
    matched_by: string;
    /** The matching word of the memory. */
    matched_word?: string;
    /** Share of the query that this word covers. */
    share: number;
  }>;
  /** Number of further matching words, if there are any. */
  omitted?: number;
  /**
   * Of a content of more than about 100 words: the passage of it that is nearest in meaning, which `semantic` is of. Counted in Unicode
   * code points.
   */
  passage?: {
    /** Its first character. */
    start: number;
    /** The character behind its last one. */
    end: number;
  };
  /** The filters of the request, if it has any; the memory has passed them all. */
  filters?: string[];
  /** With `recency` or `importance_weight`. */
  recency?: {
    /** Since it happened, or was added; 0 for what is to come. */
    age_days: number;
    /** By what its age multiplies the score. */
    factor: number;
  };
  /** With `recency` or `importance_weight`. */
  importance?: {
    /** Its importance; null, which nobody has said, counts as 0.5. */
    importance: number | null;
    /** By what its importance multiplies the score: `ranking_score` is the score times both factors, to six digits. */
    factor: number;
  };
}

/** What a memory said before, and its neighbours in time. */
export interface MemoryHistory {
  object: "list";
  /** Newest first, beginning with the present one; of those before as many as the setting `memory_versions_kept` says. */
  data: MemoryContent[];
  /** Ids of the memories whose place it took; some may be gone. */
  supersedes: string[];
  /** The memory that took its place. */
  superseded_by: string | null;
}

/** A page of memories. */
export interface MemoryList {
  object: "list";
  data: Memory[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** A memory that a search found. */
export interface MemoryResult {
  /** `mem_` and 12 characters. */
  id: string;
  /** The session it was added to, which may have expired since; null without one. */
  session_id: string | null;
  /** The user it belongs to; null for an agent's alone. */
  user_id: string | null;
  /** The agent it belongs to; null for a user's alone. */
  agent_id: string | null;
  /** What to remember: 1 to 10000 characters; more is 413 `content_too_large`. */
  content: string;
  /** Standard types: fact, preference, event, policy, observation, general; others are accepted. */
  type: string;
  /** Who says so. */
  source: "user" | "agent" | "tool" | "import";
  /** Tags. */
  tags: string[];
  /** 0.0 to 1.0, higher is more relevant; from 0.7 on it is about the query. */
  score: number;
  /** With `recency` or `importance_weight`: what it is ordered by, the score after both; never more than the score. */
  ranking_score?: number;
  /** When the memory was added. */
  created_at: string;
  explanation?: MemoryExplanation;
}

/** What a search found, best first. */
export interface MemoryResults {
  object: "list";
  /** The query, as it was sent. */
  query: string;
  data: MemoryResult[];
  /** Set where 10,000 memories were compared with the filter, and others were not: there may be better ones. */
  partial?: true;
  /** Where it is logged (`retrieval_log`): for `GET /v1/retrievals/{retrieval_id}` and feedback. Left out where it is not. */
  retrieval_id?: string;
}

/** What to look for. */
export interface MemorySearch {
  /** What to look for, in words. Emoji and other symbols find the memories that contain them. */
  query: string;
  /** Only memories of this session. */
  session_id?: string;
  /** Only memories of this user, of sessions and without one. */
  user_id?: string;
  /** Only memories of this agent. */
  agent_id?: string;
  /** Only memories of this type. */
  type?: string;
  /** Memories of ANY of these types; an empty array is no filter. */
  types?: string[];
  /** Memories with ANY of them, unless `tags_match` says otherwise. */
  tags?: string[];
  /** Whether a memory must have any of the tags, or all of them. Default `any`. */
  tags_match?: "any" | "all";
  filter?: Filter;
  /** Only memories that were added after this time. ISO 8601, such as `2027-05-07T08:00:00Z`. */
  created_after?: string;
  /** Only memories that were added before this time. */
  created_before?: string;
  /** Only memories that are `current`, `past`, or still to come (`future`), now or at `as_of`; or `all`. Default `current`. */
  status?: "current" | "past" | "future" | "all";
  /**
   * The moment at which memories have that status, instead of now. Of records that still exist, whenever they were added. ISO 8601, such as
   * `2027-05-07T08:00:00Z`.
   */
  as_of?: string;
  /** How many at most; default 10. */
  limit?: number;
  /** Lowest score; default 0.7. With 0 nothing is left out. */
  threshold?: number;
  /**
   * Puts what is newer first: orders by `ranking_score`, which is the score × (1 − weight + weight × 2^(−age / half-life)). Ages count from
   * `occurred_at`, or else `created_at`, to now or `as_of`. `score` and `threshold` stay as they are.
   */
  recency?: {
    /** After how many days half of what depends on age is left; with 0 nothing is left of what is not of this moment. */
    half_life_days: number;
    /** How much depends on age: 0 nothing, 1 everything. */
    weight: number;
  };
  /**
   * Puts what is more important first: orders by `ranking_score`, here × (1 − weight + weight × importance); an importance that nobody has
   * said counts as 0.5.
   */
  importance_weight?: number;
  /** Add to each result why it was found. */
  explain?: boolean;
}

/** Another memory has taken the place of one. The data is the one whose place it took. */
export interface MemorySupersededEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "memory.superseded";
  /** When it happened. */
  created_at: string;
  data: Memory;
}

/** A page of namespaces. */
export interface NamespacePage {
  object: "list";
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The next page's `cursor`; null on the last page. */
  next_cursor: string | null;
  data: string[][];
}

/** An API key to create. */
export interface NewApiKey {
  /** What the key is for. */
  name?: string;
  /**
   * `read`: every GET, search and context. `write`: changes of records. `admin`: also keys, settings, webhooks, backups and erasures;
   * implies the others.
   */
  scopes?: Array<"read" | "write" | "admin">;
  /** Decides rate limit and trace retention; default `enterprise`. */
  tier?: "free" | "pro" | "enterprise";
  /**
   * Binds the key to this user: it sees and changes nothing but the records of this user's sessions. Not with the scope `admin`. Leave it
   * out for all users: null is refused. Not `.` or `..`, which a path cannot name.
   */
  user_id?: string;
  /** Binds the key to this agent in the same way; with both, to this agent for this user. Null is refused. */
  agent_id?: string;
  rate_limit?: RateLimit;
  /** When it stops working; default never. */
  expires_at?: string;
}

/** What helped. It takes the place of what was said before. */
export interface NewFeedback {
  /** Ids of memories and turns of the retrieval that helped. */
  useful?: string[];
  /** Ids of those that did not. */
  not_useful?: string[];
  /** A note of yours. */
  note?: string;
}

/** A memory to add. */
export interface NewMemory {
  /**
   * The session it belongs to, and with it that session's user and agent: it goes when the session is deleted. Without one, `user_id` or
   * `agent_id` is required, unless the API key is bound to one.
   */
  session_id?: string;
  /** Whose memory it is. With `session_id` it is the user of that session, or left out. Not `.` or `..`, which a path cannot name. */
  user_id?: string;
  /** The agent whose memory it is. With `session_id` it is the agent of that session, or left out. */
  agent_id?: string;
  /** What to remember: 1 to 10000 characters; more is 413 `content_too_large`. */
  content: string;
  /** Standard types: fact, preference, event, policy, observation, general; others are accepted. Default `general`. */
  type?: string;
  /** Tags, for filters. */
  tags?: string[];
  /** Custom metadata; default `{}`. At most 64 KiB as JSON. */
  metadata?: JsonObject;
  /** false: keep it out of semantic search. */
  embed?: boolean;
  /**
   * A name of your own, such as the id of a row. No two memories of a user have the same, or of an agent where there is no user; it is free
   * again once its memory is deleted or has expired.
   */
  external_id?: string;
  /**
   * What happens when the owner has a memory of that `external_id`: `error` is 409 `already_exists`; `return` answers 200 with it, as it
   * is; `update` answers 200 once its content, and what else is sent, has taken the place of what was there. Default `error`.
   */
  if_exists?: "error" | "update" | "return";
  /**
   * What happens when the owner has a current memory of the same type that says the same, whatever its case, spaces and forms of
   * characters: `return` answers 200 with it, as it is, and `duplicate: true`; `update` gives it the tags, metadata, times and what else is
   * sent before. A memory of that `external_id` comes first. Of a session without a user the memories of that session are compared. Default
   * `allow`.
   */
  on_duplicate?: "allow" | "return" | "update";
  /** Who says so; `agent` unless given. A context shows it. */
  source?: "user" | "agent" | "tool" | "import";
  /** How important it is to you, 0.0 to 1.0. */
  importance?: number;
  /**
   * Show it first in every context of its user, whatever the query: at most 20 current ones of a user, more are 409 `version_conflict`. Of
   * a session without a user, in that session's contexts.
   */
  pinned?: boolean;
  /** When it happened, for history that is moved in: at most a day ahead. ISO 8601, such as `2027-05-07T08:00:00Z`. */
  occurred_at?: string;
  /**
   * When it expires: from that moment on nothing shows it, and it is removed with the event `memory.expired`. ISO 8601, such as
   * `2027-05-07T08:00:00Z`.
   */
  expires_at?: string;
  /** Instead of `expires_at`: seconds until then, from now. */
  ttl_seconds?: number;
  /**
   * Since when it holds; since ever unless given, or since now where it supersedes another one. ISO 8601, such as `2027-05-07T08:00:00Z`.
   */
  valid_from?: string;
  /** Until when it holds: from then on it is past, and stays. ISO 8601, such as `2027-05-07T08:00:00Z`. */
  valid_until?: string;
  /**
   * Ids of memories of the same owner whose place it takes: each is past from `valid_from` on, and current again if this one is deleted or
   * expires. One that is superseded already is 409 `version_conflict`.
   */
  supersedes?: string[];
  /** Why; for the history of the memory and the trace. */
  reason?: string;
  /**
   * Have the answer list the owner's current memories that are nearest in meaning, as they were before: one that says otherwise by now can
   * be superseded with the next call. Needs a key with the scope `read`.
   */
  similar?: {
    /** How many; default 5. */
    limit?: number;
    /** Lowest score; default 0.7. */
    threshold?: number;
  };
}

/** A session to create. */
export interface NewSession {
  /** Identifies the agent. */
  agent_id: string;
  /** The user the agent acts for. Lists, searches and keys can be limited to a user. Not `.` or `..`, which a path cannot name. */
  user_id?: string;
  /**
   * A name of your own, such as the id of a thread. No two live sessions of a `user_id`, or without one, have the same; it is free again
   * once its session is deleted or has expired. A fork does not take it over.
   */
  external_id?: string;
  /**
   * What happens when a live session of the same `user_id`, or of none, has the `external_id`: `error` is 409 `already_exists`, `return`
   * answers 200 with that session, as it is. Sessions of other users, or without the `user_id` of the request, do not matter. Default
   * `error`.
   */
  if_exists?: "error" | "return";
  /** Becomes version 0; default `{}`. */
  initial_state?: JsonObject;
  /** Custom metadata; default `{}`. At most 64 KiB as JSON. */
  metadata?: JsonObject;
  /**
   * Seconds until the session expires, at most 30 days, or `never`; default 86400. Activity does not extend it. A session that never
   * expires stays until it is deleted.
   */
  ttl_seconds?: number | "never";
  /**
   * By what searches find its turns, instead of what the setting `index_turns` says: `off`, by their `words`, or by `meaning` too. It stays
   * so for the session and its forks.
   */
  index_turns?: "off" | "words" | "meaning";
  /** When the conversation began, for history that is moved in; `created_at` is the time of this request. At most a day in the future. */
  occurred_at?: string;
}

/** A turn to log, and what else the step of the agent has changed. */
export interface NewStep {
  input: TurnInput;
  output: {
    /** What went out; `tool_response` is read as `tool_result`. */
    type: "text" | "audio" | "image" | "tool_result" | "error" | "tool_response";
    /** The text, a transcription, a description or what a tool was given or gave. */
    content: string;
  };
  /** Why the agent answered so. */
  reasoning?: string;
  /** Custom metadata; default `{}`. At most 64 KiB as JSON. */
  metadata?: JsonObject;
  /**
   * A name of your own, such as the id of a message, unique in its session: where a turn has it already that one is answered, as it is,
   * with 200, and nothing is changed.
   */
  external_id?: string;
  /**
   * When it happened, for history that is moved in: contexts and timelines go by it, lists by `created_at`. At most a day in the future.
   */
  occurred_at?: string;
  /** A snapshot; logging a turn never changes the state. */
  state_before?: JsonObject;
  /** A snapshot; logging a turn never changes the state. */
  state_after?: JsonObject;
  /** Replaces the state, before the turn is logged. */
  state?: JsonObject;
  /** Laid over the state, key by key, before the turn is logged; a null removes a key. Not with `state`. */
  state_patch?: JsonObject;
  /** Change nothing unless this is the current version (409 `version_conflict` otherwise). */
  expected_version?: number;
  /**
   * Up to 20 memories to add to the session, each as for `POST /v1/memory`. An error names the one that is wrong: `memories[3].content`.
   */
  memories?: StepMemory[];
}

/** A turn to log. */
export interface NewTurn {
  input: TurnInput;
  output: {
    /** What went out; `tool_response` is read as `tool_result`. */
    type: "text" | "audio" | "image" | "tool_result" | "error" | "tool_response";
    /** The text, a transcription, a description or what a tool was given or gave. */
    content: string;
  };
  /** Why the agent answered so. */
  reasoning?: string;
  /** Custom metadata; default `{}`. At most 64 KiB as JSON. */
  metadata?: JsonObject;
  /**
   * A name of your own, such as the id of a message, unique in its session: where a turn has it already that one is answered, as it is,
   * with 200, and nothing is changed.
   */
  external_id?: string;
  /**
   * When it happened, for history that is moved in: contexts and timelines go by it, lists by `created_at`. At most a day in the future.
   */
  occurred_at?: string;
  /** A snapshot; logging a turn never changes the state. */
  state_before?: JsonObject;
  /** A snapshot; logging a turn never changes the state. */
  state_after?: JsonObject;
}

/** Turns to log together. */
export interface NewTurns {
  /** 1 to 100 turns, logged in this order, all of them or none. */
  turns: NewTurn[];
}

/** A webhook to create. */
export interface NewWebhook {
  /** Where events are posted: `http` or `https`, no user name. It must not lead into a private network unless the operator allows that. */
  url: string;
  /**
   * The events it subscribes to. Those of sessions, turns and memories carry the record; those of traces the trace, `trace.error` that of a
   * turn whose output has the type `error`.
   */
  events: Array<
    | "session.created"
    | "session.updated"
    | "session.deleted"
    | "session.expired"
    | "turn.added"
    | "memory.created"
    | "memory.superseded"
    | "memory.expired"
    | "backup.created"
    | "backup.failed"
    | "trace.created"
    | "trace.rollback"
    | "trace.error"
  >;
  /** What the webhook is for. */
  description?: string;
  /** Whether events are delivered; default true. */
  enabled?: boolean;
  /** The signing secret: printable ASCII, or `whsec_` followed by base64. A new one is made if none is given. */
  secret?: string;
}

/** The new secret. */
export interface NewWebhookSecret {
  /** The signing secret: printable ASCII, or `whsec_` followed by base64. A new one is made if none is given. */
  secret?: string;
}

/** No fields. */
export interface Nothing {}

/** The parameters that an application sent to `/authorize`. */
export interface OAuthAsked {
  /** URL of the application's document, or the id of its registration. */
  client_id: string;
  /** Where the application waits for the answer. */
  redirect_uri: string;
  /** `code`. */
  response_type: string;
  /** PKCE: base64url of the SHA-256 of the verifier. */
  code_challenge: string;
  /** `S256`. */
  code_challenge_method: string;
  /** `read`, `write`, `offline_access`; others are ignored. Default `read write`. */
  scope?: string;
  /** Given back to the application. */
  state?: string;
  /** URL of `/mcp` of this server. */
  resource: string;
}

/** What an application asked for, and what it gets. */
export interface OAuthConsent {
  /** URL of the application's document, or the id of its registration. */
  client_id: string;
  /** Where the application waits for the answer. */
  redirect_uri: string;
  /** `code`. */
  response_type: string;
  /** PKCE: base64url of the SHA-256 of the verifier. */
  code_challenge: string;
  /** `S256`. */
  code_challenge_method: string;
  /** `read`, `write`, `offline_access`; others are ignored. Default `read write`. */
  scope?: string;
  /** Given back to the application. */
  state?: string;
  /** URL of `/mcp` of this server. */
  resource: string;
  /** Those that it gets, of those that it asked for; default all. */
  scopes?: Array<"read" | "write">;
  /** Binds the application to the records of this user. Not `.` or `..`, which a path cannot name. */
  user_id?: string;
  /** Binds the application to the records of this agent. */
  agent_id?: string;
  /** How long the application stays connected at most; default 90. Unused for 30 days, it ends. */
  expires_in_days?: number;
}

/** An application that was connected. */
export interface OAuthGrant {
  object: "oauth_grant";
  key: ApiKey;
  /** Where to send the browser: it has the code, which is good for a minute, once. */
  redirect_to: string;
}

/** An application that asks for access. */
export interface OAuthRequest {
  object: "oauth_request";
  client_id: string;
  /** The name that the application gives itself. */
  client_name: string;
  /** Host of its document; null for a registration, which anybody can make under any name. */
  client_host: string | null;
  /** Host that gets the answer. */
  redirect_host: string;
  /** Whether any program on the machine of the browser could be that host. */
  redirects_to_this_machine: boolean;
  resource: string;
  scopes: Array<"read" | "write">;
  /** Whether it stays connected for longer than an hour. */
  refreshes: boolean;
  /** Where to send the browser if the answer is no. */
  denial: string;
}

/** What was found within the limits and did not fit. Set where `token_count` is. */
export interface Omitted {
  /** How many memories did not fit. */
  memories: number;
  /** How many pinned memories did not fit. */
  pinned: number;
  /** How many turns did not fit. */
  turns: number;
  /** 1 where the state did not fit; it stands whole or not at all. */
  state: number;
}

/** How often the key may be used. */
export interface RateLimit {
  /** Requests per minute. */
  per_minute: number;
  /** Requests allowed at once after a pause. */
  burst: number;
}

/** What a key without the scope `read` gets in the place of a record that it has changed, forked or found. */
export interface Receipt {
  /** What kind of record it is. */
  object: string;
  /** Its id. */
  id?: string;
  /** The session that it belongs to; null for a memory without one. */
  session_id?: string | null;
  /** Version of the state. */
  version?: number;
  /** Version of the session's state. */
  state_version?: number;
  /** Version that a rollback made. */
  new_version?: number;
  /** True: it is done. */
  success?: boolean;
  /** When the record was created. */
  created_at?: string;
  /** When it was last changed. */
  updated_at?: string;
  /** When the session expires; null if it does not. */
  ttl_expires_at?: string | null;
  /** ID of the memory's vector. */
  embedding_id?: string;
  /** Whether semantic search finds the memory. */
  vector_available?: boolean;
  /** The same of each record of a list. */
  data?: Array<{
    /** What kind of record it is. */
    object: string;
    /** Its id. */
    id?: string;
    /** The session that it belongs to; null for a memory without one. */
    session_id?: string | null;
    /** Version of the state. */
    version?: number;
    /** Version of the session's state. */
    state_version?: number;
    /** Version that a rollback made. */
    new_version?: number;
    /** True: it is done. */
    success?: boolean;
    /** When the record was created. */
    created_at?: string;
    /** When it was last changed. */
    updated_at?: string;
    /** When the session expires; null if it does not. */
    ttl_expires_at?: string | null;
    /** ID of the memory's vector. */
    embedding_id?: string;
    /** Whether semantic search finds the memory. */
    vector_available?: boolean;
  }>;
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** A turn, in short. */
export interface RecentTurn {
  /** `turn_` and 12 characters. */
  id: string;
  input: TurnInput;
  output: TurnOutput;
  /** When the turn was logged. */
  created_at: string;
  /** When it happened, if that was given: for history that was moved in. */
  occurred_at?: string;
  /** Set where not all of it fitted: its text ends with `…`. Left out for others. */
  truncated?: true;
}

/** A kind of secret that was taken out at one place of a request. */
export interface Redaction {
  /** Where in the request it was. */
  path: string;
  /** What it was. */
  kind: string;
  /** How many of the kind were there. */
  count: number;
}

/** Something that is not as it was. */
export interface ReplayChange {
  /** What has changed. */
  kind: "memory" | "turn" | "state" | "request";
  /** The memory or the turn; null for others, and for memories that are `hidden`. */
  id: string | null;
  /**
   * `edited`: shown with the content that it had then. `rewritten`: that content is no longer kept, and the present one is shown.
   * `rolled_back`: a turn that is hidden now, shown as it was. `gone`: deleted, expired, or no longer kept, and left out; of the `request`,
   * which was too long to keep, `max_tokens` and `format` are. `hidden`: memories of other users or agents, which this key may not see,
   * were there too.
   */
  change: "edited" | "rewritten" | "rolled_back" | "gone" | "hidden";
}

/** What a search or a context found for a query. */
export interface Retrieval {
  object: "retrieval";
  /** `ret_` and 12 characters. */
  id: string;
  /** The session that the search or the context was of; null for a search that named none. */
  session_id: string | null;
  /** The user of the session, or of a search that named none. */
  user_id: string | null;
  /** The agent of the session, or of a search that named none. */
  agent_id: string | null;
  /** What was asked for: `search` is one of memories. */
  operation: "search" | "context" | "turn_search";
  /** The query, its first 1000 characters. */
  query: string;
  /** How many memories were asked for, or turns. */
  limit: number;
  /** The lowest score that was asked for; 0 for a context. */
  threshold: number;
  /** Whether a filter narrowed what was looked for: `type`, `types`, `tags`, `filter`, or times. */
  filtered: boolean;
  /** What else was asked for, as it was sent; null where that has more than 4000 characters, or was not kept. */
  request: JsonObject | null;
  /** What was found, best first; for a bound key, only memories of its user and agent. */
  memories: RetrievedMemory[];
  /** The version of the state that a context showed; null for a search. */
  state_version: number | null;
  /** Ids of the turns of a context, newest first, before a budget left any out, or of those that a search in turns found, best first. */
  turns: string[];
  feedback: RetrievalFeedback;
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
  /** First 8 characters of the API key that asked. */
  actor: string;
  /** The turn that came of it: the next one of the session; null while there is none. */
  turn_id: string | null;
  /** When it was found, give or take a tenth of a second. */
  created_at: string;
}

/** What was said of it last; null until then. */
export type RetrievalFeedback = {
  /** Ids of memories and turns of the retrieval that helped. */
  useful: string[];
  /** Ids of those that did not. */
  not_useful: string[];
  /** The note. */
  note: string | null;
  /** When it was given. */
  created_at: string;
} | null;

/** A page of retrievals. */
export interface RetrievalList {
  object: "list";
  data: Retrieval[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** A memory that was found. */
export interface RetrievedMemory {
  /** The memory, which may have been deleted since. */
  id: string;
  /** Its score in the answer, 0.0 to 1.0. */
  score: number;
  /** The first 100 characters of what the memory says now; null when it is gone. */
  content_preview: string | null;
  /** `unchanged` since, `changed`, or `gone`: deleted, expired or erased. */
  status: "unchanged" | "changed" | "gone";
}

export interface RevokeApiKeyQuery {
  /** Why; kept in the trace. */
  reason?: string;
  /** Revoke the key even if it is the last valid admin key. Default false. */
  force?: boolean;
}

/** Where to go back to. */
export interface Rollback {
  /** The version whose state comes back; 0 is the initial state, -1 the previous one. */
  version: number;
  /** Why, for the trace. */
  reason?: string;
  /**
   * `hide`: contexts, lists and timelines show the turns that they showed when that version was current, and no later ones, unless they are
   * asked for `status=all`. A later rollback with `hide` to a version before this one shows those again. Default `keep`.
   */
  turns?: "keep" | "hide";
  /** Change nothing unless this is the current version (409 `version_conflict` otherwise). */
  expected_version?: number;
}

/** A session. */
export interface Session {
  object: "session";
  /** `sess_` and 12 characters. */
  id: string;
  /** Identifies the agent. */
  agent_id: string;
  /** The user the agent acts for; null if none was given. */
  user_id: string | null;
  /** The name that you gave it; left out if there is none. */
  external_id?: string;
  /** When the session was created. */
  created_at: string;
  /** When the conversation began, if that was given: for history that was moved in. */
  occurred_at?: string;
  /** When its state, metadata, turns or memories last changed. */
  updated_at: string;
  /** The current state. */
  state: JsonObject;
  /** Version of `state`; 0 is the initial state. */
  state_version: number;
  /** Custom metadata. A fork has `forked_from` and `forked_version` here. At most 64 KiB as JSON. */
  metadata: JsonObject;
  /** Memories that were added to the session, without those that a fork shows of the session it was forked from. */
  memory_count: number;
  /** Turns in the session that are shown: with those of the session it was forked from, without those that a rollback has hidden. */
  turn_count: number;
  /** By what its turns are found, if that was given; left out where the setting `index_turns` says it. */
  index_turns?: "off" | "words" | "meaning";
  /** Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none. */
  secrets?: string[];
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
  /** When the session expires; null if it does not. */
  ttl_expires_at: string | null;
  /**
   * In a list with `include` `first_input`: the input of the first turn that was logged in the session, at most 200 characters of it; left
   * out where there is none. Turns that a fork shows of the session it was forked from do not count; those that a rollback has hidden do.
   */
  first_input?: string;
  /** In a list with `include` `rollback_count`: how often the session was rolled back, since Cairn counts it. */
  rollback_count?: number;
}

/** What changes; the rest stays. */
export interface SessionChanges {
  /** Merged into what is there, key by key; a null removes the key. At most 64 KiB as JSON. */
  metadata?: JsonObject;
  /** A new time to live, counted from now; `never`: it does not expire. */
  ttl_seconds?: number | "never";
}

/** A session was created, or forked from another one. The data is the session. */
export interface SessionCreatedEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "session.created";
  /** When it happened. */
  created_at: string;
  data: Session;
}

/** A session was deleted, with its turns and memories. The data is the session as it was last. */
export interface SessionDeletedEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "session.deleted";
  /** When it happened. */
  created_at: string;
  data: Session;
}

/** The time of a session has passed. The data is the session as it was last. */
export interface SessionExpiredEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "session.expired";
  /** When it happened. */
  created_at: string;
  data: Session;
}

/** Another session that starts from a version of this one. */
export interface SessionFork {
  /** The new session. */
  session_id: string;
  /** The version of this session that it starts from. */
  version: number;
  /** When the session was forked. */
  created_at: string;
}

/** A page of sessions. */
export interface SessionList {
  object: "list";
  data: Session[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** The state of a session was updated or rolled back, or its metadata or time to live changed. The data is the session as it is then. */
export interface SessionUpdatedEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "session.updated";
  /** When it happened. */
  created_at: string;
  data: Session;
}

/** Every setting with its value, its default and where the value comes from. */
export interface Settings {
  object: "settings";
  /** What becomes of the memories of a session that expires. */
  memories_on_expiry: {
    value: "keep" | "delete";
    default?: "keep" | "delete";
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * Whether keys without the scope `admin` may create sessions that do not expire (`ttl_seconds: "never"`). Such sessions stay until they
   * are deleted. Turned off, it changes no session that is there.
   */
  endless_sessions_for_all: {
    value: boolean;
    default?: boolean;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /** How many days traces made with an enterprise key are kept. */
  trace_retention_days: {
    value: number;
    default?: number;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * Whether the server logs which memories a search or a context found, with the query. `GET /v1/sessions/{session_id}/retrievals` lists
   * them, and `GET /v1/retrievals` the searches that named no session. They are kept for `retrieval_log_days`, and no longer than the
   * session.
   */
  retrieval_log: {
    value: boolean;
    default?: boolean;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /** How many days the log of retrievals keeps what was found, with the query. A change concerns what is logged from then on. */
  retrieval_log_days: {
    value: number;
    default?: number;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * By what searches find turns: `off`, by their `words`, or by `meaning` too. `meaning` embeds every turn, passage by passage. A session
   * can be created with another one. After a change the turns that are there follow in the background; `/v1/stats` says how far that is.
   */
  index_turns: {
    value: "off" | "words" | "meaning";
    default?: "off" | "words" | "meaning";
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * The share of its time that the server indexes turns in the background, 0.01 to 1. Both the turns that are there after a change of
   * `index_turns` and the vectors of new ones are made within it.
   */
  index_turns_share: {
    value: number;
    default?: number;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * What becomes of secrets in turns, states, memories and documents that clients send: `off`, `tag`, `redact` or `block`. `tag` stores
   * them and marks the record with their kinds; `redact` stores `[redacted:KIND]` in their place, and the answer says so; `block` refuses
   * the request. Records that are there stay as they are.
   */
  secrets: {
    value: "off" | "tag" | "redact" | "block";
    default?: "off" | "tag" | "redact" | "block";
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * What counts as a secret: one or more of keys, cards, email, phone, separated by commas. `keys` are keys and tokens of known forms,
   * private keys, JWTs and passwords in URLs; `cards` numbers of cards; `email` addresses and `phone` telephone numbers.
   */
  secret_kinds: {
    value: string;
    default?: string;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /** Largest body of a request. */
  max_body_bytes: {
    value: number;
    default?: number;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /** A label for this deployment, shown in `/health` to everybody. Without control characters. */
  region: {
    value: string | null;
    default?: string | null;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * How many of the newest versions of a session's state are kept, including the current one; version 0 is always kept. Each new version
   * removes up to 8 older ones, so a lower number takes effect as states change.
   */
  state_versions_kept: {
    value: number;
    default?: number;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * How many contents that a memory had are kept, besides the present one, for its history. A lower number takes effect with the next
   * change of each memory's content.
   */
  memory_versions_kept: {
    value: number;
    default?: number;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * How many bytes the store may take on disk; beyond that new records are refused with 503. `cairn_store_used_bytes` in `/metrics` says
   * how many it takes. New sessions, states, turns and memories are answered 503 `service_unavailable`, and so is a PATCH of one that does
   * not make it smaller, and a request with an Idempotency-Key whose answer has no space to be kept; deletion, keys, webhooks, settings,
   * expiry and retention keep working. The size is checked twice a second and after large writes, so it can exceed the limit slightly.
   */
  max_store_bytes: {
    value: number | null;
    default?: number | null;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /**
   * Applications that may ask for access by OAuth: any, or known and hosts such as notes.example.com, separated by commas. `known` are
   * those whose documents are built in; a host is where an application has its document. Unless it is `any`, no application can register
   * itself. Those that are connected stay connected.
   */
  oauth_clients: {
    value: string;
    default?: string;
    /** Where the value comes from. */
    source: "default" | "environment" | "setting" | "probes" | "built-in";
  };
  /** Backups that the server makes by itself. */
  backups: {
    /**
     * When the server makes a backup by itself: a time of day in UTC such as 03:00, a day and a time such as sun 03:00, or a wait of 10m to
     * 31d such as 6h; null or empty for never. A backup of any kind that was made since its time counts as one. One that fails is tried
     * again after 5 minutes, later after an hour. Not for a store on PostgreSQL, which has backups of its own.
     */
    schedule: {
      value: string | null;
      default?: string | null;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /** How many backups of the schedule are kept; older ones are deleted once a newer one is complete. */
    keep: {
      value: number;
      default?: number;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /** How many days a backup of the schedule is kept; the newest always is. Null: as many as `backups.keep` says, however old. */
    keep_days: {
      value: number | null;
      default?: number | null;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /**
     * A bucket that the newest backup is copied to: s3:// with the name of a bucket and, where wanted, a prefix, such as
     * s3://backups/cairn; null or empty for none. It keeps as many copies as `backups.keep` and `backups.keep_days` say. The variables
     * AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for a server that is not Amazon's, AWS_ENDPOINT_URL give the access.
     */
    copy_to: {
      value: string | null;
      default?: string | null;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
  };
  /** How events are delivered, from the next attempt on. */
  webhooks: {
    /**
     * Whether webhooks may lead into private networks, and to this machine wherever the server listens. Everybody with an admin key can
     * then make the server call addresses that only it can reach. Addresses of cloud metadata services stay refused.
     */
    allow_private: {
      value: boolean;
      default?: boolean;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /** How long a receiver has to answer an attempt: a time such as 15s or 500ms, of at most 1h. */
    timeout: {
      value: string;
      default?: string;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /**
     * The waits before each further attempt: times such as 200ms,5s,5m,2h: at most 20, and 7d in all. A wait that has begun stays as it is.
     */
    retry_schedule: {
      value: string;
      default?: string;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
  };
  /**
   * The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds all memories again in the
   * background.
   */
  embedding: {
    /**
     * `builtin` is a neural network of a hundred languages; `words` finds by words alone; `openai` is any server that speaks
     * `/v1/embeddings`. `local` is read as `builtin`.
     */
    provider: {
      value: "builtin" | "words" | "openai" | "local";
      default?: "builtin" | "words" | "openai" | "local";
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /**
     * Address of the provider's server, up to and including `/v1`. A key that was set for another server is not sent to it; an address of a
     * cloud metadata service is refused.
     */
    base_url: {
      value: string;
      default?: string;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /** The provider's model. */
    model: {
      value: string;
      default?: string;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /** The provider's key. It is kept, and never shown. */
    api_key: {
      set: boolean;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /** Text that the model expects before a query. */
    query_prefix: {
      value: string;
      default?: string;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /** Text that the model expects before a memory. */
    document_prefix: {
      value: string;
      default?: string;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /**
     * Length of the vectors to ask the provider for; null for the model's own. For models that can shorten their vectors; without it one
     * with vectors of more than 1536 numbers is asked for 1536.
     */
    dimensions: {
      value: number | null;
      default?: number | null;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /**
     * From which cosine similarity to the query a memory counts as relevant, with a score of 0.7; null while it is not known, and for the
     * built-in provider. One that is set takes the place of what the probes measure.
     */
    relevant_cosine: {
      value: number | null;
      default?: number | null;
      /** Where the value comes from. */
      source: "default" | "environment" | "setting" | "probes" | "built-in";
    };
    /**
     * Share of the probes that the provider puts on the right side: 0.5 is chance, 1 perfect. It decides how much words count in a score:
     * half at 0.8 or less, a quarter at 0.9 or more.
     */
    separation: number | null;
    /** How many numbers the provider's vectors have. */
    vector_length: number | null;
    /** Whether searches can be answered. */
    state: {
      available: boolean;
      /** What is wrong. */
      reason?: string;
    };
    /** Progress after a change of provider, or while it is down. */
    vectors: {
      /** Memories and documents that searches find. */
      ready: number;
      /** Memories and documents that wait for a vector. */
      pending: number;
    };
  };
}

/** The settings to change. A null, or an empty text, resets a setting to the environment's value or the default. */
export interface SettingsChanges {
  /** What becomes of the memories of a session that expires. */
  memories_on_expiry?: "keep" | "delete" | null;
  /**
   * Whether keys without the scope `admin` may create sessions that do not expire (`ttl_seconds: "never"`). Such sessions stay until they
   * are deleted. Turned off, it changes no session that is there.
   */
  endless_sessions_for_all?: boolean | null;
  /** How many days traces made with an enterprise key are kept. */
  trace_retention_days?: number | null;
  /**
   * Whether the server logs which memories a search or a context found, with the query. `GET /v1/sessions/{session_id}/retrievals` lists
   * them, and `GET /v1/retrievals` the searches that named no session. They are kept for `retrieval_log_days`, and no longer than the
   * session.
   */
  retrieval_log?: boolean | null;
  /** How many days the log of retrievals keeps what was found, with the query. A change concerns what is logged from then on. */
  retrieval_log_days?: number | null;
  /**
   * By what searches find turns: `off`, by their `words`, or by `meaning` too. `meaning` embeds every turn, passage by passage. A session
   * can be created with another one. After a change the turns that are there follow in the background; `/v1/stats` says how far that is.
   */
  index_turns?: "off" | "words" | "meaning" | null;
  /**
   * The share of its time that the server indexes turns in the background, 0.01 to 1. Both the turns that are there after a change of
   * `index_turns` and the vectors of new ones are made within it.
   */
  index_turns_share?: number | null;
  /**
   * What becomes of secrets in turns, states, memories and documents that clients send: `off`, `tag`, `redact` or `block`. `tag` stores
   * them and marks the record with their kinds; `redact` stores `[redacted:KIND]` in their place, and the answer says so; `block` refuses
   * the request. Records that are there stay as they are.
   */
  secrets?: "off" | "tag" | "redact" | "block" | null;
  /**
   * What counts as a secret: one or more of keys, cards, email, phone, separated by commas. `keys` are keys and tokens of known forms,
   * private keys, JWTs and passwords in URLs; `cards` numbers of cards; `email` addresses and `phone` telephone numbers.
   */
  secret_kinds?: string | null;
  /** Largest body of a request. */
  max_body_bytes?: number | null;
  /** A label for this deployment, shown in `/health` to everybody. Without control characters. */
  region?: string | null;
  /**
   * How many of the newest versions of a session's state are kept, including the current one; version 0 is always kept. Each new version
   * removes up to 8 older ones, so a lower number takes effect as states change.
   */
  state_versions_kept?: number | null;
  /**
   * How many contents that a memory had are kept, besides the present one, for its history. A lower number takes effect with the next
   * change of each memory's content.
   */
  memory_versions_kept?: number | null;
  /**
   * How many bytes the store may take on disk; beyond that new records are refused with 503. `cairn_store_used_bytes` in `/metrics` says
   * how many it takes. New sessions, states, turns and memories are answered 503 `service_unavailable`, and so is a PATCH of one that does
   * not make it smaller, and a request with an Idempotency-Key whose answer has no space to be kept; deletion, keys, webhooks, settings,
   * expiry and retention keep working. The size is checked twice a second and after large writes, so it can exceed the limit slightly.
   */
  max_store_bytes?: number | null;
  /**
   * Applications that may ask for access by OAuth: any, or known and hosts such as notes.example.com, separated by commas. `known` are
   * those whose documents are built in; a host is where an application has its document. Unless it is `any`, no application can register
   * itself. Those that are connected stay connected.
   */
  oauth_clients?: string | null;
  /** Backups that the server makes by itself. */
  backups?: {
    /**
     * When the server makes a backup by itself: a time of day in UTC such as 03:00, a day and a time such as sun 03:00, or a wait of 10m to
     * 31d such as 6h; null or empty for never. A backup of any kind that was made since its time counts as one. One that fails is tried
     * again after 5 minutes, later after an hour. Not for a store on PostgreSQL, which has backups of its own.
     */
    schedule?: string | null;
    /** How many backups of the schedule are kept; older ones are deleted once a newer one is complete. */
    keep?: number | null;
    /** How many days a backup of the schedule is kept; the newest always is. Null: as many as `backups.keep` says, however old. */
    keep_days?: number | null;
    /**
     * A bucket that the newest backup is copied to: s3:// with the name of a bucket and, where wanted, a prefix, such as
     * s3://backups/cairn; null or empty for none. It keeps as many copies as `backups.keep` and `backups.keep_days` say. The variables
     * AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for a server that is not Amazon's, AWS_ENDPOINT_URL give the access.
     */
    copy_to?: string | null;
  };
  /** How events are delivered, from the next attempt on. */
  webhooks?: {
    /**
     * Whether webhooks may lead into private networks, and to this machine wherever the server listens. Everybody with an admin key can
     * then make the server call addresses that only it can reach. Addresses of cloud metadata services stay refused.
     */
    allow_private?: boolean | null;
    /** How long a receiver has to answer an attempt: a time such as 15s or 500ms, of at most 1h. */
    timeout?: string | null;
    /**
     * The waits before each further attempt: times such as 200ms,5s,5m,2h: at most 20, and 7d in all. A wait that has begun stays as it is.
     */
    retry_schedule?: string | null;
  };
  /**
   * The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds all memories again in the
   * background.
   */
  embedding?: {
    /**
     * `builtin` is a neural network of a hundred languages; `words` finds by words alone; `openai` is any server that speaks
     * `/v1/embeddings`. `local` is read as `builtin`.
     */
    provider?: "builtin" | "words" | "openai" | "local" | null;
    /**
     * Address of the provider's server, up to and including `/v1`. A key that was set for another server is not sent to it; an address of a
     * cloud metadata service is refused.
     */
    base_url?: string | null;
    /** The provider's model. */
    model?: string | null;
    /** The provider's key. It is kept, and never shown. */
    api_key?: string | null;
    /** Text that the model expects before a query. */
    query_prefix?: string | null;
    /** Text that the model expects before a memory. */
    document_prefix?: string | null;
    /**
     * Length of the vectors to ask the provider for; null for the model's own. For models that can shorten their vectors; without it one
     * with vectors of more than 1536 numbers is asked for 1536.
     */
    dimensions?: number | null;
    /**
     * From which cosine similarity to the query a memory counts as relevant, with a score of 0.7; null while it is not known, and for the
     * built-in provider. One that is set takes the place of what the probes measure.
     */
    relevant_cosine?: number | null;
  };
}

/** A session key to create. */
export interface SignIn {
  /** Name of the session key, for the list of keys. */
  name?: string;
}

/**
 * Set where the content of the trace was erased: its leaf in the chain is then `leaf` of its place in the signed text, and that of its row
 * `now`.
 */
export type SignedErasure = {
  /** Public key of Ed25519 that signs the chain. 32 bytes in base64url. */
  public_key: string;
  /** The text that is signed. */
  signed_text: string;
  /** Its signature. 64 bytes in base64url. */
  signature: string;
} | null;

/** The signed end of a chain of traces. */
export interface SignedHead {
  /** Id of the chain. */
  chain: string;
  /** Public key of Ed25519 that signs the chain. 32 bytes in base64url. */
  public_key: string;
  /** Number of traces of the chain up to here. */
  count: number;
  /** Digest of the chain here. 32 bytes in base64url. */
  digest: string;
  /** SHA-256 of the keys of the last segment's traces. 32 bytes in base64url. */
  names: string;
  /** When it was signed. */
  signed_at: string;
  /** The text that is signed, in UTF-8. */
  signed_text: string;
  /** Its signature. 64 bytes in base64url. */
  signature: string;
}

/** The current state of a session. */
export interface State {
  object: "state";
  /** The session. */
  session_id: string;
  /** Version of `state`; 0 is the initial state. */
  version: number;
  /** The current state. */
  state: JsonObject;
  /** When the session was created. */
  created_at: string;
  /** When this version was made. */
  updated_at: string;
  /** Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none. */
  secrets?: string[];
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** Keys of the state to change; the others stay. */
export interface StateChanges {
  /** Laid over the current state, key by key at the top level; a null removes the key. */
  state: JsonObject;
  /** Why, for the trace. */
  reasoning?: string;
  /** Change nothing unless this is the current version (409 `version_conflict` otherwise). */
  expected_version?: number;
}

/** A new state. */
export interface StateUpdate {
  /** Replaces the current state entirely. */
  state: JsonObject;
  /** Why, for the trace. */
  reasoning?: string;
  /** Change nothing unless this is the current version (409 `version_conflict` otherwise). */
  expected_version?: number;
}

/** A version of a session's state. */
export interface StateVersion {
  object: "version";
  /** 0, 1, 2 … without gaps. Version 0 and the newest are kept (the setting `state_versions_kept`). */
  version: number;
  /** When the version was made. */
  created_at: string;
  /** Why the state changed, if that was given. */
  reasoning?: string;
  /** First 8 characters of the API key that made it, or `local`, as in traces. */
  actor: string;
  /** What made it. */
  source: "initial" | "update" | "rollback";
  /** The version whose state a rollback restored; left out where there was no rollback, and for one of an earlier Cairn. */
  restored_from_version?: number;
  /** Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none. */
  secrets?: string[];
  /** The state; left out in lists. */
  state?: JsonObject;
}

/** A page of versions, without their states. */
export interface StateVersionList {
  object: "list";
  data: StateVersion[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** Counts of records, and recent traffic. */
export interface Stats {
  object: "stats";
  /** Sessions, including those that have expired and are not removed yet. */
  sessions: number;
  /** Turns. */
  turns: number;
  /** Versions of states. */
  versions: number;
  /** Memories. */
  memories: number;
  /** Traces. */
  traces: number;
  vectors: {
    /** Vectors of memories and documents. */
    stored: number;
    /** Vectors that are still to be made. */
    pending: number;
  };
  /** How far the index of turns is. */
  turn_index: {
    /** The setting. */
    index_turns: "off" | "words" | "meaning";
    /**
     * `indexing` while the turns that were there before follow a change of the setting; `unused` under `words` until turns are searched for
     * the first time, with which their index begins.
     */
    state: "ready" | "indexing" | "unused";
    /** Turns that follow the setting already. */
    looked_at: number;
    /** Turns that searches find. */
    indexed: number;
    /** Turns whose vectors are still to be made. */
    pending: number;
  };
  deliveries: {
    /** Deliveries of webhooks that are still to be made, those that failed and are tried again included. */
    pending: number;
    /** Attempts that failed in this hour and the 24 before it, the first ones of a delivery included. */
    failed: number;
    /** Deliveries that are not tried again: all their attempts have failed. */
    exhausted: number;
  };
  store: {
    /** Size of the store on disk. */
    bytes: number;
    /** Bytes of it that hold records. */
    used_bytes: number;
    /** The setting `max_store_bytes`; null without a limit. */
    max_bytes: number | null;
  };
  /** Backups, and how their schedule stands; null on PostgreSQL, which has backups of its own. */
  backups: {
    /** The setting `backups.schedule`; null while none are made by themselves. */
    schedule: string | null;
    /** When the newest backup was made, by request or by the schedule; null where there is none. */
    newest_at: string | null;
    /** Seconds since then. */
    age_seconds: number | null;
    /** When the next one is due; null without a schedule. */
    next_at: string | null;
    /** Why the last one failed; null once one has been made since. */
    error: string | null;
    /** Backups of the schedule that have failed since the start of the server. */
    failures: number;
    /** True if one, or its copy, has been due for more than an hour. */
    overdue: boolean;
    /** Copies in a bucket; null while none are made. */
    copies: {
      /** The setting `backups.copy_to`. */
      url: string;
      /** When the newest backup in the bucket was made; null where there is none, or it is not known yet. */
      newest_at: string | null;
      /** Why the last copy failed; null once one has been made since. */
      error: string | null;
      /** Copies that have failed since the start of the server. */
      failures: number;
      /** True if the newest backup has had no copy for more than an hour. */
      overdue: boolean;
    } | null;
  } | null;
  /** The certificate that the server gets and renews by itself; null where it has no `--domain`. */
  certificate: {
    /** Names that it is for. */
    domains: string[];
    /** When the certificate in use ends; null while there is none. */
    expires_at: string | null;
    /** When the next one is ordered. */
    renews_at: string | null;
    /** True if it ends in less than 20 days, or less than 2/9 of the time for which it was given. */
    overdue: boolean;
    /** Why the last order failed; null once one has succeeded since. */
    error: string | null;
    /** Orders that have failed since the last one that succeeded. */
    failures: number;
  } | null;
  /** Seconds since the start of the server. */
  uptime_seconds: number;
  history?: History;
}

/** A turn that was logged, with the memories that were added with it. */
export interface Step {
  object: "turn";
  /** `turn_` and 12 characters. */
  id: string;
  /** The session. */
  session_id: string;
  /** 1, 2, 3 … in the order of the session. */
  turn_number: number;
  /**
   * Version of the session's state that was current when the turn was logged; 0 for one that a fork has from its parent. For one that a
   * Cairn without this field has logged it follows from the versions that are kept.
   */
  state_version: number;
  /** The session that this one was forked from, for a turn that it has from there; left out for others. */
  forked_from?: string;
  /** When a rollback hid the turn; left out for those that are shown. */
  rolled_back_at?: string;
  /** The name that you gave it; left out if there is none. */
  external_id?: string;
  /** When the turn was logged. */
  created_at: string;
  /** When it happened, if that was given: for history that was moved in. */
  occurred_at?: string;
  input: TurnInput;
  output: TurnOutput;
  /** Left out when none was given. */
  reasoning?: string;
  /** Custom metadata. At most 64 KiB as JSON. */
  metadata: JsonObject;
  /** The state before the turn, if given. */
  state_before: JsonObject | null;
  /** The state after the turn, if given. */
  state_after: JsonObject | null;
  /** Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none. */
  secrets?: string[];
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
  /** The memories of the step, in the order of the request. */
  memories?: AddedMemory[];
}

/** A memory to add to the session. */
export interface StepMemory {
  /** The session of the step, or left out. */
  session_id?: string;
  /** The user of the session of the step, or left out. */
  user_id?: string;
  /** The agent of the session of the step, or left out. */
  agent_id?: string;
  /** What to remember: 1 to 10000 characters; more is 413 `content_too_large`. */
  content: string;
  /** Standard types: fact, preference, event, policy, observation, general; others are accepted. Default `general`. */
  type?: string;
  /** Tags, for filters. */
  tags?: string[];
  /** Custom metadata; default `{}`. At most 64 KiB as JSON. */
  metadata?: JsonObject;
  /** false: keep it out of semantic search. */
  embed?: boolean;
  /**
   * A name of your own, such as the id of a row. No two memories of a user have the same, or of an agent where there is no user; it is free
   * again once its memory is deleted or has expired.
   */
  external_id?: string;
  /**
   * What happens when the owner has a memory of that `external_id`: `error` is 409 `already_exists`; `return` answers 200 with it, as it
   * is; `update` answers 200 once its content, and what else is sent, has taken the place of what was there. Default `error`.
   */
  if_exists?: "error" | "update" | "return";
  /**
   * What happens when the owner has a current memory of the same type that says the same, whatever its case, spaces and forms of
   * characters: `return` answers 200 with it, as it is, and `duplicate: true`; `update` gives it the tags, metadata, times and what else is
   * sent before. A memory of that `external_id` comes first. Of a session without a user the memories of that session are compared. Default
   * `allow`.
   */
  on_duplicate?: "allow" | "return" | "update";
  /** Who says so; `agent` unless given. A context shows it. */
  source?: "user" | "agent" | "tool" | "import";
  /** How important it is to you, 0.0 to 1.0. */
  importance?: number;
  /**
   * Show it first in every context of its user, whatever the query: at most 20 current ones of a user, more are 409 `version_conflict`. Of
   * a session without a user, in that session's contexts.
   */
  pinned?: boolean;
  /** When it happened, for history that is moved in: at most a day ahead. ISO 8601, such as `2027-05-07T08:00:00Z`. */
  occurred_at?: string;
  /**
   * When it expires: from that moment on nothing shows it, and it is removed with the event `memory.expired`. ISO 8601, such as
   * `2027-05-07T08:00:00Z`.
   */
  expires_at?: string;
  /** Instead of `expires_at`: seconds until then, from now. */
  ttl_seconds?: number;
  /**
   * Since when it holds; since ever unless given, or since now where it supersedes another one. ISO 8601, such as `2027-05-07T08:00:00Z`.
   */
  valid_from?: string;
  /** Until when it holds: from then on it is past, and stays. ISO 8601, such as `2027-05-07T08:00:00Z`. */
  valid_until?: string;
  /**
   * Ids of memories of the same owner whose place it takes: each is past from `valid_from` on, and current again if this one is deleted or
   * expires. One that is superseded already is 409 `version_conflict`.
   */
  supersedes?: string[];
  /** Why; for the history of the memory and the trace. */
  reason?: string;
}

/** Something that happened in a session: a turn, a version of its state, a memory, a retrieval or a fork. */
export interface TimelineEntry {
  object: "timeline_entry";
  /** `entry_` and 12 characters, which are those of the record's own id, if it has one. */
  id: string;
  /** What happened, and the name of the member that holds the record. */
  kind: "turn" | "version" | "memory" | "retrieval" | "fork";
  turn?: Turn;
  version?: ChangedVersion;
  memory?: Memory;
  retrieval?: Retrieval;
  fork?: SessionFork;
}

/** A page of the timeline. */
export interface TimelineEntryList {
  object: "list";
  data: TimelineEntry[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** A trace: one change and who made it. */
export interface Trace {
  object: "trace";
  /** `trace_` and 12 characters. */
  id: string;
  /** The session it concerns; null for traces of administration, and of memories without a session. */
  session_id: string | null;
  /** The user whose record it concerns; left out when there is none. */
  user_id?: string;
  /** What happened. */
  action:
    | "turn.added"
    | "state.updated"
    | "memory.created"
    | "session.created"
    | "session.expired"
    | "session.updated"
    | "session.deleted"
    | "session.forked"
    | "state.rolled_back"
    | "memory.updated"
    | "memory.deleted"
    | "memory.superseded"
    | "memory.expired"
    | "retrieval.rated"
    | "api_key.created"
    | "api_key.rolled"
    | "api_key.revoked"
    | "backup.started"
    | "backup.created"
    | "backup.failed"
    | "backup.copied"
    | "backup.copy_failed"
    | "backup.downloaded"
    | "backup.deleted"
    | "user.erased"
    | "settings.updated"
    | "webhook.created"
    | "webhook.updated"
    | "webhook.disabled"
    | "webhook.secret_rotated"
    | "webhook.deleted";
  /** First 8 characters of the API key that did it, `local` for programs of the server's own user such as `cairn mcp`, or `system`. */
  actor: string;
  /** When it happened. */
  timestamp: string;
  /**
   * Depends on the action; only `erased` for a user who was erased. A diff has `added`, `removed` and `modified`, which has `from` and `to`
   * for each key; `changes` has `from` and `to` for each name. Secrets are left out: a webhook's URL is cut to its origin, a provider's key
   * to whether one is set.
   *
   * - `turn.added`: turn_number, input_type, output_type, reasoning
   * - `state.updated`: reasoning, state_diff, version
   * - `memory.created`: memory_id, content_preview, type, tags, embedded
   * - `session.created`: agent_id, user_id, external_id, initial_state
   * - `session.expired`: ttl_seconds, last_activity
   * - `session.updated`: metadata_diff, ttl_seconds
   * - `session.deleted`: session_id, reason, turn_count, memory_count
   * - `session.forked`: source_session_id, source_session, fork_version, turns
   * - `state.rolled_back`: from_version, to_version, reason, turns
   * - `memory.updated`: memory_id, content_changed, tags_changed
   * - `memory.deleted`: memory_id, content_preview, reason
   * - `memory.superseded`: memory_id, content_preview, superseded_by, superseded_at
   * - `memory.expired`: memory_id, content_preview, expires_at
   * - `retrieval.rated`: retrieval_id, useful, not_useful, unnamed_count
   * - `api_key.created`: key_id, kind, prefix, name, scopes, tier, user_id, agent_id, source, rate_limit, expires_at
   * - `api_key.rolled`: key_id, kind, prefix, name, scopes, tier, user_id, agent_id, rolled_to, rolled_to_prefix, ends_at, expires_at
   * - `api_key.revoked`: key_id, kind, prefix, name, scopes, tier, user_id, agent_id, reason
   * - `backup.started`: backup_id
   * - `backup.created`: backup_id
   * - `backup.failed`: backup_id, reason
   * - `backup.copied`: backup_id, url
   * - `backup.copy_failed`: backup_id, url, reason
   * - `backup.downloaded`: backup_id
   * - `backup.deleted`: backup_id, reason
   * - `user.erased`: user_id, started_at, freed_space, sessions, turns, versions, retrievals, memories, documents, traces, deliveries,
   * answers
   * - `settings.updated`: changes
   * - `webhook.created`: webhook_id, url, events, description, enabled
   * - `webhook.updated`: webhook_id, changes
   * - `webhook.disabled`: webhook_id, url, reason
   * - `webhook.secret_rotated`: webhook_id, url, previous_valid_until
   * - `webhook.deleted`: webhook_id, url, reason
   */
  details: JsonObject;
  /** `request_id` and `latency_ms` of the request. */
  metadata: JsonObject;
}

/** Something was changed, whatever it was: every trace, also those of administration, which concern no session. The data is the trace. */
export interface TraceCreatedEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "trace.created";
  /** When it happened. */
  created_at: string;
  data: Trace;
}

/**
 * An agent failed: a turn was logged whose output has the type `error`. The data is the trace of that turn, whose action is `turn.added`.
 * What goes wrong in Cairn itself is no event.
 */
export interface TraceErrorEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "trace.error";
  /** When it happened. */
  created_at: string;
  data: Trace;
}

/** A page of traces. */
export interface TraceList {
  object: "list";
  data: Trace[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** A session was rolled back. The data is the trace, whose action is `state.rolled_back`; `details` say from which version to which. */
export interface TraceRollbackEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "trace.rollback";
  /** When it happened. */
  created_at: string;
  data: Trace;
}

/** A turn: what came in and what went out. */
export interface Turn {
  object: "turn";
  /** `turn_` and 12 characters. */
  id: string;
  /** The session. */
  session_id: string;
  /** 1, 2, 3 … in the order of the session. */
  turn_number: number;
  /**
   * Version of the session's state that was current when the turn was logged; 0 for one that a fork has from its parent. For one that a
   * Cairn without this field has logged it follows from the versions that are kept.
   */
  state_version: number;
  /** The session that this one was forked from, for a turn that it has from there; left out for others. */
  forked_from?: string;
  /** When a rollback hid the turn; left out for those that are shown. */
  rolled_back_at?: string;
  /** The name that you gave it; left out if there is none. */
  external_id?: string;
  /** When the turn was logged. */
  created_at: string;
  /** When it happened, if that was given: for history that was moved in. */
  occurred_at?: string;
  input: TurnInput;
  output: TurnOutput;
  /** Left out when none was given. */
  reasoning?: string;
  /** Custom metadata. At most 64 KiB as JSON. */
  metadata: JsonObject;
  /** The state before the turn, if given. */
  state_before: JsonObject | null;
  /** The state after the turn, if given. */
  state_after: JsonObject | null;
  /** Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none. */
  secrets?: string[];
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
}

/** A turn was logged. The data is the turn. */
export interface TurnAddedEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "turn.added";
  /** When it happened. */
  created_at: string;
  data: Turn;
}

export interface TurnInput {
  /** What came in. */
  type: "text" | "audio" | "image" | "tool_call";
  /** The text, a transcription, a description or what a tool was given or gave. */
  content: string;
}

/** A page of turns. */
export interface TurnList {
  object: "list";
  data: Turn[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

export interface TurnOutput {
  /** What went out. */
  type: "text" | "audio" | "image" | "tool_result" | "error";
  /** The text, a transcription, a description or what a tool was given or gave. */
  content: string;
}

/** The passage that has most of what was asked; null where the turn has no text. */
export type TurnPassage = {
  /** At most 300 characters. */
  text: string;
  /** Where it stands: in the content of the input or of the output, or in the reasoning. */
  field: "input" | "output" | "reasoning";
  /** Its first character in that text, counted in Unicode code points. */
  start: number;
  /** The character behind its last one. */
  end: number;
} | null;

/** A turn that a search found. */
export interface TurnResult {
  object: "turn";
  /** `turn_` and 12 characters. */
  id: string;
  /** The session. */
  session_id: string;
  /** 1, 2, 3 … in the order of the session. */
  turn_number: number;
  /**
   * Version of the session's state that was current when the turn was logged; 0 for one that a fork has from its parent. For one that a
   * Cairn without this field has logged it follows from the versions that are kept.
   */
  state_version: number;
  /** The session that this one was forked from, for a turn that it has from there; left out for others. */
  forked_from?: string;
  /** When a rollback hid the turn; left out for those that are shown. */
  rolled_back_at?: string;
  /** The name that you gave it; left out if there is none. */
  external_id?: string;
  /** When the turn was logged. */
  created_at: string;
  /** When it happened, if that was given: for history that was moved in. */
  occurred_at?: string;
  input: TurnInput;
  output: TurnOutput;
  /** Left out when none was given. */
  reasoning?: string;
  /** Custom metadata. At most 64 KiB as JSON. */
  metadata: JsonObject;
  /** The state before the turn, if given. */
  state_before: JsonObject | null;
  /** The state after the turn, if given. */
  state_after: JsonObject | null;
  /** Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none. */
  secrets?: string[];
  /**
   * In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
   * `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
   */
  redacted?: Redaction[];
  /** 0.0 to 1.0, higher is more relevant; from 0.7 on it is about the query. */
  score: number;
  passage: TurnPassage;
}

/** What a search found, best first. */
export interface TurnResults {
  object: "list";
  /** The query, as it was sent. */
  query: string;
  /** By what the turns were searched: as the session says, or else the setting. With `off` none is found. */
  index_turns: "off" | "words" | "meaning";
  data: TurnResult[];
  /**
   * Others may be about the query too: there are more than 1,000 turns to search that are not all indexed yet (`turn_index` of `/v1/stats`
   * says how far the index is), or more than one request compares with its filter.
   */
  partial?: true;
  /** Where it is logged (`retrieval_log`): for `GET /v1/retrievals/{retrieval_id}` and feedback. Left out where it is not. */
  retrieval_id?: string;
}

/** What to look for. */
export interface TurnSearch {
  /** What to look for, in words. */
  query: string;
  /** Only turns that this session shows. */
  session_id?: string;
  /** Only turns of sessions of this user. */
  user_id?: string;
  /** Only turns of sessions of this agent. */
  agent_id?: string;
  filter?: Filter;
  /** How many at most; default 10. */
  limit?: number;
  /** Lowest score; default 0.7. With 0 nothing is left out. */
  threshold?: number;
}

/** A user that sessions, memories or documents name, with how much there is. */
export interface User {
  object: "user";
  /** The `user_id` of sessions. */
  id: string;
  /** When the newest session was created; null when none is left. */
  last_session_at: string | null;
  /** When the newest session was created, to the minute, also if it is gone by now; null where that is not known. */
  last_seen_at: string | null;
  /** Sessions. At most 100 are counted in a list, and 10000 of one user. */
  sessions: number;
  /** Memories. At most 100 are counted in a list, and 10000 of one user. */
  memories: number;
  /** Documents of the user, those kept with an agent too, but not those that go with a session. */
  documents: number;
  /** Whether one of the counts stopped before all were counted. */
  more: boolean;
}

/** A user with how much there is of them, be it documents or traces alone. */
export interface UserDetails {
  object: "user";
  /** The `user_id` of sessions. */
  id: string;
  /** When the newest session was created; null when none is left. */
  last_session_at: string | null;
  /** When the newest session was created, to the minute, also if it is gone by now; null where that is not known. */
  last_seen_at: string | null;
  /** Sessions. At most 100 are counted in a list, and 10000 of one user. */
  sessions: number;
  /** Memories. At most 100 are counted in a list, and 10000 of one user. */
  memories: number;
  /** Documents of the user, those kept with an agent too, but not those that go with a session. */
  documents: number;
  /** Whether one of the counts stopped before all were counted. */
  more: boolean;
  /** The newest session. */
  last_session_id: string | null;
  /** Traces, at most 10000. */
  traces: number;
}

/** What an erasure has removed. */
export interface UserErasure {
  object: "user_erasure";
  user_id: string;
  /** `running`: nothing of the user is shown any more, and the rest is being removed. */
  status: "running" | "done";
  /** When the erasure began. */
  started_at: string;
  /**
   * What becomes of the space in the store's files that the removed rows have left. `overwritten`: with a `done`, no page of the data file
   * holds any of it; until then `pending`. `vacuum`, on PostgreSQL: the database keeps it in its files until it has vacuumed them and used
   * the space again; `VACUUM FULL` of the schema `cairn` rewrites them at once. Left out of what a Cairn did that overwrote nothing.
   */
  freed_space?: "pending" | "overwritten" | "vacuum";
  /** Sessions removed so far. */
  sessions: number;
  /** Turns removed with them. */
  turns: number;
  /** Versions of states removed with them. */
  versions: number;
  /** Retrievals removed with them. */
  retrievals: number;
  /** Memories removed, with their vectors. */
  memories: number;
  /** Documents removed, but those that a session brought with it. */
  documents: number;
  /** Traces that have lost their content. */
  traces: number;
  /** Deliveries and events removed. */
  deliveries: number;
  /** Answers removed that were kept for an Idempotency-Key. */
  answers: number;
}

/** A page of users. */
export interface UserList {
  object: "list";
  data: User[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

export interface WatchTracesQuery {
  /** Only traces of this session, which may be long gone. */
  session_id?: string;
  /** Only traces of this user's records. */
  user_id?: string;
  /** Only traces of this action. */
  action?:
    | "turn.added"
    | "state.updated"
    | "memory.created"
    | "session.created"
    | "session.expired"
    | "session.updated"
    | "session.deleted"
    | "session.forked"
    | "state.rolled_back"
    | "memory.updated"
    | "memory.deleted"
    | "memory.superseded"
    | "memory.expired"
    | "retrieval.rated"
    | "api_key.created"
    | "api_key.rolled"
    | "api_key.revoked"
    | "backup.started"
    | "backup.created"
    | "backup.failed"
    | "backup.copied"
    | "backup.copy_failed"
    | "backup.downloaded"
    | "backup.deleted"
    | "user.erased"
    | "settings.updated"
    | "webhook.created"
    | "webhook.updated"
    | "webhook.disabled"
    | "webhook.secret_rotated"
    | "webhook.deleted";
}

/** A webhook. */
export interface Webhook {
  object: "webhook";
  /** `whk_` and 12 characters. */
  id: string;
  /** Where events are posted: `http` or `https`, no user name. It must not lead into a private network unless the operator allows that. */
  url: string;
  /**
   * The events it subscribes to. Those of sessions, turns and memories carry the record; those of traces the trace, `trace.error` that of a
   * turn whose output has the type `error`.
   */
  events: Array<
    | "session.created"
    | "session.updated"
    | "session.deleted"
    | "session.expired"
    | "turn.added"
    | "memory.created"
    | "memory.superseded"
    | "memory.expired"
    | "backup.created"
    | "backup.failed"
    | "trace.created"
    | "trace.rollback"
    | "trace.error"
  >;
  /** What the webhook is for. */
  description: string | null;
  /** Whether events are delivered. */
  enabled: boolean;
  /** Why Cairn disabled it: the receiver answered 410, or failed for 5 days. */
  disabled_reason: string | null;
  /** When the first attempt since the last success failed; null while attempts succeed. */
  failing_since: string | null;
  /** The last attempt that failed; null while attempts succeed. */
  last_failure: {
    /** When the attempt began. */
    at: string;
    /** Status of the answer; null without one. */
    response_code: number | null;
    /** Why it failed. */
    error: string;
  } | null;
  /** When the next attempt is due; null while there is nothing to deliver, and while it is disabled. */
  next_attempt_at: string | null;
  /** The signing secret: only in the answers to the requests that create and rotate it. */
  secret?: string;
  /** When the webhook was created. */
  created_at: string;
  /** When the webhook was last changed. */
  updated_at: string;
}

/** What changes; the rest stays. */
export interface WebhookChanges {
  /** Where events are posted: `http` or `https`, no user name. It must not lead into a private network unless the operator allows that. */
  url?: string;
  /**
   * The events it subscribes to. Those of sessions, turns and memories carry the record; those of traces the trace, `trace.error` that of a
   * turn whose output has the type `error`.
   */
  events?: Array<
    | "session.created"
    | "session.updated"
    | "session.deleted"
    | "session.expired"
    | "turn.added"
    | "memory.created"
    | "memory.superseded"
    | "memory.expired"
    | "backup.created"
    | "backup.failed"
    | "trace.created"
    | "trace.rollback"
    | "trace.error"
  >;
  /** What the webhook is for. */
  description?: string;
  /** Enabling does not deliver events of the time while it was disabled. */
  enabled?: boolean;
}

/** One event for one webhook, and its outcome. */
export interface WebhookDelivery {
  object: "webhook_delivery";
  /** `dlv_` and 12 characters. */
  id: string;
  /** The webhook. */
  webhook_id: string;
  /** The event: the header `webhook-id`, the same in every attempt. */
  event_id: string;
  /** The event's type. */
  event_type:
    | "session.created"
    | "session.updated"
    | "session.deleted"
    | "session.expired"
    | "turn.added"
    | "memory.created"
    | "memory.superseded"
    | "memory.expired"
    | "backup.created"
    | "backup.failed"
    | "trace.created"
    | "trace.rollback"
    | "trace.error"
    | "webhook.test";
  /** The session the event is about; left out for one without a session. */
  session_id?: string;
  /** `failed`: not tried again. */
  status: "pending" | "delivered" | "failed";
  /** Attempts made so far. */
  attempts: number;
  /** Attempts that have failed since the last one that did not, or since it was retried by hand. */
  failed_attempts: number;
  /** When the delivery was created. */
  created_at: string;
  /** When the last attempt began. */
  last_attempt_at: string | null;
  /** When the next attempt is due; null when there is none, and while an earlier event of the session is pending. */
  next_attempt_at: string | null;
  /** Status of the last answer; null without one. */
  response_code: number | null;
  /** The first 2 KiB of the last answer; null without one, and where it is withheld. */
  response_body: string | null;
  /** Whether there was an answer that is not shown, because the receiver is on this machine or in a private network. */
  response_withheld: boolean;
  /** Milliseconds that the last attempt took. */
  duration_ms: number | null;
  /** Why the last attempt failed. */
  error: string | null;
}

/** One event for one webhook, with what is posted and the latest attempts. */
export interface WebhookDeliveryDetails {
  object: "webhook_delivery";
  /** `dlv_` and 12 characters. */
  id: string;
  /** The webhook. */
  webhook_id: string;
  /** The event: the header `webhook-id`, the same in every attempt. */
  event_id: string;
  /** The event's type. */
  event_type:
    | "session.created"
    | "session.updated"
    | "session.deleted"
    | "session.expired"
    | "turn.added"
    | "memory.created"
    | "memory.superseded"
    | "memory.expired"
    | "backup.created"
    | "backup.failed"
    | "trace.created"
    | "trace.rollback"
    | "trace.error"
    | "webhook.test";
  /** The session the event is about; left out for one without a session. */
  session_id?: string;
  /** `failed`: not tried again. */
  status: "pending" | "delivered" | "failed";
  /** Attempts made so far. */
  attempts: number;
  /** Attempts that have failed since the last one that did not, or since it was retried by hand. */
  failed_attempts: number;
  /** When the delivery was created. */
  created_at: string;
  /** When the last attempt began. */
  last_attempt_at: string | null;
  /** When the next attempt is due; null when there is none, and while an earlier event of the session is pending. */
  next_attempt_at: string | null;
  /** Status of the last answer; null without one. */
  response_code: number | null;
  /** The first 2 KiB of the last answer; null without one, and where it is withheld. */
  response_body: string | null;
  /** Whether there was an answer that is not shown, because the receiver is on this machine or in a private network. */
  response_withheld: boolean;
  /** Milliseconds that the last attempt took. */
  duration_ms: number | null;
  /** Why the last attempt failed. */
  error: string | null;
  /** What is posted: an event, as the operation that creates a webhook describes it. Empty once its user has been erased. */
  payload: JsonObject;
  /** The latest attempts, at most 10, the last one first. */
  recent_attempts: Array<{
    /** When the attempt began. */
    at: string;
    /** Milliseconds that it took. */
    duration_ms: number;
    /** Status of the answer; null without one. */
    response_code: number | null;
    /** The first 2 KiB of the answer; null without one, and where it is withheld. */
    response_body: string | null;
    /** Whether there was an answer that is not shown, because the receiver is on this machine or in a private network. */
    response_withheld: boolean;
    /** Why it failed. */
    error: string | null;
  }>;
}

/** A page of deliveries. */
export interface WebhookDeliveryList {
  object: "list";
  data: WebhookDelivery[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** An event, as a webhook receives it; `type` says what `data` is. */
export type WebhookEvent =
  | SessionCreatedEvent
  | SessionUpdatedEvent
  | SessionDeletedEvent
  | SessionExpiredEvent
  | TurnAddedEvent
  | MemoryCreatedEvent
  | MemorySupersededEvent
  | MemoryExpiredEvent
  | BackupCreatedEvent
  | BackupFailedEvent
  | TraceCreatedEvent
  | TraceRollbackEvent
  | TraceErrorEvent
  | WebhookTestEvent;

/** A page of webhooks. */
export interface WebhookList {
  object: "list";
  data: Webhook[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** How many deliveries are made again. */
export interface WebhookRecovered {
  object: "webhook_recovery";
  /** The webhook. */
  webhook_id: string;
  /** Deliveries that are made again. */
  recovered: number;
  /** Whether these were all; if not, repeat the request. */
  complete: boolean;
}

/** Which deliveries are made again. */
export interface WebhookRecovery {
  /** Failed deliveries of events from this time on are made again. */
  since: string;
}

/** What became of the deliveries of the last day, and the attempts that failed. */
export interface WebhookStats {
  object: "webhook_stats";
  /** The webhook. */
  webhook_id: string;
  /** Deliveries created since then are counted: the beginning of the hour a day ago, or later if there are `more`. */
  since: string;
  /** Deliveries that are tried, or tried again. */
  pending: number;
  /** Deliveries that the receiver took. */
  delivered: number;
  /** Attempts that failed in this time, the first ones of a delivery included. */
  failed: number;
  /** Deliveries that are not tried again: all their attempts have failed. */
  exhausted: number;
  /** Whether there were more than 5000 of one status in the last day: the newest are counted, and of the others those since then. */
  more: boolean;
  /** The hours of the clock (UTC) since then, the oldest first. */
  hours: Array<{
    /** When the hour begins. */
    start: string;
    /** Deliveries that are tried, or tried again. */
    pending: number;
    /** Deliveries that the receiver took. */
    delivered: number;
    /** Attempts that failed in this time, the first ones of a delivery included. */
    failed: number;
    /** Deliveries that are not tried again: all their attempts have failed. */
    exhausted: number;
  }>;
}

/** A page of statistics, one for each webhook. */
export interface WebhookStatsList {
  object: "list";
  data: WebhookStats[];
  /** Whether there may be more after this page, which can be short or empty. */
  has_more: boolean;
  /** The id of the first record; null on a page without one. */
  first_id: string | null;
  /**
   * The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty
   * list.
   */
  last_id: string | null;
}

/** Somebody tests the webhook. Nobody subscribes to it. The data is the webhook. */
export interface WebhookTestEvent {
  /** The event: the header `webhook-id`, the same in every attempt. */
  id: string;
  type: "webhook.test";
  /** When it happened. */
  created_at: string;
  data: Webhook;
}
