/**
 * What must hold in a store, and how to put it right where the records say how.
 *
 * A check goes once through tables in the order of keys and keeps nothing of what it has seen, so that a store of any size
 * can be checked. It reads one snapshot; what mends a problem is done later, in a commit, and looks again before it writes.
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import { bare, BARE_ID_LENGTH, withPrefix, type BareId } from "../lib/ids.ts";
import { toJson } from "../lib/json.ts";
import { readable } from "../storage/bad-rows.ts";
import { AFTER_ALL, numberKey, versionKey } from "../storage/keys.ts";
import { firstLabelOf, LABEL_BYTES, nextLabelOf, removeVector } from "../storage/memory-records.ts";
import type { Reader, Tx } from "../storage/access.ts";
import type { Snapshot } from "../storage/store.ts";
import {
  deliveries,
  labels,
  memories,
  meta,
  owed,
  payloads,
  removals,
  sessions,
  turns,
  vectors,
  versions,
  type AnyTable,
  type Index,
  type MemoryRow,
  type SessionRow,
} from "../storage/tables.ts";
import { isEmbedding, storedLabel } from "../vectors/encoding.ts";
import { removeDeliveries } from "../webhooks/queue.ts";
import { mendedText, RECORDS, rowProblem, stored, type RecordTable } from "./records.ts";

export interface Problem {
  /** The same words for all problems of a kind. */
  what: string;
  /** Which record or entry it is. */
  example: string;
  /** The record, where it is one's own problem. */
  record?: { table: AnyTable; key: string };
  /** Absent when the records do not say what would be right. */
  mend?: (tx: Tx) => void;
}

/** undefined says only that one more row was looked at. */
export type Check = (reader: Snapshot) => Generator<Problem | undefined>;

/** In the order in which they are mended: counters are counted by way of indexes. */
export const CHECKS: readonly Check[] = [
  ...RECORDS.map(
    (table): Check =>
      (reader) =>
        checkRows(reader, table),
  ),
  ...RECORDS.flatMap((table) =>
    table.indexes.map(
      (index): Check =>
        (reader) =>
          checkIndex(reader, table, index),
    ),
  ),
  checkSessions,
  checkOrphans,
  checkMemories,
  checkDeliveries,
  checkVectors,
  checkLabels,
  checkOwed,
];

/** Every row can be read, and every entry it should have is there. */
function* checkRows(reader: Snapshot, table: RecordTable): Generator<Problem | undefined> {
  for (const { key, text } of reader.entries(table)) {
    yield undefined;
    const problem = problemOf(table, key, text);
    if (problem !== undefined) {
      yield badRow(table, key, text, problem);
      continue;
    }
    if (table.indexes.length === 0) continue;
    const row = table.decode(text);
    for (const index of table.indexes) {
      for (const entry of index.entriesOf(key, row)) {
        if (reader.has(index, entry)) continue;
        yield {
          what: `${index.name}: entries missing`,
          example: entry,
          record: { table, key },
          mend: (tx) => {
            const now = tx.get(table, key);
            if (now !== undefined) tx.add(table, key, now);
          },
        };
      }
    }
  }
}

function badRow(table: RecordTable, key: string, text: string, problem: string): Problem {
  const found = { example: `${key}: ${problem}`, record: { table, key } };
  if (mendedText(table, key, text) === undefined) return { what: `${table.name}: rows that cannot be read`, ...found };
  return {
    what: `${table.name}: values that make no sense`,
    ...found,
    mend: (tx) => {
      const mended = mendedText(table, key, tx.get(stored(table), key) ?? "");
      if (mended !== undefined) tx.put(stored(table), key, mended);
    },
  };
}

function problemOf(table: RecordTable, key: string, text: string): string | undefined {
  try {
    return rowProblem(table, key, JSON.parse(table.toExport(text)));
  } catch {
    return "it is no JSON";
  }
}

