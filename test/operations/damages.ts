/**
 * What can be wrong in a store, and what doctor calls it.
 *
 * @module
 */
import { bare, BARE_ID_LENGTH } from "../../src/lib/ids.ts";
import { RECORDS, stored } from "../../src/operations/records.ts";
import type { Tx } from "../../src/storage/access.ts";
import { TURNS } from "../../src/storage/collections.ts";
import { MAX_KEY, numberKey } from "../../src/storage/keys.ts";
import { removeRecord } from "../../src/storage/memory-records.ts";
import type { RecordStore } from "../../src/storage/record-store.ts";
import {
  apiKeys,
  documents,
  documentVectors,
  indexedDocuments,
  indexedTurns,
  memories,
  meta,
  PENDING_TABLES,
  pendingEmbeddings,
  removals,
  sessions,
  traces,
  turns,
  turnVectors,
  VECTOR_TABLES,
  vectors,
  versions,
  type AnyTable,
  type MemoryRow,
  type SessionRow,
} from "../../src/storage/tables.ts";
import { encodeVector, storedTerms, storedVector } from "../../src/search/encoding.ts";

export const NO_ID = "000000000000";

export const all = { from: "", to: MAX_KEY };
export const kinds = (findings: readonly { what: string }[]) => findings.map(({ what }) => what).toSorted();

/** Every table, text for text, and the bytes of every vector. */
export async function contents(store: RecordStore): Promise<Record<string, unknown>> {
  await using snapshot = await store.snapshot();
  const rowsOf = async (table: AnyTable) => (await Array.fromAsync(snapshot.rowBatches(table))).flat();
  const keysOf = async (table: AnyTable) => (await Array.fromAsync(snapshot.keyBatches(table))).flat();
  const found: Record<string, unknown> = {};
  for (const table of [...RECORDS, ...PENDING_TABLES]) found[table.name] = await rowsOf(table);
  for (const index of INDEXES) found[index.name] = await keysOf(index);
  for (const table of VECTOR_TABLES)
    found[table.name] = await snapshot.readEach(await keysOf(table), (reader, id) => [id, reader.vectorBytes(table, id)?.toHex()]);
  return found;
}

export function firstKey(reader: Pick<Tx, "keys">, table: AnyTable): string {
  const [first] = reader.keys(table, { ...all, limit: 1 });
  if (first === undefined) throw new Error(`no row in ${table.name}`);
  return first;
}

/** A memory with a vector. */
function embedded(tx: Tx): { memory: string; vector: string; row: MemoryRow } {
  for (const { key: memory, row } of tx.rows(memories, all))
    if (row.embedding !== undefined) return { memory, vector: bare(row.embedding.id), row };
  throw new Error("no memory has a vector");
}

export type Damage = [name: string, damage: (tx: Tx) => void, ...finds: string[]];

const INDEXES = RECORDS.flatMap(({ indexes }) => indexes);

/** Where entries have tables of their own. */
export const ENTRIES: Damage[] = [
  ...INDEXES.flatMap((index): Damage[] => [
    [
      `an entry missing from ${index.name}`,
      (tx) => tx.remove(stored(index), firstKey(tx, index)),
      `${index.name}: entries missing`,
      // Memories are counted by way of it.
      ...(index.name === memories.index.bySession.name ? ["sessions: the count of memories is wrong"] : []),
    ],
    [
      `an entry of nothing in ${index.name}`,
      (tx) => tx.put(stored(index), `!${firstKey(tx, index).slice(1, -1)}!`, ""),
      `${index.name}: entries of nothing`,
    ],
  ]),
  [
    "an entry of a session under another agent",
    (tx) => tx.put(stored(sessions.index.byAgent), "a".repeat(22) + firstKey(tx, sessions), ""),
    "sessions.byAgent: entries of nothing",
  ],
  [
    "an API key's entry with another hash",
    (tx) => tx.put(stored(apiKeys.index.byId), firstKey(tx, apiKeys.index.byId).slice(0, 12) + "0".repeat(64), ""),
    "api_keys.byId: entries of nothing",
  ],
];

/** What the records say how to repair, to the last byte. */
export const MENDED: Damage[] = [
  ...Object.entries({
    memoryCount: "sessions: the count of memories is wrong",
    turnCount: "sessions: the count of turns is wrong",
    version: "sessions: the current version is not the last one",
  }).map(([counter, found]): Damage => {
    const damage = (tx: Tx) => {
      const session = firstKey(tx, sessions);
      const row = tx.get(sessions, session) as SessionRow;
      const wrong = row[counter as "version"] + (counter === "version" ? -1 : 7);
      tx.put(sessions, session, { ...row, [counter]: wrong });
    };
    return [`a wrong ${counter}`, damage, found];
  }),
  [
    "a note of removal for a session that is there",
    (tx) => tx.put(removals, firstKey(tx, sessions), { memories: true }),
    "removals: notes of sessions that are there",
  ],
  ["a vector of no memory", (tx) => tx.putVector(vectors, NO_ID, new Uint8Array(6148)), "vectors: of no record"],
  [
    "a memory that does not wait for its vector",
    (tx) => tx.remove(pendingEmbeddings, firstKey(tx, pendingEmbeddings)),
    "pending_embeddings: memories without a vector that wait for none",
  ],
  ["a vector of no turn", (tx) => tx.putVector(turnVectors, NO_ID, new Uint8Array(6148)), "turn_vectors: of no record"],
  [
    "an indexed turn of no turn",
    (tx) => tx.add(indexedTurns, NO_ID, { session: firstKey(tx, sessions), agent: "A".repeat(22), embed: false }),
    "indexed_turns: of no turn",
  ],
  ["a vector of no document", (tx) => tx.putVector(documentVectors, NO_ID, new Uint8Array(6148)), "document_vectors: of no record"],
  [
    "what is searched of a document that is gone",
    (tx) => tx.put(indexedDocuments, NO_ID, { document: firstKey(tx, documents) }),
    "indexed_documents: of no document",
  ],
  ["a vector pending for no memory", (tx) => tx.put(pendingEmbeddings, NO_ID, ""), "pending_embeddings: of no record that wants a vector"],
];

