import { expect, test } from "bun:test";
import { branches, turns } from "../src/storage/tables.ts";
import { pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { SESSION_ENDS } from "./support/session-ends.ts";

const say = (content: string, more: object = {}) => ({ input: { type: "text", content }, output: { type: "text", content: "" }, ...more });
const saidIn = (turns: readonly any[]): string[] => turns.map(({ input }) => input.content);

/** Logs turns, each in a request. */
async function log(cairn: Cairn, id: string, ...contents: string[]): Promise<any[]> {
  const added: any[] = [];
  for (const content of contents) added.push(await cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, say(content))));
  return added;
}

const setState = (cairn: Cairn, id: string) => cairn.setState(id, { at: Math.random() });
const rollback = (cairn: Cairn, id: string, version: number, turns: "keep" | "hide" = "hide") =>
  cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version, turns }));
const fork = (cairn: Cairn, id: string, body: object = { turns: "all" }) => cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, body));

/** The turns that a session shows, oldest first, as each of the reads of it has them: they have to be the same. */
async function shown(cairn: Cairn, id: string): Promise<string[]> {
  const path = `/v1/sessions/${id}`;
  const pages = async (query: string) => (await pagesOf(cairn, `${path}/${query}`)).flatMap(({ data }) => data);
  const listed = saidIn(await pages("turns?order=asc&limit=2"));
  const context = await cairn.ok(cairn.post(`${path}/context`, { turn_limit: 50 }));
  expect(saidIn(context.recent_turns)).toEqual(listed.toReversed().slice(0, 50));
  expect(saidIn(await pages("turns?limit=3"))).toEqual(listed.toReversed());
  for (const order of ["asc", "desc"]) {
    const timeline = (await pages(`timeline?kinds=turn&limit=2&order=${order}`)).map(({ turn }) => turn.input.content);
    expect(timeline).toEqual(order === "asc" ? listed : listed.toReversed());
  }
  expect((await cairn.session(id)).turn_count).toBe(listed.length);
  return listed;
}

const all = async (cairn: Cairn, id: string) => saidIn(await cairn.list(`/v1/sessions/${id}/turns?status=all&order=asc&limit=100`));

test("a rollback leaves turns as they are, unless it is to hide those that were logged since", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await log(cairn, id, "one");
  await setState(cairn, id);
  const [two] = await log(cairn, id, "two");
  await rollback(cairn, id, 0, "keep");
  const [three] = await log(cairn, id, "three");
  expect(await shown(cairn, id)).toEqual(["one", "two", "three"]);
  cairn.clock.advance({ seconds: 60 });
  await rollback(cairn, id, 1);
  expect(await shown(cairn, id)).toEqual(["one", "two"]);
  expect(await all(cairn, id)).toEqual(["one", "two", "three"]);
  expect((await cairn.traces(id, "state.rolled_back"))[0].details).toEqual({ from_version: 2, to_version: 1, reason: null, turns: "hide" });
  const hidden = { ...three, rolled_back_at: "2026-05-07T08:01:00.000Z" };
  expect((await cairn.get(`/v1/sessions/${id}/turns/${three.id}`)).body).toEqual(hidden);
  expect((await cairn.list(`/v1/sessions/${id}/turns?status=all`))[0]).toEqual(hidden);
  const [entry] = await cairn.list(`/v1/sessions/${id}/timeline?kinds=turn&status=all`);
  expect(entry.turn).toEqual(hidden);
  expect((await cairn.get(`/v1/sessions/${id}/turns/${two.id}`)).body).toEqual(two);
  const [four] = await log(cairn, id, "four");
  expect(four).toMatchObject({ turn_number: 4, state_version: 3 });
  expect(await shown(cairn, id)).toEqual(["one", "two", "four"]);
  await cairn.restart();
  expect(await shown(cairn, id)).toEqual(["one", "two", "four"]);
  expect(await cairn.findings()).toEqual([]);
});

