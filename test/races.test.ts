/**
 * Many clients at one record at the same time, over sockets of their own: what the answers say has happened in some order,
 * one after the other.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { Chance, inTurns, runCairn, startProcess, type Answer, type CairnProcess } from "./support/process.ts";
import { requestsOf } from "./support/requests.ts";

const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? 20_260_507);
const CLIENTS = 64;

/** Runs as many clients at once, each with its number. */
function clients<Result>(work: (client: number) => Promise<Result>, count = CLIENTS): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, client) => work(client)));
}

const upTo = (last: number) => Array.from({ length: last + 1 }, (_, number) => number);
const isSuccess = ({ status }: Answer) => status === 200 || status === 201;

/** The version that a refusal says is current, and the one it was asked to expect. */
function conflictOf({ status, body }: Answer): { current: number; expected: number } {
  expect([status, body.error.code, body.error.param]).toEqual([409, "version_conflict", "expected_version"]);
  const [, current, expected] = /is at version (\d+), not (\d+)\. Nothing was changed\.$/.exec(body.error.message) ?? [];
  return { current: Number(current), expected: Number(expected) };
}

async function expectNothingWrong(server: CairnProcess, dataDirectory: string): Promise<void> {
  expect(await server.stop()).toBe(0);
  expect(await runCairn(["doctor", "--data-dir", dataDirectory])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Nothing is wrong: /),
  });
}

interface Step {
  kind: "state" | "rollback" | "turn";
  expected: number | undefined;
  answer: Answer;
}

test(`64 clients that update, roll back and add turns to one session leave versions and turns without gaps, each as it was answered (seed ${SEED})`, async () => {
  const chance = new Chance(SEED);
  await using server = await startProcess();
  const { id } = await server.createSession({ initial_state: { by: "nobody" } });
  const path = `/v1/sessions/${id}`;
  const steps = await clients(async (client) => {
    const own: Step[] = [];
    for (let step = 0, seen = 0; step < 16; step++) {
      const kind = chance.pick(["state", "state", "rollback", "turn"] as const) as Step["kind"];
      // First many get ahead of those that expect something; then all do, and of each lot one is right.
      const expected = kind !== "turn" && (step >= 8 || chance.below(2) === 0) ? seen : undefined;
      const by = `client ${client}, step ${step}`;
      const body = {
        state: { state: { by }, reasoning: by, expected_version: expected },
        rollback: { version: chance.below(seen + 1), reason: by, expected_version: expected },
        turn: { input: { type: "text", content: by }, output: { type: "text", content: "-" } },
      }[kind];
      const answer = await server.post(`${path}/${kind === "turn" ? "turns" : kind}`, body);
      own.push({ kind, expected, answer });
      if (answer.status === 409) {
        const { current } = conflictOf(answer);
        // It has gone on since this client looked, and never back.
        expect(current).toBeGreaterThan(seen);
        seen = current;
      } else if (kind !== "turn") {
        expect(answer.body.state_version).toBeGreaterThan(seen);
        seen = answer.body.state_version;
      }
    }
    return own;
  });

  const all = steps.flat();
  const changes = all.filter(({ kind, answer }) => kind !== "turn" && isSuccess(answer));
  const session = await server.ok(server.get(path));
  expect(changes.map(({ answer }) => answer.body.state_version).sort((a, b) => a - b)).toEqual(upTo(changes.length).slice(1));
  expect(session.state_version).toBe(changes.length);
  for (const { expected, answer } of all.filter((step) => step.expected !== undefined)) {
    if (isSuccess(answer)) expect(answer.body.state_version).toBe((expected as number) + 1);
    else expect(conflictOf(answer).expected).toBe(expected as number);
  }
  expect(all.filter(({ answer }) => !isSuccess(answer) && answer.status !== 409)).toEqual([]);
  expect(new Set(all.map(({ expected, answer }) => (expected === undefined ? "any" : answer.status)))).toEqual(new Set(["any", 200, 409]));

  const versions = (await server.all(`${path}/versions`)).reverse();
  expect(versions.map(({ version }) => version)).toEqual(upTo(changes.length));
  const stateAt = new Map<number, unknown>([[0, { by: "nobody" }]]);
  await inTurns(changes, 8, async ({ answer }) => {
    const { state_version, state } = answer.body;
    stateAt.set(state_version, state);
    expect((await server.ok(server.get(`${path}/versions/${state_version}`))).state).toEqual(state);
  });
  const traces = (await server.all(`/v1/traces?session_id=${id}`)).reverse();
  const numbers = traces.flatMap(({ action, details: { version, from_version, to_version } }) => {
    if (action === "state.updated") return [version];
    if (action !== "state.rolled_back") return [];
    expect(stateAt.get(from_version + 1)).toEqual(stateAt.get(to_version) as object);
    return [from_version + 1];
  });
  expect(numbers).toEqual(upTo(changes.length).slice(1));

  const added = all.filter(({ kind }) => kind === "turn").map(({ answer }) => answer.body);
  const turns = await server.all(`${path}/turns?order=asc`);
  expect(turns).toEqual(added.toSorted((a, b) => a.turn_number - b.turn_number));
  expect(turns.map(({ turn_number }) => turn_number)).toEqual(upTo(added.length).slice(1));
  const ids = turns.map((turn): string => turn.id);
  expect(ids).toEqual(ids.toSorted());
  expect({ turns: session.turn_count, traces: traces.length }).toEqual({
    turns: added.length,
    traces: 1 + changes.length + added.length,
  });
  await expectNothingWrong(server, server.dataDirectory);
});

