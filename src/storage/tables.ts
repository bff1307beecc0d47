/**
 * Every table of the store: its key, its row, and its indexes, whose entries follow from the rows and are written with them.
 * Each is declared in `tables/`, in the file of its concept; this page lists them all.
 *
 * ```
 * table                key                          row
 * meta                 name                         text: schema, backupNumber, tracesMark, turnsSearched, filled.INDEX (`fills.ts`)
 * sessions             session                      SessionRow
 *   byAgent            #agent session
 *   byUser             #user session
 *   byExternalId       #(external, owner) session   for each owner who lists it or looks it up, if it has an external id
 *   byForkedFrom       session session              of a fork: the session it was forked from, and its own
 *   byExpiry           ms session
 *   ahead              session                      if its id is later than its time
 * versions             session number               VersionRow: one of the session's states
 * turns                session turn                 TurnRow
 *   byExternalId       session #external turn       if it has an external id
 *   byTime             session ms turn              from the first turn of the session on that has a time of its own
 * indexed_turns        turn                         IndexedTurnRow: one that a search finds
 *   bySession          session turn
 *   byUser             #user turn
 *   byAgent            #agent turn
 * turn_vectors         embedding                    bytes, as of vectors
 * turn_indexing        current                      TurnIndexingRow: how far the turns of before are indexed
 * branches             session version              BranchRow: which turns are shown from a rollback, or a fork, on
 *   byParent           session turn session version if it begins in another session, where its turns end before that id
 *   byMemorySession    session memory session version  for each session whose memories before that id it shows
 * memories             memory                       MemoryRow
 *   bySession          session memory               if it has one
 *   byUser             #user memory                 a fixed text in place of the hash if it belongs to no user
 *   byAgent            #agent memory
 *   byType             #type memory
 *   byTag              #tag memory
 *   byMetadata         #(name, value) memory        for each text, number, truth and null at the top of its metadata (`metadata-index.ts`)
 *   byExternalId       #(external, owner) memory    for each owner who looks it up, if it has an external id
 *   byContent          #(owner, type, content) memory
 *   byExpiry           ms memory                    if it expires
 *   pinned             #(owner) ms memory           if it is pinned, with when it is past for good
 *   past               memory                       if it is past for good
 *   timed              memory                       if it has a time of its own (`occurred_at`)
 *   byTime             session ms memory            then, too, and #(user) ms memory
 *   ahead              memory                       if its id is later than its time
 * memory_versions      memory number                MemoryVersionRow: a content that a memory had
 * retrievals           retrieval                    RetrievalRow: what a search or a context found
 *   bySession          session retrieval            if it has one
 *   ofNoSession        retrieval                    if it has none
 *   byUser             #user retrieval              if it has no session
 *   byAgent            #agent retrieval             if it has no session
 *   byOther            #user retrieval              for each other user whom it shows or names
 *   byExpiry           ms retrieval
 *   ahead              retrieval                    if its id is later than its time
 * vectors              embedding                    bytes: numbers, terms, generation, memory (`search/encoding.ts`)
 * pendingEmbeddings    memory or document           text: empty, or the generation of the provider that refuses it
 * pendingTurns         turn                         text, as of pendingEmbeddings
 * provider             current                      ProviderRow: what makes the vectors
 * traces               action trace                 TraceRow; one character for each action
 *   bySession          session trace action
 *   byUser             #user trace action
 *   byAgent            #agent trace action
 *   ahead              trace action                 if its id is later than its time
 * audit_chains         chain                        AuditChainRow: the key that signs a chain of traces, and the chains before it
 *   open               chain                        until a chain names it that began after it had ended
 * audit_segments       chain number                 AuditSegmentRow: hashes of 256 traces, and the signed digest at their end
 * audit_removals       chain number                 AuditRemovalsRow: what was removed of a segment, when, why, and signed
 * outbox               event                        OutboxRow: what is not yet handed to the webhooks that want it
 * webhooks             webhook                      WebhookRow: who wants which events
 * webhook_failures     webhook                      WebhookFailuresRow: its attempts that failed in the last day
 * payloads             payload                      what is posted to receivers, as text
 * deliveries           webhook delivery             DeliveryRow: one event for one webhook
 *   due                webhook ms delivery          while it is pending and the first of its line
 *   inLine             webhook line delivery        while it is pending; a line is a session, or the delivery itself
 *   byStatus           webhook status delivery      one character for each status
 *   byType             webhook #type delivery
 *   failed             delivery webhook             while it has failed
 *   byUser             #user webhook delivery       of an event that shows content of a user's
 *   ahead              delivery webhook             if its id is later than its time
 * idempotency          #(key hash, idempotency key) IdempotencyRow
 *   byTime             ms #(...)
 *   byUser             #user #(...)                 for each user whose content the answer shows
 * apiKeys              SHA-256 of the key, hex      ApiKeyRow
 *   byId               key SHA-256
 *   byKind             kind key SHA-256             one character for each kind
 *   bySource           source key SHA-256           of a session key or a grant: the key that signed in
 *   byEnd              ms SHA-256                   of a session or link key; of a grant behind `|`
 * deletedKeys          SHA-256 of the key, hex      DeletedKeyRow: a tombstone, so that it is never a key again
 * removals             session                      RemovalRow: what is left of a removed session
 * documents            #user #agent namespace . key DocumentRow; the texts in hex, `!` after each part of a namespace
 *   bySession          session document             if it goes with a session
 *   byExpiry           ms document                  if it expires
 *   byChange           #user #agent namespace . change key; a change is the id that it gave the document
 * indexed_documents    document                     IndexedDocumentRow: one that is found by meaning
 *   inNamespace        #(user agent namespace) document  of its namespace, and of each one above
 * document_vectors     embedding                    bytes, as of vectors
 * namespaces           #user #agent namespace       NamespaceRow: how many documents are in it and below it, or a user has
 * document_removals    #user #agent namespace       DocumentRemovalRow: what is left of a namespace that was emptied
 * last_document_id     partition                    text: the last id of that partition in these three, whose keys do not tell
 * users                #user                        UserRow: whom a session or a memory names
 *   byName             name !#user                  the name in hex, of its UTF-8
 *   bySeen             ms #user
 * erasures             #user                        ErasureRow: a user whose records are being erased
 * settings             current                      SettingsRow
 * activity             span ms                      ActivityRow: counts of a part of the last hour, day or week
 * ```
 * Ids have no prefix here (12 characters), `#x` is `hashKey(x)`, `ms` and numbers are `numberKey`.
 *
 * @module
 */