/** Every entry is one of a row's. Of rows that cannot be read nobody knows. */
function* checkIndex(reader: Snapshot, table: RecordTable, index: Index): Generator<Problem | undefined> {
  for (const entry of reader.allKeys(index)) {
    yield undefined;
    if (isOfARow(reader, table, index, entry)) continue;
    yield {
      what: `${index.name}: entries of nothing`,
      example: entry,
      mend: (tx) => {
        if (!isOfARow(tx, table, index, entry)) tx.remove(stored(index), entry);
      },
    };
  }
}

function isOfARow(reader: Reader, table: RecordTable, index: Index, entry: string): boolean {
  const key = index.recordOf(entry);
  const text = reader.get(stored(table), key);
  if (text === undefined) return false;
  return problemOf(table, key, text) !== undefined || index.entriesOf(key, table.decode(text)).includes(entry);
}

/**
 * Versions of a session end with the current one, and begin with 0, after which old ones may have been removed; turns count
 * from 1 without gaps. The session's row says which version is the current one, and how many turns and memories there are.
 */
function* checkSessions(reader: Snapshot): Generator<Problem | undefined> {
  for (const { key: session } of reader.entries(sessions)) {
    yield undefined;
    const row = readable(() => reader.get(sessions, session));
    if (row === undefined) continue;
    const found = { example: withPrefix("sess", session), record: { table: sessions, key: session } };
    const states = sequence(
      numbers(reader, versions, session, ({ key }) => fromBase62(key.slice(BARE_ID_LENGTH))),
      (version, before) => (before === undefined ? version === 0 : before === 0 || version === before + 1),
    );
    if (states.last === undefined) {
      yield { what: "sessions: all versions of the state are missing", ...found, mend: (tx) => putEmptyState(tx, session) };
    } else {
      if (states.hasGap) yield { what: "sessions: versions of the state are missing", ...found };
      if (states.last !== row.version)
        yield counter("sessions: the current version is not the last one", session, { version: states.last });
    }
    const said = sequence(
      numbers(reader, turns, session, ({ text }) => turnNumber(text)),
      (turn, before = 0) => turn === before + 1,
    );
    if (said.hasGap) yield { what: "sessions: turns are missing or numbered wrong", ...found };
    else if (said.count !== row.turnCount) yield counter("sessions: the count of turns is wrong", session, { turnCount: said.count });
    const memoryCount = sequence(numbers(reader, memories.index.bySession, session, () => 0)).count;
    if (memoryCount !== row.memoryCount) yield counter("sessions: the count of memories is wrong", session, { memoryCount });
    if (reader.has(removals, session)) {
      yield { what: "removals: notes of sessions that are there", ...found, mend: (tx) => tx.remove(removals, session) };
    }
  }
}

/** Nobody knows the state that was lost, and without one the session can neither be read nor end. */
function putEmptyState(tx: Tx, session: BareId): void {
  const row = tx.get(sessions, session);
  if (row === undefined || tx.keys(versions, { from: session, to: session + AFTER_ALL, limit: 1 }).length > 0) return;
  tx.put(sessions, session, { ...row, version: 0 });
  tx.put(versions, versionKey(session, 0), {
    createdAt: row.updatedAt,
    reasoning: "The state was lost; cairn doctor --fix put an empty one in its place.",
    actor: "system",
    source: "initial",
    body: toJson({}),
  });
}

function counter(what: string, session: BareId, right: Partial<SessionRow>): Problem {
  return {
    what,
    example: withPrefix("sess", session),
    record: { table: sessions, key: session },
    mend: (tx) => {
      const row = tx.get(sessions, session);
      if (row !== undefined) tx.put(sessions, session, { ...row, ...right });
    },
  };
}

/** The numbers of the rows that a session has in a table, in the order of their keys. */
function* numbers(
  reader: Snapshot,
  table: AnyTable,
  session: BareId,
  numberOf: (entry: { key: string; text: string }) => number,
): Generator<number, void, undefined> {
  for (const entry of reader.entries(table, session)) {
    if (!entry.key.startsWith(session)) return;
    yield numberOf(entry);
  }
}