/** Puts the first memory's vector again, and something else in it. */
export function putAgain(tx: Tx, other: { vector?: Float32Array; terms?: Uint32Array; generation?: number }): void {
  const { memory, vector, row } = embedded(tx);
  const bytes = tx.vectorBytes(vectors, vector)!.slice();
  const embedding = { vector: storedVector(bytes), terms: storedTerms(bytes), ...other };
  tx.putVector(vectors, vector, encodeVector(embedding, { memory, generation: other.generation ?? row.embedding!.generation }));
}

export const OF_ANOTHER = "vectors: of another record or provider than it says";

/** The server makes such a vector again. */
export const VECTOR_LOST: Damage[] = [
  [
    "a missing vector of a document",
    (tx) => tx.removeVector(documentVectors, firstKey(tx, documentVectors)),
    "document_vectors: missing or damaged",
  ],
  [
    "a document that cannot be found by what it says",
    (tx) => {
      const id = firstKey(tx, indexedDocuments);
      tx.remove(indexedDocuments, id);
      tx.removeVector(documentVectors, id);
    },
    "indexed_documents: missing",
  ],
  ["a missing vector", (tx) => tx.removeVector(vectors, embedded(tx).vector), "vectors: missing or damaged"],
  [
    "a short vector",
    (tx) => tx.putVector(vectors, embedded(tx).vector, new Uint8Array(100)),
    "vectors: missing or damaged",
    "vectors: of no record",
  ],
  [
    "a vector that is too long",
    (tx) => {
      const { vector } = embedded(tx);
      const bytes = tx.vectorBytes(vectors, vector)!.slice();
      // The high byte of what 1 is in its numbers.
      bytes[bytes.length - 3] = 0xff;
      tx.putVector(vectors, vector, bytes);
    },
    "vectors: missing or damaged",
  ],
  [
    "a vector that says it is several",
    (tx) => {
      const { vector } = embedded(tx);
      const bytes = tx.vectorBytes(vectors, vector)!.slice();
      bytes[bytes.length - 2]! |= 1;
      tx.putVector(vectors, vector, bytes);
    },
    "vectors: missing or damaged",
  ],
  ["a vector of another generation than its memory says", (tx) => putAgain(tx, { generation: 7 }), OF_ANOTHER],
  [
    "a vector of a generation that there was not yet",
    (tx) => {
      putAgain(tx, { generation: 7 });
      const { memory, row } = embedded(tx);
      tx.put(memories, memory, { ...row, embedding: { id: row.embedding!.id, generation: 7 } });
    },
    OF_ANOTHER,
  ],
  [
    "a vector that two memories have",
    (tx) => {
      const { vector, row } = embedded(tx);
      const other = tx.rows(memories, all).findLast(({ row: { embedding } }) => embedding !== undefined && bare(embedding.id) !== vector);
      if (other?.row.embedding === undefined || row.embedding === undefined) throw new Error("one memory has a vector");
      tx.removeVector(vectors, bare(other.row.embedding.id));
      tx.put(memories, other.key, { ...other.row, embedding: row.embedding });
    },
    OF_ANOTHER,
  ],
];

/** The tables of whose rows each can be cut short. */
export const WITH_JSON = RECORDS.filter(({ name }) => name !== meta.name);

export const CUT_SHORT = WITH_JSON.map((table): Damage => {
  const damage = (tx: Tx) => {
    const first = firstKey(tx, table);
    tx.put(stored(table), first, (tx.get(stored(table), first) ?? "").slice(0, -3));
  };
  return [`a row of ${table.name} that is cut short`, damage, `${table.name}: rows that cannot be read`];
});

/** What no record says how to repair. */
export const NOT_MENDED: Damage[] = [
  [
    "a missing first version",
    (tx) => tx.remove(versions, firstKey(tx, sessions) + numberKey(0)),
    "sessions: versions of the state are missing",
  ],
  [
    "a missing version among others",
    (tx) => {
      const session = firstKey(tx, sessions);
      const row = tx.get(versions, session + numberKey(2));
      if (row === undefined) throw new Error("no version 2");
      tx.put(versions, session + numberKey(4), row);
      tx.put(sessions, session, { ...(tx.get(sessions, session) as SessionRow), version: 4 });
    },
    "sessions: versions of the state are missing",
  ],
  [
    "a missing turn",
    (tx) => {
      const key = firstKey(tx, turns);
      tx.remove(turns, key);
      removeRecord(tx, TURNS, key.slice(BARE_ID_LENGTH));
    },
    "turns: missing, or numbered wrong",
  ],
  ...["banana", "", "NaN", "-1", "1.5", "1e3", " 7", "4294967296"].map((number): Damage => [
    `a backup number of ${JSON.stringify(number)}`,
    (tx) => tx.put(meta, "backupNumber", number),
    "meta: rows that cannot be read",
  ]),
  ["a row of meta that nobody reads", (tx) => tx.put(meta, "lastLabel", "7"), "meta: rows that cannot be read"],
  [
    "a trace of no action",
    (tx) => tx.put(stored(traces), `9${NO_ID}`, tx.get(stored(traces), firstKey(tx, traces)) ?? ""),
    "traces: rows that cannot be read",
  ],
];
