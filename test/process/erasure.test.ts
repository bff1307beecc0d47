/**
 * What is removed in pieces, cut off by kill -9: a user, and the documents of a namespace.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { inTurns, runCairn, scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";

const SECRET = "rosebud-7f3a";
const SESSIONS = 600;

/** Gives a user sessions with turns and memories, more than one request erases. */
async function fill(server: CairnProcess, userId: string, sessions: number): Promise<string[]> {
  const ids: string[] = [];
  const text = { type: "text", content: SECRET };
  await inTurns(Array.from({ length: sessions }), 32, async () => {
    const { id } = await server.createSession({ user_id: userId, initial_state: { note: SECRET } });
    await server.ok(server.post(`/v1/sessions/${id}/turns`, { input: text, output: text }));
    await server.ok(server.post("/v1/memory", { session_id: id, content: `The word is ${SECRET}.`, embed: false }));
    ids.push(id);
  });
  return ids;
}

test("an erasure that is cut off by kill -9, again and again, shows nothing of the user in between and ends after the last start", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.path;
  let bobs: string[] = [];
  let report: any;
  {
    await using server = await startProcess({ dataDirectory });
    await fill(server, "ada", SESSIONS);
    bobs = await fill(server, "bob", 3);
    report = await server.ok(server.delete("/v1/users/ada"));
    expect(report.status).toBe("running");
    // It continues while the process ends.
    await server.kill();
  }
  const counts: number[] = [];
  for (let round = 0; round < 3; round++) {
    await using server = await startProcess({ dataDirectory });
    expect((await server.all("/v1/sessions?user_id=ada")).length).toBe(0);
    expect((await server.all("/v1/memory?user_id=ada")).length).toBe(0);
    expect((await server.get("/v1/users/ada")).status).toBe(404);
    const progress = (await server.get("/v1/users/ada/erasure")).body;
    expect(progress.started_at).toBe(report.started_at);
    counts.push(progress.sessions);
    await server.kill();
  }
  expect(counts).toEqual(counts.toSorted((a, b) => a - b));
  await using last = await startProcess({ dataDirectory });
  const done = await until("the erasure to end", async () => {
    const { body } = await last.get("/v1/users/ada/erasure");
    return body.status === "done" ? body : undefined;
  });
  expect(done).toMatchObject({
    sessions: SESSIONS,
    turns: SESSIONS,
    memories: SESSIONS,
    versions: SESSIONS,
    started_at: report.started_at,
  });
  expect(new Set((await last.all("/v1/sessions")).map(({ id }) => id))).toEqual(new Set(bobs));
  expect((await last.all("/v1/traces?user_id=ada")).filter((trace) => JSON.stringify(trace).includes(SECRET))).toEqual([]);
  expect((await last.all("/v1/traces?action=user.erased")).length).toBe(1);
  const isOfBob = (line: string) => bobs.some((id) => line.includes(id.slice("sess_".length)));
  await until("what the sessions left to be removed", async () => {
    const { stdout } = await runCairn(["export", "--data-dir", dataDirectory]);
    const lines = stdout.split("\n").filter((line) => line.includes(SECRET));
    return lines.length >= bobs.length && lines.every(isOfBob);
  });
  expect(await last.stop()).toBe(0);
  expect(await runCairn(["doctor", "--data-dir", dataDirectory])).toMatchObject({ code: 0 });
});

test("the removal of a namespace's documents that is cut off by kill -9, again and again, shows none of them, and keeps those put since", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.path;
  const namespace = ["log"];
  const batch = (server: CairnProcess, operations: object[]) => server.ok(server.post("/v1/documents/batch", { operations }));
  const query = async (server: CairnProcess, operation: object) =>
    (await server.ok(server.post("/v1/documents/query", { operations: [operation] }))).data[0];
  const kept: string[] = [];
  const expectKept = async (server: CairnProcess) => {
    const { data } = await query(server, { op: "list", namespace, deep: true, limit: 1_000 });
    expect(data.map(({ key }: { key: string }) => key)).toEqual(kept);
    expect(await query(server, { op: "count", namespace, deep: true })).toEqual({ count: kept.length });
    expect((await query(server, { op: "search", namespace, query: SECRET })).data).toEqual([]);
    expect((await query(server, { op: "namespaces", prefix: namespace })).data).toHaveLength(Math.min(kept.length, 1));
  };
  {
    await using server = await startProcess({ dataDirectory });
    await inTurns(
      Array.from({ length: 60 }, (_, i) => i),
      8,
      async (at) => {
        const document = (i: number) => ({ op: "put", namespace: [...namespace, `n${i % 7}`], key: `${at} ${i}`, value: { text: SECRET } });
        await batch(
          server,
          Array.from({ length: 100 }, (_, i) => ({ ...document(i), ...(i === 0 ? { index: true } : {}) })),
        );
      },
    );
    expect(await batch(server, [{ op: "delete_all", namespace }])).toMatchObject({ data: [{ deleted: 6_000 }] });
    await server.kill();
  }
  for (let round = 0; round < 3; round++) {
    await using server = await startProcess({ dataDirectory });
    await expectKept(server);
    kept.push(`new ${round}`);
    await batch(server, [{ op: "put", namespace: [...namespace, "n0"], key: `new ${round}`, value: { text: "later" } }]);
    await server.kill();
  }
  await using last = await startProcess({ dataDirectory });
  await expectKept(last);
  await until("the documents to be removed", async () => {
    const { stdout } = await runCairn(["export", "--data-dir", dataDirectory]);
    return !stdout.includes(SECRET);
  });
  await expectKept(last);
  expect(await last.stop()).toBe(0);
  expect(await runCairn(["doctor", "--data-dir", dataDirectory])).toMatchObject({ code: 0 });
});
