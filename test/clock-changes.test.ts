/**
 * The system's clock is set back while Cairn runs or while it does not, was wrong for a while, or shows a time that nobody has.
 *
 * @module
 */
import { partitionOf, IdSource, NO_PARTITION } from "../src/lib/ids.ts";
import { expect, test } from "bun:test";
import { createLink } from "../src/keys/sign-in.ts";
import { MAX_KEY, hashKey } from "../src/storage/keys.ts";
import { newestId } from "../src/storage/newest-id.ts";
import { apiKeys, deliveries, erasures, idempotency, memories, payloads, sessions, traces } from "../src/storage/tables.ts";
import { idsOf, pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { FakeClock } from "./support/clock.ts";
import { endOf } from "./support/backups.ts";
import { startReceiver } from "./support/receiver.ts";
import { onEmbedded } from "./support/stores.ts";

const HOUR_MS = 3_600_000;

const goBack = (cairn: Cairn) => cairn.clock.set(cairn.clock.now() - HOUR_MS);
const isReplay = ({ headers }: { headers: Headers }) => headers.get("idempotency-replayed") === "true";

/** Every record of a list, one to a page, in the order of the pages. */
async function listed(cairn: Cairn, path: string): Promise<any[]> {
  return (await pagesOf(cairn, `${path}${path.includes("?") ? "&" : "?"}limit=1`)).flatMap(({ data }) => data);
}

function expectRising(texts: readonly string[]): void {
  expect(texts).toEqual(texts.toSorted());
}

function expectFalling(texts: readonly string[]): void {
  expectRising(texts.toReversed());
}

/** One of each, in this order. */
async function makeRecords(cairn: Cairn, id: string, step: number) {
  const made = { state: await cairn.setState(id, { step }), turn: await cairn.addTurn(id) };
  const memory = await cairn.addMemory(id, `The boat is moored at pier ${step}.`);
  return { ...made, memory, fork: await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, {})) };
}

test("over a clock that goes back, and a restart behind it, ids rise and every list keeps its order; times are the clock's", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const made: Awaited<ReturnType<typeof makeRecords>>[] = [];
  const times: string[] = [];
  const steps = [
    () => cairn.clock.advance({ seconds: 1 }),
    () => goBack(cairn),
    () => cairn.clock.advance({ seconds: 1 }),
    () => cairn.restart(),
    // As if the process had been down while the clock was set.
    async () => (await cairn.close(), goBack(cairn), await cairn.open()),
    () => cairn.clock.advance({ hours: 1 }),
    // It has caught up.
    () => cairn.clock.advance({ hours: 2 }),
  ];
  for (const [index, step] of steps.entries()) {
    await step();
    times.push(new Date(cairn.clock.now()).toISOString());
    made.push(await makeRecords(cairn, id, index));
  }

  const all = made.flatMap(({ turn, memory, fork }) => [turn, memory, fork]);
  const keys = all.map((record) => record.id.slice(record.id.indexOf("_")));
  expectRising(keys);
  expect(new Set(keys).size).toBe(keys.length);
  for (const [index, { turn, memory, fork }] of made.entries()) {
    const created = [turn, memory, fork].map(({ created_at }) => created_at);
    expect({ index, created }).toEqual({ index, created: created.map(() => times[index] as string) });
  }
  // Of one record the last change is never before an earlier one.
  expectRising(made.map(({ state }) => state.updated_at));

  expect(idsOf(await listed(cairn, "/v1/sessions"))).toEqual([...idsOf(made.map(({ fork }) => fork)).reverse(), id]);
  expect(await listed(cairn, "/v1/memory")).toEqual(made.map(({ memory }) => memory).reverse());
  expect(await listed(cairn, `/v1/sessions/${id}/turns?order=asc`)).toEqual(made.map(({ turn }) => turn));
  expect(made.map(({ turn }) => turn.turn_number)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  const versions = await listed(cairn, `/v1/sessions/${id}/versions`);
  expect(versions.map(({ version }) => version)).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
  expect(versions.slice(0, -1).map(({ created_at }) => created_at)).toEqual(times.toReversed());
  const traces = await listed(cairn, "/v1/traces");
  // With the first key's.
  expect(traces).toHaveLength(2 + 4 * made.length);
  expectFalling(idsOf(traces));
  const written = times.toReversed().flatMap((time) => [time, time, time, time]);
  expect(traces.slice(0, written.length).map(({ timestamp }) => timestamp)).toEqual(written);
  for (const { memory } of made)
    expect((await cairn.search(memory.content, { limit: 1 })).data).toMatchObject([{ id: memory.id, score: 1 }]);
  expect(await cairn.findings()).toEqual([]);
});