test("what is shown belongs to a version: a later rollback brings hidden turns back", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await log(cairn, id, "a0");
  await setState(cairn, id);
  await log(cairn, id, "b1");
  await setState(cairn, id);
  await log(cairn, id, "c2");
  cairn.clock.advance({ seconds: 1 });
  await rollback(cairn, id, 0); // 3
  await log(cairn, id, "d3");
  expect(await shown(cairn, id)).toEqual(["a0", "d3"]);
  cairn.clock.advance({ seconds: 1 });
  await rollback(cairn, id, 2); // 4
  expect(await shown(cairn, id)).toEqual(["a0", "b1", "c2"]);
  await log(cairn, id, "e4");
  cairn.clock.advance({ seconds: 1 });
  await rollback(cairn, id, 3); // 5
  expect(await shown(cairn, id)).toEqual(["a0", "d3"]);
  // With keep nothing changes, whatever the version showed.
  await rollback(cairn, id, 4, "keep"); // 6
  expect(await shown(cairn, id)).toEqual(["a0", "d3"]);
  await setState(cairn, id); // 7
  await log(cairn, id, "f7");
  cairn.clock.advance({ seconds: 1 });
  await rollback(cairn, id, 4); // 8
  expect(await shown(cairn, id)).toEqual(["a0", "b1", "c2", "e4"]);
  await rollback(cairn, id, 6); // 9
  expect(await shown(cairn, id)).toEqual(["a0", "d3"]);
  const when = (await cairn.list(`/v1/sessions/${id}/turns?status=all&order=asc`)).map(({ input, rolled_back_at }) => [
    input.content,
    rolled_back_at,
  ]);
  expect(when).toEqual([
    ["a0", undefined],
    ["b1", "2026-05-07T08:00:04.000Z"],
    ["c2", "2026-05-07T08:00:04.000Z"],
    ["d3", undefined],
    ["e4", "2026-05-07T08:00:04.000Z"],
    // Hidden before the last rollback, and not shown in between.
    ["f7", "2026-05-07T08:00:04.000Z"],
  ]);
  await rollback(cairn, id, -1); // 10: to 8
  expect(await shown(cairn, id)).toEqual(["a0", "b1", "c2", "e4"]);
  await rollback(cairn, id, 7); // 11
  expect(await shown(cairn, id)).toEqual(["a0", "d3", "f7"]);
  expect(await cairn.findings()).toEqual([]);
});

test("turns are hidden back to version 0 when later versions are not kept any more", async () => {
  await using cairn = await startCairn({ environment: { state_versions_kept: 2 } });
  const { id } = await cairn.createSession();
  await log(cairn, id, "at first");
  for (let i = 0; i < 12; i++) {
    await setState(cairn, id);
    await log(cairn, id, `later ${i}`);
  }
  await rollback(cairn, id, 0);
  expect(await shown(cairn, id)).toEqual(["at first"]);
});

test("a fork shows the turns that its parent showed at that version, by the same ids and numbers, and goes on from there", async () => {
  await using cairn = await startCairn();
  const parent = await cairn.createSession({ user_id: "ada" });
  const { id } = parent;
  const [one, two] = await log(cairn, id, "one", "two");
  await setState(cairn, id);
  await log(cairn, id, "three");
  await rollback(cairn, id, 0);
  const [four] = await log(cairn, id, "four");
  await setState(cairn, id);
  await log(cairn, id, "five");

  const made = await fork(cairn, id, { version: 2, turns: "all" });
  expect(made).toMatchObject({ turn_count: 3, state_version: 0 });
  expect(await shown(cairn, made.id)).toEqual(["one", "two", "four"]);
  expect((await cairn.traces(made.id, "session.forked"))[0].details).toMatchObject({ fork_version: 2, turns: "all" });
  const listed = await cairn.list(`/v1/sessions/${made.id}/turns?order=asc`);
  const ofFork = (turn: any) => ({ ...turn, session_id: made.id, forked_from: id, state_version: 0 });
  expect(listed).toEqual([one, two, four].map(ofFork));
  expect((await cairn.get(`/v1/sessions/${made.id}/turns/${four.id}`)).body).toEqual(ofFork(four));
  // What the parent has hidden, or logged since, is not the fork's.
  expect(await all(cairn, made.id)).toEqual(["one", "two", "four"]);
  for (const turn of (await cairn.list(`/v1/sessions/${id}/turns?status=all`)).filter(({ input }) =>
    ["three", "five"].includes(input.content),
  ))
    expect(refusal(await cairn.get(`/v1/sessions/${made.id}/turns/${turn.id}`))).toMatchObject({ status: 404, code: "turn_not_found" });

  const [own] = await log(cairn, made.id, "of the fork");
  expect(own).toMatchObject({ turn_number: four.turn_number + 1, session_id: made.id, state_version: 0 });
  expect(own.forked_from).toBeUndefined();
  await rollback(cairn, id, 0);
  await log(cairn, id, "of the parent");
  expect(await shown(cairn, made.id)).toEqual(["one", "two", "four", "of the fork"]);
  expect(await shown(cairn, id)).toEqual(["one", "two", "of the parent"]);

  const again = await fork(cairn, made.id);
  await log(cairn, again.id, "of the fork's fork");
  expect(await shown(cairn, again.id)).toEqual(["one", "two", "four", "of the fork", "of the fork's fork"]);
  const from = (await cairn.list(`/v1/sessions/${again.id}/turns?order=asc`)).map(({ forked_from }) => forked_from);
  expect(from).toEqual([made.id, made.id, made.id, made.id, undefined]);
  expect(await cairn.findings()).toEqual([]);
});

