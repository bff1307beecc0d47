import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bare, NO_HOME } from "../../src/lib/ids.ts";
import { examineAll, mendAll } from "../../src/operations/doctor.ts";
import { rebuildGraph } from "../../src/operations/graph.ts";
import { RECORDS, stored } from "../../src/operations/records.ts";
import { AFTER_ALL, numberKey } from "../../src/storage/keys.ts";
import { Store, type Tx } from "../../src/storage/store.ts";
import {
  apiKeys,
  documents,
  documentVectors,
  indexedDocuments,
  memories,
  meta,
  namespaces,
  payloads,
  pendingEmbeddings,
  provider,
  PROVIDER_KEY,
  removals,
  retrievals,
  sessions,
  settings,
  TABLES,
  traces,
  turns,
  type AnyTable,
  type MemoryRow,
  type SessionRow,
  VECTOR_TABLES,
  vectors,
  versions,
} from "../../src/storage/tables.ts";
import { encodeVector, storedTerms, storedVector } from "../../src/vectors/encoding.ts";
import { startCairn } from "../support/cairn.ts";
import { FakeClock } from "../support/clock.ts";
import { startFilled } from "./everything.ts";

const NO_ID = "000000000000";

let template: string;
let key: string;
let directory: string;
let store: Store;

/** Filled once; each test damages a copy. */
beforeAll(async () => {
  template = mkdtempSync(join(tmpdir(), "cairn-doctor-template-"));
  const { cairn } = await startFilled(template);
  key = cairn.key;
  await cairn.close();
});

afterAll(() => rmSync(template, { recursive: true, force: true }));

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "cairn-doctor-"));
  cpSync(join(template, "store", "data.mdb"), join(directory, "store", "data.mdb"));
  store = await Store.open(directory, new FakeClock());
});

afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

const all = { from: "", to: AFTER_ALL };
const kinds = (findings: readonly { what: string }[]) => findings.map(({ what }) => what).toSorted();

/** Every table, text for text, and the bytes of every vector. */
function contents(): Record<string, unknown> {
  using reader = store.snapshot();
  return {
    ...Object.fromEntries(TABLES.map((table) => [table.name, Array.from(reader.entries(table))])),
    vectors: VECTOR_TABLES.map((table) => Array.from(reader.allKeys(table), (id) => [id, reader.vectorBytes(table, id)?.toHex()])),
  };
}

