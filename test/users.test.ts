/**
 * Users and agents, and the erasure of a user.
 *
 * @module
 */
import { DAY_MS } from "../src/lib/duration.ts";
import { expect, test } from "bun:test";
import { bare, firstBareIdAt, partitionOf, NO_PARTITION } from "../src/lib/ids.ts";
import { MAX_KEY, hashKey } from "../src/storage/keys.ts";
import { erasures, fillMark, idempotency, memories, meta, RECORD_TABLES, retrievals, users } from "../src/storage/tables.ts";
import { USERS_FILL } from "../src/users/directory.ts";
import { pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { REQUESTS } from "./support/requests.ts";
import { startServer } from "./support/server.ts";
import { encodedPart } from "../src/http/path.ts";
import { isOnPostgres, onEmbedded } from "./support/stores.ts";
import { startReceiver } from "./support/receiver.ts";

const user = (id: string, more = "") => `/v1/users/${encodeURIComponent(id)}${more}`;
const ODD_NAMES = ["ada", "a/b", "ü ñ", "😀", "%2F", "?#&", "__proto__", '"quoted"', "\u0000", "x".repeat(256)];

test("what a user does while an erasure of what was there before goes on is still sent to webhooks", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  await cairn.subscribe(receiver.url, { events: ["session.created"] });
  // More than is erased while the request waits.
  await Promise.all(Array.from({ length: 140 }, () => cairn.createSession({ user_id: "ada" })));
  expect(await cairn.ok(cairn.delete(user("ada")))).toMatchObject({ status: "running" });
  const { id } = await cairn.createSession({ user_id: "ada" });
  while ((await cairn.count(erasures)) > 0) await cairn.runTask("user erasure");
  await cairn.deliver();
  expect(receiver.events.map(({ data }) => data.id)).toEqual([id]);
});

