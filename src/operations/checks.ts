/**
 * Rules that hold in a store, and repairs where the records say how.
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import { bare, BARE_ID_LENGTH, withPrefix, type BareId } from "../lib/ids.ts";
import type { JsonObject } from "../lib/json.ts";
import { textOf } from "../documents/embedded-text.ts";
import { readable } from "../storage/bad-rows.ts";
import { COLLECTIONS, DOCUMENTS, MEMORIES, TURNS, wantsVector, type Collection, type EmbeddedRow } from "../storage/collections.ts";
import { DocumentWriter, emptiedUntil, isEmptied, namespaceRow } from "../storage/document-records.ts";
import { mayLackEntry } from "../storage/fills.ts";
import { namespaceOfDocument, namespacesAbove, turnKey } from "../storage/keys.ts";
import { generationOf, removeRecord, removeVector } from "../storage/memory-records.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { ownerOfTurns } from "../storage/turn-owner.ts";
import {
  branches,
  deliveries,
  documentRemovals,
  documents,
  indexedDocuments,
  memories,
  memoryVersions,
  namespaces,
  payloads,
  indexedTurns,
  PENDING_TABLES,
  removals,
  retrievals,
  sessions,
  turns,
  versions,
  type AnyTable,
  type DocumentRow,
  type Index,
  type MemoryRow,
  type IndexedTurnRow,
} from "../storage/tables.ts";
import { hasNoVector, isEmbedding, storedGeneration, storedMemory } from "../search/encoding.ts";
import { removeDeliveries } from "../webhooks/queue.ts";
import { everyEntry, everyKey, keysOf, type Check, type Fault, type KeyCheck, type Looked } from "./check.ts";
import { repairedText, parseRow, RECORDS, stored, type RecordTable } from "./records.ts";
import { checkBranch, checkSession, checkTurn, sessionCheck } from "./session-checks.ts";

/** All checks in the order in which they repair: counters are counted from indexes. */
export const CHECKS: readonly Check[] = [
  ...RECORDS.map((table) => everyKey(table, rowCheck(table))),
  ...RECORDS.flatMap((table) => table.indexes.map((index) => everyEntry(index, entryCheck(table, index)))),
  everyKey(sessions, checkSession),
  everyKey(versions, sessionCheck(versions)),
  everyKey(turns, sessionCheck(turns)),
  everyKey(turns, checkTurn),
  everyKey(branches, sessionCheck(branches)),
  everyKey(branches, checkBranch),
  everyKey(memories, checkMemory),
  everyKey(memoryVersions, checkMemoryVersion),
  everyKey(retrievals, checkRetrieval),
  everyKey(documents, checkDocument),
  everyKey(indexedDocuments, checkIndexedDocument),
  everyKey(indexedTurns, checkIndexedTurn),
  everyKey(namespaces, checkNamespace),
  everyKey(deliveries, checkDelivery),
  ...Object.values(COLLECTIONS).map((collection) => everyKey(collection.vectors, vectorCheck(collection))),
  ...PENDING_TABLES.map((table) => everyKey(table, pendingCheck(table))),
];

/** Every row can be read, and every entry it should have is there. */
function rowCheck(table: RecordTable): KeyCheck {
  return function* (reader, { key, text, columns }) {
    const { problem } = parseRow(table, key, text);
    if (problem !== undefined) {
      const repaired = repairedText(table, key, text);
      const what = repaired === undefined ? "rows that cannot be read" : "values that make no sense";
      const fix = repaired === undefined ? undefined : (tx: Tx) => tx.put(stored(table), key, repaired);
      yield { what: `${table.name}: ${what}`, example: `${key}: ${problem}`, fix };
      return;
    }
    if (table.indexes.length === 0) return;
    const row = table.decode(text);
    for (const index of table.indexes) {
      if (readable(() => mayLackEntry(reader, index, key)) === true) continue;
      const entries = index.entriesOf(key, row);
      const column = columns?.[index.name];
      if (column !== undefined) {
        const what = `${index.name}: not what the row says`;
        if (column !== (entries[0] ?? null)) yield { what, example: key, fix: writeAgain(table, key), isAlwaysRight: true };
        continue;
      }
      for (const entry of entries) {
        if (!reader.has(index, entry))
          yield { what: `${index.name}: entries missing`, example: entry, fix: (tx) => tx.add(table, key, row) };
      }
    }
  };
}

