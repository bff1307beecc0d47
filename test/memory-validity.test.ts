/**
 * Memories that change with the world: when each holds, and which one has taken the place of another.
 *
 * @module
 */
import { expect, spyOn, test } from "bun:test";
import { idsOf, refusal } from "./support/answers.ts";
import { startCairn, WITH_GRAPH, type Cairn } from "./support/cairn.ts";

const NOW = "2026-05-07T08:00:00.000Z";
const add = (cairn: Cairn, content: string, more: object = {}) => cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content, ...more }));

/** What every read that chooses by validity shows, which is the same of all. */
async function shown(cairn: Cairn, session: string, query: { status?: string; as_of?: string } = {}): Promise<string[]> {
  const { status, ...at } = query;
  const listed = idsOf(await cairn.list(`/v1/memory?${String(new URLSearchParams({ user_id: "ada", ...query }))}`));
  const found = idsOf((await cairn.search("Where does the customer live?", { user_id: "ada", threshold: 0, ...query })).data);
  expect(new Set(found)).toEqual(new Set(listed));
  if (status === undefined) {
    expect(idsOf((await cairn.context(session, at)).memories)).toEqual(listed.slice(0, 5));
    const asked = idsOf((await cairn.context(session, { query: "Where does the customer live?", ...at })).memories);
    if (listed.length <= 5) expect(new Set(asked)).toEqual(new Set(listed));
  }
  return listed;
}

test("a memory that supersedes another one takes its place from its valid_from on, in one change with a trace and an event", async () => {
  await using cairn = await startCairn();
  const hook = await cairn.subscribe("https://hooks.example/", { events: ["memory.superseded"] });
  const session = await cairn.createSession({ user_id: "ada", ttl_seconds: 2_592_000 });
  const rome = await cairn.addMemory(session.id, "The customer lives in Rome.");
  expect(rome).toMatchObject({ valid_from: null, valid_until: null, supersedes: [], superseded_by: null, superseded_at: null });
  cairn.clock.advance({ days: 1 });
  const oslo = await add(cairn, "The customer lives in Oslo.", { supersedes: [rome.id] });
  const at = "2026-05-08T08:00:00.000Z";
  expect(oslo).toMatchObject({ supersedes: [rome.id], valid_from: at });
  const superseded = { ...rome, superseded_by: oslo.id, superseded_at: at, updated_at: at };
  expect((await cairn.get(`/v1/memory/${rome.id}`)).body).toEqual(superseded);
  expect(await shown(cairn, session.id)).toEqual([oslo.id]);
  expect(await shown(cairn, session.id, { status: "past" })).toEqual([rome.id]);
  expect(await shown(cairn, session.id, { status: "all" })).toEqual([oslo.id, rome.id]);
  expect(await shown(cairn, session.id, { as_of: "2026-05-08T07:59:59.999Z" })).toEqual([rome.id]);
  expect(await shown(cairn, session.id, { as_of: "1900-01-01T00:00:00Z" })).toEqual([rome.id]);
  expect(await shown(cairn, session.id, { as_of: "9999-01-01T00:00:00Z" })).toEqual([oslo.id]);
  expect(await cairn.traces(session.id, "memory.superseded")).toMatchObject([
    { details: { memory_id: rome.id, content_preview: rome.content, superseded_by: oslo.id, superseded_at: at } },
  ]);
  await cairn.runTask("webhook outbox");
  const [delivery] = await cairn.deliveries(hook.id);
  expect(delivery).toMatchObject({ event_type: "memory.superseded", session_id: session.id });
  const { payload } = await cairn.ok(cairn.get(`/v1/webhooks/${hook.id}/deliveries/${delivery.id}`));
  expect(payload.data).toEqual(superseded);
  expect(await cairn.findings()).toEqual([]);
});