test("users and agents are listed with their newest session, each once, page by page, also those of whom only memories are left", async () => {
  await using cairn = await startCairn();
  for (const name of ODD_NAMES) await cairn.createSession({ user_id: name, agent_id: `agent of ${name}`.slice(0, 256) });
  cairn.clock.advance({ seconds: 1 });
  await cairn.createSession({ user_id: "ada", agent_id: "agent of ada" });
  await cairn.createSession();
  const gone = await cairn.createSession({ user_id: "gone", agent_id: "old", ttl_seconds: 1 });
  await cairn.addMemory(gone.id, "stays");
  cairn.clock.advance({ seconds: 1 });
  await cairn.runTask("session expiry");
  for (const [list, names] of [
    ["users", [...ODD_NAMES, "gone"]],
    ["agents", [...ODD_NAMES.map((name) => `agent of ${name}`.slice(0, 256)), "agent", "old"]],
  ] as const) {
    const all = await cairn.list(`/v1/${list}?limit=100`);
    expect(all.map(({ id }) => id).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(names.toSorted((a, b) => (a < b ? -1 : 1)));
    const ids: string[] = [];
    for (let after = ""; ;) {
      const page = await cairn.ok(cairn.get(`/v1/${list}?limit=3${after}`));
      ids.push(...page.data.map(({ id }: any) => id));
      if (!page.has_more) break;
      after = `&starting_after=${encodeURIComponent(page.last_id)}`;
    }
    expect(ids).toEqual(all.map(({ id }) => id));
  }
  const newestOf = async (list: string, ...names: string[]) => {
    const byName = new Map((await cairn.list(`/v1/${list}?limit=100`)).map((one) => [one.id, one.last_session_at]));
    return names.map((name) => byName.get(name));
  };
  expect(await newestOf("users", "ada", "gone")).toEqual(["2026-05-07T08:00:01.000Z", null]);
  expect(await newestOf("agents", "agent of ada", "old")).toEqual(["2026-05-07T08:00:01.000Z", null]);
});

const namesOf = async (cairn: Cairn, query = "") => (await cairn.list(`/v1/users?limit=100${query}`)).map(({ id }) => id);
const byCodePoint = (names: readonly string[]) => names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

test("users are listed by name, and found by what their names begin with, page by page", async () => {
  await using cairn = await startCairn();
  const names = [...ODD_NAMES, "Ada", "ad", "ada-2", "adb", "x".repeat(255), "😀".repeat(256), `${"😀".repeat(255)}!`];
  for (const name of names) await cairn.createSession({ user_id: name });
  const ordered = byCodePoint(names).filter((name) => !name.startsWith("😀😀"));
  const all = await namesOf(cairn);
  expect(all.filter((name) => !name.startsWith("😀😀"))).toEqual(ordered);
  expect(await namesOf(cairn, "&order=name")).toEqual(all);
  for (const prefix of ["ad", "ada", "A", "%", "x", "x".repeat(256), "😀", "\u0000", `${"😀".repeat(255)}!`, "nobody"]) {
    const found = all.filter((name) => name.startsWith(prefix));
    expect(await namesOf(cairn, `&prefix=${encodeURIComponent(prefix)}`)).toEqual(found);
    const paged = await pagesOf(cairn, `/v1/users?limit=2&prefix=${encodeURIComponent(prefix)}`);
    expect(paged.flatMap(({ data }) => data.map(({ id }: any) => id))).toEqual(found);
  }
  // A cursor need not be there any more, nor begin with the prefix.
  const after = (name: string) => namesOf(cairn, `&prefix=ad&starting_after=${encodeURIComponent(name)}`);
  expect([await after("ad"), await after("ada-1"), await after("b"), await after("A")]).toEqual([
    ["ada", "ada-2", "adb"],
    ["ada-2", "adb"],
    [],
    ["ad", "ada", "ada-2", "adb"],
  ]);
  expect(refusal(await cairn.get("/v1/users?prefix=a&order=last_seen"))).toMatchObject({ status: 400, param: "prefix" });
});

test("users are listed by when they were seen last, with counts that stop at 100", async () => {
  await using cairn = await startCairn();
  const at: Record<string, string> = {};
  const sees = async (user_id: string) => {
    const { id, created_at } = await cairn.createSession({ user_id });
    at[user_id] = created_at;
    cairn.clock.advance({ seconds: 60 });
    return id;
  };
  for (const name of ["ada", "bob", "eve", "ada"]) await sees(name);
  const ofBob = await sees("bob");
  await cairn.addMemory(ofBob, "tea", { embed: false });
  const last = (await cairn.get("/v1/users?order=last_seen")).body.data;
  expect(last).toEqual(
    [
      { id: "bob", sessions: 2, memories: 1 },
      { id: "ada", sessions: 2, memories: 0 },
      { id: "eve", sessions: 1, memories: 0 },
    ].map(({ id, ...counted }) => ({
      object: "user",
      id,
      last_session_at: at[id],
      last_seen_at: at[id],
      documents: 0,
      more: false,
      ...counted,
    })),
  );
  const paged = await pagesOf(cairn, "/v1/users?order=last_seen&limit=1");
  expect(paged.flatMap(({ data }) => data)).toEqual(last);
  expect(refusal(await cairn.get("/v1/users?order=last_seen&starting_after=nobody"))).toMatchObject({
    status: 400,
    param: "starting_after",
  });

  for (let i = 0; i < 101; i++) await cairn.addMemory(ofBob, `tea ${i}`, { embed: false });
  expect((await cairn.get("/v1/users?prefix=bob")).body.data).toMatchObject([{ sessions: 2, memories: 100, more: true }]);
  // Seen last stays when that session is gone, and the user goes with the last of them.
  await cairn.ok(cairn.delete(`/v1/sessions/${ofBob}`));
  const [{ id: first }] = await cairn.list("/v1/sessions?user_id=bob");
  const [bob] = (await cairn.get("/v1/users?prefix=bob")).body.data;
  expect(bob).toMatchObject({ last_seen_at: at["bob"], sessions: 1, memories: 0, more: false });
  expect(bob.last_session_at < at["bob"]!).toBe(true);
  await cairn.ok(cairn.delete(`/v1/sessions/${first}`));
  expect(await namesOf(cairn)).toEqual(["ada", "eve"]);
  expect(await namesOf(cairn, "&order=last_seen")).toEqual(["ada", "eve"]);
  expect(await cairn.findings()).toEqual([]);
});

test("a user of whom there are only documents is listed until the last of them is gone, and by what came after an erasure", async () => {
  await using cairn = await startCairn();
  const put = (named: object, key: string, more: object = {}) =>
    cairn.ok(
      cairn.post("/v1/documents/batch", { ...named, operations: [{ op: "put", namespace: ["notes"], key, value: { n: 1 }, ...more }] }),
    );
  await cairn.createSession({ user_id: "bob" });
  await put({ user_id: "ada" }, "a");
  await put({ user_id: "ada", agent_id: "bot" }, "b");
  await put({ agent_id: "bot" }, "c");
  await put({}, "d");
  const ofAda = { object: "user", id: "ada", last_session_at: null, last_seen_at: "2026-05-07T08:00:00.000Z", sessions: 0, memories: 0 };
  expect((await cairn.get("/v1/users?prefix=a")).body.data).toEqual([{ ...ofAda, documents: 2, more: false }]);
  expect(await cairn.ok(cairn.get(user("ada")))).toEqual({
    ...ofAda,
    documents: 2,
    last_session_id: null,
    traces: 0,
    more: false,
  });
  expect(await namesOf(cairn)).toEqual(["ada", "bob"]);
  expect(new Set(await namesOf(cairn, "&order=last_seen"))).toEqual(new Set(["ada", "bob"]));
  for (let run = 0; run < 2; run++) await cairn.runTask("users");
  expect(await namesOf(cairn)).toEqual(["ada", "bob"]);

  const change = (named: object, operations: object[]) => cairn.ok(cairn.post("/v1/documents/batch", { ...named, operations }));
  await change({ user_id: "ada" }, [{ op: "delete", namespace: ["notes"], key: "a" }]);
  expect((await cairn.get("/v1/users?prefix=a")).body.data).toEqual([{ ...ofAda, documents: 1, more: false }]);
  await change({ user_id: "ada", agent_id: "bot" }, [{ op: "pop", namespace: ["notes"] }]);
  expect(await namesOf(cairn)).toEqual(["bob"]);
  await cairn.runTask("users");
  expect(await cairn.read((reader) => [hashKey("ada"), hashKey("bob")].map((hash) => reader.has(users, hash)))).toEqual([false, true]);

  // One that ends by itself, and one that an erasure takes.
  await put({ user_id: "cid" }, "a", { ttl_seconds: 1 });
  await put({ user_id: "eve" }, "a");
  expect(await namesOf(cairn)).toEqual(["bob", "cid", "eve"]);
  cairn.clock.advance({ seconds: 2 });
  await cairn.runTask("document expiry");
  expect(await cairn.ok(cairn.delete(user("eve")))).toMatchObject({ status: "done", documents: 1 });
  expect(await namesOf(cairn)).toEqual(["bob"]);
  await put({ user_id: "eve" }, "later");
  expect((await cairn.get("/v1/users?prefix=e")).body.data).toMatchObject([{ id: "eve", sessions: 0, memories: 0, documents: 1 }]);
  expect(await cairn.findings()).toEqual([]);
});

test("users whom a store of before does not list are listed from the first request on, and those of whom nothing is left are forgotten", async () => {
  await using cairn = await startCairn();
  const names = Array.from({ length: 450 }, (_, i) => `user-${i}`);
  for (const name of names) await cairn.createSession({ user_id: name });
  const gone = await cairn.createSession({ user_id: "memories alone", ttl_seconds: 1 });
  await cairn.addMemory(gone.id, "tea", { embed: false });
  cairn.clock.advance({ seconds: 2 });
  await cairn.runTask("session expiry");
  const all = await cairn.list("/v1/users?limit=100");
  await cairn.service.store.commit(NO_PARTITION, (tx) => {
    for (const key of tx.keys(users, { from: "", to: MAX_KEY })) tx.remove(users, key);
    tx.remove(meta, fillMark(USERS_FILL.name));
  });
  expect(await namesOf(cairn)).toEqual([]);
  await cairn.restart();
  expect(await cairn.list("/v1/users?limit=100")).toEqual(all);
  expect((await cairn.counts([users]))[0]).toBe(451);

  // One that was noted without a session, and one with a session that was not noted.
  await cairn.service.store.commit(NO_PARTITION, (tx) => {
    tx.put(users, hashKey("nobody"), { userId: "nobody", seenAt: 1 });
    tx.remove(users, hashKey("user-7"));
  });
  for (let run = 0; run < 4; run++) await cairn.runTask("users");
  const noted = await cairn.read((reader) => reader.rows(users, { from: "", to: MAX_KEY }));
  expect(noted.map(({ row }) => row.userId).toSorted()).toEqual([...names, "memories alone"].toSorted());
  await cairn.ok(cairn.delete("/v1/users/user-7"));
  expect(await cairn.read((reader) => reader.has(users, hashKey("user-7")))).toBe(false);
  expect(await cairn.findings()).toEqual([]);
});

test("a user is shown with counts, whatever the name, and one that nothing names is not found", async () => {
  await using cairn = await startCairn();
  for (const name of ODD_NAMES) {
    const { id } = await cairn.createSession({ user_id: name });
    await cairn.addMemory(id, "tea", { embed: false });
    expect(await cairn.ok(cairn.get(user(name)))).toMatchObject({
      id: name,
      last_session_id: id,
      sessions: 1,
      memories: 1,
      traces: 2,
      more: false,
    });
  }
  for (const name of ["nobody", "ad", "%00%ff", "A"])
    expect(refusal(await cairn.get(user(name)))).toMatchObject({ status: 404, param: "user_id" });
});

test("of a user with many records the first 10,000 of each kind are counted", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  for (let i = 0; i < 100; i++) await Promise.all(Array.from({ length: 101 }, () => cairn.addTurn(id)));
  expect(await cairn.ok(cairn.get(user("ada")))).toMatchObject({ sessions: 1, traces: 10_000, more: true });
});