test("of 64 clients that expect the same version exactly one gets its change in, version after version; the others learn the new one", async () => {
  await using server = await startProcess();
  const { id } = await server.createSession();
  const path = `/v1/sessions/${id}`;
  for (let version = 0; version < 20; version++) {
    const answers = await clients((client) =>
      client % 4 === 3
        ? server.post(`${path}/rollback`, { version: 0, expected_version: version })
        : server.post(`${path}/state`, { state: { client, version }, expected_version: version }),
    );
    const winners = answers.filter(isSuccess);
    expect(winners.map(({ body }) => body.state_version)).toEqual([version + 1]);
    expect(answers.filter((answer) => !isSuccess(answer)).map(conflictOf)).toEqual(
      Array.from({ length: CLIENTS - 1 }, () => ({ current: version + 1, expected: version })),
    );
    expect(await server.ok(server.get(path))).toEqual(winners[0]?.body);
  }
  await expectNothingWrong(server, server.dataDirectory);
});

test(`a session that is deleted while 64 clients work on it is gone for all at one moment and leaves nothing; its forks stay (seed ${SEED})`, async () => {
  const chance = new Chance(SEED);
  await using server = await startProcess();
  const forks: any[] = [];
  for (let round = 0; round < 6; round++) {
    const session = await server.ok(server.post("/v1/sessions", { agent_id: "agent", user_id: `user-${round}`, initial_state: { round } }));
    const path = `/v1/sessions/${session.id}`;
    const deleteAfter = 50 + chance.below(200);
    const made: { kind: string; answer: Answer }[] = [];
    const deletions: Answer[] = [];
    await clients(async (client) => {
      for (;;) {
        if (client < 4 && made.length >= deleteAfter) {
          deletions.push(await server.delete(path));
          return;
        }
        const isGone = deletions.some(isSuccess);
        const [kind, asked] = step(server, session.id, chance);
        const answer = await asked;
        if (isSuccess(answer) && !isGone) made.push({ kind, answer });
        else {
          // Requests after the answer to the deletion get the same as those that came too late.
          expect([answer.status, answer.body.error?.code]).toEqual([404, "session_not_found"]);
          return;
        }
      }
    });
    expect(deletions.filter(isSuccess).map(({ body }) => body)).toEqual([{ object: "session", id: session.id, deleted: true }]);
    expect(deletions.filter(({ status }) => status !== 200 && status !== 404)).toEqual([]);

    const count = (kind: string) => made.filter((one) => one.kind === kind).length;
    const traces = await server.all(`/v1/traces?session_id=${session.id}`);
    // The deletion is the last that was done to it, and has counted what there was.
    expect(traces[0]).toMatchObject({
      action: "session.deleted",
      details: { turn_count: count("turn"), memory_count: count("memory") },
    });
    expect(traces.length).toBe(2 + count("state") + count("turn") + count("memory"));
    for (const { method, path: of, body } of requestsOf(session.id)) {
      expect({ method, of, status: (await server.request(method, of, body)).status }).toEqual({ method, of, status: 404 });
    }
    const memories = made.filter(({ kind }) => kind === "memory").map(({ answer }) => answer.body);
    await inTurns(memories, 8, async ({ id }) => {
      expect((await server.get(`/v1/memory/${id}`)).status).toBe(404);
    });
    const ofUser = { query: "A parcel waits at the counter.", user_id: session.user_id, threshold: 0 };
    expect((await server.ok(server.post("/v1/memory/search", ofUser))).data).toEqual([]);
    expect(await server.all(`/v1/memory?user_id=${session.user_id}`)).toEqual([]);
    const ownForks = made.filter(({ kind }) => kind === "fork").map(({ answer }) => answer.body);
    expect(await server.all(`/v1/sessions?user_id=${session.user_id}`)).toEqual(ownForks.toSorted((a, b) => (a.id < b.id ? 1 : -1)));
    forks.push(...ownForks);
  }
  expect((await server.all("/v1/sessions")).length).toBe(forks.length);
  await expectNothingWrong(server, server.dataDirectory);
});