/** @param follows - whether a number may come after the one before, or first */
function sequence(
  numbers: Iterable<number>,
  follows: (number: number, before: number | undefined) => boolean = () => true,
): { count: number; last: number | undefined; hasGap: boolean } {
  const found = { count: 0, last: undefined as number | undefined, hasGap: false };
  for (const number of numbers) {
    found.count++;
    if (!follows(number, found.last)) found.hasGap = true;
    found.last = number;
  }
  return found;
}

/** Where `turns.ts` writes it. */
function turnNumber(text: string): number {
  return Number(/\n"session_id":"[^"]*","turn_number":(\d+)/.exec(text)?.[1]);
}

/** Versions and turns have a session, or are noted as left over from one. */
function* checkOrphans(reader: Snapshot): Generator<Problem | undefined> {
  for (const table of [versions, turns]) {
    let last = "";
    for (const key of reader.allKeys(table)) {
      yield undefined;
      const session = key.slice(0, BARE_ID_LENGTH);
      if (session === last) continue;
      last = session;
      if (reader.has(sessions, session) || reader.has(removals, session)) continue;
      yield {
        what: `${table.name}: rows of a session that is gone`,
        example: withPrefix("sess", session),
        record: { table, key },
        mend: (tx) => {
          if (!tx.has(sessions, session)) tx.put(removals, session, { memories: false });
        },
      };
    }
  }
}

/**
 * A memory is its session's user's, if the session has not gone before it. One that says it has a vector has one, under its
 * label; one that should have and has not is owed it.
 */
function* checkMemories(reader: Snapshot): Generator<Problem | undefined> {
  for (const { key } of reader.entries(memories)) {
    yield undefined;
    const row = readable(() => reader.get(memories, key));
    if (row === undefined) continue;
    const example = withPrefix("mem", key);
    const { userId } = readable(() => reader.get(sessions, bare(row.sessionId))) ?? row;
    if (userId !== row.userId) {
      yield {
        what: "memories: of another user than their session",
        example,
        record: { table: memories, key },
        mend: (tx) => {
          const now = memoryAt(tx, key);
          if (now !== undefined) tx.put(memories, key, { ...now, userId });
        },
      };
    }
    if (row.embedding === undefined) {
      if (row.embed && !reader.has(owed, key)) {
        yield { what: "owed: memories without a vector that are not owed one", example, mend: (tx) => oweVector(tx, key) };
      }
      continue;
    }
    const { label } = row.embedding;
    const bytes = reader.vectorBytes(key);
    if (bytes === undefined || !isEmbedding(bytes)) {
      yield { what: "vectors: missing or damaged", example, mend: (tx) => oweVector(tx, key) };
      continue;
    }
    if (storedLabel(bytes) !== label) {
      yield { what: "vectors: another label than the memory's", example, mend: (tx) => writeLabel(tx, key, label) };
    }
    if (reader.get(labels, numberKey(label)) !== key) {
      yield {
        what: "labels: missing or of another memory",
        example,
        mend: (tx) => {
          const holder = tx.get(labels, numberKey(label));
          if (holder !== undefined && holder !== key && memoryAt(tx, holder)?.embedding?.label === label) oweVector(tx, key);
          else tx.put(labels, numberKey(label), key);
        },
      };
    }
  }
}

/** What a delivery posts is kept for as long as the delivery. A webhook may be gone: then its deliveries are being removed. */
function* checkDeliveries(reader: Snapshot): Generator<Problem | undefined> {
  for (const { key } of reader.entries(deliveries)) {
    yield undefined;
    const row = readable(() => reader.get(deliveries, key));
    if (row === undefined || reader.has(payloads, row.payload)) continue;
    yield {
      what: "deliveries: what was to be delivered is missing",
      example: withPrefix("dlv", key.slice(BARE_ID_LENGTH)),
      record: { table: deliveries, key },
      mend: (tx) => {
        if (!tx.has(payloads, tx.get(deliveries, key)?.payload ?? "")) removeDeliveries(tx, [key]);
      },
    };
  }
}