test("a key that is bound sees neither users nor agents, and only an admin key erases", async () => {
  await using cairn = await startCairn();
  await cairn.createSession({ user_id: "ada" });
  const bound = await cairn.newKey({ owner: { userId: "ada" } });
  const writer = await cairn.newKey();
  for (const path of ["/v1/users", "/v1/agents", user("ada")]) {
    expect(refusal(await cairn.get(path, { key: bound }))).toMatchObject({ status: 403 });
    expect((await cairn.get(path, { key: writer })).status).toBe(200);
  }
  expect(refusal(await cairn.delete(user("ada"), { key: writer }))).toMatchObject({ status: 403 });
  expect(refusal(await cairn.get(user("ada", "/erasure"), { key: writer }))).toMatchObject({ status: 403 });
});

const SECRET = "rosebud-7f3a";

/** Gives a user something of every kind, with a text that can be looked for. @returns the ids that must be gone */
async function fill(cairn: Cairn, userId: string, sessions = 2) {
  const made: { sessions: string[]; memories: string[] } = { sessions: [], memories: [] };
  for (let i = 0; i < sessions; i++) {
    const once = { headers: { "Idempotency-Key": `${userId} ${i}` } };
    const body = {
      agent_id: "bot",
      user_id: userId,
      initial_state: { note: SECRET },
      metadata: { note: SECRET },
      ttl_seconds: i === 0 ? 60 : 86_400,
    };
    const { id } = await cairn.ok(cairn.post("/v1/sessions", body, once));
    await cairn.setState(id, { note: `${SECRET} 2` }, { reasoning: SECRET });
    await cairn.ok(
      cairn.post(
        `/v1/sessions/${id}/turns`,
        { input: { type: "text", content: SECRET }, output: { type: "text", content: SECRET } },
        { headers: { "Idempotency-Key": `${userId} turn ${i}` } },
      ),
    );
    const memory = await cairn.addMemory(id, `The word is ${SECRET}.`, { tags: [SECRET] });
    made.sessions.push(id);
    made.memories.push(memory.id);
  }
  return made;
}

