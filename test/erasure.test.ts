/**
 * The erasure of a user reaches every copy of what they have sent, and nobody else's.
 *
 * @module
 */
import { expect, spyOn, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBackup } from "../src/operations/backup.ts";
import { exportLines } from "../src/operations/export.ts";
import { keptJson } from "../src/storage/erasure.ts";
import { MAX_KEY } from "../src/storage/keys.ts";
import { DATA_FILE } from "../src/storage/lmdb/file/data-file.ts";
import {
  deliveries,
  idempotency,
  outbox,
  payloads,
  RECORD_TABLES,
  TABLES,
  type IdempotencyRow,
  type Readable,
} from "../src/storage/tables.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { startEmbeddingServer } from "./support/embedding-server.ts";
import { useEverythingAs, type Markers } from "./support/marked.ts";
import { setProvider } from "./support/providers.ts";
import { startReceiver } from "./support/receiver.ts";
import { REQUESTS, type Ids } from "./support/requests.ts";
import { isOnPostgres } from "./support/stores.ts";

/** In which tables a user's texts are, in rows and keys, with what of an answer is compressed; and in which fields they were sent. */
async function copiesOf(cairn: Cairn, markers: Markers): Promise<Record<string, string[]>> {
  const copies: [string, string[]][] = [];
  const everything = { from: "", to: MAX_KEY };
  for (const table of TABLES) {
    const keys = await cairn.read((reader) => reader.keys(table, everything));
    copies.push([table.name, markers.foundIn(keys.join("\n"))]);
  }
  for (const table of RECORD_TABLES) {
    const rows: unknown[] = (await cairn.read((reader) => reader.rows(table, everything))).map(({ row }) => row);
    const texts = rows.map((row) => (table.name === idempotency.name ? keptJson(row as IdempotencyRow) : JSON.stringify(row)));
    copies.push([table.name, markers.foundIn(texts.join("\n"))]);
  }
  return Object.fromEntries(copies.filter(([, fields]) => fields.length > 0));
}

/** What every operation that reads shows of a user's texts, with the ids of their records and without. */
async function shownOf(cairn: Cairn, markers: Markers, ids: Ids, webhook: string): Promise<string[]> {
  const found: string[] = [];
  const look = async (method: string, path: string, body?: unknown) => {
    const { text } = await cairn.plain(method, path, { body });
    if (markers.foundIn(text).length > 0) found.push(`${method} ${path}`);
    return text;
  };
  for (const { method, template, path, query, scope, body } of REQUESTS) {
    if (method === "GET") {
      await look(method, path(ids));
      if (query.some(({ name }) => name === "limit")) await look(method, `${path(ids)}?limit=100`);
      if (query.some(({ name }) => name === "user_id")) await look(method, `${path(ids)}?user_id=${ids["user_id"]}`);
      if (template.endsWith("/file")) continue;
    } else if (scope === "read") await look(method, path(ids), { ...body(ids), threshold: 0, user_id: ids["user_id"] });
  }
  const { data } = await cairn.ok(cairn.get(`/v1/webhooks/${webhook}/deliveries?limit=100`));
  for (const { id } of data) await look("GET", `/v1/webhooks/${webhook}/deliveries/${id}`);
  return found;
}

async function exported(cairn: Cairn): Promise<string> {
  const lines: string[] = [];
  for await (const line of exportLines(cairn.service.store, { secrets: true })) lines.push(line);
  return lines.join("\n");
}

