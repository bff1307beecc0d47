import { expect, test } from "bun:test";
import { stored } from "../src/operations/records.ts";
import { outbox, turns } from "../src/storage/tables.ts";
import { idsOf, pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";

const TEXT = { type: "text", content: "Where is my order?" };
const REPLY = { type: "text", content: "It arrives tomorrow." };

test("a turn with input and output alone has every other field at its default", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const added = await cairn.post(`/v1/sessions/${session.id}/turns`, { input: TEXT, output: REPLY });
  expect(added.status).toBe(201);
  expect(added.body).toEqual({
    object: "turn",
    id: expect.stringMatching(/^turn_[0-9A-Za-z]{12}$/),
    session_id: session.id,
    turn_number: 1,
    state_version: 0,
    created_at: "2026-05-07T08:00:00.000Z",
    input: TEXT,
    output: REPLY,
    metadata: {},
    state_before: null,
    state_after: null,
  });
});

test("a turn keeps every field it is added with, and is read as it was answered", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const fields = {
    input: { type: "tool_call", content: '{"name":"orders","arguments":{}}' },
    output: { type: "tool_result", content: "[]\u2028🫖" },
    reasoning: "The carrier says so.",
    metadata: { model: "large", usage: { tokens: [12, 3.5] } },
    state_before: { step: 0 },
    state_after: { step: 1, done: null },
  };
  const turn = await cairn.addTurn(session.id, "", "", fields);
  expect(turn).toMatchObject(fields);
  const read = await cairn.get(`/v1/sessions/${session.id}/turns/${turn.id}`);
  expect(read.status).toBe(200);
  expect(read.body).toEqual(turn);
  expect(await cairn.list(`/v1/sessions/${session.id}/turns`)).toEqual([turn]);
  await cairn.restart();
  expect((await cairn.get(`/v1/sessions/${session.id}/turns/${turn.id}`)).body).toEqual(turn);
});

test("turns are numbered from 1 in the order of their ids, however many arrive at once", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const other = await cairn.createSession();
  const added = await Promise.all(Array.from({ length: 40 }, () => cairn.addTurn(id)));
  added.sort((a, b) => (a.id < b.id ? -1 : 1));
  expect(added.map(({ turn_number }) => turn_number)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
  expect(await cairn.addTurn(other.id)).toMatchObject({ turn_number: 1 });
});

test("adding a turn never changes the state: its snapshots are only kept", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ initial_state: { step: 0 } });
  await cairn.addTurn(session.id, "in", "out", { state_before: { step: 5 }, state_after: { step: 6 } });
  expect(await cairn.session(session.id)).toEqual({ ...session, turn_count: 1 });
});

test("every type of input and output is accepted, and tool_response is read as tool_result", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (const type of ["text", "audio", "image", "tool_call"]) {
    expect(await cairn.addTurn(id, "", "", { input: { type, content: "in" } })).toMatchObject({ input: { type, content: "in" } });
  }
  for (const type of ["text", "audio", "image", "tool_result", "error"]) {
    expect(await cairn.addTurn(id, "", "", { output: { type, content: "" } })).toMatchObject({ output: { type, content: "" } });
  }
  const alias = await cairn.addTurn(id, "", "", { output: { type: "tool_response", content: "3 °C" } });
  expect(alias.output).toEqual({ type: "tool_result", content: "3 °C" });
  expect((await cairn.get(`/v1/sessions/${id}/turns/${alias.id}`)).body).toEqual(alias);
  expect((await cairn.traces(id, "turn.added"))[0].details).toMatchObject({ output_type: "tool_result" });
});

test("a turn is found in its own session only", async () => {
  await using cairn = await startCairn();
  const mine = await cairn.createSession();
  const other = await cairn.createSession();
  const turn = await cairn.addTurn(mine.id);
  expect(refusal(await cairn.get(`/v1/sessions/${other.id}/turns/${turn.id}`))).toMatchObject({ status: 404, code: "turn_not_found" });
  expect(await cairn.list(`/v1/sessions/${other.id}/turns`)).toEqual([]);
});