test("a record has the time of its id, also where the clock moves on while it is written", async () => {
  class Running extends FakeClock {
    override now(): number {
      this.advance({ ms: 1 });
      return super.now();
    }
  }
  await using cairn = await startCairn({ clock: new Running() });
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "The boat is moored at pier 7.");
  await cairn.addTurn(id);
  const ahead = await cairn.counts([sessions, memories, traces].map(({ index }) => index.ahead));
  expect(ahead).toEqual([0, 0, 0]);
});

test("behind the newest id, an id that a command gave in the meantime is not given again", async () => {
  await using cairn = await startCairn();
  const { store } = cairn.service;
  goBack(cairn);
  await cairn.newKey();
  const given = new IdSource(cairn.clock, { startAfter: await cairn.read(newestId) }).next("key", NO_PARTITION);
  await store.commit(NO_PARTITION, (tx) => {
    const [first] = tx.rows(apiKeys, { from: "", to: MAX_KEY, limit: 1 });
    tx.add(apiKeys, "0".repeat(64), { ...first!.row, id: given });
  });
  await cairn.newKey();
  const ids = idsOf((await cairn.get("/v1/api_keys")).body.data);
  expect([ids.length, new Set(ids).size, ids.indexOf(given)]).toEqual([4, 4, 1]);
});

test("what a user gets after a restart is later than what is being erased of them", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  const counts = { sessions: 0, turns: 0, versions: 0, retrievals: 0, memories: 0, documents: 0, traces: 0, deliveries: 0, answers: 0 };
  const begun = { phase: "sessions", after: "", actor: "system", retentionDays: 7, counts } as const;
  await cairn.service.store.commit(partitionOf(id), (tx) =>
    tx.put(erasures, hashKey("ada"), { userId: "ada", startedAt: tx.now, until: tx.bareId(), ...begun }),
  );
  await cairn.close();
  goBack(cairn);
  await cairn.open();
  const later = await cairn.createSession({ user_id: "ada" });
  await cairn.runTask("user erasure");
  expect(await cairn.list("/v1/sessions?user_id=ada")).toEqual([later]);
});

test("a session lives until the clock shows its ttl_expires_at, however often it has shown an hour before that", async () => {
  await using cairn = await startCairn();
  const [before, removed] = [await cairn.createSession({ ttl_seconds: 7_200 }), await cairn.createSession({ ttl_seconds: 1 })];
  cairn.clock.advance({ seconds: 1 });
  await cairn.runTask("session expiry");
  goBack(cairn);
  // What is removed stays removed, under a clock that shows a time before its end.
  expect((await cairn.get(`/v1/sessions/${removed.id}`)).status).toBe(404);
  const behind = await cairn.createSession({ ttl_seconds: 60 });
  expect(Date.parse(behind.ttl_expires_at)).toBe(cairn.clock.now() + 60_000);
  for (const { id, ttl_expires_at } of [behind, before]) {
    cairn.clock.advance({ ms: Date.parse(ttl_expires_at) - cairn.clock.now() - 1 });
    await cairn.runTask("session expiry");
    expect((await cairn.session(id)).ttl_expires_at).toBe(ttl_expires_at);
    cairn.clock.advance({ ms: 1 });
    expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
    await cairn.runTask("session expiry");
  }
  const expired = await cairn.list("/v1/traces?action=session.expired");
  expect(expired.map((trace: any) => trace.session_id)).toEqual([before.id, behind.id, removed.id]);
});

test("an answer that was kept is given again over a clock that goes back, and one kept behind it when it has caught up", async () => {
  await using cairn = await startCairn();
  const ask = (key: string) => cairn.post("/v1/sessions", { agent_id: "agent" }, { headers: { "idempotency-key": key } });
  const before = await ask("before");
  goBack(cairn);
  const behind = await ask("behind");
  for (const move of [() => undefined, () => cairn.restart(), () => cairn.clock.advance({ hours: 22 })]) {
    await move();
    await cairn.runTask("idempotency retention");
    for (const [key, first] of [
      ["before", before],
      ["behind", behind],
    ] as const) {
      const again = await ask(key);
      expect({ key, replay: isReplay(again), body: again.body }).toEqual({ key, replay: true, body: first.body });
    }
  }
  expect(await cairn.list("/v1/sessions")).toHaveLength(2);
});