/** How often a text stands in the rows of each table. */
function rowsWith(cairn: Cairn, text: string): Promise<Record<string, number>> {
  return rowsThat(cairn, (row) => row.text.includes(text));
}

async function rowsThat(cairn: Cairn, isCounted: (row: { key: string; text: string }) => boolean): Promise<Record<string, number>> {
  const counts: [string, number][] = [];
  for (const table of RECORD_TABLES) {
    const rows = await cairn.read((reader) => reader.rows(table, { from: "", to: MAX_KEY }));
    counts.push([table.name, rows.filter(({ key, row }) => isCounted({ key, text: table.encode(row) })).length]);
  }
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

test("erasing a user removes everything with content, of that user alone, and answers what it was; traces stay without content", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response("ok"));
  await cairn.subscribe(receiver.url);
  const [ada, bob] = [await fill(cairn, "ada"), await fill(cairn, "bob")];
  await cairn.deliver();
  // A session that has expired leaves its memory; an event and a delivery are on their way.
  cairn.clock.advance({ seconds: 60 });
  await cairn.runTask("session expiry");
  await cairn.runTask("webhook outbox");
  await cairn.addTurn(ada.sessions[1]!, SECRET, SECRET);
  const traces = await cairn.list("/v1/traces?limit=100&user_id=ada");
  const before = await rowsWith(cairn, SECRET);
  const report = await cairn.ok(cairn.delete(user("ada")));
  expect(report).toEqual({
    object: "user_erasure",
    user_id: "ada",
    status: "done",
    started_at: "2026-05-07T08:01:00.000Z",
    freed_space: isOnPostgres ? "vacuum" : "overwritten",
    sessions: 1,
    turns: 2,
    versions: 2,
    retrievals: 0,
    memories: 2,
    documents: 0,
    traces: traces.length,
    deliveries: expect.any(Number),
    answers: 4,
  });
  const after = await rowsWith(cairn, SECRET);
  // What is left is bob's, half of what there was but for what ada had more.
  expect(after).toEqual(await rowsOf(cairn, "bob", bob));
  expect(Object.keys(before)).toEqual(
    expect.arrayContaining(["versions", "turns", "memories", "traces", "payloads", "outbox", "idempotency"]),
  );
  for (const id of ada.sessions) expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
  for (const id of ada.memories) expect((await cairn.get(`/v1/memory/${id}`)).status).toBe(404);
  expect(refusal(await cairn.get(user("ada")))).toMatchObject({ status: 404 });
  expect((await cairn.search(`The word is ${SECRET}.`)).data.map(({ id }: any) => id)).toEqual(expect.arrayContaining(bob.memories));
  expect((await cairn.search(`The word is ${SECRET}.`, { user_id: "ada" })).data).toEqual([]);
  const [erased, ...left] = await cairn.list("/v1/traces?limit=100&user_id=ada");
  const { object: _, status: __, ...counts } = report;
  expect(erased).toMatchObject({ action: "user.erased", actor: cairn.key.slice(0, 8), session_id: null, details: counts });
  expect(left).toEqual(traces.map((trace) => ({ ...trace, details: { erased: true } })));
  expect((await cairn.list("/v1/sessions?user_id=bob")).map(({ id }) => id)).toEqual([bob.sessions[1]!]);
});

