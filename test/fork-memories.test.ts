import { expect, test } from "bun:test";
import { LIMITS } from "../src/lib/limits.ts";
import { branches, memories } from "../src/storage/tables.ts";
import { pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { SESSION_ENDS } from "./support/session-ends.ts";

const fork = (cairn: Cairn, id: string, body: object = { memories: "session" }) => cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, body));
const contentsOf = (all: readonly any[]): string[] => all.map(({ content }) => content as string).toSorted((a, b) => (a < b ? -1 : 1));

/** The memories that a session shows, as each of the reads of it has them: they have to be the same. */
async function shown(cairn: Cairn, id: string, hasUser = false): Promise<string[]> {
  const pages = async (path: string) => (await pagesOf(cairn, path)).flatMap(({ data }) => data);
  const listed = contentsOf(await pages(`/v1/memory?session_id=${id}&limit=2`));
  const found = await cairn.ok(cairn.post("/v1/memory/search", { query: "tea", session_id: id, threshold: 0, limit: 50 }));
  expect(contentsOf(found.data)).toEqual(listed);
  for (const order of ["asc", "desc"]) {
    const timeline = await pages(`/v1/sessions/${id}/timeline?kinds=memory&limit=2&order=${order}`);
    expect(contentsOf(timeline.map(({ memory }) => memory))).toEqual(listed);
  }
  if (!hasUser)
    for (const query of [undefined, "tea"])
      expect(contentsOf((await cairn.context(id, { memory_limit: 20, ...(query && { query }) })).memories)).toEqual(listed);
  return listed;
}

const add = async (cairn: Cairn, id: string, ...contents: string[]): Promise<any[]> => {
  const added: any[] = [];
  for (const content of contents) added.push(await cairn.addMemory(id, content));
  return added;
};

test("a fork shows the memories that its parent has, the same ones, and neither shows what the other gets later", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const [green] = await add(cairn, id, "green tea", "black tea");
  const plain = await fork(cairn, id, {});
  const made = await fork(cairn, id);
  expect(made).toMatchObject({ memory_count: 0, turn_count: 0 });
  expect((await cairn.traces(made.id, "session.forked"))[0].details).toMatchObject({ memories: "session" });
  await add(cairn, id, "white tea");
  await add(cairn, made.id, "red tea");
  expect(await shown(cairn, plain.id)).toEqual([]);
  expect(await shown(cairn, made.id)).toEqual(["black tea", "green tea", "red tea"]);
  expect(await shown(cairn, id)).toEqual(["black tea", "green tea", "white tea"]);
  // One record: what was added to the parent says so, and an edit is seen in both.
  const listed = await cairn.list(`/v1/memory?session_id=${made.id}`);
  expect(listed.find((memory) => memory.id === green.id)).toEqual(green);
  await cairn.ok(cairn.patch(`/v1/memory/${green.id}`, { content: "green tea, without sugar" }));
  expect(await shown(cairn, made.id)).toEqual(["black tea", "green tea, without sugar", "red tea"]);
  await cairn.ok(cairn.delete(`/v1/memory/${green.id}`));
  expect(await shown(cairn, made.id)).toEqual(["black tea", "red tea"]);
  expect(await cairn.count(memories)).toBe(3);

  const again = await fork(cairn, made.id);
  await add(cairn, made.id, "no tea");
  await add(cairn, again.id, "tea with milk");
  expect(await shown(cairn, again.id)).toEqual(["black tea", "red tea", "tea with milk"]);
  await cairn.restart();
  expect(await shown(cairn, again.id)).toEqual(["black tea", "red tea", "tea with milk"]);
  expect(await cairn.findings()).toEqual([]);
});

test("turns and memories of a fork are chosen each for itself, and memories are those of now, whichever version it begins with", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.addTurn(id, "one", "");
  await cairn.setState(id, { step: 1 });
  await add(cairn, id, "learned at version 1");
  await cairn.addTurn(id, "two", "");
  const both = await fork(cairn, id, { version: 0, turns: "all", memories: "session" });
  expect(both).toMatchObject({ turn_count: 1, memory_count: 0 });
  expect(await shown(cairn, both.id)).toEqual(["learned at version 1"]);
  const own = await cairn.addTurn(both.id, "own", "");
  expect(own).toMatchObject({ turn_number: 2 });
  const alone = await fork(cairn, both.id, { turns: "none", memories: "session" });
  expect(await cairn.addTurn(alone.id, "first", "")).toMatchObject({ turn_number: 1 });
  expect(await cairn.list(`/v1/sessions/${alone.id}/turns`)).toHaveLength(1);
  await cairn.setState(alone.id, { step: 1 });
  await cairn.rollback(alone.id, 0, { turns: "hide" });
  expect(await shown(cairn, alone.id)).toEqual(["learned at version 1"]);
  expect(await cairn.findings()).toEqual([]);
});

test("in a fork a memory stays current that one which its parent got later has superseded; one of the fork's own supersedes it", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const [turin, green] = await add(cairn, id, "lives in Turin", "green tea");
  const made = await fork(cairn, id);
  await cairn.ok(cairn.post("/v1/memory", { session_id: id, content: "lives in Trieste", supersedes: [turin.id] }));
  expect(await shownCurrent(cairn, id)).toEqual(["green tea", "lives in Trieste"]);
  expect(await shownCurrent(cairn, made.id)).toEqual(["green tea", "lives in Turin"]);
  await cairn.ok(cairn.post("/v1/memory", { session_id: made.id, content: "no tea", supersedes: [green.id] }));
  expect(await shownCurrent(cairn, made.id)).toEqual(["lives in Turin", "no tea"]);
});