import { activity } from "./tables/activity.ts";
import { apiKeys, deletedKeys } from "./tables/api-keys.ts";
import { auditChains, auditRemovals, auditSegments } from "./tables/audit.ts";
import { documentRemovals, documents, documentVectors, indexedDocuments, lastDocumentId, namespaces } from "./tables/documents.ts";
import { pendingEmbeddings, provider, vectors } from "./tables/embeddings.ts";
import { idempotency } from "./tables/idempotency.ts";
import { indexedTurns, pendingTurns, turnIndexing, turnVectors } from "./tables/indexed-turns.ts";
import { memories, memoryVersions } from "./tables/memories.ts";
import { meta, settings } from "./tables/meta.ts";
import { retrievals } from "./tables/retrievals.ts";
import { branches, removals, sessions, versions } from "./tables/sessions.ts";
import { traces } from "./tables/traces.ts";
import { turns } from "./tables/turns.ts";
import { erasures, users } from "./tables/users.ts";
import { deliveries, outbox, payloads, webhookFailures, webhooks } from "./tables/webhooks.ts";
import type { AnyTable, Table, VectorTable } from "./tables/table.ts";

export * from "./tables/activity.ts";
export * from "./tables/api-keys.ts";
export * from "./tables/audit.ts";
export * from "./tables/documents.ts";
export * from "./tables/embeddings.ts";
export * from "./tables/idempotency.ts";
export * from "./tables/indexed-turns.ts";
export * from "./tables/memories.ts";
export * from "./tables/meta.ts";
export * from "./tables/retrievals.ts";
export * from "./tables/sessions.ts";
export * from "./tables/traces.ts";
export * from "./tables/turns.ts";
export * from "./tables/users.ts";
export * from "./tables/webhooks.ts";
export type { AnyTable, Index, Readable, Table, VectorTable } from "./tables/table.ts";

/** The stored form of every row. A change of any is another version, and a migration. */
export const SCHEMA_VERSION = 1;

/** Tables whose rows are records, in the order in which they are exported. */
export const RECORD_TABLES: readonly Table<never>[] = [
  meta,
  settings,
  provider,
  apiKeys,
  sessions,
  versions,
  turns,
  indexedTurns,
  turnIndexing,
  branches,
  memories,
  memoryVersions,
  retrievals,
  traces,
  auditChains,
  auditSegments,
  auditRemovals,
  outbox,
  webhooks,
  webhookFailures,
  payloads,
  deliveries,
  idempotency,
  deletedKeys,
  removals,
  documents,
  indexedDocuments,
  namespaces,
  documentRemovals,
  lastDocumentId,
  users,
  erasures,
  activity,
] as unknown as readonly Table<never>[];

/** Tables of what waits for its vector: these rows are no records. */
export const PENDING_TABLES: readonly Table<string>[] = [pendingEmbeddings, pendingTurns];

/** Every table of bytes. */
export const VECTOR_TABLES: readonly VectorTable[] = [vectors, documentVectors, turnVectors];

/** Tables that count in the progress of embeddings: vectors of turns are made apart, and most turns want none. */
export const AWAITED_VECTOR_TABLES: readonly VectorTable[] = [vectors, documentVectors];

/** Every table of texts, and every index. */
export const TABLES: readonly AnyTable[] = [...RECORD_TABLES.flatMap((one) => [one, ...one.indexes]), ...PENDING_TABLES];