/** What a user's own share of the rows with the text is, by looking for the ids that they name. */
function rowsOf(cairn: Cairn, userId: string, made: { sessions: string[] }): Promise<Record<string, number>> {
  const isOf = (text: string) => text.includes(`"${userId}"`) || made.sessions.some((id) => text.includes(id));
  const keyed = new Set(made.sessions.map((id) => id.slice("sess_".length)));
  return rowsThat(cairn, ({ key, text }) => text.includes(SECRET) && (isOf(text) || keyed.has(key.slice(0, 12))));
}

for (const when of ["", ", when the clock was set back by 30 years"]) {
  const it = when === "" ? test : onEmbedded("servers show the clock of their database");
  it(`a large erasure goes on in the background and after a restart; from the answer on nothing is shown, and what comes later stays${when}`, async () => {
    await using cairn = await startCairn();
    await using receiver = startReceiver(() => new Response("ok"));
    await cairn.subscribe(receiver.url, { events: ["turn.added"] });
    const { id: large } = await cairn.createSession({ user_id: "ada" });
    for (let i = 0; i < 5; i++) await Promise.all(Array.from({ length: 60 }, () => cairn.addTurn(large, SECRET, SECRET)));
    const made = await fill(cairn, "ada", 140);
    const traces = await cairn.list("/v1/traces?limit=100&user_id=ada");
    if (when !== "") cairn.clock.set(cairn.clock.now() - 30 * 365 * DAY_MS);
    const report = await cairn.ok(cairn.delete(user("ada")));
    expect(report.status).toBe("running");
    const expectHidden = async () => {
      for (const id of [made.sessions[0], made.sessions[139], large]) {
        for (const path of ["", "/turns", "/versions", "/timeline", "/state"])
          expect((await cairn.get(`/v1/sessions/${id}${path}`)).status).toBe(404);
      }
      for (const path of ["/v1/sessions?user_id=ada", "/v1/sessions", "/v1/memory?user_id=ada", "/v1/memory", "/v1/users"]) {
        expect([path, await cairn.list(path)]).toEqual([path, []]);
      }
      expect((await cairn.get(`/v1/memory/${made.memories[139]}`)).status).toBe(404);
      expect((await cairn.search(`The word is ${SECRET}.`, { threshold: 0 })).data).toEqual([]);
      expect((await cairn.get(user("ada"))).status).toBe(404);
      expect(JSON.stringify(await cairn.list("/v1/traces?limit=100&user_id=ada"))).not.toContain(SECRET);
      expect(JSON.stringify((await cairn.get(`/v1/traces/${traces[0].id}`)).body)).not.toContain(SECRET);
      const once = { headers: { "Idempotency-Key": "ada turn 139" } };
      const turn = { input: { type: "text", content: SECRET }, output: { type: "text", content: SECRET } };
      expect((await cairn.post(`/v1/sessions/${made.sessions[139]}/turns`, turn, once)).status).toBe(404);
      expect((await cairn.post(`/v1/sessions/${large}/state`, { state: {} })).status).toBe(404);
    };
    await expectHidden();
    await cairn.deliver();
    expect(receiver.received).toEqual([]);
    await cairn.restart();
    await expectHidden();
    expect(await cairn.ok(cairn.get(user("ada", "/erasure")))).toEqual(report);
    expect((await cairn.ok(cairn.delete(user("ada")))).started_at).toBe(report.started_at);
    const later = await cairn.createSession({ user_id: "ada", initial_state: { later: true } });
    expect((await cairn.list("/v1/sessions")).map(({ id }) => id)).toEqual([later.id]);
    await cairn.runTask("user erasure");
    await cairn.runTask("session removal");
    expect(await rowsWith(cairn, SECRET)).toEqual({});
    expect(await cairn.findings()).toEqual([]);
    expect(await cairn.session(later.id)).toEqual(later);
    const [{ details }] = (await cairn.list("/v1/traces?action=user.erased")) as [any];
    expect(details).toMatchObject({ user_id: "ada", sessions: 141, turns: 440, memories: 140 });
    expect(await cairn.ok(cairn.get(user("ada", "/erasure")))).toEqual({ object: "user_erasure", status: "done", ...details });
    expect(refusal(await cairn.get(user("bob", "/erasure")))).toMatchObject({ status: 404 });
    expect(await cairn.count(erasures)).toBe(0);
  });
}

