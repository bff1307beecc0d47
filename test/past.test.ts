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
  expect(await cairn.findings()).toEqual([]);
});
