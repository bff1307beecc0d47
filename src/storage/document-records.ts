/**
 * The records of documents: which of them are there, how many each namespace has, and what goes when they go.
 *
 * A namespace can have more documents than one commit should remove. Emptying it leaves a note: what has an older id than the
 * note's is gone for readers, and a task removes it in pieces. A document is also gone when its time has passed or its session is
 * not live any more; these are counted until they are removed, and `hiddenIn` says which they are.
 *
 * @module
 */
import { bare, BARE_ID_LENGTH, partitionOf, type BareId } from "../lib/ids.ts";
import { eachFetched, type Reader, type Tx } from "./access.ts";
import { DOCUMENTS } from "./collections.ts";
import { isAnyErased, isErased } from "./erasure.ts";
import { MAX_KEY, successor, namespaceOfDocument, namespacesAbove, numberKey } from "./keys.ts";
import { removeRecord } from "./memory-records.ts";
import {
  documentRemovals,
  documents,
  erasures,
  lastDocumentId,
  namespaces,
  removals,
  sessions,
  type DocumentRow,
  type NamespaceRow,
} from "./tables.ts";
import { unlessUnreadable } from "./unreadable.ts";

/** Checks whether what has this id was there when its namespace, or one above it, was emptied. */
export function isEmptied(reader: Reader, namespace: string, id: BareId): boolean {
  const until = emptiedUntil(reader, namespace);
  return until !== undefined && id <= until;
}

/** The id up to which a namespace was emptied, with one above it or alone; undefined where nothing is left to be removed of that. */
export function emptiedUntil(reader: Reader, namespace: string): BareId | undefined {
  if (reader.isEmpty(documentRemovals)) return undefined;
  const ids = eachFetched(namespacesAbove(namespace), (above) => reader.get(documentRemovals, above)?.until ?? []);
  return ids.flat().toSorted().at(-1);
}

/** A document that is there. */
export function visibleDocument(reader: Reader, key: string, row = reader.get(documents, key)): DocumentRow | undefined {
  return row === undefined || hasEnded(reader, row) || isEmptied(reader, namespaceOfDocument(key), row.id) ? undefined : row;
}

function hasEnded(reader: Reader, { expiresAt, sessionId }: DocumentRow): boolean {
  if (expiresAt !== undefined && expiresAt <= reader.now) return true;
  if (sessionId === undefined) return false;
  const key = bare(sessionId);
  const session = reader.get(sessions, key);
  return session === undefined || session.expiresAt <= reader.now || isErased(reader, session, key);
}

export function namespaceRow(reader: Reader, namespace: string): NamespaceRow | undefined {
  const row = reader.get(namespaces, namespace);
  return row === undefined || isEmptied(reader, namespace, row.id) ? undefined : row;
}

/** Documents that have ended and are not removed yet, and sessions that may have such, are looked at up to this many. */
const HIDDEN_MAX = 1_000;
const ENDED_SESSIONS_MAX = 100;

/**
 * The keys of documents in a namespace and below it that are counted and gone. Tasks remove them each second, so they are few; what is
 * more than can be looked at counts as there until it is removed.
 */
export function hiddenIn(reader: Reader, namespace: string): Set<string> {
  const { bySession, byExpiry } = documents.index;
  const due = { from: "", to: numberKey(reader.now + 1) };
  const dueSessions = { ...due, limit: ENDED_SESSIONS_MAX };
  const removed = { from: "", to: MAX_KEY, limit: ENDED_SESSIONS_MAX };
  reader.aheadOf([sessions.index.byExpiry], dueSessions);
  reader.aheadOf([removals], removed);
  const found = new Set(reader.keys(byExpiry, { ...due, limit: HIDDEN_MAX }).map((entry) => byExpiry.recordOf(entry)));
  const ended = [
    ...reader.keys(sessions.index.byExpiry, dueSessions).map((entry) => entry.slice(-BARE_ID_LENGTH)),
    ...reader.keys(removals, removed),
    ...erasedSessions(reader),
  ];
  eachFetched(ended, (session) => {
    const from = session + namespace;
    const limit = Math.max(0, HIDDEN_MAX - found.size);
    for (const entry of limit === 0 ? [] : reader.keys(bySession, { from, to: from + MAX_KEY, limit }))
      found.add(bySession.recordOf(entry));
  });
  const below = Array.from(found).filter((key) => key.startsWith(namespace));
  const counted = eachFetched(below, (key) => (unlessUnreadable(() => isCounted(reader, key)) === true ? [key] : []));
  return new Set(counted.flat());
}