/** Has a row's columns follow from it again. */
function writeAgain(table: RecordTable, key: string): (tx: Tx) => void {
  return (tx) => {
    const text = tx.get(stored(table), key);
    if (text !== undefined) tx.put(stored(table), key, text);
  };
}

/** Every entry is one of a row's. Those of rows that cannot be read stay. */
function entryCheck(table: RecordTable, index: Index): KeyCheck {
  return function* (reader, { key: entry }) {
    const key = index.recordOf(entry);
    const text = reader.get(stored(table), key);
    const isOfARow =
      text !== undefined && (parseRow(table, key, text).problem !== undefined || index.entriesOf(key, table.decode(text)).includes(entry));
    if (!isOfARow) yield { what: `${index.name}: entries of nothing`, example: entry, fix: (tx) => tx.remove(stored(index), entry) };
  };
}

/** A memory belongs to somebody, to its session's user and agent if that is not gone; and has its vector. */
function* checkMemory(reader: Reader, { key: memory }: Looked): Generator<Fault> {
  const row = memoryAt(reader, memory);
  if (row === undefined) return;
  const example = withPrefix("mem", memory);
  const { sessionId } = row;
  if ((sessionId ?? row.userId ?? row.agentId) === null) yield { what: "memories: of nobody", example };
  const { userId, agentId } = (sessionId && readable(() => reader.get(sessions, bare(sessionId)))) ?? row;
  const belongs = { ...row, userId, agentId };
  if (userId !== row.userId)
    yield { what: "memories: of another user than their session", example, fix: (tx) => tx.put(memories, memory, belongs) };
  else if (agentId !== row.agentId)
    yield { what: "memories: of another agent than their session", example, fix: (tx) => tx.put(memories, memory, belongs) };
  const { supersededBy } = row;
  if (supersededBy !== undefined && !reader.has(memories, bare(supersededBy)))
    yield {
      what: "memories: superseded by one that is gone",
      example,
      fix: (tx) => {
        const { supersededBy: _by, supersededAt: _at, supersededUntil: _until, ...rest } = belongs;
        tx.put(memories, memory, rest);
      },
    };
  yield* vectorFaults(reader, MEMORIES, memory, example);
}

/** A content that a memory had is of one that is there, which has had as many. */
function* checkMemoryVersion(reader: Reader, { key }: Looked): Generator<Fault> {
  const memory = key.slice(0, BARE_ID_LENGTH);
  if (isUnreadable(reader, MEMORIES, memory)) return;
  const { edits = 0 } = memoryAt(reader, memory) ?? {};
  if (fromBase62(key.slice(BARE_ID_LENGTH)) >= edits)
    yield { what: "memory_versions: of no memory", example: withPrefix("mem", memory), fix: (tx) => tx.remove(memoryVersions, key) };
}

/** One that says it has a vector has one, which says the same; one that should have one and has not waits for it. */
function* vectorFaults(reader: Reader, collection: Collection, key: BareId, example: string): Generator<Fault> {
  const row = rowAt(reader, collection, key);
  if (row === undefined) return;
  const { records, vectors, pending } = collection;
  const fix = (tx: Tx) => makeVectorAgain(tx, collection, key, row);
  if (row.embedding === undefined) {
    if (wantsVector(row) && !reader.has(pending, key))
      yield { what: `${pending.name}: ${records.name} without a vector that wait for none`, example, fix };
    return;
  }
  const { id, generation } = row.embedding;
  const bytes = reader.vectorBytes(vectors, bare(id));
  const saysOtherwise = bytes !== undefined && hasNoVector(bytes) !== (row.embedding.hasNoVector === true);
  const newest = readable(() => generationOf(reader)) ?? Number.POSITIVE_INFINITY;
  if (bytes === undefined || !isEmbedding(bytes)) yield { what: `${vectors.name}: missing or damaged`, example, fix };
  else if (storedMemory(bytes) !== key || storedGeneration(bytes) !== generation || generation > newest || saysOtherwise)
    yield { what: `${vectors.name}: of another record or provider than it says`, example, fix };
}