/** The same without the timeline, which has all that were added. */
async function shownCurrent(cairn: Cairn, id: string): Promise<string[]> {
  const listed = contentsOf(await cairn.list(`/v1/memory?session_id=${id}`));
  expect(contentsOf((await cairn.context(id, { query: "tea" })).memories)).toEqual(listed);
  return listed;
}

for (const [name, end] of Object.entries(SESSION_ENDS)) {
  test(`after the ${name} of its parent with its memories a fork has them still, and what nobody shows is gone`, async () => {
    await using cairn = await startCairn();
    await cairn.ok(cairn.patch("/v1/settings", { memories_on_expiry: "delete" }));
    const { id } = await cairn.createSession({ user_id: "ada" });
    const begun = Array.from({ length: 10 }, (_, i) => `tea ${i}`);
    await add(cairn, id, ...begun);
    const made = await fork(cairn, id);
    const bare = await fork(cairn, id, { turns: "all" });
    await add(cairn, made.id, "tea of the fork");
    const last = await fork(cairn, made.id);
    const batch = Array.from({ length: 100 }, (_, i) => ({ session_id: id, content: `later ${i}`, embed: false }));
    for (let i = 0; i < 3; i++) await cairn.ok(cairn.post("/v1/memory/batch", { memories: batch }));
    const removed = async () => {
      for (let i = 0; i < 6; i++) await cairn.runTask("session removal");
    };
    await end(cairn, id);
    // At once, while records of it are there still.
    expect(await shown(cairn, made.id, true)).toEqual([...begun, "tea of the fork"]);
    expect(await cairn.list("/v1/memory?user_id=ada&limit=100")).toHaveLength(11);
    await removed();
    expect(await shown(cairn, made.id, true)).toEqual([...begun, "tea of the fork"]);
    expect(await shown(cairn, last.id, true)).toEqual([...begun, "tea of the fork"]);
    expect(await shown(cairn, bare.id, true)).toEqual([]);
    expect(await cairn.count(memories)).toBe(11);
    expect(await cairn.findings()).toEqual([]);
    await end(cairn, made.id);
    await removed();
    expect(await shown(cairn, last.id, true)).toEqual([...begun, "tea of the fork"]);
    await end(cairn, last.id);
    await removed();
    expect(await cairn.counts([memories, branches.index.byMemorySession])).toEqual([0, 0]);
    await end(cairn, bare.id);
    await removed();
    expect(await cairn.count(branches)).toBe(0);
    expect(await cairn.findings()).toEqual([]);
  });
}

test("memories that outlive an expired parent are no fork's to take along", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  await add(cairn, id, "green tea");
  const made = await fork(cairn, id);
  await SESSION_ENDS["expiry"]!(cairn, id);
  await cairn.runTask("session removal");
  expect(await shown(cairn, made.id, true)).toEqual(["green tea"]);
  await cairn.ok(cairn.delete(`/v1/sessions/${made.id}`));
  for (let i = 0; i < 4; i++) await cairn.runTask("session removal");
  expect(contentsOf(await cairn.list("/v1/memory?user_id=ada"))).toEqual(["green tea"]);
  expect(await cairn.count(branches)).toBe(0);
  expect(await cairn.findings()).toEqual([]);
});

test("the erasure of a user takes memories that forks show, and counts each once", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  await add(cairn, id, "green tea", "black tea");
  const made = await fork(cairn, id);
  await add(cairn, made.id, "red tea");
  const erased = await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(erased).toMatchObject({ memories: 3, sessions: 2 });
  for (let i = 0; i < 4; i++) await cairn.runTask("user erasure");
  for (let i = 0; i < 4; i++) await cairn.runTask("session removal");
  expect(await cairn.counts([memories, branches])).toEqual([0, 0]);
});

test("forking a session with many memories writes as much as forking one with few", async () => {
  await using cairn = await startCairn();
  const written: number[] = [];
  for (const count of [10, 300]) {
    const { id } = await cairn.createSession();
    for (let done = 0; done < count; done += 100) {
      const batch = Array.from({ length: Math.min(100, count) }, (_, i) => ({ session_id: id, content: `${i}`, embed: false }));
      await cairn.ok(cairn.post("/v1/memory/batch", { memories: batch }));
    }
    const before = cairn.service.store.bytesWritten;
    const made = await fork(cairn, id);
    written.push(cairn.service.store.bytesWritten - before);
    expect((await pagesOf(cairn, `/v1/memory?session_id=${made.id}&limit=100`)).flatMap(({ data }) => data)).toHaveLength(count);
  }
  expect(Math.abs(written[1]! - written[0]!)).toBeLessThan(50);
});

test("a fork shows the memories of at most 32 sessions before it, of which those without any do not count", async () => {
  await using cairn = await startCairn();
  let { id } = await cairn.createSession();
  for (let i = 1; i <= LIMITS.forkMemorySessionsMax; i++) {
    await cairn.ok(cairn.post("/v1/memory", { session_id: id, content: `tea ${i}`, embed: false }));
    ({ id } = await fork(cairn, (await fork(cairn, id)).id));
  }
  expect(await cairn.list(`/v1/memory?session_id=${id}&limit=100`)).toHaveLength(LIMITS.forkMemorySessionsMax);
  await add(cairn, id, "one more tea");
  expect(refusal(await cairn.post(`/v1/sessions/${id}/fork`, { memories: "session" }))).toEqual({
    status: 400,
    code: "invalid_request",
    param: "memories",
  });
  expect(await fork(cairn, id, { turns: "all" })).toMatchObject({ memory_count: 0 });
});