test("records too large to be in memory together come on several pages, and a context shows the newest of them", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  // Three bytes each: it is bytes that count.
  const text = "€".repeat(300_000);
  const made: string[] = [];
  for (let turn = 0; turn < 12; turn++) {
    const added = await cairn.post(`/v1/sessions/${id}/turns`, {
      input: { type: "text", content: text },
      output: { type: "text", content: "" },
    });
    made.unshift(added.body.id);
    await cairn.setState(id, { text: text + turn });
  }
  /** How many records came on each page, and all of their ids. */
  const through = async (path: string) => {
    const [counts, ids]: [number[], unknown[]] = [[], []];
    for (let after = ""; ;) {
      const answer = await cairn.get(`${path}limit=100${after}`);
      expect(Buffer.byteLength(JSON.stringify(answer.body))).toBeLessThan(8 * 1024 * 1024 + 2 * 1024 * 1024);
      counts.push(answer.body.data.length);
      ids.push(...answer.body.data.map((record: any) => record.id ?? record.version));
      if (!answer.body.has_more) return { counts, ids };
      after = `&starting_after=${answer.body.last_id}`;
    }
  };
  expect(await through(`/v1/sessions/${id}/turns?`)).toEqual({ counts: [10, 2], ids: made });
  expect(await through(`/v1/sessions/${id}/turns?order=asc&`)).toEqual({ counts: [10, 2], ids: made.toReversed() });
  expect(await through(`/v1/sessions/${id}/versions?`)).toEqual({ counts: [13], ids: Array.from({ length: 13 }, (_, i) => 12 - i) });
  expect((await through("/v1/traces?action=turn.added&")).ids.length).toBe(12);
  expect((await through(`/v1/traces?session_id=${id}&`)).counts.length).toBeGreaterThan(2);
  const { recent_turns } = (await cairn.post(`/v1/sessions/${id}/context`, { turn_limit: 50 })).body;
  expect(recent_turns.map((turn: any) => turn.id)).toEqual(made.slice(0, 10));
});

const say = (content: string, more: object = {}) => ({ input: { type: "text", content }, output: { type: "text", content: "" }, ...more });
const saidIn = (turns: readonly any[]): string[] => turns.map(({ input }) => input.content);

test("a turn says which version of the state was current when it was logged", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (const version of [0, 1, 2]) {
    if (version > 0) await cairn.setState(id, { version });
    expect(await cairn.addTurn(id)).toMatchObject({ state_version: version });
    expect(await cairn.addTurn(id)).toMatchObject({ state_version: version });
  }
  const versions = (await cairn.list(`/v1/sessions/${id}/turns?order=asc`)).map(({ state_version }) => state_version);
  expect(versions).toEqual([0, 0, 1, 1, 2, 2]);
});

test("of a turn that was logged without it, the version follows from those that are kept", async () => {
  await using cairn = await startCairn({ environment: { state_versions_kept: 10 } });
  const { id } = await cairn.createSession();
  for (let version = 0; version < 30; version++) {
    if (version > 0) await cairn.setState(id, { version });
    await cairn.addTurn(id);
  }
  const keys = await cairn.service.store.read((reader) => reader.rows(stored(turns), { from: "", to: "~" }));
  await cairn.overwrite(
    turns,
    keys.map(({ key, row }) => ({ key, text: row.split("\n").slice(0, 2).join("\n") })),
  );
  const versions = (await cairn.list(`/v1/sessions/${id}/turns?order=asc&limit=100`)).map(({ state_version }) => state_version);
  // Those before the oldest that is kept, besides the initial one, belong to one of them at the latest.
  expect(versions).toEqual(Array.from({ length: 30 }, (_, version) => Math.max(version, 19)));
  expect(versions.slice(20)).toEqual([20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
});

test("a turn with an external_id is logged once, however often it is sent", async () => {
  await using cairn = await startCairn();
  const [one, other] = [await cairn.createSession({ user_id: "ada" }), await cairn.createSession({ user_id: "ada" })];
  const path = `/v1/sessions/${one.id}/turns`;
  const first = await cairn.post(path, say("one", { external_id: "msg-1" }));
  expect(first).toMatchObject({ status: 201, body: { external_id: "msg-1", turn_number: 1 } });
  await cairn.setState(one.id, { step: 1 });
  const again = await cairn.post(path, say("another text", { external_id: "msg-1" }));
  expect(again.status).toBe(200);
  expect(again.body).toEqual(first.body);
  const retried = await cairn.post(path, say("one", { external_id: "msg-1" }), { headers: { "Idempotency-Key": "k" } });
  expect(retried).toMatchObject({ status: 200, body: first.body });
  expect(await cairn.post(path, say("two", { external_id: "msg-10" }))).toMatchObject({ status: 201 });
  expect(await cairn.post(`/v1/sessions/${other.id}/turns`, say("three", { external_id: "msg-1" }))).toMatchObject({ status: 201 });
  expect(await cairn.session(one.id)).toMatchObject({ turn_count: 2 });
  expect((await cairn.traces(one.id, "turn.added")).length).toBe(2);
  await cairn.restart();
  expect(await cairn.post(path, say("one", { external_id: "msg-1" }))).toMatchObject({ status: 200, body: first.body });
  expect(refusal(await cairn.post(path, say("", { external_id: "" })))).toMatchObject({ status: 400, param: "external_id" });
});

test("of clients that send a turn with one external_id at once one logs it, and all get it", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, i) => cairn.post(`/v1/sessions/${id}/turns`, say(`text ${i}`, { external_id: "msg-1" }))),
  );
  expect(answers.filter(({ status }) => status === 201).length).toBe(1);
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  expect(await cairn.session(id)).toMatchObject({ turn_count: 1 });
});