/** Removes what is left of a memory's vector, so that the server embeds the memory again. */
function oweVector(tx: Tx, memory: BareId): void {
  const row = memoryAt(tx, memory);
  if (row === undefined) return;
  const { embedding, ...rest } = row;
  if (embedding !== undefined) {
    if (tx.get(labels, numberKey(embedding.label)) === memory) removeVector(tx, memory, embedding.label);
    else tx.removeVector(memory);
    tx.put(memories, memory, rest);
  }
  if (row.embed) tx.put(owed, memory, "");
}

function writeLabel(tx: Tx, memory: BareId, label: number): void {
  const bytes = tx.vectorBytes(memory)?.slice();
  if (bytes === undefined) return;
  new DataView(bytes.buffer).setUint32(bytes.byteLength - LABEL_BYTES, label, true);
  tx.putVector(memory, bytes);
}

/** Every vector is of a memory that says so. */
function* checkVectors(reader: Snapshot): Generator<Problem | undefined> {
  for (const memory of reader.allKeys(vectors)) {
    yield undefined;
    if (memoryAt(reader, memory)?.embedding !== undefined || isUnreadable(reader, memory)) continue;
    yield {
      what: "vectors: of no memory",
      example: withPrefix("mem", memory),
      mend: (tx) => {
        if (memoryAt(tx, memory)?.embedding === undefined) tx.removeVector(memory);
      },
    };
  }
}

/** Every label is of a vector, and smaller than the next one; what cannot be read is no number, and compares as wrong. */
function* checkLabels(reader: Snapshot): Generator<Problem | undefined> {
  const next = nextLabelOf(reader);
  let highest = -1;
  for (const { key, text: memory } of reader.entries(labels)) {
    yield undefined;
    const label = fromBase62(key);
    const holder = memoryAt(reader, memory);
    if (holder?.embedding?.label !== label) {
      if (isUnreadable(reader, memory)) continue;
      yield {
        what: "labels: of no vector",
        example: String(label),
        mend: (tx) => {
          if (memoryAt(tx, tx.get(labels, key) ?? "")?.embedding?.label !== label) tx.remove(labels, key);
        },
      };
      continue;
    }
    highest = label;
  }
  const first = firstLabelOf(reader);
  const right = Math.max(highest + 1, Number.isNaN(first) ? 0 : first);
  const isRight = (label: number) => Number.isSafeInteger(label) && label >= right;
  if (!isRight(next)) {
    yield {
      what: "meta: the next label was given already, or is no label",
      example: `${next} instead of ${right}`,
      mend: (tx) => {
        if (!isRight(nextLabelOf(tx))) tx.put(meta, "nextLabel", String(right));
      },
    };
  }
}

/** One whose vector was made meanwhile may stand there still: the server finds that out when it comes by. */
function* checkOwed(reader: Snapshot): Generator<Problem | undefined> {
  for (const memory of reader.allKeys(owed)) {
    yield undefined;
    if (memoryAt(reader, memory)?.embed === true || isUnreadable(reader, memory)) continue;
    yield {
      what: "owed: of no memory that wants a vector",
      example: withPrefix("mem", memory),
      mend: (tx) => {
        if (memoryAt(tx, memory)?.embed !== true) tx.remove(owed, memory);
      },
    };
  }
}

function memoryAt(reader: Reader, memory: BareId): MemoryRow | undefined {
  return readable(() => reader.get(memories, memory));
}

/** There, but nobody can say what it is: what belongs to it stays. */
function isUnreadable(reader: Reader, memory: BareId): boolean {
  return reader.has(memories, memory) && memoryAt(reader, memory) === undefined;
}