function step(server: CairnProcess, session: string, chance: Chance): [kind: string, asked: Promise<Answer>] {
  const path = `/v1/sessions/${session}`;
  const turn = { input: { type: "text", content: "a" }, output: { type: "text", content: "b" } };
  const content = `Parcel ${chance.below(10_000)} waits at the counter.`;
  switch (chance.below(8)) {
    case 0:
      return ["fork", server.post(`${path}/fork`, { version: 0 })];
    case 1:
    case 2:
      return ["memory", server.post("/v1/memory", { session_id: session, content })];
    case 3:
    case 4:
      return ["state", server.post(`${path}/state`, { state: { content } })];
    default:
      return ["turn", server.post(`${path}/turns`, turn)];
  }
}

test("of 64 clients that delete one memory one deletes it; its session counts it once", async () => {
  await using server = await startProcess();
  const { id } = await server.createSession();
  const add = (content: string) => server.addMemory(id, content);
  const [first, second] = [await add("The boat is moored at pier nine."), await add("The train leaves at noon.")];
  const answers = await clients((client) =>
    client % 8 === 7 ? server.request("PATCH", `/v1/memory/${first.id}`, { tags: ["late"] }) : server.delete(`/v1/memory/${first.id}`),
  );
  const deletions = answers.filter((_, client) => client % 8 !== 7);
  expect(deletions.filter(isSuccess).map(({ body }) => body)).toEqual([{ object: "memory", id: first.id, deleted: true }]);
  expect(answers.filter((answer) => !isSuccess(answer)).map(({ body }) => body.error.code)).toEqual(
    answers.filter((answer) => !isSuccess(answer)).map(() => "memory_not_found"),
  );
  expect(await server.all(`/v1/memory?session_id=${id}`)).toEqual([second]);
  expect((await server.ok(server.get(`/v1/sessions/${id}`))).memory_count).toBe(1);
  expect((await server.all("/v1/traces?action=memory.deleted")).length).toBe(1);
  await expectNothingWrong(server, server.dataDirectory);
});

test("100 requests at once with one idempotency key make one record and get one answer, whatever they ask for", async () => {
  await using server = await startProcess();
  const { id } = await server.createSession({ initial_state: { step: 0 } });
  const path = `/v1/sessions/${id}`;
  const memory = await server.addMemory(id, "The boat is moored at pier nine.");
  const turn = { input: { type: "text", content: "a" }, output: { type: "text", content: "b" } };
  // How many rows of lists each makes: a trace, and a record or none.
  const requests: { method: string; of: string; body: unknown; makes: number }[] = [
    { method: "POST", of: "/v1/sessions", body: { agent_id: "agent" }, makes: 2 },
    { method: "PATCH", of: path, body: { metadata: { channel: "web" } }, makes: 1 },
    { method: "POST", of: `${path}/state`, body: { state: { step: 1 } }, makes: 1 },
    { method: "POST", of: `${path}/state`, body: { state: { step: 2 }, expected_version: 1 }, makes: 1 },
    { method: "POST", of: `${path}/rollback`, body: { version: -1 }, makes: 1 },
    { method: "POST", of: `${path}/fork`, body: {}, makes: 2 },
    { method: "POST", of: `${path}/turns`, body: turn, makes: 2 },
    { method: "POST", of: "/v1/memory", body: { session_id: id, content: "The train leaves at noon." }, makes: 2 },
    { method: "PATCH", of: `/v1/memory/${memory.id}`, body: { content: "The boat is moored at pier ten." }, makes: 1 },
    { method: "POST", of: "/v1/webhooks", body: { url: "http://127.0.0.1:9/hook", events: ["trace.error"] }, makes: 2 },
    { method: "POST", of: "/v1/api_keys", body: { name: "once" }, makes: 2 },
  ];
  for (const [index, { method, of, body, makes }] of requests.entries()) {
    const before = await recordsIn(server);
    const answers = await clients(() => server.request(method, of, body, { "Idempotency-Key": `key ${index}` }), 100);
    const first = answers.filter(({ headers }) => headers.get("idempotency-replayed") === null);
    expect({ of, first: first.map(isSuccess) }).toEqual({ of, first: [true] });
    const [{ status, text }] = first as [Answer];
    const replayed = answers.filter((answer) => answer !== first[0]);
    expect(replayed.map((answer) => [answer.status, answer.headers.get("idempotency-replayed"), answer.text])).toEqual(
      replayed.map(() => [status, "true", text]),
    );
    expect({ of, made: (await recordsIn(server)).length - before.length }).toEqual({ of, made: makes });
  }
  expect(await server.ok(server.get(path))).toMatchObject({ state: { step: 1 }, state_version: 3, turn_count: 1, memory_count: 2 });
  await expectNothingWrong(server, server.dataDirectory);
});

/** Everything there is a list of: records, and a trace for each change of one. */
async function recordsIn(server: CairnProcess): Promise<unknown[]> {
  const sessions = await server.all("/v1/sessions");
  const turns = await Promise.all(sessions.map(({ id }) => server.all(`/v1/sessions/${id}/turns`)));
  const lists = await Promise.all(["/v1/memory", "/v1/traces", "/v1/webhooks", "/v1/api_keys"].map((list) => server.all(list)));
  return [...sessions, ...turns.flat(), ...lists.flat()];
}
