import { expect, test } from "bun:test";
import { pagesOf, refusal } from "./support/answers.ts";
import { roundsDuring } from "./support/loop.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { onEmbedded } from "./support/stores.ts";

const timeline = (cairn: Cairn, id: string, query = "") => cairn.list(`/v1/sessions/${id}/timeline?${query}`);
/** What stands for each entry when only the order matters. */
const briefly = (entries: any[]) =>
  entries.map(
    ({ kind, turn, version, memory, fork }) => `${kind} ${turn?.turn_number ?? version?.version ?? memory?.content ?? fork?.version}`,
  );

/** A session with something of each kind, in this order. */
async function story(cairn: Cairn) {
  const session = await cairn.createSession({ initial_state: { step: 0, seen: [] } });
  const { id } = session;
  const turn = await cairn.addTurn(id, "Where is my order?", "On its way.");
  await cairn.setState(id, { step: 1, order: "A-17" }, { reasoning: "The number was given." });
  const memory = await cairn.addMemory(id, "prefers e-mail");
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, { version: 1 }));
  await cairn.addTurn(id);
  await cairn.rollback(id, 0, { reason: "a slip" });
  return { session, id, turn, memory, fork };
}

test("the timeline has turns, versions with what changed, memories and forks, newest first or in their order", async () => {
  await using cairn = await startCairn();
  const { session, id, turn, memory, fork } = await story(cairn);
  const order = ["version 0", "turn 1", "version 1", "memory prefers e-mail", "fork 1", "turn 2", "version 2"];
  expect(briefly(await timeline(cairn, id, "order=asc"))).toEqual(order);
  expect(briefly(await timeline(cairn, id))).toEqual(order.toReversed());

  const entries = await timeline(cairn, id, "order=asc");
  const actor = cairn.key.slice(0, 8);
  const entry = (kind: string, recordId: string, record: object) => {
    return { object: "timeline_entry", id: recordId.replace(/^[a-z]+/, "entry"), kind, [kind]: record };
  };
  const created_at = session.created_at;
  const initial = {
    object: "version",
    version: 0,
    created_at,
    actor,
    source: "initial",
    state_diff: { added: { step: 0, seen: [] }, removed: {}, modified: {} },
  };
  expect(entries.slice(0, 2)).toEqual([entry("version", id, initial), entry("turn", turn.id, turn)]);
  expect(entries[2].version).toEqual({
    ...initial,
    version: 1,
    source: "update",
    reasoning: "The number was given.",
    state_diff: { added: { order: "A-17" }, removed: { seen: [] }, modified: { step: { from: 0, to: 1 } } },
  });
  expect(entries[3]).toEqual(entry("memory", memory.id, memory));
  expect(entries[4]).toEqual(entry("fork", fork.id, { session_id: fork.id, version: 1, created_at: fork.created_at }));
  expect(entries[6].version).toMatchObject({
    source: "rollback",
    restored_from_version: 0,
    reasoning: "a slip",
    state_diff: { added: { seen: [] }, modified: { step: { from: 1, to: 0 } } },
  });
});

test("the timeline can have some kinds alone, and other kinds are refused", async () => {
  await using cairn = await startCairn();
  const { id } = await story(cairn);
  expect(briefly(await timeline(cairn, id, "kinds=turn"))).toEqual(["turn 2", "turn 1"]);
  expect(briefly(await timeline(cairn, id, "kinds=memory,version,version"))).toEqual([
    "version 2",
    "memory prefers e-mail",
    "version 1",
    "version 0",
  ]);
  for (const kinds of ["", "turns", "turn,", "turn;fork"]) {
    expect([kinds, refusal(await cairn.get(`/v1/sessions/${id}/timeline?kinds=${kinds}`))]).toEqual([
      kinds,
      { status: 400, code: "invalid_request", param: "kinds" },
    ]);
  }
});

test("pages of any size have every entry once, both ways, whatever is added meanwhile, and start behind any id", async () => {
  await using cairn = await startCairn();
  const { id, memory } = await story(cairn);
  for (let step = 0; step < 60; step++) await (step % 3 === 0 ? cairn.addTurn(id) : cairn.setState(id, { step }));
  const path = `/v1/sessions/${id}/timeline`;
  const all = (await timeline(cairn, id, "limit=100")).map((entry) => entry.id);
  expect(all).toHaveLength(67);
  for (const order of ["asc", "desc"]) {
    for (const limit of [1, 7, 30]) {
      const pages = await pagesOf(cairn, `${path}?order=${order}&limit=${limit}`);
      const ids = pages.flatMap(({ data }) => data.map((entry: any) => entry.id));
      expect({ order, limit, ids }).toEqual({ order, limit, ids: order === "desc" ? all : all.toReversed() });
    }
  }
  const place = memory.id.replace("mem", "entry");
  await cairn.ok(cairn.delete(`/v1/memory/${memory.id}`));
  const at = all.indexOf(place);
  expect((await timeline(cairn, id, `starting_after=${place}&limit=2`)).map((entry) => entry.id)).toEqual(all.slice(at + 1, at + 3));
  expect((await timeline(cairn, id, `starting_after=${place}&order=asc&limit=1`)).map((entry) => entry.id)).toEqual([all[at - 1]!]);
  expect(await timeline(cairn, id, "starting_after=entry_000000000000")).toEqual([]);
  expect(await timeline(cairn, id, "starting_after=entry_zzzzzzzzzzzz&order=asc")).toEqual([]);
});