/** What a session is about in several orders: those of its lists, of its context, and of its timeline both ways. */
async function ordersOf(cairn: Cairn, id: string): Promise<Record<"listed" | "context" | "timeline" | "backwards", string[]>> {
  const context = await cairn.ok(cairn.post(`/v1/sessions/${id}/context`, { turn_limit: 50 }));
  const timeline = async (order: string) =>
    (await pagesOf(cairn, `/v1/sessions/${id}/timeline?kinds=turn,version&order=${order}&limit=3`))
      .flatMap(({ data }) => data)
      .map(({ kind, turn, version }: any) => (kind === "turn" ? turn.input.content : `version ${version.version}`));
  return {
    listed: saidIn(await cairn.list(`/v1/sessions/${id}/turns?order=asc&limit=100`)),
    context: saidIn(context.recent_turns).toReversed(),
    timeline: await timeline("asc"),
    backwards: (await timeline("desc")).toReversed(),
  };
}

test("turns with occurred_at stand in contexts and timelines where they happened, and in lists where they were logged", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const add = (content: string, occurred_at?: string) => cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, say(content, { occurred_at })));
  await add("first");
  await cairn.setState(id, { step: 1 });
  cairn.clock.advance({ seconds: 60 });
  await add("second");
  cairn.clock.advance({ seconds: 60 });
  const moved = await add("last summer", "2025-07-01T12:00:00+02:00");
  expect(moved).toMatchObject({ occurred_at: "2025-07-01T10:00:00.000Z", created_at: "2026-05-07T08:02:00.000Z" });
  await add("between first and second", "2026-05-07T08:00:30Z");
  await add("before computers", "1801-01-01T00:00:00Z");
  await add("the same moment as last summer", "2025-07-01T10:00:00Z");
  cairn.clock.advance({ seconds: 60 });
  await add("third");
  await add("in a minute", "2026-05-07T08:04:00Z");
  const happened = [
    "before computers",
    "last summer",
    "the same moment as last summer",
    "version 0",
    "first",
    "version 1",
    "between first and second",
    "second",
    "third",
    "in a minute",
  ];
  const orders = {
    listed: [
      "first",
      "second",
      "last summer",
      "between first and second",
      "before computers",
      "the same moment as last summer",
      "third",
      "in a minute",
    ],
    context: happened.filter((content) => !content.startsWith("version")),
    timeline: happened,
    backwards: happened,
  };
  expect(await ordersOf(cairn, id)).toEqual(orders);
  await add("later than in a minute", "2026-05-07T08:05:00Z");
  const { recent_turns } = await cairn.ok(cairn.post(`/v1/sessions/${id}/context`, { turn_limit: 2 }));
  expect(recent_turns).toMatchObject([{ occurred_at: "2026-05-07T08:05:00.000Z" }, { input: { content: "in a minute" } }]);
  expect(refusal(await cairn.post(`/v1/sessions/${id}/turns`, say("", { occurred_at: "2026-05-08T08:03:01Z" })))).toEqual({
    status: 400,
    code: "invalid_request",
    param: "occurred_at",
  });
});