test("an API key ends when the clock shows its expires_at, and its rate is counted by what passes, not by what the clock shows", async () => {
  await using cairn = await startCairn();
  const expiresAt = cairn.clock.now() + 60_000;
  const key = await cairn.newKey({ expiresAt, rateLimit: { perMinute: 60, burst: 2 } });
  const ask = async () => (await cairn.get("/v1/sessions", { key })).status;
  expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429]);
  goBack(cairn);
  expect(await ask()).toBe(429);
  cairn.clock.advance({ seconds: 2 });
  expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429]);
  cairn.clock.advance({ ms: expiresAt - cairn.clock.now() - 1 });
  expect(await ask()).toBe(200);
  cairn.clock.advance({ ms: 1 });
  expect(await ask()).toBe(401);
});

test("events of changes behind the clock are delivered at once and once; a retry that was waiting is made when the clock gets there", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver((_, count) => new Response(null, { status: count === 1 ? 500 : 200 }));
  await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["session.created"] }));
  const first = await cairn.createSession();
  await cairn.deliver();
  goBack(cairn);
  const [second, third] = [await cairn.createSession(), await cairn.createSession()];
  await cairn.deliver();
  expect(receiver.events.map(({ data }) => data.id)).toEqual([first.id, second.id, third.id]);
  await cairn.restart();
  await cairn.deliver();
  expect(receiver.events).toHaveLength(3);
  cairn.clock.advance({ hours: 1, seconds: 6 });
  await cairn.deliver();
  expect(receiver.events.map(({ data }) => data.id)).toEqual([first.id, second.id, third.id, first.id]);
  expect(receiver.events[3].id).toBe(receiver.events[0].id);
});

const YEARS_AHEAD_MS = 30 * 365 * 24 * HOUR_MS;

/** The clock is that far ahead while something is done, and put right then. */
async function ahead<Result>(cairn: Cairn, work: () => Promise<Result>): Promise<Result> {
  cairn.clock.set(cairn.clock.now() + YEARS_AHEAD_MS);
  const result = await work();
  cairn.clock.set(cairn.clock.now() - YEARS_AHEAD_MS);
  return result;
}

for (const restarts of [false, true]) {
  test(`after one write 30 years ahead ${restarts ? "and a restart " : ""}sessions end, traces and kept answers go, and times are the clock's`, async () => {
    await using cairn = await startCairn();
    await cairn.newKey();
    const headers = { "idempotency-key": "once" };
    const once = () => cairn.post("/v1/sessions", { agent_id: "agent", ttl_seconds: 3_600 }, { headers });
    const wrong = await ahead(cairn, once);
    if (restarts) await cairn.restart();
    const [now, oneSecondOn] = [0, 1_000].map((ms) => new Date(cairn.clock.now() + ms).toISOString());
    const session = await cairn.createSession({ ttl_seconds: 1 });
    expect(session).toMatchObject({ created_at: now, ttl_expires_at: oneSecondOn });
    expect(session.id > wrong.body.id).toBe(true);
    // A day has not passed, and never will before 2056.
    const again = await once();
    expect({ isReplay: isReplay(again), created_at: again.body.created_at }).toEqual({
      isReplay: false,
      created_at: now,
    });
    expect(isReplay(await once())).toBe(true);
    // A key is used now, not in 30 years.
    expect((await cairn.list("/v1/api_keys")).at(-1).last_used_at).toBe(now);

    cairn.clock.advance({ seconds: 1 });
    expect((await cairn.get(`/v1/sessions/${session.id}`)).status).toBe(404);
    await cairn.runTask("session expiry");
    expect(await cairn.traces(session.id)).toMatchObject([
      { action: "session.expired", timestamp: oneSecondOn },
      { action: "session.created", timestamp: now },
    ]);
    cairn.clock.advance({ days: 367 });
    await cairn.runTask("trace retention");
    await cairn.runTask("idempotency retention");
    expect(await cairn.traces(session.id)).toEqual([]);
    // The record of the wrong time keeps it.
    expect(await cairn.counts([traces.index.bySession, idempotency])).toEqual([1, 0]);
    expect(await cairn.findings()).toEqual([]);
  });
}

