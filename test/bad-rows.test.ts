/**
 * A row that cannot be read, as a failing disk or a wrong program leaves one, stops no task and no list for the others.
 *
 * @module
 */
import { firstBareIdAt, NO_PARTITION } from "../src/lib/ids.ts";
import { expect, test } from "bun:test";
import { RECORDS, stored } from "../src/operations/records.ts";
import { MAX_KEY, numberKey } from "../src/storage/keys.ts";
import {
  apiKeys,
  deliveries,
  documentRemovals,
  documents,
  idempotency,
  lastDocumentId,
  memories,
  meta,
  namespaces,
  outbox,
  pendingEmbeddings,
  removals,
  retrievals,
  sessions,
  traces,
  turns,
  versions,
  webhooks,
  type AnyTable,
} from "../src/storage/tables.ts";
import { pagesOf, refusal } from "./support/answers.ts";
import { type Cairn, startCairn } from "./support/cairn.ts";
import { startReceiver } from "./support/receiver.ts";
import { oneOfEach, REQUESTS } from "./support/requests.ts";
import { isOnPostgres } from "./support/stores.ts";

const ALL = { from: "", to: MAX_KEY };

const keysOf = (cairn: Cairn, table: AnyTable) => cairn.read((reader) => reader.keys(table, ALL));

/** Makes a row one that no program can read. */
async function damage(cairn: Cairn, table: AnyTable, key: string | undefined): Promise<void> {
  if (key === undefined) throw new Error(`no row in ${table.name}`);
  await cairn.overwrite(table, [{ key, text: "{" }]);
}

/** What the log says of rows that were left alone. */
function leftAlone(cairn: Cairn): { task: string; key: string }[] {
  return cairn.logged
    .map((line) => JSON.parse(line) as { message: string; task: string; key: string })
    .filter(({ message }) => message.startsWith("skipped a row"))
    .map(({ task, key }) => ({ task, key }));
}

test("sessions expire beside more than a commit of bad ones, which are logged once", async () => {
  await using cairn = await startCairn();
  const made = await Promise.all(Array.from({ length: 50 }, () => cairn.createSession({ ttl_seconds: 10 })));
  const bad = made.slice(0, 25).map(({ id }) => (id as string).slice("sess_".length));
  for (const key of bad) await cairn.service.store.commit(NO_PARTITION, (tx) => tx.remove(versions, `${key}0000000`));
  await damage(cairn, sessions, bad[0]);
  cairn.clock.advance({ seconds: 20 });
  for (let round = 0; round < 3; round++) await cairn.runTask("session expiry");
  expect((await keysOf(cairn, sessions)).toSorted()).toEqual(bad.toSorted());
  expect(leftAlone(cairn)).toHaveLength(25);
  expect(leftAlone(cairn).every(({ task }) => task === "session expiry")).toBe(true);
});

test("what removed sessions left is removed beside a memory that cannot be read", async () => {
  await using cairn = await startCairn();
  const removed: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { id } = await cairn.createSession();
    await cairn.addMemory(id, "Kept for a while.");
    removed.push(id.slice("sess_".length));
  }
  await cairn.service.store.commit(NO_PARTITION, (tx) => {
    for (const session of removed) {
      tx.remove(sessions, session);
      tx.put(removals, session, { memories: true });
    }
  });
  const [first = ""] = removed.toSorted();
  const left = await cairn.read((reader) => reader.keys(memories.index.bySession, { from: first, to: first + MAX_KEY }));
  const memory = left[0]?.slice(first.length);
  await damage(cairn, memories, memory);
  await cairn.runTask("session removal");
  expect([await keysOf(cairn, removals), await keysOf(cairn, memories)]).toEqual([[first], [memory ?? ""]]);
  expect(leftAlone(cairn)).toEqual([{ task: "session removal", key: first }]);
});