/** Removes what is left of a record's vector, so that the server embeds it again. */
function makeVectorAgain(tx: Tx, collection: Collection, key: BareId, row: EmbeddedRow): void {
  const { embedding, ...rest } = row;
  if (embedding !== undefined) {
    const bytes = tx.vectorBytes(collection.vectors, bare(embedding.id));
    const holder = bytes === undefined ? key : storedMemory(bytes);
    // Another record may say that it has the same one, and be right.
    if (holder === key || !collection.records.key.test(holder) || rowAt(tx, collection, holder)?.embedding?.id !== embedding.id)
      removeVector(tx, collection, row);
    tx.put(collection.records, key, rest);
  }
  if (wantsVector(row)) tx.put(collection.pending, key, "");
}

/** The session of a retrieval that has one is there, or a note that it is left over from one. */
function* checkRetrieval(reader: Reader, { key }: Looked): Generator<Fault> {
  const row = readable(() => reader.get(retrievals, key));
  if (row?.sessionId !== undefined) yield* leftOver(reader, retrievals, key, bare(row.sessionId));
}

function* leftOver(reader: Reader, { name }: AnyTable, example: string, session: BareId): Generator<Fault> {
  if (reader.has(sessions, session) || reader.has(removals, session)) return;
  yield { what: `${name}: rows of a session that is gone`, example, fix: (tx) => tx.put(removals, session, { memories: false }) };
}

/** A document's session is there, or a note that it is left over from one; it is found by what it says; and its namespace counts it. */
function* checkDocument(reader: Reader, { key }: Looked): Generator<Fault> {
  const row = readable(() => reader.get(documents, key));
  if (row === undefined) return;
  if (row.sessionId !== undefined) yield* leftOver(reader, documents, key, bare(row.sessionId));
  if (!reader.has(indexedDocuments, row.id) && isFound(row)) {
    const fix = (tx: Tx) => {
      tx.put(indexedDocuments, row.id, { document: key });
      tx.put(DOCUMENTS.pending, row.id, "");
    };
    yield { what: "indexed_documents: missing", example: key, fix };
  }
  const namespace = namespaceOfDocument(key);
  if (readable(() => isEmptied(reader, namespace, row.id)) !== false) return;
  for (const above of namespacesAbove(namespace)) {
    // One that cannot be read is there.
    if (readable(() => namespaceRow(reader, above) ?? null) !== null) continue;
    yield { what: "namespaces: missing", example: above, fix: (tx) => new DocumentWriter(tx).restore(above) };
    return;
  }
}

/** Checks whether a document has a text to be found by. */
function isFound({ index, body }: DocumentRow): boolean {
  const text = index === undefined ? undefined : readable(() => textOf(JSON.parse(body) as JsonObject, index));
  return text !== undefined && text !== "";
}

/** Searched text of a document is of its present value, and has its vector. */
function* checkIndexedDocument(reader: Reader, { key: id }: Looked): Generator<Fault> {
  const indexed = readable(() => reader.get(indexedDocuments, id));
  if (indexed === undefined) return;
  const { document } = indexed;
  // One that cannot be read is there.
  const row = readable(() => reader.get(documents, document) ?? null);
  if (row === null || (row !== undefined && (row.id !== id || row.index === undefined)))
    yield { what: "indexed_documents: of no document", example: document, fix: (tx) => removeRecord(tx, DOCUMENTS, id) };
  else yield* vectorFaults(reader, DOCUMENTS, id, document);
}

/** Indexed turns are there, and have their words. */
function* checkIndexedTurn(reader: Reader, { key: id }: Looked): Generator<Fault> {
  const row = readable(() => reader.get(indexedTurns, id));
  if (row === undefined) return;
  const example = withPrefix("turn", id);
  const session = readable(() => reader.get(sessions, row.session));
  const owner = session && ownerOfTurns(session);
  if (!reader.has(turns, turnKey(row.session, id)))
    yield { what: "indexed_turns: of no turn", example, fix: (tx) => removeRecord(tx, TURNS, id) };
  else if (owner !== undefined && (owner.user !== row.user || owner.agent !== row.agent))
    yield {
      what: "indexed_turns: of another user or agent than their session",
      example,
      fix: (tx) => tx.put(indexedTurns, id, { ...row, user: undefined, ...owner } as IndexedTurnRow),
    };
  else yield* vectorFaults(reader, TURNS, id, example);
}