test("deliveries are counted in the hour of their own time, also after a clock that was 30 years ahead", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null));
  const { id } = await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["session.created"] }));
  const deliver = async () => (await cairn.createSession(), await cairn.deliver());
  await ahead(cairn, deliver);
  const counted = async () => {
    const { delivered, hours } = await cairn.ok(cairn.get(`/v1/webhooks/${id}/stats`));
    return [delivered, ...hours.flatMap((hour: { delivered: number }, i: number) => (hour.delivered > 0 ? [i] : []))];
  };
  expect(await counted()).toEqual([0]);
  await deliver();
  expect(await counted()).toEqual([1, 24]);
  cairn.clock.advance({ hours: 10 });
  expect(await counted()).toEqual([1, 14]);
  cairn.clock.advance({ hours: 15 });
  expect(await counted()).toEqual([0]);
});

test("failed attempts are counted in the hour of their own time, also after a clock that was 30 years ahead", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { id } = await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["session.created"] }));
  const fail = async () => (await cairn.createSession(), await cairn.deliver());
  await ahead(cairn, fail);
  const failed = async () => (await cairn.ok(cairn.get(`/v1/webhooks/${id}/stats`))).failed;
  expect([await failed(), (await cairn.ok(cairn.get("/v1/stats"))).deliveries.failed]).toEqual([0, 0]);
  await fail();
  expect([await failed(), (await cairn.ok(cairn.get("/v1/stats"))).deliveries.failed]).toEqual([1, 1]);
});

onEmbedded("it has backups")("a backup is shown with its own time, also after a clock that was 30 years ahead", async () => {
  await using cairn = await startCairn();
  await ahead(cairn, () => cairn.createSession());
  const { id, created_at } = await cairn.ok(cairn.post("/v1/backups"));
  expect(created_at).toBe(new Date(cairn.clock.now()).toISOString());
  // Its file has the time of the machine.
  expect(Date.parse((await endOf(cairn, id)).created_at)).toBeLessThan(cairn.clock.now() + YEARS_AHEAD_MS - HOUR_MS);
});

test("session keys and links that were made 30 years ahead open nothing once the clock is right, and are removed", async () => {
  await using cairn = await startCairn();
  const key = await cairn.newKey();
  const signIn = async () => (await cairn.ok(cairn.post("/v1/sign_in", {}, { key }))).key as string;
  const [session, link] = await ahead(cairn, async () => [await signIn(), await createLink(cairn.service, cairn.service.system)]);
  const status = async (presented: string) => (await cairn.get("/v1/sessions", { key: presented })).status;
  expect([await status(session), (await cairn.post("/v1/sign_in", {}, { key: link })).status]).toEqual([401, 401]);
  const now = await signIn();
  await cairn.runTask("key expiry");
  expect(await cairn.counts([apiKeys, apiKeys.index.byEnd])).toEqual([3, 1]);
  // Set back by an hour, the clock ends none.
  cairn.clock.set(cairn.clock.now() - HOUR_MS);
  await cairn.runTask("key expiry");
  expect([await status(now), await status(key)]).toEqual([200, 200]);
});