/** Sessions that are still there of users who are being erased. */
function erasedSessions(reader: Reader): BareId[] {
  if (!isAnyErased(reader)) return [];
  const { byUser } = sessions.index;
  const begun = reader.rows(erasures, { from: "", to: MAX_KEY, limit: ENDED_SESSIONS_MAX });
  const found = eachFetched(begun, ({ key, row }) =>
    reader.keys(byUser, { from: key, to: key + successor(row.until), limit: ENDED_SESSIONS_MAX }),
  );
  return found.flat().map((entry) => byUser.recordOf(entry));
}

/** Checks whether the namespaces of a document count it, gone or not. Its row, which can be large, is read only if that says something. */
function isCounted(reader: Reader, key: string, row?: DocumentRow): boolean {
  const until = emptiedUntil(reader, namespaceOfDocument(key));
  if (until === undefined) return row !== undefined || reader.has(documents, key);
  const { id } = row ?? reader.get(documents, key) ?? {};
  return id !== undefined && id > until;
}

/** Changes of documents with the counts of their namespaces, which are written once by `flush`. */
export class DocumentWriter {
  readonly #tx: Tx;
  /** Change of the count of each namespace. */
  readonly #added = new Map<string, number>();
  #lastId: BareId | undefined;

  constructor(tx: Tx) {
    this.#tx = tx;
  }

  /**
   * Ids rise, also after a restart with a clock that was set back, and on a server whose clock is behind: so the last one is stored.
   * Each partition has its own row of it, so that changes of several users do not wait for each other.
   */
  id(): BareId {
    const id = this.#tx.bareId();
    const last = this.#lastId ?? this.#tx.get(lastDocumentId, partitionOf(id));
    return (this.#lastId = last === undefined || id > last ? id : this.#tx.bareId(partitionOf(id), last));
  }

  /** Without a vector: that is the caller's to make. */
  put(key: string, row: DocumentRow): void {
    if (!this.#takeOut(key)) this.#add(namespaceOfDocument(key), 1);
    this.renew(key, row);
  }

  /** Puts the row of a document that is there and stays the same one: its id, its value and what it is found by. */
  renew(key: string, row: DocumentRow): void {
    this.#tx.put(documents, key, row);
  }

  remove(key: string): void {
    if (this.#takeOut(key)) this.#add(namespaceOfDocument(key), -1);
    this.#tx.remove(documents, key);
  }

  /** Removes what a document is found by. @returns whether its namespaces count it */
  #takeOut(key: string): boolean {
    const row = this.#tx.get(documents, key);
    if (row?.index !== undefined) removeRecord(this.#tx, DOCUMENTS, row.id);
    return row !== undefined && isCounted(this.#tx, key, row);
  }

  /**
   * Removes all documents of a namespace and below it.
   *
   * @param atOnce - that many are removed here; of more, or where one cannot be read, a note is left for the task
   * @returns how many physical documents were removed here
   */
  empty(namespace: string, atOnce: number): number {
    this.flush();
    const keys = this.#tx.keys(documents, { from: namespace, to: namespace + MAX_KEY, limit: atOnce + 1 });
    const isAll = keys.length <= atOnce && unlessUnreadable(() => eachFetched(keys, (key) => this.remove(key))) !== undefined;
    this.flush();
    if (isAll) return keys.length;
    const row = namespaceRow(this.#tx, namespace);
    if (row !== undefined) {
      eachFetched(namespacesAbove(namespace), (above) => this.#count(above, above === namespace ? -row.own : 0, -row.all));
    }
    this.#tx.put(documentRemovals, namespace, { until: this.id() });
    this.flush();
    return 0;
  }

  /** To be called at the end, and before counts are read. */
  flush(): void {
    const below = new Map<string, number>();
    for (const [namespace, added] of this.#added) {
      for (const above of namespacesAbove(namespace)) below.set(above, (below.get(above) ?? 0) + added);
    }
    eachFetched(Array.from(below), ([namespace, added]) => this.#count(namespace, this.#added.get(namespace) ?? 0, added));
    this.#added.clear();
    if (this.#lastId !== undefined) this.#tx.put(lastDocumentId, partitionOf(this.#lastId), this.#lastId);
    this.#lastId = undefined;
  }

  /** Makes the row of a namespace that is missing, without counting what it has. */
  restore(namespace: string): void {
    this.#tx.put(namespaces, namespace, { own: 0, all: 0, id: this.id() });
    this.flush();
  }

  #add(namespace: string, added: 1 | -1): void {
    this.#added.set(namespace, (this.#added.get(namespace) ?? 0) + added);
  }

  #count(namespace: string, own: number, all: number): void {
    if (own === 0 && all === 0) return;
    const before = namespaceRow(this.#tx, namespace) ?? { own: 0, all: 0, id: this.id() };
    const row = { ...before, own: before.own + own, all: before.all + all };
    if (row.all > 0) this.#tx.put(namespaces, namespace, row);
    else this.#tx.remove(namespaces, namespace);
  }
}