function firstKey(reader: Pick<Tx, "keys">, table: AnyTable): string {
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

test("a store that came about through the API has nothing wrong with it, and mending changes nothing", async () => {
  const before = contents();
  const { findings, rows } = await examineAll(store);
  expect({ findings, hasRows: rows > 500 }).toEqual({ findings: [], hasRows: true });
  expect(await mendAll(store)).toEqual({ found: [], left: [] });
  expect(contents()).toEqual(before);
});

type Damage = [name: string, damage: (tx: Tx) => void, ...finds: string[]];

const INDEXES = RECORDS.flatMap(({ indexes }) => indexes);

/** What the records say how to mend, to the last byte. */
const MENDED: Damage[] = [
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
  ["a vector of no document", (tx) => tx.putVector(documentVectors, NO_ID, new Uint8Array(6148)), "document_vectors: of no record"],
  [
    "what is searched of a document that is gone",
    (tx) => tx.put(indexedDocuments, NO_ID, { document: firstKey(tx, documents) }),
    "indexed_documents: of no document",
  ],
  ["a vector pending for no memory", (tx) => tx.put(pendingEmbeddings, NO_ID, ""), "pending_embeddings: of no record that wants a vector"],
];

for (const [name, damage, ...finds] of MENDED) {
  test(`${name} is found, and mended to what it was`, async () => {
    const before = contents();
    await store.commit(NO_HOME, damage);
    expect(kinds((await examineAll(store)).findings)).toEqual(finds.toSorted());
    const { found, left } = await mendAll(store);
    // What was mended on the way is no longer found.
    expect({ found: kinds(found).filter((kind) => !finds.includes(kind)), left }).toEqual({ found: [], left: [] });
    expect(contents()).toEqual(before);
  });
}

/** Puts the first memory's vector again, and something else in it. */
function putAgain(tx: Tx, other: { vector?: Float32Array; terms?: Uint32Array; generation?: number }): void {
  const { memory, vector, row } = embedded(tx);
  const bytes = tx.vectorBytes(vectors, vector)!.slice();
  const embedding = { vector: storedVector(bytes), terms: storedTerms(bytes), ...other };
  tx.putVector(vectors, vector, encodeVector(embedding, { memory, generation: other.generation ?? row.embedding!.generation }));
}

const OF_ANOTHER = "vectors: of another record or provider than it says";

/** The server makes such a vector again. */
const VECTOR_LOST: Damage[] = [
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
  ["a vector that is too long", (tx) => putAgain(tx, { vector: new Float32Array(1536).fill(1) }), "vectors: missing or damaged"],
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

for (const [name, damage, ...finds] of VECTOR_LOST) {
  test(`${name} is found and pending; then the server makes it again`, async () => {
    await store.commit(NO_HOME, damage);
    expect(kinds((await examineAll(store)).findings)).toEqual(finds);
    expect((await mendAll(store)).left).toEqual([]);
    const pendingBefore = store.count(pendingEmbeddings);
    await store.close();

    await using cairn = await startCairn({ directory });
    cairn.key = key;
    expect(pendingBefore).toBe(2);
    await cairn.runTask("embeddings");
    expect({ pending: cairn.embedded.count(pendingEmbeddings), ...(await examineAll(cairn.embedded)) }).toMatchObject({
      pending: 0,
      findings: [],
    });
  });
}

test("without the row of the provider nobody knows what the vectors are of: the server makes all of them again", async () => {
  const count = store.count(vectors);
  await store.commit(NO_HOME, (tx) => tx.remove(provider, PROVIDER_KEY));
  expect(kinds((await examineAll(store)).findings)).toEqual([`document_${OF_ANOTHER}`, OF_ANOTHER]);
  expect((await mendAll(store)).left).toEqual([]);
  expect([store.count(vectors), store.count(documentVectors), count > 0]).toEqual([0, 0, true]);
});

test("versions, turns and retrievals of a session that is gone are noted, and the server removes them", async () => {
  await store.commit(NO_HOME, (tx) => {
    const session = firstKey(tx, sessions);
    const [version] = tx.rows(stored(versions), { from: session, to: session + AFTER_ALL, limit: 1 });
    const [turn] = tx.rows(stored(turns), { from: session, to: session + AFTER_ALL, limit: 1 });
    if (version === undefined || turn === undefined) throw new Error("no version or turn");
    tx.put(stored(versions), NO_ID + version.key.slice(12), version.row);
    tx.put(stored(turns), NO_ID + turn.key.slice(12), turn.row.replace(session, NO_ID));
    const retrieval = firstKey(tx, retrievals);
    tx.add(retrievals, NO_ID, { ...tx.get(retrievals, retrieval)!, sessionId: `sess_${NO_ID}` });
  });
  expect(kinds((await examineAll(store)).findings)).toEqual([
    "retrievals: rows of a session that is gone",
    "turns: rows of a session that is gone",
    "versions: rows of a session that is gone",
  ]);
  expect((await mendAll(store)).left).toEqual([]);
  await store.close();

  await using cairn = await startCairn({ directory });
  await cairn.runTask("session removal");
  const ofNone = { from: NO_ID, to: NO_ID + AFTER_ALL };
  expect([versions, turns, retrievals, removals].map((table) => cairn.embedded.latest.keys(table, ofNone))).toEqual([[], [], [], []]);
});

/** What no record says how to mend. */
const NOT_MENDED: Damage[] = [
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
  ["a missing turn", (tx) => tx.remove(turns, firstKey(tx, turns)), "sessions: turns are missing or numbered wrong"],
  ...RECORDS.filter(({ name }) => name !== meta.name).map((table): Damage => {
    const damage = (tx: Tx) => {
      const first = firstKey(tx, table);
      tx.put(stored(table), first, (tx.get(stored(table), first) ?? "").slice(0, -3));
    };
    return [`a row of ${table.name} that is cut short`, damage, `${table.name}: rows that cannot be read`];
  }),
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

for (const [name, damage, ...finds] of NOT_MENDED) {
  test(`${name} is found, and said to be still wrong after mending, which changes nothing`, async () => {
    await store.commit(NO_HOME, damage);
    const before = contents();
    const { findings } = await examineAll(store);
    expect({ kinds: kinds(findings), canBeMended: findings.some(({ canBeMended }) => canBeMended) }).toEqual({
      kinds: finds,
      canBeMended: false,
    });
    expect((await mendAll(store)).left).toEqual(findings);
    expect(contents()).toEqual(before);
  });
}

test("versions that were removed between the first and those kept are nothing wrong", async () => {
  await store.commit(NO_HOME, (tx) => tx.remove(versions, firstKey(tx, sessions) + numberKey(1)));
  expect((await examineAll(store)).findings).toEqual([]);
});

test("a session without any state gets an empty one, and can be read and go", async () => {
  const session = store.latest.keys(sessions, { ...all, limit: 1 })[0] ?? "";
  const ofSession = { from: session, to: session + AFTER_ALL };
  await store.commit(NO_HOME, (tx) => tx.keys(versions, ofSession).forEach((version) => tx.remove(versions, version)));
  expect((await examineAll(store)).findings).toMatchObject([
    { what: "sessions: all versions of the state are missing", canBeMended: true },
  ]);
  expect((await mendAll(store)).left).toEqual([]);
  await store.close();

  await using cairn = await startCairn({ directory });
  cairn.key = key;
  const id = `sess_${session}`;
  expect(await cairn.session(id)).toMatchObject({ state: {}, state_version: 0 });
  expect((await cairn.ok(cairn.get(`/v1/sessions/${id}/versions`))).data).toMatchObject([
    { version: 0, actor: "system", reasoning: expect.stringContaining("The state was lost") },
  ]);
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
});

test("settings that make no sense are taken back, a key with the server it was for, and the others stay", async () => {
  const row = store.latest.get(settings, "current");
  await store.commit(NO_HOME, (tx) =>
    tx.put(settings, "current", {
      ...row,
      max_body_bytes: 1,
      "embedding.model": "m",
      "embedding.base_url": "nope",
      "embedding.api_key": "sk-for-nope",
      "webhooks.timeout": "soon",
    }),
  );
  expect(kinds((await examineAll(store)).findings)).toEqual(["settings: values that make no sense"]);
  expect((await mendAll(store)).left).toEqual([]);
  expect(store.latest.get(settings, "current")).toEqual({ ...row, "embedding.model": "m" });
});

test("a delivery of nothing goes, and a memory of another user than its session's is that one's again", async () => {
  const memory = await store.commit(NO_HOME, (tx) => {
    tx.remove(payloads, firstKey(tx, payloads));
    const found = tx.rows(memories, all).find(({ row }) => row.userId !== null && tx.has(sessions, row.sessionId.slice("sess_".length)));
    if (found === undefined) throw new Error("no memory has a user");
    tx.put(memories, found.key, { ...found.row, userId: "somebody else" });
    return found;
  });
  expect(kinds((await examineAll(store)).findings)).toEqual([
    "deliveries: what was to be delivered is missing",
    "memories: of another user than their session",
  ]);
  expect((await mendAll(store)).left).toEqual([]);
  expect(store.latest.get(memories, memory.key)).toEqual(memory.row);
});

test("a namespace that counts wrong is counted again, one that is missing is made, and documents of no session go", async () => {
  const [path] = store.latest.keys(namespaces, all).filter((key) => key.split("!").length === 3);
  const rows = store.latest.rows(namespaces, all);
  const { key, row } = store.latest.rows(documents, all).find((one) => one.row.sessionId !== undefined)!;
  await store.commit(NO_HOME, (tx) => {
    tx.put(namespaces, path!, { ...tx.get(namespaces, path!)!, own: 7, all: 8 });
    tx.remove(namespaces, rows[0]!.key);
    tx.put(documents, key, { ...row, sessionId: "sess_0VQk3aB4x1Zq" });
  });
  expect(kinds((await examineAll(store)).findings)).toEqual([
    "documents: rows of a session that is gone",
    "namespaces: missing",
    "namespaces: the count of documents is wrong",
  ]);
  expect((await mendAll(store)).left).toEqual([]);
  const counts = (found: typeof rows) => found.map((one) => [one.key, one.row.own, one.row.all]);
  expect(counts(store.latest.rows(namespaces, all))).toEqual(counts(rows));
  expect(store.latest.has(removals, "0VQk3aB4x1Zq")).toBe(true);
});

test("a finding counts all and shows the first five", async () => {
  const count = store.count(traces.index.bySession);
  await store.commit(NO_HOME, (tx) => {
    for (const entry of tx.keys(traces.index.bySession, all)) tx.remove(stored(traces.index.bySession), entry);
  });
  const { findings } = await examineAll(store);
  expect(findings.map(({ what, count: found, examples }) => ({ what, found, examples: examples.length }))).toEqual([
    { what: "traces.bySession: entries missing", found: count, examples: 5 },
  ]);
  expect((await mendAll(store)).left).toEqual([]);
});

const INDEX_DAMAGE: { name: string; damage: (path: string) => void | Promise<void>; finds: string }[] = [
  {
    name: "is cut short",
    damage: (path) => truncateSync(join(path, readdirSync(path).find((name) => name.endsWith(".hnsw")) ?? ""), 1_000),
    finds: "vector index on disk: the snapshot is damaged",
  },
  {
    name: "has an unreadable manifest",
    damage: (path) => truncateSync(join(path, "manifest.json"), 10),
    finds: "vector index on disk: the manifest of the snapshot cannot be read",
  },
  {
    name: "is of other vectors",
    damage: () =>
      store.commit(NO_HOME, (tx) => {
        putAgain(tx, { vector: new Float32Array(1536).fill(0.01) });
      }),
    finds: "vector index on disk: points that are not the store's vectors",
  },
  {
    name: "has other words",
    damage: () =>
      store.commit(NO_HOME, (tx) => {
        putAgain(tx, { terms: Uint32Array.of(5, 0xc0000000) });
      }),
    finds: "vector index on disk: words that are not the store's",
  },
  {
    name: "lacks its words",
    damage: (path) => rmSync(join(path, readdirSync(path).find((name) => name.endsWith(".tables")) ?? "")),
    finds: "vector index on disk: the files of the snapshot cannot be read",
  },
];

for (const { name, damage, finds } of INDEX_DAMAGE) {
  test(`a vector index on disk that ${name} is found, and removed, since it is built anew`, async () => {
    const { indexed } = await rebuildGraph(store, { graphFrom: 0 });
    expect(await examineAll(store)).toMatchObject({ findings: [], points: indexed });
    await damage(join(directory, "vectors"));
    expect(kinds((await examineAll(store)).findings)).toEqual([finds]);
    expect(kinds((await mendAll(store)).found)).toEqual([finds]);
    expect(existsSync(join(directory, "vectors"))).toBe(false);
    expect((await examineAll(store)).findings).toEqual([]);
  });
}

test("vectors stored or deleted since the index was written are nothing wrong", async () => {
  await rebuildGraph(store, { graphFrom: 0 });
  await store.close();
  const cairn = await startCairn({ directory });
  cairn.key = key;
  const session = await cairn.createSession();
  await cairn.addMemory(session.id, "A new one");
  const { data } = await cairn.ok(cairn.get("/v1/memory?limit=100"));
  await cairn.ok(cairn.delete(`/v1/memory/${data.at(-1).id}`));
  await cairn.close();
  store = await Store.open(directory, new FakeClock());
  expect((await examineAll(store)).findings).toEqual([]);
});