test("a session with a memory that cannot be read is deleted, and its others are gone for readers", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const [bad, kept] = await cairn.addMemories(id, ["Lost.", "Kept until then."]);
  await cairn.addTurn(id);
  await damage(cairn, memories, bad.id.slice("mem_".length));
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  expect((await cairn.get(`/v1/memory/${kept.id}`)).status).toBe(404);
  await cairn.runTask("session removal");
  expect(await Promise.all([sessions, turns, versions].map((table) => keysOf(cairn, table)))).toEqual([[], [], []]);
  expect(leftAlone(cairn)).toEqual([{ task: "session removal", key: (id as string).slice("sess_".length) }]);
});

test("sessions expire and answers are forgotten beside more index entries of nothing than a commit takes", async () => {
  await using cairn = await startCairn();
  await cairn.ok(cairn.post("/v1/sessions", { agent_id: "agent", ttl_seconds: 10 }, { headers: { "Idempotency-Key": "k" } }));
  await cairn.service.store.commit(NO_PARTITION, (tx) => {
    for (let i = 0; i < 25; i++) tx.put(stored(sessions.index.byExpiry), numberKey(i) + firstBareIdAt(i), "");
    for (let i = 0; i < 600; i++) tx.put(stored(idempotency.index.byTime), numberKey(i) + "x".repeat(22), "");
  });
  cairn.clock.advance({ days: 2 });
  await cairn.runTask("session expiry");
  await cairn.runTask("idempotency retention");
  expect(await Promise.all([sessions, idempotency].map((table) => keysOf(cairn, table)))).toEqual([[], []]);
});

test("traces and idempotent answers whose time has passed go beside one that cannot be read", async () => {
  await using cairn = await startCairn();
  for (let i = 0; i < 3; i++) {
    await cairn.ok(cairn.post("/v1/sessions", { agent_id: "agent" }, { headers: { "Idempotency-Key": `k${i}` } }));
  }
  const [trace] = await keysOf(cairn, traces);
  await damage(cairn, traces, trace);
  const [kept] = await keysOf(cairn, idempotency);
  await damage(cairn, idempotency, kept);
  cairn.clock.advance({ seconds: 400 * 86_400 });
  await cairn.runTask("trace retention");
  await cairn.runTask("idempotency retention");
  expect([await keysOf(cairn, traces), await keysOf(cairn, idempotency)]).toEqual([[trace ?? ""], [kept ?? ""]]);
  expect(leftAlone(cairn).map(({ task }) => task)).toEqual(["trace retention", "idempotency retention"]);
});

test("events become deliveries, are delivered and removed after their time, beside an event, a webhook and a delivery that cannot be read", async () => {
  await using receiver = startReceiver();
  await using cairn = await startCairn();
  const { url } = receiver;
  const hook = async () => (await cairn.ok(cairn.post("/v1/webhooks", { url, events: ["session.created"] }))).id as string;
  await hook();
  const second = await hook();
  await cairn.createSession();
  await cairn.createSession();
  const events = await cairn.read((reader) => reader.rows(outbox, ALL));
  const event = events.find(({ row }) => row.types.includes("session.created"));
  await damage(cairn, outbox, event?.key);
  await damage(cairn, webhooks, second.slice("whk_".length));
  await cairn.runTask("webhook outbox");
  expect([(await keysOf(cairn, outbox)).length, (await keysOf(cairn, deliveries)).length]).toEqual([1, 1]);
  expect(leftAlone(cairn).map(({ task }) => task)).toEqual(["webhook outbox"]);

  await cairn.createSession();
  const [bad = ""] = await keysOf(cairn, deliveries);
  await damage(cairn, deliveries, bad);
  await cairn.runTask("webhook outbox");
  expect(await keysOf(cairn, deliveries)).toHaveLength(2);
  await cairn.runTask("webhook deliveries");
  expect(receiver.received).toHaveLength(1);
  expect(leftAlone(cairn).map(({ task }) => task)).toEqual(["webhook outbox", "webhook deliveries"]);
  cairn.clock.advance({ seconds: 8 * 86_400 });
  await cairn.runTask("webhook retention");
  expect(await keysOf(cairn, deliveries)).toEqual([bad]);
});