test("a year of conversation is moved in behind what is said today, in any order", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ occurred_at: "2025-05-08T08:00:00Z" });
  const { id } = session;
  expect(session).toMatchObject({ occurred_at: "2025-05-08T08:00:00.000Z", created_at: "2026-05-07T08:00:00.000Z" });
  const path = `/v1/sessions/${id}/turns`;
  const today = await cairn.addTurn(id, "today");
  const day = (i: number) => new Date(Date.parse("2025-05-08T08:00:00Z") + i * 86_400_000).toISOString();
  // Five has no divisor in common with the number of days.
  for (let i = 0; i < 364; i++) await cairn.ok(cairn.post(path, say(`day ${(i * 5) % 364}`, { occurred_at: day((i * 5) % 364) })));
  const { recent_turns } = await cairn.ok(cairn.post(`/v1/sessions/${id}/context`, { turn_limit: 50 }));
  expect(saidIn(recent_turns)).toEqual(["today", ...Array.from({ length: 49 }, (_, i) => `day ${363 - i}`)]);
  const timeline = (await pagesOf(cairn, `/v1/sessions/${id}/timeline?kinds=turn&order=asc&limit=100`)).flatMap(({ data }) => data);
  expect(timeline.map(({ turn }) => turn.input.content)).toEqual([...Array.from({ length: 364 }, (_, i) => `day ${i}`), "today"]);
  const listed = (await pagesOf(cairn, `${path}?order=asc&limit=100`)).flatMap(({ data }) => data);
  expect(idsOf(listed)[0]).toBe(today.id);
  expect(saidIn(listed.slice(1, 4))).toEqual(["day 0", "day 5", "day 10"]);
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  for (let i = 0; i < 5; i++) await cairn.runTask("session removal");
  expect(await cairn.counts([turns, turns.index.byTime, turns.index.byExternalId])).toEqual([0, 0, 0]);
});

test("a batch of turns is logged in its order, each with its trace and event, and answered in that order", async () => {
  await using cairn = await startCairn();
  await cairn.ok(cairn.post("/v1/webhooks", { url: "https://example.com/hook", events: ["turn.added"] }));
  const { id } = await cairn.createSession();
  await cairn.setState(id, { step: 1 });
  const batch = Array.from({ length: 100 }, (_, i) => say(`turn ${i}`, { external_id: `msg-${i}`, occurred_at: "2026-01-01T00:00:00Z" }));
  const added = await cairn.post(`/v1/sessions/${id}/turns/batch`, { turns: batch });
  expect(added).toMatchObject({ status: 201, body: { object: "list" } });
  expect(Object.keys(added.body)).toEqual(["object", "data"]);
  expect(saidIn(added.body.data)).toEqual(batch.map(({ input }) => input.content));
  expect(added.body.data.map(({ turn_number }: any) => turn_number)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  expect(await cairn.list(`/v1/sessions/${id}/turns?order=asc&limit=100`)).toEqual(added.body.data);
  expect(await cairn.session(id)).toMatchObject({ turn_count: 100, state_version: 1 });
  const traces = await cairn.list(`/v1/traces?session_id=${id}&action=turn.added&limit=100`);
  expect(traces.map(({ details }) => details.turn_number).toReversed()).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  expect(await cairn.count(outbox)).toBe(100);
});

test("a batch that is sent again logs what is not there yet, once even where the batch has it twice", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const path = `/v1/sessions/${id}/turns/batch`;
  const first = await cairn.post(path, { turns: [say("one", { external_id: "1" }), say("two", { external_id: "2" })] });
  const again = await cairn.post(path, {
    turns: [say("three", { external_id: "3" }), say("2", { external_id: "2" }), say("3", { external_id: "3" }), say("four")],
  });
  expect(again.status).toBe(200);
  expect(saidIn(again.body.data)).toEqual(["three", "two", "three", "four"]);
  expect(again.body.data[1]).toEqual(first.body.data[1]);
  expect(again.body.data[2]).toEqual(again.body.data[0]);
  expect(await cairn.session(id)).toMatchObject({ turn_count: 4 });
});

