import { expect, test } from "bun:test";
import { pagesOf } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";

const YEAR = 2023;
const dayOf = (day: number) => new Date(Date.UTC(YEAR, 0, 1 + day, 12)).toISOString();
const turnOf = (day: number) => ({
  external_id: `message ${day}`,
  occurred_at: dayOf(day),
  input: { type: "text", content: `Question of day ${day}` },
  output: { type: "text", content: `Answer of day ${day}` },
});
/** As an archive may come: the months from the last to the first, each in its order. */
const DAYS = Array.from({ length: 12 }, (_, month) => 11 - month).flatMap((month) => {
  const first = Math.round((Date.UTC(YEAR, month) - Date.UTC(YEAR, 0)) / 86_400_000);
  const length = new Date(Date.UTC(YEAR, month + 1, 0)).getUTCDate();
  return Array.from({ length }, (_, day) => first + day);
});
const batchesOf = <Item>(all: readonly Item[], length: number) =>
  Array.from({ length: Math.ceil(all.length / length) }, (_, i) => all.slice(i * length, (i + 1) * length));

test("a year of conversation is moved in at its times: lists are in the order of the import, contexts and timelines in that of the year", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada", ttl_seconds: "never", occurred_at: dayOf(0) });
  expect(session).toMatchObject({ occurred_at: dayOf(0), created_at: "2026-05-07T08:00:00.000Z" });
  const path = `/v1/sessions/${session.id}`;
  const move = async () => {
    for (const batch of batchesOf(DAYS, 100)) {
      await cairn.ok(cairn.post(`${path}/turns/batch`, { turns: batch.map(turnOf) }));
      cairn.clock.advance({ seconds: 1 });
    }
  };
  await move();
  const facts = batchesOf(DAYS, 31).map((days) => ({
    user_id: "ada",
    external_id: `fact ${days[0]}`,
    source: "import",
    occurred_at: dayOf(days[0]!),
    content: `Ada's mood of day ${days[0]} was good.`,
  }));
  await cairn.ok(cairn.post("/v1/memory/batch", { memories: facts }));
  // An import that was cut off is sent again, whole, and adds nothing.
  await move();

  const pages = async (query: string) => (await pagesOf(cairn, `${path}/${query}`)).flatMap(({ data }) => data);
  const inOrder = DAYS.toSorted((a, b) => a - b);
  const listed = await pages("turns?order=asc&limit=100");
  expect(listed.map(({ turn_number, external_id }) => [turn_number, external_id])).toEqual(DAYS.map((day, i) => [i + 1, `message ${day}`]));
  expect((await pages("turns?limit=100")).map(({ id }) => id)).toEqual(listed.map(({ id }) => id).toReversed());
  for (const order of ["asc", "desc"]) {
    const timeline = (await pages(`timeline?kinds=turn&limit=100&order=${order}`)).map(({ turn }) => turn.occurred_at);
    expect(timeline).toEqual((order === "asc" ? inOrder : inOrder.toReversed()).map(dayOf));
  }
  const contextOf = async () => (await cairn.context(session.id, { turn_limit: 50 })).recent_turns.map((turn: any) => turn.input.content);
  const newest = inOrder.toReversed().map((day) => `Question of day ${day}`);
  expect(await contextOf()).toEqual(newest.slice(0, 50));
  // What is said now is newer than all of it.
  await cairn.addTurn(session.id, "Hello again");
  expect(await contextOf()).toEqual(["Hello again", ...newest.slice(0, 49)]);

  expect(await cairn.session(session.id)).toMatchObject({ turn_count: DAYS.length + 1, occurred_at: dayOf(0) });
  const memories = await cairn.list("/v1/memory?user_id=ada&limit=100");
  expect(memories.map(({ external_id, occurred_at }) => [external_id, occurred_at])).toEqual(
    facts.map(({ external_id, occurred_at }) => [external_id, occurred_at]).toReversed(),
  );
  const happened = facts.map(({ content }) => content).reverse();
  happened.sort((a, b) => Number(b.match(/\d+/)) - Number(a.match(/\d+/)));
  const { memories: shown } = await cairn.context(session.id, { memory_limit: 20 });
  expect(shown.map(({ content }: any) => content)).toEqual(happened);
  expect(await cairn.findings()).toEqual([]);
});