test("a delivery that cannot be read does not block those of its session that come after it", async () => {
  await using receiver = startReceiver();
  await using cairn = await startCairn();
  await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  const { id } = await cairn.createSession();
  for (let i = 0; i < 3; i++) await cairn.addTurn(id);
  await cairn.runTask("webhook outbox");
  await damage(cairn, deliveries, (await keysOf(cairn, deliveries))[0]);
  await cairn.addTurn(id);
  await cairn.deliver();
  expect(receiver.events.map(({ data }) => data.turn_number)).toEqual([2, 3, 4]);
});

test("vectors are made, and uses of keys written, beside a memory and a key that cannot be read", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const made: string[] = [];
  for (const content of ["One.", "Two.", "Three."]) {
    const memory = await cairn.addMemory(id, content);
    made.push(memory.id.slice("mem_".length));
  }
  await cairn.service.store.commit(NO_PARTITION, (tx) => {
    for (const memory of made) {
      const row = tx.get(memories, memory);
      if (row?.embedding === undefined) throw new Error("there is no vector to take away");
      const { embedding: _, ...rest } = row;
      tx.put(memories, memory, rest);
      tx.put(pendingEmbeddings, memory, "");
    }
  });
  const [bad] = made.toSorted();
  await damage(cairn, memories, bad);
  await cairn.runTask("embeddings");
  expect(await keysOf(cairn, pendingEmbeddings)).toEqual([bad ?? ""]);

  const admin = cairn.key;
  for (let i = 0; i < 2; i++) {
    cairn.key = await cairn.newKey();
    await cairn.get("/v1/sessions");
  }
  const used = Bun.CryptoHasher.hash("sha256", cairn.key, "hex");
  cairn.key = admin;
  const other = (await keysOf(cairn, apiKeys)).find((hash) => hash !== used && hash !== Bun.CryptoHasher.hash("sha256", admin, "hex"));
  await damage(cairn, apiKeys, other);
  await cairn.runTask("last use of keys");
  expect((await cairn.read((reader) => reader.get(apiKeys, used)))?.lastUsedAt).toBe(cairn.clock.now());
  expect(leftAlone(cairn).map(({ task }) => task)).toEqual(["embeddings", "last use of keys"]);
});

test("documents whose time has passed, and those of an emptied namespace, are removed beside one that cannot be read", async () => {
  await using cairn = await startCairn();
  const put = (namespace: string, key: number, more: object = {}) => ({
    op: "put",
    namespace: [namespace, `n${key}`],
    key: "k",
    value: {},
    ...more,
  });
  const batch = (operations: object[]) => cairn.ok(cairn.post("/v1/documents/batch", { operations }));
  await batch(Array.from({ length: 5 }, (_, key) => put("timed", key, { ttl_seconds: 60 })));
  const timed = await keysOf(cairn, documents);
  for (let i = 0; i < 3; i++) await batch(Array.from({ length: 100 }, (_, key) => put("emptied", 100 * i + key)));
  const emptied = (await keysOf(cairn, documents)).filter((key) => !timed.includes(key));
  const below = Buffer.from("emptied").toString("hex");
  const namesLeft = async () => (await keysOf(cairn, namespaces)).filter((key) => key.includes(below));
  const names = await namesLeft();
  await batch([{ op: "delete_all", namespace: ["emptied"] }]);
  const bad = [timed[1]!, emptied[2]!, emptied[250]!];
  for (const key of bad) await damage(cairn, documents, key);
  await damage(cairn, namespaces, names[7]);
  cairn.clock.advance({ seconds: 60 });
  for (let round = 0; round < 2; round++) for (const task of ["document expiry", "document removal"]) await cairn.runTask(task);
  expect(await keysOf(cairn, documents)).toEqual(bad.toSorted());
  expect(await namesLeft()).toEqual([names[7]!]);
  expect(await keysOf(cairn, documentRemovals)).toEqual([]);
  expect(leftAlone(cairn).map(({ task }) => task)).toEqual(["document expiry", "document removal", "document removal", "document removal"]);
});

