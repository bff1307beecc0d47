import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_PARTITION } from "../../src/lib/ids.ts";
import { examineAll, repairAll } from "../../src/operations/doctor.ts";
import { rebuildGraph } from "../../src/operations/graph.ts";
import { stored } from "../../src/operations/records.ts";
import { MAX_KEY, numberKey } from "../../src/storage/keys.ts";
import { Store } from "../../src/storage/lmdb/store.ts";
import {
  documents,
  documentVectors,
  memories,
  namespaces,
  payloads,
  pendingEmbeddings,
  provider,
  PROVIDER_KEY,
  removals,
  retrievals,
  sessions,
  settings,
  traces,
  turns,
  vectors,
  versions,
} from "../../src/storage/tables.ts";
import { startCairn } from "../support/cairn.ts";
import { FakeClock } from "../support/clock.ts";
import {
  all,
  contents,
  CUT_SHORT,
  ENTRIES,
  firstKey,
  kinds,
  MENDED,
  NO_ID,
  NOT_MENDED,
  OF_ANOTHER,
  putAgain,
  VECTOR_LOST,
} from "./damages.ts";
import { startFilled } from "./everything.ts";

let template: string;
let key: string;
let directory: string;
let store: Store;

/** Filled once; each test damages a copy. */
beforeAll(async () => {
  template = mkdtempSync(join(tmpdir(), "cairn-doctor-template-"));
  const { cairn } = await startFilled({ directory: template });
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

test("a store that came about through the API has nothing wrong with it, and repairing changes nothing", async () => {
  const before = await contents(store);
  const { findings, rows } = await examineAll(store);
  expect({ findings, hasRows: rows > 500 }).toEqual({ findings: [], hasRows: true });
  expect(await repairAll(store)).toEqual({ found: [], left: [] });
  expect(await contents(store)).toEqual(before);
});

for (const [name, damage, ...finds] of [...ENTRIES, ...MENDED]) {
  test(`${name} is found, and repaired to what it was`, async () => {
    const before = await contents(store);
    await store.commit(NO_PARTITION, damage);
    expect(kinds((await examineAll(store)).findings)).toEqual(finds.toSorted());
    const { found, left } = await repairAll(store);
    // What was repaired on the way is no longer found.
    expect({ found: kinds(found).filter((kind) => !finds.includes(kind)), left }).toEqual({ found: [], left: [] });
    expect(await contents(store)).toEqual(before);
  });
}

for (const [name, damage, ...finds] of VECTOR_LOST) {
  test(`${name} is found and pending; then the server makes it again`, async () => {
    await store.commit(NO_PARTITION, damage);
    expect(kinds((await examineAll(store)).findings)).toEqual(finds);
    expect((await repairAll(store)).left).toEqual([]);
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
  await store.commit(NO_PARTITION, (tx) => tx.remove(provider, PROVIDER_KEY));
  expect(kinds((await examineAll(store)).findings)).toEqual([`document_${OF_ANOTHER}`, `turn_${OF_ANOTHER}`, OF_ANOTHER]);
  expect((await repairAll(store)).left).toEqual([]);
  expect([store.count(vectors), store.count(documentVectors), count > 0]).toEqual([0, 0, true]);
});

test("versions, turns and retrievals of a session that is gone are noted, and the server removes them", async () => {
  await store.commit(NO_PARTITION, (tx) => {
    const session = firstKey(tx, sessions);
    const [version] = tx.rows(stored(versions), { from: session, to: session + MAX_KEY, limit: 1 });
    const [turn] = tx.rows(stored(turns), { from: session, to: session + MAX_KEY, limit: 1 });
    if (version === undefined || turn === undefined) throw new Error("no version or turn");
    tx.put(stored(versions), NO_ID + version.key.slice(12), version.row);
    // The first one is removed already.
    const second = turn.row.replace(session, NO_ID).replace('"turn_number":1,', '"turn_number":2,');
    tx.put(stored(turns), NO_ID + turn.key.slice(12), second);
    const retrieval = firstKey(tx, retrievals);
    tx.add(retrievals, NO_ID, { ...tx.get(retrievals, retrieval)!, sessionId: `sess_${NO_ID}` });
  });
  expect(kinds((await examineAll(store)).findings)).toEqual([
    "retrievals: rows of a session that is gone",
    "turns: rows of a session that is gone",
    "versions: rows of a session that is gone",
  ]);
  expect((await repairAll(store)).left).toEqual([]);
  await store.close();

  await using cairn = await startCairn({ directory });
  await cairn.runTask("session removal");
  const ofNone = { from: NO_ID, to: NO_ID + MAX_KEY };
  expect([versions, turns, retrievals, removals].map((table) => cairn.embedded.latest.keys(table, ofNone))).toEqual([[], [], [], []]);
});

for (const [name, damage, ...finds] of [...CUT_SHORT, ...NOT_MENDED]) {
  test(`${name} is found, and said to be still wrong after repairing, which changes nothing`, async () => {
    await store.commit(NO_PARTITION, damage);
    const before = await contents(store);
    const { findings } = await examineAll(store);
    expect({ kinds: kinds(findings), canBeMended: findings.some(({ canBeMended }) => canBeMended) }).toEqual({
      kinds: finds,
      canBeMended: false,
    });
    expect((await repairAll(store)).left).toEqual(findings);
    expect(await contents(store)).toEqual(before);
  });
}

test("versions that were removed between the first and those kept are nothing wrong", async () => {
  await store.commit(NO_PARTITION, (tx) => tx.remove(versions, firstKey(tx, sessions) + numberKey(1)));
  expect((await examineAll(store)).findings).toEqual([]);
});

test("a session without any state gets an empty one, and can be read and go", async () => {
  const session = store.latest.keys(sessions, { ...all, limit: 1 })[0] ?? "";
  const ofSession = { from: session, to: session + MAX_KEY };
  await store.commit(NO_PARTITION, (tx) => tx.keys(versions, ofSession).forEach((version) => tx.remove(versions, version)));
  expect((await examineAll(store)).findings).toMatchObject([
    { what: "sessions: all versions of the state are missing", canBeMended: true },
  ]);
  expect((await repairAll(store)).left).toEqual([]);
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
  await store.commit(NO_PARTITION, (tx) =>
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
  expect((await repairAll(store)).left).toEqual([]);
  expect(store.latest.get(settings, "current")).toEqual({ ...row, "embedding.model": "m" });
});

test("a delivery of nothing goes, and a memory of another user than its session's is that one's again", async () => {
  const memory = await store.commit(NO_PARTITION, (tx) => {
    tx.remove(payloads, firstKey(tx, payloads));
    const found = tx
      .rows(memories, all)
      .find(({ row }) => row.userId !== null && tx.has(sessions, row.sessionId?.slice("sess_".length) ?? ""));
    if (found === undefined) throw new Error("no memory has a user");
    tx.put(memories, found.key, { ...found.row, userId: "somebody else" });
    return found;
  });
  expect(kinds((await examineAll(store)).findings)).toEqual([
    "deliveries: what was to be delivered is missing",
    "memories: of another user than their session",
  ]);
  expect((await repairAll(store)).left).toEqual([]);
  expect(store.latest.get(memories, memory.key)).toEqual(memory.row);
});

test("a namespace that counts wrong is counted again, one that is missing is made, and documents of no session go", async () => {
  const [path] = store.latest.keys(namespaces, all).filter((key) => key.split("!").length === 3);
  const rows = store.latest.rows(namespaces, all);
  const { key, row } = store.latest.rows(documents, all).find((one) => one.row.sessionId !== undefined)!;
  await store.commit(NO_PARTITION, (tx) => {
    tx.put(namespaces, path!, { ...tx.get(namespaces, path!)!, own: 7, all: 8 });
    tx.remove(namespaces, rows[0]!.key);
    tx.put(documents, key, { ...row, sessionId: "sess_0VQk3aB4x1Zq" });
  });
  expect(kinds((await examineAll(store)).findings)).toEqual([
    "documents: rows of a session that is gone",
    "namespaces: missing",
    "namespaces: the count of documents is wrong",
  ]);
  expect((await repairAll(store)).left).toEqual([]);
  const counts = (found: typeof rows) => found.map((one) => [one.key, one.row.own, one.row.all]);
  expect(counts(store.latest.rows(namespaces, all))).toEqual(counts(rows));
  expect(store.latest.has(removals, "0VQk3aB4x1Zq")).toBe(true);
});

test("a finding counts all and shows the first five", async () => {
  const count = store.count(traces.index.bySession);
  await store.commit(NO_PARTITION, (tx) => {
    for (const entry of tx.keys(traces.index.bySession, all)) tx.remove(stored(traces.index.bySession), entry);
  });
  const { findings } = await examineAll(store);
  expect(findings.map(({ what, count: found, examples }) => ({ what, found, examples: examples.length }))).toEqual([
    { what: "traces.bySession: entries missing", found: count, examples: 5 },
  ]);
  expect((await repairAll(store)).left).toEqual([]);
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
      store.commit(NO_PARTITION, (tx) => {
        putAgain(tx, { vector: new Float32Array(1536).fill(0.01) });
      }),
    finds: "vector index on disk: points that are not the store's vectors",
  },
  {
    name: "has other words",
    damage: () =>
      store.commit(NO_PARTITION, (tx) => {
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
    expect(kinds((await repairAll(store)).found)).toEqual([finds]);
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