test("a fork can begin with the newest turns alone, or without any", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await log(cairn, id, "one", "two", "three", "four");
  for (const [turns, expected] of [
    ["none", []],
    [0, []],
    [1, ["four"]],
    [3, ["two", "three", "four"]],
    [4, ["one", "two", "three", "four"]],
    [1_000, ["one", "two", "three", "four"]],
    [undefined, []],
  ] as const)
    expect(await shown(cairn, (await fork(cairn, id, { turns })).id)).toEqual([...expected]);
  const few = await fork(cairn, id, { turns: 2 });
  await log(cairn, few.id, "five");
  expect(await shown(cairn, (await fork(cairn, few.id)).id)).toEqual(["three", "four", "five"]);
  expect(await shown(cairn, (await fork(cairn, few.id, { turns: 2 })).id)).toEqual(["four", "five"]);
  const fewer = await fork(cairn, few.id, { turns: 2 });
  expect(await shown(cairn, (await fork(cairn, fewer.id)).id)).toEqual(["four", "five"]);
  for (const turns of [-1, 1_001, "some", 1.5])
    expect(refusal(await cairn.post(`/v1/sessions/${id}/fork`, { turns }))).toEqual({
      status: 400,
      code: "invalid_request",
      param: "turns",
    });
  expect(await cairn.findings()).toEqual([]);
});

test("a fork rolls back to what it began with, and hides none of its parent's turns", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await log(cairn, id, "one", "two");
  const made = await fork(cairn, id);
  await log(cairn, made.id, "own at 0");
  await setState(cairn, made.id);
  await log(cairn, made.id, "own at 1");
  await rollback(cairn, made.id, 0);
  expect(await shown(cairn, made.id)).toEqual(["one", "two", "own at 0"]);
  expect(await all(cairn, made.id)).toEqual(["one", "two", "own at 0", "own at 1"]);
  expect(await shown(cairn, (await fork(cairn, made.id)).id)).toEqual(["one", "two", "own at 0"]);
  expect(await shown(cairn, (await fork(cairn, made.id, { version: 1, turns: 2 })).id)).toEqual(["own at 0", "own at 1"]);
});

for (const [name, end] of Object.entries(SESSION_ENDS)) {
  test(`after the ${name} of its parent a fork has its turns still, and what nobody shows is gone`, async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession({ user_id: "ada" });
    const texts = Array.from({ length: 30 }, (_, i) => `turn ${i}`);
    await log(cairn, id, ...texts);
    const made = await fork(cairn, id);
    const few = await fork(cairn, made.id, { turns: 5 });
    await log(cairn, few.id, "own");
    await log(cairn, id, ...Array.from({ length: 250 }, (_, i) => `after the fork ${i}`));
    const removed = async () => {
      for (let i = 0; i < 6; i++) await cairn.runTask("session removal");
    };
    await end(cairn, id);
    await removed();
    expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
    expect(await shown(cairn, made.id)).toEqual(texts);
    expect(await shown(cairn, few.id)).toEqual([...texts.slice(25), "own"]);
    expect(await cairn.count(turns)).toBe(31);
    expect(await cairn.findings()).toEqual([]);
    // The one in between goes: its own fork keeps what it shows.
    await end(cairn, made.id);
    await removed();
    expect(await shown(cairn, few.id)).toEqual([...texts.slice(25), "own"]);
    const last = await fork(cairn, few.id);
    await end(cairn, few.id);
    await removed();
    expect(await shown(cairn, last.id)).toEqual([...texts.slice(25), "own"]);
    expect(await cairn.count(turns)).toBe(6);
    expect(await cairn.findings()).toEqual([]);
    await end(cairn, last.id);
    await removed();
    expect(await cairn.counts([turns, branches, branches.index.byParent])).toEqual([0, 0, 0]);
    expect(await cairn.findings()).toEqual([]);
  });
}