test("created_after and created_before go by the times of traces, sessions and memories, also where their ids are ahead", async () => {
  await using cairn = await startCairn();
  const reader = await cairn.newKey({ scopes: ["read"] });
  const made: { id: string; memory: string; at: number }[] = [];
  const make = async () => {
    const { id } = await cairn.createSession({ user_id: "ada" });
    const memory = await cairn.addMemory(id, "The parcel came.", { embed: false });
    made.push({ at: cairn.clock.now(), id, memory: memory.id });
  };
  const START = cairn.clock.now();
  for (const minutes of [0, 20, 40, 10, 30, 50, 5, 45, 90, 100]) {
    cairn.clock.set(START + minutes * 60_000);
    await make();
  }
  await ahead(cairn, make);
  for (const minutes of [110, 120, 115, 130]) {
    cairn.clock.set(START + minutes * 60_000);
    await make();
  }
  const iso = (minutes: number) => new Date(START + minutes * 60_000).toISOString();
  const bounds = [undefined, -1, 5, 10, 15, 39, 40, 41, 60, 95, 112, 116, 130, 200, 40 * 365 * 24 * 60];
  for (const after of bounds) {
    for (const before of bounds) {
      const expected = made
        .filter(({ at }) => (after === undefined || at > START + after * 60_000) && (before === undefined || at < START + before * 60_000))
        .toReversed();
      const query = `${after === undefined ? "" : `created_after=${iso(after)}&`}${before === undefined ? "" : `created_before=${iso(before)}&`}`;
      for (const filter of ["", "user_id=ada&", "action=session.created&user_id=ada&"]) {
        const pages = await pagesOf(cairn, `/v1/traces?limit=4&${query}${filter}`, { key: reader });
        const listed = pages.flatMap(({ data }) => data.map(({ session_id }: { session_id: string }) => session_id));
        const each = filter.includes("action") ? expected : expected.flatMap((one) => [one, one]);
        expect({ query, filter, listed }).toEqual({ query, filter, listed: each.map(({ id }) => id) });
      }
      for (const { list, name } of [
        { list: "sessions?", name: "id" },
        { list: "sessions?user_id=ada&agent_id=agent&", name: "id" },
        { list: "memory?", name: "memory" },
        { list: "memory?user_id=ada&type=general&", name: "memory" },
      ] as const) {
        const pages = await pagesOf(cairn, `/v1/${list}limit=4&${query}`, { key: reader });
        const listed = pages.flatMap(({ data }) => data.map(({ id }: { id: string }) => id));
        expect({ list, query, listed }).toEqual({ list, query, listed: expected.map((one) => one[name]) });
      }
    }
  }
});

test("deliveries are kept for 7 days and tried when they are due, also after a clock that was 30 years ahead", async () => {
  await using cairn = await startCairn({ environment: { webhooks: { retry_schedule: "1h,2h" } } });
  // The first time it asks for a pause, too.
  await using receiver = startReceiver(
    (_, count) => new Response(null, count === 1 ? { status: 503, headers: { "retry-after": "3600" } } : { status: 500 }),
  );
  const webhook = await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["session.created"] }));
  // Its first attempt fails then, and the next one would be an hour later, in 2056.
  await ahead(cairn, async () => (await cairn.createSession(), await cairn.deliver()));
  await cairn.createSession();
  await cairn.deliver();
  expect(receiver.events).toHaveLength(2);
  cairn.clock.advance({ hours: 2 });
  await cairn.runTask("webhook retention");
  await cairn.deliver();
  expect(receiver.events).toHaveLength(4);
  const shown = async () => await cairn.list(`/v1/webhooks/${webhook.id}/deliveries`);
  expect((await shown()).map(({ attempts }: { attempts: number }) => attempts)).toEqual([2, 2]);
  expect((await cairn.ok(cairn.get(`/v1/webhooks/${webhook.id}`))).failing_since).toBe("2026-05-07T08:00:00.000Z");

  for (let i = 0; i < 60; i++) await cairn.createSession();
  receiver.reply = () => new Response(null, { status: 200 });
  await cairn.deliver();
  cairn.clock.advance({ days: 7, ms: -1 });
  await cairn.runTask("webhook retention");
  expect(await shown()).not.toEqual([]);
  cairn.clock.advance({ hours: 3 });
  await cairn.runTask("webhook retention");
  expect(await shown()).toEqual([]);
  // What was posted under the wrong time keeps it.
  expect(await cairn.counts([deliveries, deliveries.index.due, deliveries.index.inLine, payloads])).toEqual([0, 0, 0, 1]);
});

