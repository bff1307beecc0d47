import { expect, test } from "bun:test";
import { outbox, traces } from "../src/storage/tables.ts";
import { EVENT_TYPES } from "../src/traces/events.ts";
import { startCairn } from "./support/cairn.ts";

type Cairn = Awaited<ReturnType<typeof startCairn>>;

/** The events that wait for their receivers, oldest first; a trace event carries the id of its trace. */
function eventsOf({ service: { store } }: Cairn) {
  return store.rows(outbox, { from: "", to: "~" }).map(({ key, row }) => ({
    id: key,
    type: row.type,
    sessionId: row.sessionId,
    createdAt: row.createdAt,
    record: JSON.parse(row.body) as unknown,
    traceId: row.traceId,
  }));
}

/** The events of one change, without their ids. */
async function eventsAfter(cairn: Cairn, change: () => Promise<unknown>) {
  const before = eventsOf(cairn).length;
  await change();
  return eventsOf(cairn).slice(before);
}

const SESSION = { agent_id: "bot", user_id: "ada", initial_state: { step: 0 } };

/** Each does one thing to a session of `SESSION`; `record` is what its event must carry, if it has one. */
const CHANGES: {
  name: string;
  run: (cairn: Cairn, id: string) => Promise<{ sessionId: string; record?: unknown }>;
  events: string[];
}[] = [
  {
    name: "create session",
    async run(cairn) {
      const made = await cairn.createSession(SESSION);
      return { sessionId: made.id, record: made };
    },
    events: ["session.created", "trace.created"],
  },
  {
    name: "fork",
    async run(cairn, id) {
      const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`));
      return { sessionId: fork.id, record: fork };
    },
    events: ["session.created", "trace.created"],
  },
  {
    name: "state update",
    run: async (cairn, id) => ({ sessionId: id, record: await cairn.setState(id, { step: 1 }) }),
    events: ["session.updated", "trace.created"],
  },
  {
    name: "rollback",
    run: async (cairn, id) => ({ sessionId: id, record: await cairn.rollback(id, 0) }),
    events: ["session.updated", "trace.created", "trace.rollback"],
  },
  {
    name: "PATCH of a session",
    run: async (cairn, id) => ({ sessionId: id, record: await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { metadata: { a: 1 } })) }),
    events: ["session.updated", "trace.created"],
  },
  {
    name: "delete session",
    async run(cairn, id) {
      const before = await cairn.session(id);
      await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
      return { sessionId: id, record: before };
    },
    events: ["session.deleted", "trace.created"],
  },
  {
    name: "expiry",
    async run(cairn, id) {
      const before = await cairn.session(id);
      cairn.clock.advance({ days: 1 });
      await cairn.runTask("session expiry");
      return { sessionId: id, record: before };
    },
    events: ["session.expired", "trace.created"],
  },
  {
    name: "turn",
    run: async (cairn, id) => ({ sessionId: id, record: await cairn.addTurn(id) }),
    events: ["turn.added", "trace.created"],
  },
  {
    name: "turn whose output is an error",
    run: async (cairn, id) => ({
      sessionId: id,
      record: await cairn.addTurn(id, "", "", { output: { type: "error", content: "no answer" } }),
    }),
    events: ["turn.added", "trace.created", "trace.error"],
  },
  {
    name: "memory added",
    run: async (cairn, id) => ({ sessionId: id, record: await cairn.addMemory(id, "Likes tea.", { tags: ["drink"] }) }),
    events: ["memory.created", "trace.created"],
  },
];

test("every type of event is that of a change", () => {
  expect(new Set(CHANGES.flatMap(({ events }) => events))).toEqual(new Set(EVENT_TYPES));
});

for (const { name, run, events } of CHANGES) {
  test(`${name} leaves the events ${events.join(", ")}, with the affected record and the trace`, async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession(SESSION);
    let result: { sessionId: string; record?: unknown } = { sessionId: "" };
    const left = await eventsAfter(cairn, async () => (result = await run(cairn, id)));
    const [trace] = await cairn.traces(result.sessionId);
    const createdAt = Date.parse(trace.timestamp);
    expect(left).toEqual(
      events.map((type) => ({
        id: expect.stringMatching(/^[0-9A-Za-z]{12}$/),
        type,
        sessionId: result.sessionId,
        createdAt,
        record: type.startsWith("trace.") ? null : result.record,
        traceId: type.startsWith("trace.") ? trace.id : undefined,
      })),
    );
  });
}

test("changing and deleting a memory leave the event of their trace alone", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const memory = await cairn.addMemory(id, "Likes tea.");
  const changed = await eventsAfter(cairn, () => cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: "Likes coffee." })));
  const deleted = await eventsAfter(cairn, () => cairn.ok(cairn.delete(`/v1/memory/${memory.id}`)));
  const [traceOfDelete, traceOfChange] = await cairn.traces(id);
  expect([changed, deleted].map((events) => events.map(({ type, traceId }) => ({ type, traceId })))).toEqual([
    [{ type: "trace.created", traceId: traceOfChange.id }],
    [{ type: "trace.created", traceId: traceOfDelete.id }],
  ]);
});

test("deleting a session says nothing of each memory and turn that goes with it", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "Likes tea.");
  await cairn.addTurn(id);
  const left = await eventsAfter(cairn, () => cairn.ok(cairn.delete(`/v1/sessions/${id}`)));
  expect(left.map(({ type }) => type)).toEqual(["session.deleted", "trace.created"]);
});

test("an event carries the record as it was then, whatever happens to it later", async () => {
  await using cairn = await startCairn();
  const made = await cairn.createSession({ initial_state: { step: 0 } });
  const updated = await cairn.setState(made.id, { step: 1 });
  await cairn.ok(cairn.delete(`/v1/sessions/${made.id}`));
  const records = eventsOf(cairn).flatMap(({ record }) => (record === null ? [] : [record]));
  expect(records).toEqual([made, updated, updated]);
});

test("reading, a refused change and a replayed one leave no event", async () => {
  await using cairn = await startCairn();
  const headers = { "idempotency-key": "once" };
  const { id } = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { headers }));
  const left = await eventsAfter(cairn, async () => {
    await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { headers }));
    await cairn.session(id);
    await cairn.context(id, { query: "tea" });
    await cairn.post(`/v1/sessions/${id}/state`, { state: {}, expected_version: 4 });
    await cairn.post(`/v1/sessions/${id}/rollback`, { version: 4 });
    await cairn.post(`/v1/sessions/${id}/turns`, {});
  });
  expect(left).toEqual([]);
});

test("events are in the order of the changes, also when these come all at once and after a restart", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await Promise.all(Array.from({ length: 30 }, () => cairn.addTurn(id)));
  await cairn.restart();
  await Promise.all(Array.from({ length: 30 }, () => cairn.addTurn(id)));
  const numbers = eventsOf(cairn).flatMap(({ type, record }) =>
    type === "turn.added" ? [(record as { turn_number: number }).turn_number] : [],
  );
  expect(numbers).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
});

test("a change that is not committed leaves neither trace nor event", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const count = () => [outbox, traces].map((table) => cairn.service.store.count(table));
  const before = count();
  // The id that the change would get is taken from it in the middle of its transaction: after the turn, before its trace.
  const { ids } = cairn.service;
  const next = ids.next.bind(ids);
  ids.next = ((prefix: "trace") => {
    if (prefix === "trace") throw new Error("the process ends here");
    return next(prefix);
  }) as typeof ids.next;
  const refused = await cairn.post(`/v1/sessions/${id}/turns`, {
    input: { type: "text", content: "in" },
    output: { type: "text", content: "out" },
  });
  ids.next = next;
  expect(refused.status).toBe(500);
  expect(count()).toEqual(before);
  expect((await cairn.get(`/v1/sessions/${id}/turns`)).body.data).toEqual([]);
  expect(await cairn.addTurn(id)).toMatchObject({ turn_number: 1 });
  expect(count()).toEqual(before.map((rows, table) => rows + (table === 0 ? 2 : 1)));
});

test("events that nobody wants do not pile up", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (let i = 0; i < 30; i++) await cairn.addTurn(id);
  expect(eventsOf(cairn)).toHaveLength(63);
  await cairn.runTask("webhook outbox");
  expect(eventsOf(cairn)).toEqual([]);
});