const QUERIES = [
  { op: "get", namespace: ["orders"], key: "a" },
  { op: "list", namespace: ["orders"], deep: true, filter: { n: 1 } },
  { op: "count", namespace: ["orders"], deep: true },
  { op: "namespaces" },
  { op: "search", namespace: ["orders"], query: "parcel" },
];

/** Everything that reads alone, with a record of each kind, and what else a store has rows of. */
async function filled() {
  const cairn = await startCairn();
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: true }));
  const ids = await oneOfEach(cairn);
  await cairn.context(ids["session_id"]!, { query: "How does the customer prefer to be contacted?" });
  await cairn.service.retrievals.settled();
  await cairn.setState(ids["session_id"]!, { step: 1 });
  const value = { n: 1, text: "The parcel is blue." };
  const put = { op: "put", namespace: ["orders"], key: "a", value, index: true, session_id: ids["session_id"] };
  await cairn.ok(cairn.post("/v1/documents/batch", { operations: [put] }, { headers: { "Idempotency-Key": "once" } }));
  const requests = [
    ...REQUESTS.filter(({ method, template }) => method === "GET" || /search|context$/.test(template)).map((request) => ({
      method: request.method,
      path: request.path(ids),
      options: request.method === "GET" ? {} : { body: request.body(ids) },
    })),
    ...QUERIES.map((query) => ({ method: "POST", path: "/v1/documents/query", options: { body: { operations: [query] } } })),
  ];
  return { cairn, requests };
}

test("whichever table's rows cannot be read, and however, what needs one is answered 503, and nothing 500 or with what is no JSON", async () => {
  const { cairn, requests } = await filled();
  await using _ = cairn;
  const own = Bun.CryptoHasher.hash("sha256", cairn.key, "hex");
  const refused = new Set<string>();
  const statuses = async () => {
    const found: number[] = [];
    for (const { method, path, options } of requests) found.push((await cairn.request(method, path, options)).status);
    return found;
  };
  const before = await statuses();
  for (const table of RECORDS) {
    const rows = await cairn.read((reader) => reader.rows(stored(table), ALL));
    const bad = rows.filter(({ key }) => key !== own);
    const put = (text: (row: string) => string) =>
      cairn.overwrite(
        table,
        bad.map(({ key, row }) => ({ key, text: text(row) })),
      );
    const cutOff = [(row: string) => row.slice(0, -3), (row: string) => row.slice(3)];
    // Of a turn neither end is looked at. What makes no row is the same in every store.
    for (const damaged of isOnPostgres ? [() => "{"] : [() => "{", () => "", ...(table.name === turns.name ? [] : cutOff)]) {
      // A text of any kind is a row of these.
      if (table.name === meta.name || table.name === lastDocumentId.name || bad.length === 0) continue;
      await put(damaged);
      for (const { method, path, options } of requests) {
        const { status, body } = await cairn.request(method, path, options);
        expect({ table: table.name, path, body, isFault: status === 500 }).toEqual({ table: table.name, path, body, isFault: false });
        if (status === 503) refused.add(`${table.name} ${path}`);
      }
    }
    await put((row) => row);
  }
  expect(Array.from(refused).some((one) => one.startsWith("documents /v1/documents/query"))).toBe(true);
  expect(await statuses()).toEqual(before);
  expect(await cairn.findings()).toEqual([]);
});