test("an erasure that a full disk stops after it has begun is said to be running, and continues", async () => {
  await using cairn = await startCairn();
  await fill(cairn, "ada", 3);
  const { store } = cairn.service;
  const commit = store.commit.bind(store);
  let commits = 0;
  store.commit = ((home: never, work: never) => (commits++ === 0 ? commit(home, work) : Promise.reject(new Error("full")))) as never;
  expect(await cairn.ok(cairn.delete(user("ada")))).toMatchObject({ status: "running", sessions: 0 });
  store.commit = commit;
  expect(await cairn.list("/v1/sessions")).toEqual([]);
  await cairn.runTask("user erasure");
  expect(await rowsWith(cairn, SECRET)).toEqual({});
});

test("what a server has made whose clock is ahead is erased too", async () => {
  await using cairn = await startCairn();
  const { id: session } = await cairn.createSession({ user_id: "ada", ttl_seconds: 1 });
  const { id } = await cairn.addMemory(session, SECRET);
  cairn.clock.advance({ seconds: 1 });
  await cairn.runTask("session expiry");
  const { store } = cairn.service;
  const row = await store.read((reader) => reader.get(memories, bare(id)));
  const ahead = firstBareIdAt(cairn.clock.now() + 5_000).slice(0, -2) + partitionOf(id);
  await store.commit(partitionOf(id), (tx) => tx.add(memories, ahead, row!));
  expect(await cairn.ok(cairn.delete(user("ada")))).toMatchObject({ status: "done", memories: 2 });
  expect(await rowsWith(cairn, SECRET)).toEqual({});
});

test("an answer that a server has kept whose clock is ahead goes with what it shows, and that of a later change stays", async () => {
  await using cairn = await startCairn();
  const { id: session } = await cairn.createSession({ user_id: "ada" });
  const add = (key: string, session_id: string, content: string) =>
    cairn.ok(cairn.post("/v1/memory", { session_id, content }, { headers: { "Idempotency-Key": key } }));
  await add("before", session, SECRET);
  const { store } = cairn.service;
  const [before] = await store.read((reader) => reader.rows(idempotency, { from: "", to: MAX_KEY }));
  await store.commit(NO_PARTITION, (tx) => tx.put(idempotency, before!.key, { ...before!.row, createdAt: cairn.clock.now() + 5_000 }));
  const commit = store.commit.bind(store);
  let commits = 0;
  store.commit = ((home: never, work: never) => (commits++ === 0 ? commit(home, work) : Promise.reject(new Error("full")))) as never;
  expect(await cairn.ok(cairn.delete(user("ada")))).toMatchObject({ status: "running" });
  store.commit = commit;
  cairn.clock.advance({ seconds: 10 });
  const later = await cairn.createSession({ user_id: "ada" });
  const memory = await add("later", later.id, "Tea is green.");
  while ((await cairn.count(erasures)) > 0) await cairn.runTask("user erasure");
  expect(await rowsWith(cairn, SECRET)).toEqual({});
  expect(await add("later", later.id, "Tea is green.")).toEqual(memory);
});

test("the documents of a user go too, those kept with an agent and those of a session, and nobody else's", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada", agent_id: "bot" });
  const put = (more: object, fields: object = {}) =>
    cairn.ok(
      cairn.post("/v1/documents/batch", {
        ...more,
        operations: [{ op: "put", namespace: ["notes"], key: "k", value: { note: SECRET }, ...fields }],
      }),
    );
  // No session and no memory names the agent called unheard of.
  const ofAda = [{ user_id: "ada" }, { user_id: "ada", agent_id: "bot" }, { user_id: "ada", agent_id: "unheard of" }];
  for (const owner of [...ofAda, { user_id: "bob" }, { agent_id: "bot" }, { agent_id: "ada" }]) await put(owner);
  await put({}, { session_id: id });
  const before = (await rowsWith(cairn, SECRET))["documents"];
  expect(await cairn.ok(cairn.delete(user("ada")))).toMatchObject({ status: "done", documents: 3 });
  for (const owner of ofAda) {
    const get = { op: "get", namespace: ["notes"], key: "k" };
    expect((await cairn.ok(cairn.post("/v1/documents/query", { ...owner, operations: [get] }))).data).toEqual([null]);
  }
  await cairn.runTask("document removal");
  expect([before, (await rowsWith(cairn, SECRET))["documents"]]).toEqual([7, 3]);
  expect(await cairn.findings()).toEqual([]);
});