test("of a batch with a turn that is wrong nothing is logged, and the error names its place", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const good = say("good");
  const wrongs: [object, string][] = [
    [{ ...good, input: undefined }, "turns[37].input"],
    [{ ...good, output: { type: "tea", content: "" } }, "turns[37].output.type"],
    [{ ...good, external_id: "" }, "turns[37].external_id"],
    [{ ...good, occurred_at: "yesterday" }, "turns[37].occurred_at"],
    [{ ...good, occurred_at: "2027-01-01T00:00:00Z" }, "turns[37].occurred_at"],
    [{ ...good, occured_at: "2026-01-01T00:00:00Z" }, "turns[37].occured_at"],
  ];
  for (const [wrong, param] of wrongs) {
    const turns = Array.from({ length: 60 }, (_, i) => (i === 37 ? wrong : good));
    const refused = await cairn.post(`/v1/sessions/${id}/turns/batch`, { turns });
    expect(refusal(refused)).toEqual({ status: 400, code: "invalid_request", param });
    expect(refused.body.error.message).toContain(param);
  }
  for (const turns of [[], Array.from({ length: 101 }, () => good), undefined, good])
    expect(refusal(await cairn.post(`/v1/sessions/${id}/turns/batch`, { turns }))).toMatchObject({ status: 400, param: "turns" });
  expect(await cairn.session(id)).toMatchObject({ turn_count: 0 });
  expect(await cairn.traces(id, "turn.added")).toEqual([]);
});

test("a step changes the state and logs its turn under the new version, with the traces and events of separate requests", async () => {
  await using cairn = await startCairn();
  await cairn.ok(cairn.post("/v1/webhooks", { url: "https://example.com/hook", events: ["turn.added", "trace.created"] }));
  const { id } = await cairn.createSession({ initial_state: { step: 0, topic: "order" } });
  const path = `/v1/sessions/${id}/turns`;
  const patched = await cairn.post(
    path,
    say("one", { state_patch: { step: 1, topic: null }, reasoning: "It was asked.", expected_version: 0 }),
  );
  expect(patched).toMatchObject({ status: 201, body: { object: "turn", state_version: 1, turn_number: 1 } });
  expect((await cairn.get(`${path}/${patched.body.id}`)).body).toEqual(patched.body);
  expect(await cairn.session(id)).toMatchObject({ state: { step: 1 }, state_version: 1, turn_count: 1 });
  expect(await cairn.ok(cairn.get(`/v1/sessions/${id}/versions/1`))).toMatchObject({ state: { step: 1 }, reasoning: "It was asked." });
  const replaced = await cairn.post(path, say("two", { state: { other: true } }));
  expect(replaced.body).toMatchObject({ state_version: 2, turn_number: 2 });
  // What changes nothing makes no version.
  expect((await cairn.post(path, say("three", { state_patch: { other: true } }))).body).toMatchObject({ state_version: 2 });
  expect((await cairn.traces(id)).map(({ action }) => action).toReversed()).toEqual([
    "session.created",
    "state.updated",
    "turn.added",
    "state.updated",
    "turn.added",
    "turn.added",
  ]);
  expect(await cairn.count(outbox)).toBe(6);
  expect(await cairn.session(id)).toMatchObject({ state: { other: true }, state_version: 2, turn_count: 3 });
});

test("a step that is refused changes nothing, and one that is sent again by its external_id neither", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ initial_state: { step: 0 } });
  const path = `/v1/sessions/${id}/turns`;
  const step = say("one", { state_patch: { step: 1 }, expected_version: 0, external_id: "1" });
  const first = await cairn.post(path, step);
  expect(first.status).toBe(201);
  expect(await cairn.post(path, step)).toMatchObject({ status: 200, body: first.body });
  const refusals: [object, object][] = [
    [{ expected_version: 0 }, { status: 409, code: "version_conflict", param: "expected_version" }],
    [
      { expected_version: 0, state: { step: 2 } },
      { status: 409, code: "version_conflict", param: "expected_version" },
    ],
    [
      { state: { step: 2 }, state_patch: { step: 2 } },
      { status: 400, code: "invalid_request", param: "state_patch" },
    ],
    [
      { state: { step: 2 }, occurred_at: "2027-01-01T00:00:00Z" },
      { status: 400, code: "invalid_request", param: "occurred_at" },
    ],
    [{ state: [] }, { status: 400, code: "invalid_request", param: "state" }],
  ];
  for (const [more, refused] of refusals) expect(refusal(await cairn.post(path, say("two", more)))).toEqual(refused as never);
  expect(await cairn.session(id)).toMatchObject({ state: { step: 1 }, state_version: 1, turn_count: 1 });
});