async function backedUp(cairn: Cairn): Promise<Buffer> {
  const directory = mkdtempSync(join(tmpdir(), "cairn-test-"));
  try {
    await writeBackup(cairn.embedded, cairn.clock, join(directory, "b.cairn"), { force: false });
    return readFileSync(join(directory, "b.cairn"));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** In which files of its directory a user's texts are. */
function filesWith(cairn: Cairn, markers: Markers): string[] {
  const files = readdirSync(cairn.directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => join(parentPath, name)).filter((path) => markers.foundIn(readFileSync(path)).length > 0);
}

async function erase(cairn: Cairn, userId: string): Promise<any> {
  let report = await cairn.ok(cairn.delete(`/v1/users/${userId}`));
  for (let runs = 0; report.status !== "done" && runs < 100; runs++) {
    await cairn.runTask("user erasure");
    report = await cairn.ok(cairn.get(`/v1/users/${userId}/erasure`));
  }
  return report;
}

test("after every operation of the API, nothing of an erased user's texts is left anywhere, and all of another user's is", async () => {
  await using cairn = await startCairn({ environment: { retrieval_log: true, trace_retention_days: 1 } });
  await using receiver = startReceiver(() => new Response("ok"));
  const hook = await cairn.subscribe(receiver.url);
  // What was done days before: its sessions and their traces have ended, what was delivered is kept.
  const before = [await useEverythingAs(cairn, "eve"), await useEverythingAs(cairn, "ada")];
  await cairn.deliver();
  cairn.clock.advance({ days: 2 });
  for (const task of ["session expiry", "session removal", "trace retention", "idempotency retention"]) await cairn.runTask(task);
  const [eve, ada] = [await useEverythingAs(cairn, "eve"), await useEverythingAs(cairn, "ada")];
  await cairn.deliver();
  // And what is still in the outbox.
  await cairn.addTurn(eve.ids["session_id"]!, eve.markers.of("turn"));
  await cairn.addTurn(ada.ids["session_id"]!, ada.markers.of("turn"));
  expect(eve.markers.texts.size).toBeGreaterThanOrEqual(20);
  expect(Object.keys(await copiesOf(cairn, eve.markers))).toEqual(
    expect.arrayContaining(["turns", "memories", "traces", "retrievals", "documents", "namespaces", "outbox", "payloads", "idempotency"]),
  );
  const events = await eventsOf(cairn, ada.ids["session_id"]!);
  expect(Object.entries(events).filter(([, count]) => count === 0)).toEqual([]);
  const kept = { copies: await copiesOf(cairn, ada.markers), events };

  const report = await erase(cairn, "eve");
  expect(report).toMatchObject({ user_id: "eve", status: "done" });
  expect(await copiesOf(cairn, eve.markers)).toEqual({});
  expect(eve.markers.foundIn(await exported(cairn))).toEqual([]);
  for (const { ids } of [eve, before[0]!]) expect(await shownOf(cairn, eve.markers, ids, hook.id)).toEqual([]);
  for (const { path, body, options } of eve.repeatable) {
    const answer = await cairn.post(path, body, options);
    expect([path, eve.markers.foundIn(JSON.stringify(answer.body)), answer.headers.get("idempotency-replayed")]).toEqual([path, [], null]);
  }
  expect(eve.markers.foundIn(cairn.logged.join("\n"))).toEqual([]);
  if (!isOnPostgres) {
    expect(eve.markers.foundIn(await backedUp(cairn))).toEqual([]);
    expect(filesWith(cairn, eve.markers)).toEqual([]);
    expect(filesWith(cairn, ada.markers)).toEqual([join(cairn.directory, DATA_FILE)]);
  }

  expect({ copies: await copiesOf(cairn, ada.markers), events: await eventsOf(cairn, ada.ids["session_id"]!) }).toEqual(kept);
  for (const { path, body, options, answer } of ada.repeatable)
    expect((await cairn.post(path, body, options)).body).toEqual(answer as never);
  expect(await cairn.findings()).toEqual([]);
});

/** Lets an erasure begin, and nothing of it be taken away. */
function onlyBegun({ services }: Cairn): Disposable {
  const spies = new DisposableStack();
  let commits = 0;
  for (const { store } of services) {
    const commit = store.commit.bind(store);
    const spy = spyOn(store, "commit").mockImplementation((home, work) =>
      commits++ === 0 ? commit(home, work) : Promise.reject(new Error("the disk is full")),
    );
    spies.use(spy);
  }
  return spies;
}

test("from the beginning of an erasure on nothing is shown of documents that go with a session of the user's, and of others all", async () => {
  await using cairn = await startCairn();
  const [eve, ada] = [await cairn.createSession({ user_id: "eve" }), await cairn.createSession({ user_id: "ada" })];
  const namespace = ["shared"];
  const put = (key: string, session: { id: string }) => ({
    op: "put",
    namespace,
    key,
    value: { key },
    index: true,
    session_id: session.id,
  });
  await cairn.ok(cairn.post("/v1/documents/batch", { operations: [put("eves", eve), put("adas", ada)] }));
  const queries = [
    { op: "get", namespace, key: "eves" },
    { op: "get", namespace, key: "adas" },
    { op: "list", namespace },
    { op: "count", namespace },
    { op: "search", namespace, query: "eves adas", threshold: 0 },
  ];
  const shown = async () => {
    const [one, other, list, count, search] = (await cairn.ok(cairn.post("/v1/documents/query", { operations: queries }))).data;
    const keysOf = ({ data }: any) => data.map(({ key }: any) => key).toSorted();
    return { get: [one?.key, other?.key], list: keysOf(list), count: count.count, search: keysOf(search) };
  };
  expect(await shown()).toEqual({ get: ["eves", "adas"], list: ["adas", "eves"], count: 2, search: ["adas", "eves"] });
  {
    using _ = onlyBegun(cairn);
    expect(await cairn.ok(cairn.delete("/v1/users/eve"))).toMatchObject({ status: "running", sessions: 0 });
    expect(await shown()).toEqual({ get: [undefined, "adas"], list: ["adas"], count: 1, search: ["adas"] });
  }
  expect((await erase(cairn, "eve")).status).toBe("done");
  expect(await shown()).toEqual({ get: [undefined, "adas"], list: ["adas"], count: 1, search: ["adas"] });
});

test("from the beginning of an erasure on deliveries of the user's events are not shown, although their session's traces have ended", async () => {
  await using cairn = await startCairn({ environment: { trace_retention_days: 1, webhooks: { retry_schedule: "1s" } } });
  await using receiver = startReceiver(() => new Response("no", { status: 500 }));
  const { id: hook } = await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  for (const user_id of ["eve", "ada"]) await cairn.addTurn((await cairn.createSession({ user_id, ttl_seconds: 60 })).id, user_id, user_id);
  await cairn.deliver();
  cairn.clock.advance({ days: 2 });
  for (const task of ["session expiry", "session removal", "trace retention"]) await cairn.runTask(task);
  const path = `/v1/webhooks/${hook}/deliveries`;
  const all = await cairn.list(path);
  expect(all.length).toBe(2);
  const payloadOf = async ({ id }: { id: string }) => (await cairn.get(`${path}/${id}`)).body.payload?.data.input.content;
  expect(await Promise.all(all.map(payloadOf))).toEqual(["ada", "eve"]);
  for (let rounds = 0; rounds < 20 && (await cairn.list("/v1/failed_deliveries")).length < 2; rounds++) {
    cairn.clock.advance({ hours: 1 });
    await cairn.deliver();
  }
  const failed = await cairn.list("/v1/failed_deliveries");
  const isOf = (one: any) => one.id === all[0].id;
  expect([failed.length, failed.filter(isOf).length]).toEqual([2, 1]);
  const hidden = async () => {
    expect(await cairn.list(path)).toEqual(failed.filter(isOf));
    for (const limit of [1, 100]) expect(await cairn.list(`/v1/failed_deliveries?limit=${limit}`)).toEqual(failed.filter(isOf));
    expect(await Promise.all(all.map(payloadOf))).toEqual(["ada", undefined]);
  };
  {
    using _ = onlyBegun(cairn);
    expect((await cairn.ok(cairn.delete("/v1/users/eve"))).status).toBe("running");
    await hidden();
  }
  await hidden();
  const since = "2020-01-01T00:00:00.000Z";
  expect(await cairn.ok(cairn.post(`/v1/webhooks/${hook}/recover`, { since }))).toMatchObject({ recovered: 1, complete: true });
  expect((await cairn.list(path)).map(({ id, status }) => [id, status])).toEqual([[all[0].id, "pending"]]);
});

test("what a webhook was posted goes with it, unless another one was posted it too: an erasure finds what is left by its deliveries", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response("ok"));
  const [first, second] = [
    await cairn.subscribe(receiver.url, { events: ["turn.added"] }),
    await cairn.subscribe(receiver.url, { events: ["turn.added"] }),
  ];
  const { id: both } = await cairn.createSession({ user_id: "eve" });
  await cairn.addTurn(both, "of both");
  await cairn.deliver();
  await cairn.ok(cairn.delete(`/v1/webhooks/${first.id}`));
  await cairn.addTurn(both, "of one");
  await cairn.deliver();
  await cairn.runTask("webhook retention");
  const posted = async () => {
    const rows = await cairn.read((reader) => reader.rows(payloads, { from: "", to: MAX_KEY }));
    return rows.map(({ row }) => JSON.parse(row).data.input.content);
  };
  expect(await posted()).toEqual(["of both", "of one"]);
  await cairn.ok(cairn.delete(`/v1/webhooks/${second.id}`));
  await cairn.runTask("webhook retention");
  expect([await posted(), await cairn.count(deliveries)]).toEqual([[], 0]);
});

