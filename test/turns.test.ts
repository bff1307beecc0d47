import { expect, test } from "bun:test";
import { refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";

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