test("of versions the kept ones are in the timeline, and one whose predecessor is gone has no diff", async () => {
  await using cairn = await startCairn();
  await cairn.ok(cairn.patch("/v1/settings", { state_versions_kept: 2 }));
  const { id } = await cairn.createSession();
  for (let step = 1; step <= 6; step++) await cairn.setState(id, { step });
  const entries = await timeline(cairn, id, "order=asc");
  expect(entries.map(({ version }) => [version.version, version.state_diff?.modified ?? null])).toEqual([
    [0, {}],
    [5, null],
    [6, { step: { from: 5, to: 6 } }],
  ]);
  expect(briefly(await timeline(cairn, id, `starting_after=${entries[2].id}`))).toEqual(["version 5", "version 0"]);
  expect(briefly(await timeline(cairn, id, `starting_after=${entries[0].id}&order=asc`))).toEqual(["version 5", "version 6"]);
});

test("a page starts behind any id among hundreds of versions, of which the oldest are gone", async () => {
  await using cairn = await startCairn();
  await cairn.ok(cairn.patch("/v1/settings", { state_versions_kept: 250 }));
  const { id } = await cairn.createSession();
  for (let step = 1; step <= 300; step++) {
    await cairn.setState(id, { step });
    if (step % 50 === 7) await cairn.addTurn(id);
  }
  const all = (await pagesOf(cairn, `/v1/sessions/${id}/timeline?order=asc&limit=100`)).flatMap(({ data }) => data);
  const versions = all.filter(({ kind }) => kind === "version").map(({ version }) => version.version);
  expect(versions).toEqual([0, ...Array.from({ length: 250 }, (_, i) => i + 51)]);
  for (const at of [0, 1, 2, 90, 157, 158, 159, 255, 256]) {
    const next = async (order: string) =>
      (await timeline(cairn, id, `order=${order}&limit=3&starting_after=${all[at].id}`)).map(({ id }) => id);
    const ids = all.map(({ id }) => id);
    expect(await next("asc")).toEqual(ids.slice(at + 1, at + 4));
    expect(await next("desc")).toEqual(ids.slice(Math.max(0, at - 3), at).toReversed());
  }
});

test("a fork that is gone or has expired, and whatever is of another session, is in no timeline", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ ttl_seconds: 60 });
  const [first, second] = [await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`)), await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`))];
  await cairn.addTurn(first.id);
  expect(briefly(await timeline(cairn, id))).toEqual(["fork 0", "fork 0", "version 0"]);
  expect(briefly(await timeline(cairn, first.id))).toEqual(["turn 1", "version 0"]);
  await cairn.ok(cairn.delete(`/v1/sessions/${first.id}`));
  await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { ttl_seconds: 600 }));
  expect((await timeline(cairn, id))[0].fork.session_id).toBe(second.id);
  cairn.clock.advance({ seconds: 60 });
  expect(briefly(await timeline(cairn, id))).toEqual(["version 0"]);
  cairn.clock.advance({ seconds: 540 });
  expect(refusal(await cairn.get(`/v1/sessions/${id}/timeline`))).toMatchObject({ status: 404, code: "session_not_found" });
});

test("a page of versions that take long to compare ends early, and the next one continues there", async () => {
  await using cairn = await startCairn({ listProbesMax: 1_000 });
  const { id } = await cairn.createSession({ initial_state: { text: "x".repeat(60_000) } });
  for (let step = 1; step < 12; step++) await cairn.setState(id, { text: "x".repeat(60_000 + step) });
  const pages = await pagesOf(cairn, `/v1/sessions/${id}/timeline?kinds=version&limit=100`);
  expect(pages.length).toBeGreaterThan(3);
  expect(pages.flatMap(({ data }) => data.map(({ version }: any) => version.version))).toEqual(
    Array.from({ length: 12 }, (_, i) => 11 - i),
  );
});

test("the order is that in which things were made, also while the clock is set back, and after a restart", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.addTurn(id);
  cairn.clock.set(cairn.clock.now() - 60_000);
  await cairn.setState(id, { step: 1 });
  await cairn.restart();
  await cairn.addTurn(id);
  await cairn.setState(id, { step: 2 });
  expect(briefly(await timeline(cairn, id))).toEqual(["version 2", "turn 2", "version 1", "turn 1", "version 0"]);
});

test("sessions are listed by the one they were forked from, whatever their metadata says", async () => {
  await using cairn = await startCairn();
  const source = await cairn.createSession();
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${source.id}/fork`));
  await cairn.createSession({ metadata: { forked_from: source.id } });
  await cairn.ok(cairn.patch(`/v1/sessions/${fork.id}`, { metadata: { forked_from: null } }));
  const ofFork = await cairn.ok(cairn.post(`/v1/sessions/${fork.id}/fork`));
  const ids = async (query: string) => (await cairn.list(`/v1/sessions?${query}`)).map((session) => session.id);
  expect([await ids(`forked_from=${source.id}`), await ids(`forked_from=${fork.id}`)]).toEqual([[fork.id], [ofFork.id]]);
  expect(await ids(`forked_from=${source.id}&agent_id=other`)).toEqual([]);
  expect([await ids("forked_from=nothing"), await ids("forked_from=sess_000000000000")]).toEqual([[], []]);
  await cairn.ok(cairn.delete(`/v1/sessions/${source.id}`));
  expect(await ids(`forked_from=${source.id}`)).toEqual([fork.id]);
});

onEmbedded("an answer of a database lets others through anyway")("timelines that are asked for at once wait for their turns", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const plain = await roundsDuring(cairn.get(`/v1/sessions/${id}/versions`));
  expect(await roundsDuring(cairn.get(`/v1/sessions/${id}/timeline`))).toBeGreaterThan(plain);
});