test("a step adds memories of its session in the same transaction, each with its trace and event", async () => {
  await using cairn = await startCairn();
  await cairn.ok(
    cairn.post("/v1/webhooks", { url: "https://example.com/hook", events: ["turn.added", "memory.created", "trace.created"] }),
  );
  const { id } = await cairn.createSession({ user_id: "ada" });
  const path = `/v1/sessions/${id}/turns`;
  const memories = [
    { content: "Likes green tea.", tags: ["drink"] },
    { content: "Lives in Trieste.", external_id: "home", session_id: id, user_id: "ada", agent_id: "agent" },
  ];
  const added = await cairn.post(path, say("one", { state_patch: { step: 1 }, memories, external_id: "1" }));
  expect(added).toMatchObject({ status: 201, body: { object: "turn", state_version: 1, memories } });
  for (const memory of added.body.memories) {
    expect(memory).toMatchObject({ session_id: id, user_id: "ada" });
    expect((await cairn.get(`/v1/memory/${memory.id}`)).body).toMatchObject({ id: memory.id, content: memory.content });
  }
  expect(await cairn.session(id)).toMatchObject({ turn_count: 1, memory_count: 2, state_version: 1, state: { step: 1 } });
  const actions = (await cairn.traces(id)).map(({ action }) => action).toReversed();
  expect(actions).toEqual(["session.created", "state.updated", "turn.added", "memory.created", "memory.created"]);
  expect(await cairn.count(outbox)).toBe(5);
  // The turn is there: nothing is added again.
  expect(await cairn.post(path, say("one", { state_patch: { step: 2 }, memories, external_id: "1" }))).toMatchObject({ status: 200 });
  const wrong = await cairn.post(path, say("two", { state: { step: 3 }, memories: [{ content: "Sings." }, { content: "" }] }));
  expect(refusal(wrong)).toEqual({ status: 400, code: "invalid_request", param: "memories[1].content" });
  const other = await cairn.createSession({ user_id: "bo" });
  for (const [member, value] of Object.entries({ session_id: other.id, user_id: "bo", agent_id: "other" })) {
    const refused = await cairn.post(path, say("two", { memories: [{ content: "Sings." }, { content: "Sails.", [member]: value }] }));
    expect(refusal(refused)).toEqual({ status: 400, code: "invalid_request", param: `memories[1].${member}` });
  }
  const taken = await cairn.post(
    path,
    say("two", { state: { step: 3 }, memories: [{ content: "Sings." }, { content: "Moved.", external_id: "home" }] }),
  );
  expect(refusal(taken)).toMatchObject({ status: 409, code: "already_exists" });
  const supersedes = say("two", { state: { step: 3 }, memories: [{ content: "Moved.", supersedes: ["mem_000000000000"] }] });
  expect(refusal(await cairn.post(path, supersedes))).toEqual({
    status: 404,
    code: "memory_not_found",
    param: "memories[0].supersedes",
  });
  const tooMany = await cairn.post(path, say("two", { memories: Array.from({ length: 21 }, () => ({ content: "Sings." })) }));
  expect(refusal(tooMany)).toMatchObject({ status: 400, param: "memories" });
  expect(await cairn.session(id)).toMatchObject({ turn_count: 1, memory_count: 2, state_version: 1 });
  const changed = await cairn.post(
    path,
    say("two", { memories: [{ content: "Moved to Turin.", external_id: "home", if_exists: "update" }] }),
  );
  expect(changed).toMatchObject({ status: 200, body: { turn_number: 2, memories: [{ content: "Moved to Turin." }] } });
});