test("a user of whom there are documents alone is erased too, and what is put later stays", async () => {
  await using cairn = await startCairn();
  const put = (note: string) =>
    cairn.ok(
      cairn.post("/v1/documents/batch", {
        user_id: "ada",
        agent_id: "bot",
        operations: [{ op: "put", namespace: ["notes"], key: note, value: { note } }],
      }),
    );
  await put(SECRET);
  expect(await cairn.ok(cairn.delete(user("ada")))).toMatchObject({ status: "done", sessions: 0, documents: 1 });
  await put("later");
  await cairn.runTask("document removal");
  expect([(await rowsWith(cairn, SECRET))["documents"], (await rowsWith(cairn, "later"))["documents"]]).toEqual([undefined, 1]);
  expect(await cairn.findings()).toEqual([]);
});

test("a user is shown who has documents, traces, deliveries or kept answers alone, until they are erased", async () => {
  await using cairn = await startCairn({ environment: { trace_retention_days: 1 } });
  await using receiver = startReceiver(() => new Response("ok"));
  await cairn.subscribe(receiver.url, { events: ["session.created"] });
  await cairn.createSession({ user_id: "delivered", ttl_seconds: 1 });
  await cairn.deliver();
  cairn.clock.advance({ seconds: 1 });
  for (const task of ["session expiry", "session removal"]) await cairn.runTask(task);
  cairn.clock.advance({ days: 2 });
  await cairn.runTask("trace retention");
  const change = (user_id: string, operation: object, options: object = {}, more: object = {}) =>
    cairn.ok(
      cairn.post("/v1/documents/batch", { user_id, ...more, operations: [{ namespace: ["notes"], key: "k", ...operation }] }, options),
    );
  const put = { op: "put", value: { note: SECRET } };
  await change("documented", put);
  await change("documented", put, {}, { agent_id: "bot" });
  await change("answered", put, { headers: { "Idempotency-Key": "once" } });
  await change("answered", { op: "delete" });
  await cairn.runTask("document removal");
  const { id: traced } = await cairn.createSession({ user_id: "traced" });
  await cairn.ok(cairn.delete(`/v1/sessions/${traced}`));
  for (const task of ["session removal", "users"]) await cairn.runTask(task);
  expect((await cairn.list("/v1/users")).map(({ id }) => id)).toEqual(["documented"]);
  const counted = { documented: { documents: 2 }, traced: { traces: 2 }, delivered: {}, answered: {} };
  for (const [id, removed] of Object.entries(counted)) {
    // Documents say when their user was known first.
    const seen = id === "documented" ? "2026-05-09T08:00:01.000Z" : null;
    const never = { last_seen_at: seen, last_session_at: null, last_session_id: null };
    const nothing = { sessions: 0, memories: 0, traces: 0, documents: 0, more: false };
    expect(await cairn.ok(cairn.get(user(id)))).toEqual({ object: "user", id, ...never, ...nothing, ...removed });
    expect(await cairn.ok(cairn.delete(user(id)))).toMatchObject({ status: "done", ...removed });
    expect(refusal(await cairn.get(user(id)))).toMatchObject({ status: 404, param: "user_id" });
  }
  // What comes after an erasure can be erased again.
  await cairn.createSession({ user_id: "traced", ttl_seconds: 1 });
  cairn.clock.advance({ seconds: 2 });
  for (const task of ["session expiry", "session removal"]) await cairn.runTask(task);
  expect(await cairn.ok(cairn.get(user("traced")))).toMatchObject({ sessions: 0, traces: 5 });
});

test("while an erasure goes on, a user is shown with what came later alone", async () => {
  await using cairn = await startCairn();
  await fill(cairn, "ada", 3);
  const { store } = cairn.service;
  const commit = store.commit.bind(store);
  let commits = 0;
  store.commit = ((home: never, work: never) => (commits++ === 0 ? commit(home, work) : Promise.reject(new Error("full")))) as never;
  expect(await cairn.ok(cairn.delete(user("ada")))).toMatchObject({ status: "running", sessions: 0 });
  store.commit = commit;
  expect(refusal(await cairn.get(user("ada")))).toMatchObject({ status: 404 });
  const put = { op: "put", namespace: ["notes"], key: "k", value: { later: true } };
  await cairn.ok(cairn.post("/v1/documents/batch", { user_id: "ada", operations: [put] }));
  expect(await cairn.ok(cairn.get(user("ada")))).toMatchObject({ sessions: 0, memories: 0, traces: 0, documents: 1 });
  const { id } = await cairn.createSession({ user_id: "ada" });
  expect(await cairn.ok(cairn.get(user("ada")))).toMatchObject({ last_session_id: id, sessions: 1, memories: 0, traces: 1, documents: 1 });
});

