/**
 * Rules that hold in a store, and repairs where the records say how.
 *
 * A check looks at one key at a time, in order, and remembers nothing but the one before, so that a store of any size can be checked.
 * It reads one snapshot, and can be run again. A problem is repaired in a commit, which looks at its key again first.
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import { bare, BARE_ID_LENGTH, withPrefix, type BareId } from "../lib/ids.ts";
import { toJson, type JsonObject } from "../lib/json.ts";
import { textOf } from "../documents/embedded-text.ts";
import { shownCount } from "../sessions/branches.ts";
import { readable } from "../storage/bad-rows.ts";
import { COLLECTIONS, DOCUMENTS, MEMORIES, wantsVector, type Collection, type EmbeddedRow } from "../storage/collections.ts";
import { DocumentWriter, emptiedUntil, isEmptied, namespaceRow } from "../storage/document-records.ts";
import { mayLackEntry } from "../storage/fills.ts";
import { MAX_KEY, namespaceOfDocument, namespacesAbove, versionKey } from "../storage/keys.ts";
import { generationOf, removeRecord, removeVector } from "../storage/memory-records.ts";
import type { Reader, Tx } from "../storage/access.ts";
import type { WholeRow, WholeStore } from "../storage/record-store.ts";
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
  pendingEmbeddings,
  removals,
  retrievals,
  sessions,
  turns,
  versions,
  type AnyTable,
  type DocumentRow,
  type Index,
  type MemoryRow,
  type SessionRow,
} from "../storage/tables.ts";
import { hasNoVector, isEmbedding, storedGeneration, storedMemory } from "../vectors/encoding.ts";
import { removeDeliveries } from "../webhooks/queue.ts";
import { repairedText, parseRow, RECORDS, stored, type RecordTable } from "./records.ts";

interface Fault {
  /** The kind of problem. */
  what: string;
  /** The record or entry that has it. */
  example: string;
  /** Puts it right, as it was just found; absent when the records do not say what would be right. */
  fix?: ((tx: Tx) => void) | undefined;
  /** True if that is right whatever is there by then. */
  isAlwaysRight?: true;
}

export interface Problem extends Pick<Fault, "what" | "example"> {
  /** The record it was found at. */
  record?: { table: AnyTable; key: string } | undefined;
  repair?: ((tx: Tx) => void) | undefined;
}

/** Yields what is wrong with some rows, and how many they are. */
export type Check = (snapshot: WholeStore) => AsyncGenerator<{ problems: readonly Problem[]; rows: number }>;

/** A key with its row, whose text is empty for indexes and others whose keys say all. */
interface Looked extends WholeRow {
  /** The row before it, where a snapshot is looked at. */
  readonly before?: WholeRow | undefined;
}
type KeyCheck = (reader: Reader, row: Looked) => Iterable<Fault>;

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
  everyKey(namespaces, checkNamespace),
  everyKey(deliveries, checkDelivery),
  ...Object.values(COLLECTIONS).map((collection) => everyKey(collection.vectors, vectorCheck(collection))),
  everyKey(pendingEmbeddings, checkPending),
];

function everyKey(table: AnyTable, check: KeyCheck): Check {
  const isRecord = RECORDS.some(({ name }) => name === table.name);
  const problemOf = (key: string, { what, example, fix, isAlwaysRight }: Fault): Problem => {
    const repair = (tx: Tx) => {
      const now = isRecord ? tx.get(stored(table), key) : "";
      if (now === undefined) return;
      for (const again of check(tx, { key, text: now })) if (again.what === what) again.fix?.(tx);
    };
    return { what, example, record: isRecord ? { table, key } : undefined, repair: isAlwaysRight === true ? fix : fix && repair };
  };
  return async function* (snapshot) {
    let last: WholeRow | undefined;
    for await (const batch of isRecord ? snapshot.rowBatches(table) : snapshot.keyBatches(table)) {
      const rows = batch.map((row) => (typeof row === "string" ? { key: row, text: "" } : row));
      const looked = rows.map((row, i): Looked => ({ ...row, before: i === 0 ? last : rows[i - 1] }));
      const faults = await snapshot.readEach(looked, (reader, row) => Array.from(check(reader, row)));
      yield { problems: looked.flatMap(({ key }, i) => faults[i]!.map((fault) => problemOf(key, fault))), rows: rows.length };
      last = rows.at(-1);
    }
  };
}