test("the erasure of a user takes forks and what they show, in whichever order, and counts each turn once", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  await log(cairn, id, "one", "two");
  const made = await fork(cairn, id);
  await log(cairn, made.id, "three");
  await fork(cairn, made.id);
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  expect(await cairn.count(turns)).toBe(3);
  const erased = await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(erased).toMatchObject({ turns: 1, sessions: 2 });
  for (let i = 0; i < 4; i++) await cairn.runTask("user erasure");
  expect(await cairn.counts([turns, branches])).toEqual([0, 0]);
});

test("forking a session with many turns writes as much as forking one with few", async () => {
  await using cairn = await startCairn();
  const written: number[] = [];
  for (const count of [10, 1_000]) {
    const { id } = await cairn.createSession();
    for (let done = 0; done < count; done += 100)
      await cairn.ok(
        cairn.post(`/v1/sessions/${id}/turns/batch`, { turns: Array.from({ length: Math.min(100, count) }, (_, i) => say(`${i}`)) }),
      );
    const before = cairn.service.store.bytesWritten;
    expect(await fork(cairn, id)).toMatchObject({ turn_count: count });
    written.push(cairn.service.store.bytesWritten - before);
  }
  // Digits of counts and numbers.
  expect(Math.abs(written[1]! - written[0]!)).toBeLessThan(50);
});

test("an external_id is unique among the turns that a fork shows, too, and those that a session has hidden", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const path = `/v1/sessions/${id}/turns`;
  const named = await cairn.ok(cairn.post(path, say("one", { external_id: "1" })));
  await setState(cairn, id);
  await cairn.ok(cairn.post(path, say("two", { external_id: "2" })));
  const made = await fork(cairn, id, { version: 0, turns: "all" });
  const again = await cairn.post(`/v1/sessions/${made.id}/turns`, say("again", { external_id: "1" }));
  expect(again).toMatchObject({ status: 200, body: { id: named.id, session_id: made.id, forked_from: id } });
  // The fork does not show that one.
  expect(await cairn.post(`/v1/sessions/${made.id}/turns`, say("own", { external_id: "2" }))).toMatchObject({ status: 201 });
  await rollback(cairn, id, 0);
  const hidden = await cairn.post(path, say("again", { external_id: "2" }));
  expect(hidden).toMatchObject({ status: 200, body: { input: { content: "two" } } });
  expect(hidden.body.rolled_back_at).toBeString();
});

test("turns with times of their own are in order in forks and after rollbacks, too", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const add = (session: string, content: string, occurred_at?: string) =>
    cairn.ok(cairn.post(`/v1/sessions/${session}/turns`, say(content, { occurred_at })));
  await add(id, "now");
  await add(id, "in june", "2025-06-01T00:00:00Z");
  await setState(cairn, id);
  await add(id, "in july", "2025-07-01T00:00:00Z");
  const made = await fork(cairn, id);
  cairn.clock.advance({ seconds: 1 });
  await add(made.id, "later");
  await add(made.id, "end of june", "2025-06-30T00:00:00Z");
  await add(id, "in may", "2025-05-01T00:00:00Z");
  const context = async (session: string) =>
    saidIn((await cairn.ok(cairn.post(`/v1/sessions/${session}/context`, {}))).recent_turns).toReversed();
  expect(await context(made.id)).toEqual(["in june", "end of june", "in july", "now", "later"]);
  expect(await context(id)).toEqual(["in may", "in june", "in july", "now"]);
  await rollback(cairn, id, 0);
  expect(await context(id)).toEqual(["in june", "now"]);
  const timeline = (await pagesOf(cairn, `/v1/sessions/${made.id}/timeline?kinds=turn&order=asc&limit=2`)).flatMap(({ data }) => data);
  expect(timeline.map(({ turn }) => turn.input.content)).toEqual(await context(made.id));
});