/** A namespace has as many documents as it says, of its own and with those below it. */
function* checkNamespace(reader: Reader, { key: namespace }: Looked): Generator<Fault> {
  const row = readable(() => namespaceRow(reader, namespace));
  if (row === undefined) return;
  let own = 0;
  let all = 0;
  const mayBeGone = !reader.isEmpty(documentRemovals);
  const fetch = (keys: readonly string[]) => {
    if (!mayBeGone) return;
    reader.ahead(documents, keys);
    reader.ahead(documentRemovals, new Set(keys.flatMap((key) => namespacesAbove(namespaceOfDocument(key)))));
  };
  for (const key of keysOf(reader, documents, namespace, fetch)) {
    if (mayBeGone) {
      const isGone = readable(() => {
        const until = emptiedUntil(reader, namespaceOfDocument(key));
        return until !== undefined && (reader.get(documents, key)?.id ?? "") <= until;
      });
      // Of one that cannot be read nobody knows whether it is counted.
      if (isGone === undefined) return;
      if (isGone) continue;
    }
    all++;
    if (namespaceOfDocument(key) === namespace) own++;
  }
  if (own === row.own && all === row.all) return;
  const fix = (tx: Tx) => (all === 0 ? tx.remove(namespaces, namespace) : tx.put(namespaces, namespace, { ...row, own, all }));
  yield { what: "namespaces: the count of documents is wrong", example: namespace, fix };
}

/** Payload of a delivery, kept for as long as the delivery. Deliveries of a deleted webhook are being removed. */
function* checkDelivery(reader: Reader, { key }: Looked): Generator<Fault> {
  const row = readable(() => reader.get(deliveries, key));
  if (row === undefined || reader.has(payloads, row.payload)) return;
  const example = withPrefix("dlv", key.slice(BARE_ID_LENGTH));
  yield { what: "deliveries: what was to be delivered is missing", example, fix: (tx) => removeDeliveries(tx, [key]) };
}

/** Every vector is of a record that says so. */
function vectorCheck(collection: Collection): KeyCheck {
  const { vectors } = collection;
  return function* (reader, { key: id }) {
    const record = storedMemory(reader.vectorBytes(vectors, id) ?? new Uint8Array(0));
    const example = withPrefix("emb", id);
    const canBe = collection.records.key.test(record);
    if (canBe && (rowAt(reader, collection, record)?.embedding?.id === example || isUnreadable(reader, collection, record))) return;
    yield { what: `${vectors.name}: of no record`, example, fix: (tx) => tx.removeVector(vectors, id) };
  };
}

/** A record whose vector was made meanwhile may still be pending, which the server finds out. */
function pendingCheck(table: Collection["pending"]): KeyCheck {
  return function* (reader, { key: record }) {
    for (const collection of Object.values(COLLECTIONS)) {
      if (collection.pending !== table) continue;
      const row = rowAt(reader, collection, record);
      if ((row !== undefined && wantsVector(row)) || isUnreadable(reader, collection, record)) return;
    }
    yield { what: `${table.name}: of no record that wants a vector`, example: record, fix: (tx) => tx.remove(table, record) };
  };
}

function memoryAt(reader: Reader, memory: BareId): MemoryRow | undefined {
  return readable(() => reader.get(memories, memory));
}

function rowAt(reader: Reader, { records }: Collection, key: BareId): EmbeddedRow | undefined {
  return readable(() => reader.get(records, key));
}

/** Checks whether a record is there but cannot be read. What belongs to it stays. */
function isUnreadable(reader: Reader, collection: Collection, key: BareId): boolean {
  return reader.has(collection.records, key) && rowAt(reader, collection, key) === undefined;
}