test("a list leaves out the record that cannot be read, on whichever page it is, and has all others", async () => {
  await using cairn = await startCairn();
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: true }));
  const made: Record<string, string>[] = [];
  for (const name of ["one", "two", "three"]) {
    const { id: session } = await cairn.createSession({ user_id: name });
    const { id: memory } = await cairn.addMemory(session, `The parcel of ${name} is blue.`);
    const { id: key } = await cairn.ok(cairn.post("/v1/api_keys", {}));
    const { id: webhook } = await cairn.ok(cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/", events: ["turn.added"] }));
    made.push({ session, memory, key, webhook });
  }
  const [first, middle, last] = made as [Record<string, string>, Record<string, string>, Record<string, string>];
  const inOne = last["session"]!;
  for (let i = 1; i <= 3; i++) {
    await cairn.addTurn(inOne, `${i}`);
    await cairn.setState(inOne, { i });
    await cairn.context(inOne, { query: "parcel" });
    await cairn.ok(cairn.post(`/v1/webhooks/${last["webhook"]}/test`));
  }
  await cairn.service.retrievals.settled();
  const bareOf = (id = "") => id.slice(id.indexOf("_") + 1);
  const idsOf = async (path: string) => {
    const pages = await pagesOf(cairn, `${path}${path.includes("?") ? "&" : "?"}limit=1`);
    return pages.flatMap(({ data }) => data.map(({ id, version }: any) => id ?? version));
  };
  const keyIn = async (table: AnyTable, has: string) => (await keysOf(cairn, table)).find((key) => key.includes(has));
  const hashOf = async (id = "") => (await cairn.read((reader) => reader.rows(apiKeys, ALL))).find(({ row }) => row.id === id)?.key;
  const lists: { path: string; table: AnyTable; bad: string; key?: string | undefined }[] = [
    { path: "/v1/memory", table: memories, bad: middle["memory"]! },
    { path: "/v1/api_keys", table: apiKeys, bad: middle["key"]!, key: await hashOf(middle["key"]) },
    { path: "/v1/webhooks", table: webhooks, bad: middle["webhook"]! },
    { path: `/v1/sessions/${inOne}/versions`, table: versions, bad: "2", key: `${bareOf(inOne)}0000002` },
    ...(await Promise.all(
      [
        { path: `/v1/sessions/${inOne}/turns`, table: turns },
        { path: `/v1/sessions/${inOne}/retrievals`, table: retrievals },
        { path: `/v1/webhooks/${last["webhook"]}/deliveries`, table: deliveries },
        { path: "/v1/traces?action=turn.added", table: traces },
      ].map(async (list) => ({ ...list, bad: (await idsOf(list.path))[1]! })),
    )),
  ];
  for (const { path, table, bad, key } of lists) {
    const before = await idsOf(path);
    expect(before).toContain(table === versions ? Number(bad) : bad);
    await damage(cairn, table, key ?? (await keyIn(table, bareOf(bad))));
    expect({ path, ids: await idsOf(path) }).toEqual({ path, ids: before.filter((id) => String(id) !== bad) });
  }
  const found: string[] = (await cairn.search("parcel", { threshold: 0 })).data.map(({ id }: any) => id);
  expect(new Set(found)).toEqual(new Set([first["memory"]!, last["memory"]!]));
  // Of the timeline the turn, the version and the retrieval are missing, and what changed in the version behind.
  const timeline = await cairn.list(`/v1/sessions/${inOne}/timeline?limit=100`);
  const ofKind = (kind: string) => timeline.filter((entry) => entry.kind === kind).map((entry) => entry[kind]);
  expect([ofKind("turn").length, ofKind("retrieval").length]).toEqual([2, 2]);
  const diffs = ofKind("version").map(({ version, state_diff }: any) => [version, state_diff !== null]);
  expect(diffs).toEqual([
    [3, false],
    [1, true],
    [0, true],
  ]);

  await damage(cairn, sessions, bareOf(middle["session"]));
  expect(await idsOf("/v1/sessions")).toEqual([last["session"], first["session"]]);
  expect(new Set(await idsOf("/v1/users"))).toEqual(new Set(["one", "three"]));
  expect(refusal(await cairn.get(`/v1/sessions/${middle["session"]}`))).toEqual({ status: 503, code: "service_unavailable" });
});