/** Entries that are columns of their rows are checked with the rows. */
function everyEntry(index: Index, check: KeyCheck): Check {
  const every = everyKey(index, check);
  return async function* (snapshot) {
    if (index.hasMany || !snapshot.hasIndexColumns) yield* every(snapshot);
  };
}

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

/**
 * Versions of a session end with the current one, and begin with 0, after which old ones may have been removed; turns count
 * from 1 without gaps. The session's row says which version is the current one, and how many turns and memories there are.
 */
function* checkSession(reader: Reader, { key: session }: Looked): Generator<Fault> {
  const row = readable(() => reader.get(sessions, session));
  if (row === undefined) return;
  const example = withPrefix("sess", session);
  const correct = (right: Partial<SessionRow>) => (tx: Tx) => tx.put(sessions, session, { ...row, ...right });

  let last: number | undefined;
  let lacksVersions = false;
  for (const key of keysOf(reader, versions, session)) {
    const version = fromBase62(key.slice(BARE_ID_LENGTH));
    if (last === undefined ? version !== 0 : last !== 0 && version !== last + 1) lacksVersions = true;
    last = version;
  }
  if (last === undefined)
    yield { what: "sessions: all versions of the state are missing", example, fix: (tx) => putEmptyState(tx, session, row) };
  else if (last !== row.version)
    yield { what: "sessions: the current version is not the last one", example, fix: correct({ version: last }) };
  if (lacksVersions) yield { what: "sessions: versions of the state are missing", example };

  const numberBefore = readable(() => firstNumber(reader, session) - 1) ?? Number.NaN;
  let ownCount = 0;
  let lastTurn: string | undefined;
  for (lastTurn of keysOf(reader, turns, session)) ownCount++;
  // Of a session that lacks turns nobody knows the count.
  const lastNumber = lastTurn === undefined ? numberBefore : numberIn(reader.get(stored(turns), lastTurn) ?? "");
  if (lastNumber === numberBefore + ownCount) {
    const branch = readable(() => lastBranch(reader, session));
    const shown = branch === undefined ? row : { ...row, branch };
    const turnCount = branch === undefined ? ownCount : readable(() => shownCount(reader, { key: session, row: shown }));
    const turnNumber = branch === undefined ? undefined : lastNumber;
    if (turnCount !== undefined && (turnCount !== row.turnCount || turnNumber !== row.turnNumber || branch !== row.branch))
      yield {
        what: "sessions: the count of turns is wrong",
        example,
        fix: correct({ turnCount, turnNumber, branch } as Partial<SessionRow>),
      };
  }

  let memoryCount = 0;
  for (const _ of keysOf(reader, memories.index.bySession, session)) memoryCount++;
  if (memoryCount !== row.memoryCount) yield { what: "sessions: the count of memories is wrong", example, fix: correct({ memoryCount }) };
  if (reader.has(removals, session))
    yield { what: "removals: notes of sessions that are there", example, fix: (tx) => tx.remove(removals, session) };
}

/** Each is a trip to a database, after which a check begins again. */
const KEYS_PER_READ = 10_000;

/** The keys of a table that begin with a prefix, in order. @param onKeys - called with some of them before they are given */
function* keysOf(
  reader: Reader,
  table: AnyTable,
  prefix: string,
  onKeys: (keys: readonly string[]) => void = () => undefined,
): Generator<string, void, undefined> {
  const to = prefix + MAX_KEY;
  for (let from = prefix; ;) {
    const keys = reader.keys(table, { from, to, limit: KEYS_PER_READ });
    onKeys(keys);
    yield* keys;
    if (keys.length < KEYS_PER_READ) return;
    // No key has a character before it.
    from = `${keys.at(-1)} `;
  }
}

/** The turns of a session are numbered in their order. */
function* checkTurn(reader: Reader, { key, text, before }: Looked): Generator<Fault> {
  const session = key.slice(0, BARE_ID_LENGTH);
  const isFirst = before?.key.startsWith(session) !== true;
  if (!isFirst && numberIn(text) === numberIn(before.text) + 1) return;
  // Of a session that is gone the first turns may be removed already, and others that no fork shows.
  if (!reader.has(sessions, session)) return;
  if (isFirst && numberIn(text) === readable(() => firstNumber(reader, session))) return;
  yield {
    what: "turns: missing, or numbered wrong",
    example: `${withPrefix("turn", key.slice(BARE_ID_LENGTH))} of ${withPrefix("sess", session)}`,
  };
}

