import { expect, test } from "bun:test";
import { scratchDirectory, startProcess, until } from "../support/process.ts";

test("a session expires on time although the server was down and is down again, and leaves one trace and its memories", async () => {
  using directory = scratchDirectory();
  await using first = await startProcess({ dataDirectory: directory.path });
  const create = (ttl_seconds: number) => first.ok(first.post("/v1/sessions", { agent_id: "agent", ttl_seconds }));
  const [short, long] = [await create(1), await create(3600)];
  const memory = await first.ok(first.post("/v1/memory", { session_id: short.id, content: "The spare key hangs behind the clock." }));
  await first.kill();

  await using second = await startProcess({ dataDirectory: directory.path });
  await until(
    "the session to be gone",
    async () => (await second.get(`/v1/sessions/${short.id}`)).body.error?.code === "session_not_found",
  );
  expect(new Date(short.ttl_expires_at).getTime()).toBeLessThanOrEqual(Date.now());
  const expired = async (server: typeof second) =>
    (await server.all(`/v1/traces?action=session.expired&session_id=${short.id}`)) as unknown[];
  const traces = await until("its trace", async () => {
    const found = await expired(second);
    return found.length > 0 && found;
  });
  expect(traces).toMatchObject([{ actor: "system", details: { ttl_seconds: 1 } }]);
  await second.kill();

  await using third = await startProcess({ dataDirectory: directory.path });
  expect(await third.all("/v1/sessions")).toEqual([long]);
  expect(await expired(third)).toEqual(traces);
  expect((await third.ok(third.post("/v1/memory/search", { query: memory.content }))).data).toMatchObject([{ id: memory.id, score: 1 }]);
  expect((await third.post(`/v1/sessions/${short.id}/state`, { state: {} })).status).toBe(404);
}, 60_000);