test("a key signs in and is revoked beside a session key of its own and an admin key that cannot be read", async () => {
  await using cairn = await startCairn();
  const admin = () => cairn.ok(cairn.post("/v1/api_keys", { scopes: ["admin"] }));
  const [first, bad, last] = [await admin(), await admin(), await admin()];
  const signIn = () => cairn.ok(cairn.post("/v1/sign_in", {}, { key: first.key }));
  const session = await signIn();
  await cairn.ok(cairn.delete(`/v1/api_keys/${(await cairn.ok(cairn.get("/v1/api_keys/current"))).id}`));
  const rows = await cairn.read((reader) => reader.rows(apiKeys, ALL));
  for (const { id } of [session, bad]) await damage(cairn, apiKeys, rows.find(({ row }) => row.id === id)?.key);
  const { key: another } = await signIn();
  await cairn.ok(cairn.delete(`/v1/api_keys/${last.id}`, { key: first.key }));
  expect(refusal(await cairn.delete(`/v1/api_keys/${first.id}`, { key: first.key })).status).toBe(400);
  await cairn.ok(cairn.delete(`/v1/api_keys/${first.id}?force=true`, { key: first.key }));
  for (const key of [first.key, another]) expect((await cairn.get("/v1/sessions", { key })).status).toBe(401);
});

test("failed deliveries are listed, on whichever page, and made again beside one that cannot be read", async () => {
  await using cairn = await startCairn();
  const { id: webhook } = await cairn.subscribe("http://127.0.0.1:9/", { events: ["turn.added"] });
  for (let i = 0; i < 3; i++) await cairn.ok(cairn.post(`/v1/webhooks/${webhook}/test`));
  await cairn.deliver();
  const pages = async () => (await pagesOf(cairn, "/v1/failed_deliveries?limit=1")).flatMap(({ data }) => data.map(({ id }: any) => id));
  const [newest, middle, oldest] = await pages();
  await damage(
    cairn,
    deliveries,
    (await keysOf(cairn, deliveries)).find((key) => key.endsWith(middle.slice("dlv_".length))),
  );
  expect(await pages()).toEqual([newest, oldest]);
  const recovered = await cairn.ok(cairn.post(`/v1/webhooks/${webhook}/recover`, { since: "2020-01-01T00:00:00Z" }));
  expect(recovered).toMatchObject({ recovered: 2, complete: true });
});

test("documents beside one that cannot be read are listed, counted, found, popped and emptied", async () => {
  await using cairn = await startCairn();
  const namespace = ["queue"];
  const value = { text: "The parcel is blue." };
  const batch = (...operations: object[]) => cairn.ok(cairn.post("/v1/documents/batch", { operations }));
  const query = async (operation: object) => (await cairn.ok(cairn.post("/v1/documents/query", { operations: [operation] }))).data[0];
  await batch(...["a", "b", "c", "d"].map((key) => ({ op: "put", namespace, key, value, index: true })));
  await damage(cairn, documents, (await keysOf(cairn, documents))[1]);
  const listed: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await query({ op: "list", namespace, limit: 1, cursor });
    listed.push(...page.data.map(({ key }: { key: string }) => key));
    cursor = page.next_cursor ?? undefined;
    if (cursor === undefined) break;
  }
  expect(listed).toEqual(["a", "c", "d"]);
  const found = await query({ op: "search", namespace, query: "parcel", threshold: 0 });
  expect(found.data.map(({ key }: { key: string }) => key).toSorted()).toEqual(["a", "c", "d"]);
  expect(refusal(await cairn.post("/v1/documents/query", { operations: [{ op: "get", namespace, key: "b" }] }))).toEqual({
    status: 503,
    code: "service_unavailable",
  });
  expect((await batch({ op: "pop", namespace }, { op: "pop", namespace })).data.map(({ key }: { key: string }) => key)).toEqual(["d", "c"]);
  await batch({ op: "delete_all", namespace });
  await cairn.runTask("document removal");
  expect((await query({ op: "list", namespace })).data).toEqual([]);
  expect(await query({ op: "count", namespace })).toEqual({ count: 0 });
  expect((await keysOf(cairn, documents)).length).toBe(1);
});
