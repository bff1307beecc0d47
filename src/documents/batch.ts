/**
 * A batch of changes of documents inside its commit: each sees what those before it have done.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import type { Answered } from "../lib/answer.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, withPrefix, type BareId, type SessionId } from "../lib/ids.ts";
import { toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { isoOrNull } from "../lib/time.ts";
import type { Active, MadeEmbedding } from "../embeddings/embeddings.ts";
import { liveSession } from "../sessions/live-session.ts";
import type { Tx } from "../storage/access.ts";
import { DOCUMENTS } from "../storage/collections.ts";
import { DocumentWriter, hiddenIn, namespaceRow, visibleDocument } from "../storage/document-records.ts";
import { MAX_KEY, successor, documentKey, documentSpace, hashKey, namespaceKey, ownDocuments } from "../storage/keys.ts";
import { generationOf } from "../storage/memory-records.ts";
import type { Owner } from "../storage/owner.ts";
import {
  documents,
  indexedDocuments,
  pendingEmbeddings,
  sessions,
  users,
  type DocumentRow,
  type IndexedDocumentRow,
} from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { trackNamedUser } from "../storage/user-names.ts";
import { storeVector } from "../search/store-vector.ts";
import { documentJson, resultsJson, tooLarge } from "./answers.ts";
import { BulkChanges } from "./bulk.ts";
import type { Index } from "./embedded-text.ts";
import { lifetimeOf, ttlOf, type TimeToLive } from "./lifetime.ts";
import type { Namespace, Order } from "./lists.ts";

export type Change =
  | {
      op: "put";
      namespace: Namespace;
      key?: string | undefined;
      value: JsonObject;
      index?: Index | undefined;
      ifVersion?: number | undefined;
      ifExists: IfExists;
      sessionId?: string | undefined;
      ttl?: TimeToLive | undefined;
    }
  | { op: "touch"; namespace: Namespace; key: string; ttl?: TimeToLive | undefined }
  | { op: "delete"; namespace: Namespace; key: string; ifVersion?: number | undefined }
  | { op: "delete_all"; namespace: Namespace; filter?: RecordFilter | undefined; cursor?: string | undefined }
  | { op: "copy_all"; namespace: Namespace; to: Namespace; cursor?: string | undefined }
  | { op: "pop"; namespace: Namespace; order: Order };

/** Action on an existing document. */
export type IfExists = "replace" | "keep";

/** Documents that one commit removes by itself; of more the rest is left to a task. */
const REMOVED_PER_COMMIT = 200;
/** Number of documents looked at together that a pop passes over, since they have ended. */
const POP_PROBES_AT_ONCE = 50;

/** Source of a document of a put, before the commit. */
export interface Prepared {
  readonly value: JsonText;
  /** Text that it is found by; empty for one that is not. */
  readonly text: string;
}

export class Batch {
  readonly #tx: Tx;
  readonly #owner: Owner;
  readonly #active: Active;
  readonly #space: string;
  readonly #writer: DocumentWriter;
  readonly #bulk: BulkChanges;
  /** Number of documents to be popped from an end of a namespace, of those of which none was yet. */
  readonly #pops = new Map<string, number>();
  /** `hashKey` of those whose documents these are: their owner's, or their session's. */
  readonly #users = new Set<string>();
  #puts = 0;
  #removed = 0;
  #removable = REMOVED_PER_COMMIT;
  #probes = 0;
  #bytes = 0;