for (const user_id of [".", ".."]) {
  test(`no record is made for a user that a path cannot name: ${JSON.stringify(user_id)}`, async () => {
    await using cairn = await startCairn();
    const making = REQUESTS.filter(({ scope, fields = {} }) => scope !== "read" && "user_id" in fields);
    expect(making.map(({ method, template }) => `${method} ${template}`)).toEqual(
      expect.arrayContaining(["POST /v1/sessions", "POST /v1/api_keys", "POST /v1/documents/batch", "POST /v1/memories"]),
    );
    for (const { method, template, path, body } of making) {
      const { session_id: _, ...own } = body({}) ?? {};
      const refused = refusal(await cairn.request(method, path({}), { body: { ...own, user_id } }));
      expect({ template, ...refused }).toEqual({ template, status: 400, code: "invalid_request", param: "user_id" });
    }
    expect(await cairn.list("/v1/users")).toEqual([]);
  });
}

/** Texts that a URL, a proxy or a router could take for something else. */
const ODD_USERS = [
  "...",
  "..x",
  "%2e",
  "%2E%2e",
  "a/b",
  "/",
  "../x",
  "a\\b",
  "?",
  "#",
  "%",
  "%zz",
  "\0",
  "\t",
  "\n",
  " ",
  ". ",
  "..\t",
  "*",
  ":x",
];
const ODD_TEXTS = [
  "+",
  "&",
  "\ud800",
  "ada\udc00 \ud83d😀",
  "\ufffd",
  "\ufeff",
  "\u200b",
  "．",
  "e\u0301",
  "😀".repeat(256),
  "erasure",
  "__proto__",
];

test("a user of any other name is read and erased by a path, over a socket too", async () => {
  await using server = await startServer();
  const { cairn, port } = server;
  const ask = async (method: string, path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { "X-API-Key": cairn.key } });
    return [answer.status, await answer.json()] as const;
  };
  for (const name of [...ODD_USERS, ...ODD_TEXTS]) {
    await cairn.createSession({ user_id: name });
    const at = `/v1/users/${encodedPart(name)}`;
    expect(await ask("GET", at)).toMatchObject([200, { id: name, sessions: 1 }]);
    expect(await ask("DELETE", at)).toMatchObject([200, { user_id: name, sessions: 1 }]);
    expect(await ask("GET", `${at}/erasure`)).toMatchObject([200, { user_id: name, status: "done" }]);
  }
  expect(await cairn.list("/v1/sessions")).toEqual([]);
});

test("nobody is erased who is not there, and whoever was has nothing to erase again", async () => {
  await using cairn = await startCairn();
  expect(refusal(await cairn.delete(user("nobody")))).toMatchObject({ status: 404, param: "user_id" });
  await fill(cairn, "ada");
  await cairn.ok(cairn.delete(user("ada")));
  expect(await cairn.ok(cairn.delete(user("ada")))).toMatchObject({ status: "done", sessions: 0, memories: 0, traces: 0, answers: 0 });
});

test("what was found for a user is erased with the session and counted, more of it than one commit takes too", async () => {
  await using cairn = await startCairn();
  const [session, other] = [await cairn.createSession({ user_id: "ada" }), await cairn.createSession({ user_id: "bob" })];
  await cairn.createSession({ user_id: "ada" });
  const { store } = cairn.service;
  const found = {
    expiresAt: cairn.clock.now() + 1e9,
    actor: "crn_abcd",
    operation: "search",
    query: SECRET,
    limit: 5,
    threshold: 0.7,
  } as const;
  for (const [id, count] of [
    [session.id, 450],
    [other.id, 1],
  ] as const) {
    await store.commit(partitionOf(id), (tx) => {
      for (let i = 0; i < count; i++) tx.add(retrievals, tx.bareId(), { ...found, sessionId: id, memories: [] });
    });
  }
  expect(await cairn.ok(cairn.delete(user("ada")))).toMatchObject({ status: "done", sessions: 2, retrievals: 450 });
  const left = await store.read((reader) => reader.rows(retrievals, { from: "", to: MAX_KEY }));
  expect(left.map(({ row }) => row.sessionId)).toEqual([other.id]);
  expect(await cairn.findings()).toEqual([]);
});