/** The number of the first turn of its own that a session has or will have. */
function firstNumber(reader: Reader, session: BareId): number {
  return (reader.get(branches, versionKey(session, 0))?.number ?? 0) + 1;
}

/** The branch that is current; undefined for a session without rows of branches. */
function lastBranch(reader: Reader, session: BareId): number | undefined {
  const [key] = reader.keys(branches, { from: session, to: session + MAX_KEY, limit: 1, descending: true });
  return key === undefined ? undefined : fromBase62(key.slice(BARE_ID_LENGTH));
}

/**
 * Turns come before a branch that says so: those of its session, or of another one. Of a session that is gone forks may show the last of
 * them alone.
 */
function* checkBranch(reader: Reader, { key }: Looked): Generator<Fault> {
  const { before } = readable(() => reader.get(branches, key)) ?? {};
  if (before === undefined || !reader.has(sessions, key.slice(0, BARE_ID_LENGTH))) return;
  const { session, until } = before;
  if (reader.keys(turns, { from: session, to: session + until, limit: 1 }).length > 0) return;
  yield { what: "branches: the turns that come before are missing", example: withPrefix("sess", key.slice(0, BARE_ID_LENGTH)) };
}

/** Reads the number of a stored turn where `turns.ts` writes it. */
function numberIn(text: string): number {
  return Number(/\n"session_id":"[^"]*","turn_number":(\d+)/.exec(text)?.[1]);
}

/** Nobody knows the state that was lost, and without one the session can neither be read nor end. */
function putEmptyState(tx: Tx, session: BareId, row: SessionRow): void {
  tx.put(sessions, session, { ...row, version: 0 });
  tx.put(versions, versionKey(session, 0), {
    id: session,
    createdAt: row.updatedAt,
    reasoning: "The state was lost; cairn doctor --fix put an empty one in its place.",
    actor: "system",
    source: "initial",
    body: toJson({}),
  });
}

/** Versions, turns and branches have a session, a note that they are left over from one, or a fork that shows them. */
function sessionCheck(table: AnyTable): KeyCheck {
  return function* (reader, { key }) {
    const session = key.slice(0, BARE_ID_LENGTH);
    if (reader.has(sessions, session) || reader.has(removals, session)) return;
    const isIn = (index: AnyTable) => reader.keys(index, { from: session, to: session + MAX_KEY, limit: 1 }).length > 0;
    const { byParent, byMemorySession } = branches.index;
    const isShared = table !== versions && (isIn(byParent) || (table === branches && isIn(byMemorySession)));
    if (isShared) return;
    // The first row of a session stands for all of them.
    if (reader.keys(table, { from: session, to: key, limit: 1 }).length > 0) return;
    const example = withPrefix("sess", session);
    yield { what: `${table.name}: rows of a session that is gone`, example, fix: (tx) => tx.put(removals, session, { memories: false }) };
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
  const { records, vectors } = collection;
  const fix = (tx: Tx) => makeVectorAgain(tx, collection, key, row);
  if (row.embedding === undefined) {
    if (wantsVector(row) && !reader.has(pendingEmbeddings, key))
      yield { what: `${pendingEmbeddings.name}: ${records.name} without a vector that wait for none`, example, fix };
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
  if (wantsVector(row)) tx.put(pendingEmbeddings, key, "");
}

/** A retrieval's session is there, or a note that it is left over from one. */
function* checkRetrieval(reader: Reader, { key }: Looked): Generator<Fault> {
  const row = readable(() => reader.get(retrievals, key));
  if (row !== undefined) yield* leftOver(reader, retrievals, key, bare(row.sessionId));
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
      tx.put(pendingEmbeddings, row.id, "");
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
function* checkPending(reader: Reader, { key: record }: Looked): Generator<Fault> {
  for (const collection of Object.values(COLLECTIONS)) {
    const row = rowAt(reader, collection, record);
    if ((row !== undefined && wantsVector(row)) || isUnreadable(reader, collection, record)) return;
  }
  const what = "pending_embeddings: of no record that wants a vector";
  yield { what, example: record, fix: (tx) => tx.remove(pendingEmbeddings, record) };
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