  constructor(tx: Tx, owner: Owner, active: Active, changes: readonly Change[]) {
    this.#tx = tx;
    this.#owner = owner;
    this.#active = active;
    this.#space = documentSpace(owner.userId, owner.agentId);
    this.#writer = new DocumentWriter(tx);
    this.#bulk = new BulkChanges(tx, this.#writer);
    if (owner.userId !== undefined) {
      this.#users.add(hashKey(owner.userId));
      tx.ahead(users, this.#users);
    }
    for (const change of changes) {
      if (change.op !== "pop") continue;
      const end = endOf(namespaceKey(this.#space, change.namespace), change.order);
      this.#pops.set(end, (this.#pops.get(end) ?? 0) + 1);
    }
  }

  /** @param param - the name of the change, for errors; @param prepared - of a put, with the vector of its text if there is one */
  run(change: Change, param: string, prepared: Prepared | undefined, embedding: MadeEmbedding | undefined): JsonText {
    const namespace = namespaceKey(this.#space, change.namespace);
    switch (change.op) {
      case "put":
        return this.#put(namespace, change, param, prepared!, embedding);
      case "touch":
        return this.#touch(documentKey(namespace, change.key), change);
      case "delete":
        return this.#delete(documentKey(namespace, change.key), change, param);
      case "delete_all":
        return change.filter === undefined ? this.#deleteAll(namespace) : this.#deleteSome(namespace, change.filter, change.cursor);
      case "copy_all":
        return this.#copyAll(namespace, change, param);
      default:
        return this.#pop(namespace, change.order, param);
    }
  }

  end(results: readonly JsonText[]): Answered<JsonText> {
    if (this.#puts > 0) trackNamedUser(this.#tx, this.#owner.userId);
    this.#writer.flush();
    return {
      json: resultsJson(results),
      users: Array.from(this.#users),
      asksForRoom: this.#puts === 0 && this.#removed > 0 ? "never" : "always",
    };
  }

  #put(
    namespace: string,
    change: Change & { op: "put" },
    param: string,
    { value, text }: Prepared,
    embedding: MadeEmbedding | undefined,
  ): JsonText {
    const { now } = this.#tx;
    const kept = change.ifExists === "keep" ? visibleDocument(this.#tx, documentKey(namespace, change.key!)) : undefined;
    if (kept !== undefined) return toJson({ key: change.key, version: kept.version, kept: true });
    this.#puts++;
    const id = this.#writer.id();
    const { key: name = id, index, ifVersion, sessionId, ttl } = change;
    const key = documentKey(namespace, name);
    const before = visibleDocument(this.#tx, key);
    refuseOtherVersion(name, before, ifVersion, param);
    const version = (before?.version ?? 0) + 1;
    this.#writer.put(key, {
      id,
      version,
      createdAt: before?.createdAt ?? now,
      updatedAt: Math.max(before?.updatedAt ?? 0, now),
      ...lifetimeOf(ttl, now),
      ...(sessionId === undefined ? {} : { sessionId: this.#session(sessionId, param) }),
      ...(index === undefined ? {} : { index: index === true ? index : [...index] }),
      body: value,
    });
    if (text !== "") this.#index(id, key, embedding);
    return toJson({ key: name, version });
  }

  /** Gives a document its vector and words; when there is none of the provider that is set by now, it is made later. */
  #index(id: BareId, key: string, embedding: MadeEmbedding | undefined): void {
    const row: IndexedDocumentRow = { document: key };
    const { generation } = this.#active;
    const isOfProvider = embedding !== undefined && generationOf(this.#tx) === generation;
    if (!isOfProvider || embedding.isPending === true) this.#tx.put(pendingEmbeddings, id, "");
    if (isOfProvider) row.embedding = storeVector(this.#tx, DOCUMENTS, id, generation, embedding, withPrefix("emb", id));
    this.#tx.add(indexedDocuments, id, row);
  }

  #session(id: string, param: string) {
    try {
      const session = liveSession(this.#tx, this.#owner, id);
      this.#trackUserOf(session.id);
      return session.id;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw new ApiError(error.code, error.message, { param: `${param}.session_id` });
    }
  }

  /** Notes whose session a document goes with that the answer shows. */
  #trackUserOf(sessionId: SessionId | undefined): void {
    const userId = sessionId === undefined ? null : (this.#tx.get(sessions, bare(sessionId))?.userId ?? null);
    if (userId !== null) this.#users.add(hashKey(userId));
  }

  /** Gives a document a new end, and leaves its version, its time and its value as they are. */
  #touch(key: string, { key: name, ttl }: Change & { op: "touch" }): JsonText {
    const before = visibleDocument(this.#tx, key);
    if (before === undefined) return toJson(null);
    const { expiresAt: _end, ttlSeconds: _ttl, ...rest } = before;
    const row = { ...rest, ...lifetimeOf(ttl ?? ttlOf(before), this.#tx.now) };
    if (row.expiresAt !== before.expiresAt || row.ttlSeconds !== before.ttlSeconds) this.#writer.renew(key, row);
    return toJson({ key: name, version: row.version, expires_at: isoOrNull(row.expiresAt ?? null) });
  }

  #delete(key: string, { key: name, ifVersion }: Change & { op: "delete" }, param: string): JsonText {
    const row = visibleDocument(this.#tx, key);
    refuseOtherVersion(name, row, ifVersion, param);
    if (row === undefined) return deletedJson(0);
    this.#removed++;
    this.#writer.remove(key);
    return deletedJson(1);
  }

  #deleteAll(namespace: string): JsonText {
    this.#writer.flush();
    const { all = 0 } = namespaceRow(this.#tx, namespace) ?? {};
    const deleted = all - hiddenIn(this.#tx, namespace).size;
    this.#removed += deleted;
    this.#removable -= this.#writer.empty(namespace, this.#removable);
    return deletedJson(deleted);
  }

  #deleteSome(namespace: string, filter: RecordFilter, cursor: string | undefined): JsonText {
    const { changed, next } = this.#bulk.delete(namespace, filter, cursor);
    this.#removed += changed;
    return toJson({ deleted: changed, next_cursor: next });
  }

  #copyAll(namespace: string, { to, cursor }: Change & { op: "copy_all" }, param: string): JsonText {
    const { changed, next } = this.#bulk.copy(namespace, namespaceKey(this.#space, to), cursor, param);
    this.#puts += changed;
    return toJson({ copied: changed, next_cursor: next });
  }

  #pop(namespace: string, order: Order, param: string): JsonText {
    const own = ownDocuments(namespace);
    const descending = order === "desc";
    let span = { from: own, to: own + MAX_KEY };
    const pops = this.#pops.get(endOf(namespace, order)) ?? 0;
    this.#pops.delete(endOf(namespace, order));
    // Each of them removes the next one: all are fetched together.
    if (pops > 1) this.#tx.ahead(documents, this.#tx.keys(documents, { ...span, limit: pops, descending }));
    for (let atOnce = 1; ; atOnce = POP_PROBES_AT_ONCE) {
      const keys = this.#tx.keys(documents, { ...span, limit: atOnce, descending });
      this.#tx.ahead(documents, keys);
      for (const key of keys) {
        const row = unlessUnreadable(() => visibleDocument(this.#tx, key));
        if (row !== undefined) return this.#popped(key, row, param);
        if (++this.#probes > LIMITS.documentRowsMax) {
          throw new ApiError(
            "service_unavailable",
            "Too many documents are being removed there. Nothing was changed; try again in a moment.",
            { param, retryAfterSeconds: 1 },
          );
        }
        span = descending ? { ...span, to: key } : { ...span, from: successor(key) };
      }
      if (keys.length < atOnce) return toJson(null);
    }
  }

  #popped(key: string, row: DocumentRow, param: string): JsonText {
    const json = documentJson(key, row);
    this.#bytes += Buffer.byteLength(json);
    if (this.#bytes > LIMITS.pageBytesMax) throw tooLarge(param);
    this.#removed++;
    this.#trackUserOf(row.sessionId);
    this.#writer.remove(key);
    return json;
  }
}

/** One end of a namespace, which documents are popped from. */
const endOf = (namespace: string, order: Order): string => `${order} ${namespace}`;

function refuseOtherVersion(
  name: string,
  { version }: Pick<DocumentRow, "version"> = NONE,
  expected: number | undefined,
  param: string,
): void {
  if (expected === undefined || expected === version) return;
  throw new ApiError("version_conflict", `Document ${toJson(name)} is at version ${version}, not ${expected}. Nothing was changed.`, {
    param: `${param}.if_version`,
  });
}
/** A document that does not exist. */
const NONE = { version: 0 };

function deletedJson(deleted: number): JsonText {
  return toJson({ deleted });
}