test("when the newer memory is deleted, expires or goes with its session, the older one is current again at once", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada", ttl_seconds: 2_592_000 });
  const own = await cairn.createSession({ user_id: "ada" });
  const rome = await add(cairn, "The customer lives in Rome.");
  const ends: [object, (id: string) => Promise<unknown>][] = [
    [{}, (id) => cairn.ok(cairn.delete(`/v1/memory/${id}`))],
    // By time alone: no task has run.
    [{ ttl_seconds: 60 }, () => Promise.resolve(cairn.clock.advance({ seconds: 60 }))],
    [{ session_id: own.id }, () => cairn.ok(cairn.delete(`/v1/sessions/${own.id}`))],
  ];
  for (const [more, end] of ends) {
    const newer = await add(cairn, "The customer lives in Oslo.", { supersedes: [rome.id], ...more });
    expect(await shown(cairn, session.id)).toEqual([newer.id]);
    await end(newer.id);
    expect(await shown(cairn, session.id)).toEqual([rome.id]);
    expect(await shown(cairn, session.id, { status: "past" })).toEqual([]);
    const free = { superseded_by: null, superseded_at: null };
    expect((await cairn.get(`/v1/memory/${rome.id}`)).body).toMatchObject(free);
    expect((await cairn.get(`/v1/memory/${rome.id}/history`)).body).toMatchObject({ superseded_by: null });
    await cairn.runTask("memory expiry");
    await cairn.runTask("session removal");
    expect((await cairn.get(`/v1/memory/${rome.id}`)).body).toMatchObject(free);
    expect(await shown(cairn, session.id)).toEqual([rome.id]);
  }
  // The end of its validity does not bring the older one back.
  await add(cairn, "The customer lives in Oslo.", { supersedes: [rome.id], valid_until: "2026-05-07T09:00:00Z" });
  cairn.clock.advance({ days: 1 });
  expect(await shown(cairn, session.id)).toEqual([]);
  expect(await cairn.findings()).toEqual([]);
});

test("a memory holds from valid_from to valid_until, by time alone, and as_of asks of any moment", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada", ttl_seconds: 2_592_000 });
  const [from, until] = ["2026-05-07T09:00:00.000Z", "2026-05-07T10:00:00.000Z"];
  const { id } = await add(cairn, "The customer is in Rome.", { valid_from: from, valid_until: until });
  const always = await add(cairn, "The customer lives in Oslo.");
  expect(await shown(cairn, session.id)).toEqual([always.id]);
  expect(await shown(cairn, session.id, { status: "future" })).toEqual([id]);
  expect(await shown(cairn, session.id, { as_of: from })).toEqual([always.id, id]);
  expect(await shown(cairn, session.id, { as_of: until })).toEqual([always.id]);
  cairn.clock.advance({ hours: 1 });
  expect(await shown(cairn, session.id)).toEqual([always.id, id]);
  cairn.clock.advance({ hours: 1 });
  expect(await shown(cairn, session.id)).toEqual([always.id]);
  expect(await shown(cairn, session.id, { status: "past" })).toEqual([id]);
  expect(await shown(cairn, session.id, { as_of: NOW })).toEqual([always.id]);
  for (const [body, param] of [
    [{ valid_from: until, valid_until: from }, "valid_until"],
    [{ valid_from: from, valid_until: from }, "valid_until"],
    [{ valid_from: "yesterday" }, "valid_from"],
  ] as const) {
    const expected = { status: 400, code: "invalid_request", param };
    expect(refusal(await cairn.post("/v1/memory", { user_id: "ada", content: "x", ...body }))).toEqual(expected);
    expect(refusal(await cairn.patch(`/v1/memory/${always.id}`, body))).toEqual(expected);
  }
  expect(refusal(await cairn.patch(`/v1/memory/${id}`, { valid_until: from }))).toMatchObject({ status: 400, param: "valid_until" });
  await cairn.ok(cairn.patch(`/v1/memory/${id}`, { valid_from: null, valid_until: null }));
  expect(await shown(cairn, session.id)).toEqual([always.id, id]);
});

test("chains of memories are past but for the last, one moves with its superseding one, and a link that cannot be is refused whole", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada", ttl_seconds: 2_592_000 });
  const one = await add(cairn, "The customer lives in Rome.", { external_id: "home" });
  const two = await add(cairn, "The customer lives in Oslo.", { supersedes: [one.id], external_id: "home" });
  expect((await cairn.get(`/v1/memory/${one.id}`)).body).toMatchObject({ external_id: null, superseded_by: two.id });
  const three = await add(cairn, "The customer lives in Bern.", { supersedes: [two.id], valid_from: "2026-05-07T12:00:00Z" });
  expect(await shown(cairn, session.id)).toEqual([two.id]);
  await cairn.ok(cairn.patch(`/v1/memory/${three.id}`, { valid_from: "2026-05-07T07:00:00Z" }));
  expect(await shown(cairn, session.id)).toEqual([three.id]);
  expect((await cairn.get(`/v1/memory/${two.id}`)).body).toMatchObject({ superseded_at: "2026-05-07T07:00:00.000Z" });
  const others = await cairn.ok(cairn.post("/v1/memory", { user_id: "bo", content: "The customer lives in Rome." }));
  const before = await cairn.list("/v1/memory?status=all");
  for (const [body, expected] of [
    [{ supersedes: [two.id] }, { status: 409, code: "version_conflict", param: "supersedes" }],
    [{ supersedes: [others.id] }, { status: 404, code: "memory_not_found", param: "supersedes" }],
    [{ supersedes: ["mem_000000000000"] }, { status: 404, code: "memory_not_found", param: "supersedes" }],
    [
      { supersedes: [three.id], external_id: "home", if_exists: "update" },
      { status: 409, code: "version_conflict", param: "supersedes" },
    ],
    [{ supersedes: Array<string>(33).fill(three.id) }, { status: 400, code: "invalid_request", param: "supersedes" }],
  ] as const)
    expect({ body, ...refusal(await cairn.post("/v1/memory", { user_id: "ada", content: "x", ...body })) }).toEqual({ body, ...expected });
  expect(await cairn.list("/v1/memory?status=all")).toEqual(before);
  // Of two that supersede one at once, one does.
  const answers = await Promise.all(
    ["a", "b", "c", "d"].map((content) => cairn.post("/v1/memory", { user_id: "ada", content, supersedes: [three.id] })),
  );
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409, 409, 409]);
  expect(await cairn.findings()).toEqual([]);
});