/** The events of a session that are on their way, were delivered, and what was posted. */
async function eventsOf(cairn: Cairn, sessionId: string): Promise<Record<string, number>> {
  const count = async (table: typeof outbox | typeof deliveries | typeof payloads) => {
    const rows = await cairn.read((reader) => reader.rows<unknown>(table as Readable<unknown>, { from: "", to: MAX_KEY }));
    return rows.filter(({ row }) => JSON.stringify(row).includes(sessionId)).length;
  };
  return { outbox: await count(outbox), deliveries: await count(deliveries), payloads: await count(payloads) };
}

test("a delivery that comes to nothing because its user is being erased is no failure of the receiver", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { id: hook } = await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  await cairn.addTurn((await cairn.createSession({ user_id: "eve" })).id);
  await cairn.runTask("webhook outbox");
  {
    using _ = onlyBegun(cairn);
    expect((await cairn.ok(cairn.delete("/v1/users/eve"))).status).toBe("running");
  }
  await cairn.deliver();
  expect(await cairn.webhook(hook)).toMatchObject({ failing_since: null, last_failure: null });
  expect(await erase(cairn, "eve")).toMatchObject({ status: "done", deliveries: 1 });
  await cairn.deliver();
  expect([receiver.received.length, await cairn.findings()]).toEqual([0, []]);
});

test("after an erasure the vectors of queries from before are in memory no more", async () => {
  await using provider = startEmbeddingServer();
  await using cairn = await startCairn();
  await setProvider(cairn, provider);
  const asked = async () => {
    const before = provider.requests.length;
    await cairn.search("What is the PIN of Eve?");
    return provider.requests.length - before;
  };
  await cairn.createSession({ user_id: "eve" });
  expect([await asked(), await asked()]).toEqual([1, 0]);
  expect(await erase(cairn, "eve")).toMatchObject({ status: "done" });
  expect([await asked(), await asked()]).toEqual([1, 0]);
});