onEmbedded("a server on a database has its time")("no time that a clock can show leads to an answer outside the error format", async () => {
  for (const time of [
    Number.NaN,
    Number.NEGATIVE_INFINITY,
    -1,
    0,
    0.5,
    Date.UTC(2073, 11, 31, 23, 59, 59, 999),
    Date.UTC(2081, 7, 5),
    62 ** 7 - 1,
    62 ** 7,
    Date.UTC(9999, 11, 31),
    8.64e15,
    8.64e15 + 1,
    Number.MAX_VALUE,
    Number.POSITIVE_INFINITY,
  ]) {
    await using cairn = await startCairn({ apiKey: `crn_${"a".repeat(24)}` });
    cairn.key = `crn_${"a".repeat(24)}`;
    cairn.clock.set(time);
    for (const step of [() => Promise.resolve(), () => cairn.restart()]) {
      await step();
      expect({ time, health: (await cairn.get("/health")).body.status }).toEqual({ time, health: "ready" });
      const { id } = await cairn.createSession({ ttl_seconds: 2_592_000 });
      await makeRecords(cairn, id, 1);
      await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { ttl_seconds: 60 }));
      await cairn.ok(cairn.post("/v1/api_keys", { tier: "pro" }));
      await cairn.ok(cairn.post("/v1/webhooks", { url: "https://hooks.example", events: ["session.created"] }));
      for (const path of [
        "/v1/sessions",
        "/v1/traces",
        "/v1/memory",
        `/v1/sessions/${id}/versions`,
        "/v1/traces?created_before=2080-01-01T00:00:00Z",
      ]) {
        expect({ time, path, count: (await cairn.list(path)).length > 0 }).toEqual({ time, path, count: true });
      }
      expect((await cairn.get("/v1/nothing")).body.error.code).toBe("resource_not_found");
      for (const { name } of cairn.service.tasks) if (name !== "webhook deliveries") await cairn.runTask(name);
    }
    expect(await cairn.findings()).toEqual([]);
    // What the right clock makes is right.
    cairn.clock.set("2026-05-07T08:00:00.000Z");
    expect(await cairn.createSession()).toMatchObject({ created_at: "2026-05-07T08:00:00.000Z" });
  }
});

onEmbedded("a server on a database has its time")("a clock that cannot be read is a 500 in the error format", async () => {
  class BrokenClock extends FakeClock {
    isBroken = false;
    override now(): number {
      if (this.isBroken) throw new Error("no clock");
      return super.now();
    }
    override elapsed(): number {
      if (this.isBroken) throw new Error("no clock");
      return super.elapsed();
    }
  }
  const clock = new BrokenClock();
  await using cairn = await startCairn({ clock });
  clock.isBroken = true;
  const answers = [await cairn.get("/health"), await cairn.get("/v1/sessions"), await cairn.post("/v1/sessions", { agent_id: "agent" })];
  clock.isBroken = false;
  for (const answer of answers) {
    expect({ ...refusal(answer), type: answer.headers.get("content-type") }).toEqual({
      status: 500,
      code: "internal_error",
      type: "application/json",
    });
  }
  expect((await cairn.get("/health")).status).toBe(200);
});

test("a store that holds the very last id refuses what needs one with 503, and is read all the same", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.service.store.commit(NO_PARTITION, (tx) => tx.put(payloads, "zzzzzzzzzzzz", '{"created_at":"2026-05-07T08:00:00.000Z"}'));
  await cairn.restart();
  const refused = await cairn.post(`/v1/sessions/${id}/state`, { state: { step: 1 } });
  expect({ ...refusal(refused), message: refused.body.error.message }).toEqual({
    status: 503,
    code: "service_unavailable",
    message: "No ids are left: the newest record has the last one.",
  });
  expect(refused.headers.get("x-request-id")).toMatch(/^req_/);
  expect((await cairn.get("/health")).status).toBe(200);
  expect(await cairn.session(id)).toMatchObject({ state_version: 0 });
});

test("a start says when the newest record is more than a day ahead of the clock, and when the clock shows no time that can be", async () => {
  await using cairn = await startCairn();
  await cairn.createSession();
  const warnings = () => cairn.logged.filter((line) => line.includes("clock")).map((line) => JSON.parse(line));
  const restartAt = async (instant: string) => {
    await cairn.close();
    cairn.clock.set(instant);
    cairn.logged.length = 0;
    await cairn.open();
    return warnings();
  };
  expect(await restartAt("2026-05-06T08:00:00.000Z")).toEqual([]);
  expect(await restartAt("2026-05-06T07:59:59.999Z")).toMatchObject([
    { level: "warn", newest: "2026-05-07T08:00:00.000Z", clock: "2026-05-06T07:59:59.999Z" },
  ]);
  expect(await restartAt("2026-06-01T00:00:00.000Z")).toEqual([]);
  // A millisecond can pass between any two looks.
  const { clock } = cairn;
  const now = clock.now.bind(clock);
  clock.now = () => {
    clock.advance({ ms: 1 });
    return now();
  };
  expect(await restartAt("2026-06-02T00:00:00.000Z")).toEqual([]);
  clock.now = now;
  expect(await restartAt("2093-01-01T00:00:00.000Z")).toMatchObject([
    { level: "warn", clock: "2093-01-01T00:00:00.000Z", used: "2074-01-01T00:00:00.000Z" },
  ]);
});