test("memories with a time of their own stand among the others where they happened: in contexts without a query, of each scope, and in timelines", async () => {
  await using cairn = await startCairn();
  const nobodys = await cairn.createSession({ agent_id: "bob" });
  const adas = await cairn.createSession({ agent_id: "bob", user_id: "ada" });
  const owners = { session: { session_id: nobodys.id }, user: { user_id: "ada", agent_id: "bob" }, agent: { agent_id: "bob" } };
  const add = async (owner: object, content: string, more: object = {}) => {
    cairn.clock.advance({ seconds: 60 });
    return cairn.ok(cairn.post("/v1/memory", { ...owner, content, ...more }));
  };
  for (const [name, owner] of Object.entries(owners)) {
    await add(owner, `${name}: first`);
    await add(owner, `${name}: last summer`, { occurred_at: "2025-07-01T10:00:00Z", metadata: { trip: true } });
    await add(owner, `${name}: second`, { metadata: { trip: true } });
    await add(owner, `${name}: before computers`, { occurred_at: "1801-01-01T00:00:00Z" });
    await add(owner, `${name}: last winter`, { occurred_at: "2026-01-01T00:00:00Z" });
    await add(owner, `${name}: gone`, { occurred_at: "2026-02-01T00:00:00Z", valid_until: "2026-03-01T00:00:00Z" });
  }
  const contextOf = async (session: string, asked: Record<string, unknown> = {}) => {
    const { memories } = await cairn.context(session, asked);
    return memories.map(({ content }: any) => content);
  };
  const order = ["second", "first", "last winter", "last summer", "before computers"];
  const of = (name: string, contents = order) => contents.map((content) => `${name}: ${content}`);
  expect(await contextOf(nobodys.id, { memory_limit: 10 })).toEqual(of("session"));
  expect(await contextOf(nobodys.id, { memory_limit: 3 })).toEqual(of("session").slice(0, 3));
  expect(await contextOf(adas.id, { memory_limit: 10, query: " " })).toEqual(of("user"));
  expect(await contextOf(adas.id, { memory_limit: 4, filter: { "metadata.trip": true } })).toEqual(of("user", ["second", "last summer"]));
  expect(await contextOf(adas.id, { memory_limit: 2, filter: { occurred_at: { $lt: "2026-01-01T00:00:00Z" } } })).toEqual(
    of("user", ["last summer", "before computers"]),
  );
  // Those of nobody with this agent are of the scope, too: also the ones of a session without a user.
  const agents = await contextOf(adas.id, { memory_scope: "agent", memory_limit: 20 });
  const each = order.flatMap((content) => ["agent", "user", "session"].map((name) => `${name}: ${content}`));
  expect(agents.toSorted()).toEqual(each.toSorted());
  expect(agents.slice(6)).toEqual(each.slice(6));

  const fork = await cairn.ok(cairn.post(`/v1/sessions/${nobodys.id}/fork`, { memories: "session" }));
  await add({ session_id: nobodys.id }, "session: later", { occurred_at: "2026-04-01T00:00:00Z" });
  await add({ session_id: fork.id }, "fork: in spring", { occurred_at: "2026-04-15T00:00:00Z" });
  const happened = ["session: second", "session: first", "fork: in spring", ...of("session", order.slice(2))];
  expect(await contextOf(fork.id, { memory_limit: 10 })).toEqual(happened);
  const timelineOf = async (order: "asc" | "desc", limit: number) =>
    (await pagesOf(cairn, `/v1/sessions/${fork.id}/timeline?kinds=memory&order=${order}&limit=${limit}`))
      .flatMap(({ data }) => data)
      .map(({ memory }) => memory.content);
  const timeline = happened.toSpliced(3, 0, "session: gone");
  for (const limit of [1, 2, 100]) {
    expect(await timelineOf("desc", limit)).toEqual(timeline);
    expect(await timelineOf("asc", limit)).toEqual(timeline.toReversed());
  }
  await add({ session_id: nobodys.id }, "session: pinned now", { pinned: true });
  await add({ session_id: nobodys.id }, "session: pinned of long ago", { pinned: true, occurred_at: "1990-01-01T00:00:00Z" });
  expect(await contextOf(nobodys.id, { memory_limit: 1 })).toEqual([
    "session: pinned now",
    "session: pinned of long ago",
    "session: second",
  ]);
  expect(await cairn.findings()).toEqual([]);
});