test("a search gives as many current memories as were asked for, however many past ones are nearer", async () => {
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  const past = Array.from({ length: 100 }, (_, i) => ({ user_id: "ada", content: `The customer lives in Rome, house ${i}.` }));
  for (let i = 0; i < 3; i++) {
    const { data } = await cairn.ok(cairn.post("/v1/memory/batch", { memories: past }));
    const newer = Array.from({ length: 4 }, (_, n) => ({
      user_id: "ada",
      content: `Something else, number ${i} ${n}.`,
      supersedes: idsOf(data).slice(25 * n, 25 * n + 25),
    }));
    await cairn.ok(cairn.post("/v1/memory/batch", { memories: newer }));
  }
  const found = (await cairn.search("The customer lives in Rome.", { user_id: "ada", threshold: 0, limit: 10 })).data;
  expect(found).toHaveLength(10);
  expect(found.filter(({ content }: { content: string }) => !content.startsWith("Something else"))).toEqual([]);
});

test("erasing a user takes chains as a whole, and no other user's memory changes by it", async () => {
  await using cairn = await startCairn();
  const bos = await cairn.ok(cairn.post("/v1/memory", { user_id: "bo", content: "Lives in Rome." }));
  const one = await add(cairn, "Lives in Rome.");
  await add(cairn, "Lives in Oslo.", { supersedes: [one.id] });
  await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(await cairn.list("/v1/memory?status=all")).toEqual([bos]);
  expect(await cairn.findings()).toEqual([]);
});

for (const [how, options] of Object.entries({ "without a graph": {}, "with a graph": WITH_GRAPH })) {
  test(`a search ${how} looks at current memories alone, of a user, of a session and of all, however many are past`, async () => {
    await using cairn = await startCairn(options);
    const session = await cairn.createSession({ user_id: "ada" });
    const batch = async (memories: object[]): Promise<string[]> =>
      idsOf(
        (await cairn.ok(cairn.post("/v1/memory/batch", { memories: memories.map((one) => ({ session_id: session.id, ...one })) }))).data,
      );
    const past: string[] = [];
    for (let from = 0; from < 320; from += 80)
      past.push(...(await batch(Array.from({ length: 80 }, (_, i) => ({ content: `Lived at number ${from + i} of the street.` })))));
    const current = await batch(
      Array.from({ length: 10 }, (_, i) => ({ content: `Lives in house ${i} now.`, supersedes: past.slice(32 * i, 32 * i + 32) })),
    );
    const nearest = spyOn(cairn.service.vectors, "nearest");
    const search = async (scope: object, more: object = {}) => {
      const { data } = await cairn.search("Lived at number 7 of the street.", { threshold: 0, limit: 50, ...scope, ...more });
      return new Set(idsOf(data));
    };
    for (const scope of [{ user_id: "ada" }, { session_id: session.id }, {}]) {
      nearest.mockClear();
      expect(await search(scope)).toEqual(new Set(current));
      // Again, with what is in memory since.
      expect(await search(scope)).toEqual(new Set(current));
      const candidates = await Promise.all(nearest.mock.results.map(({ value }) => value as ReturnType<typeof nearest>));
      expect({ scope, candidates: candidates.map((found) => found?.length) }).toEqual({ scope, candidates: [10, 10] });
      expect((await search(scope, { status: "all" })).size).toBe(50);
      expect([...(await search(scope, { status: "past" }))].filter((id) => !past.includes(id))).toEqual([]);
    }
    await cairn.ok(cairn.delete(`/v1/memory/${current[0]!}`));
    const released = new Set([...current.slice(1), ...past.slice(0, 32)]);
    for (const scope of [{ user_id: "ada" }, { session_id: session.id }, {}]) expect(await search(scope)).toEqual(released);
    expect(await cairn.findings()).toEqual([]);
  });
}
