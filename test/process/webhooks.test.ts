import { expect, test } from "bun:test";
import { KEY, scratchDirectory, startProcess, until } from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";

const SUBSCRIPTION = { events: ["session.created"] };

test("what was not delivered before a kill -9 is delivered after it, with the same id, by the operator's schedule", async () => {
  using directory = scratchDirectory();
  const environment = { CAIRN_WEBHOOK_RETRY_SCHEDULE: "200ms,200ms,200ms", CAIRN_WEBHOOK_TIMEOUT: "30s" };
  await using receiver = startReceiver((_, count) => (count === 1 ? new Response(null, { status: 500 }) : new Promise(() => undefined)));
  await using server = await startProcess({ dataDirectory: directory.path, environment });
  const { id } = await server.ok(server.post("/v1/webhooks", { ...SUBSCRIPTION, url: receiver.url }));
  const session = await server.createSession();
  // The first attempt has failed, the second is under way.
  await receiver.got(2);
  await server.kill();
  receiver.reply = () => new Response("ok");
  await using again = await startProcess({ dataDirectory: directory.path, environment });
  const delivered = await until("the delivery", async () => {
    const [delivery] = await again.all(`/v1/webhooks/${id}/deliveries`);
    return delivery.status === "delivered" && delivery;
  });
  expect(delivered).toMatchObject({ attempts: 2, response_code: 200, response_body: null });
  expect(receiver.events).toMatchObject(
    Array.from({ length: 3 }, () => ({ id: delivered.event_id, type: "session.created", data: { id: session.id } })),
  );
});

test("kill -9 again and again loses no event, and no session gets an earlier one after a later one", async () => {
  using directory = scratchDirectory();
  const [SESSIONS, TURNS] = [10, 12];
  await using receiver = startReceiver(async () => {
    await Bun.sleep(5);
    return new Response();
  });
  let server = await startProcess({ dataDirectory: directory.path });
  await server.ok(server.post("/v1/webhooks", { events: ["turn.added"], url: receiver.url }));
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => server.createSession()));
  const content = { type: "text", content: "words" };
  for (let turn = 0; turn < TURNS; turn++) {
    await Promise.all(sessions.map(({ id }) => server.ok(server.post(`/v1/sessions/${id}/turns`, { input: content, output: content }))));
    // In the middle of the attempts.
    if (turn % 3 !== 2) continue;
    await server.kill();
    server = await startProcess({ dataDirectory: directory.path });
  }
  await using last = server;
  const turnsOf = (session: string) =>
    receiver.events.filter(({ data }) => data.session_id === session).map(({ data }) => data.turn_number);
  const all = Array.from({ length: TURNS }, (_, i) => i + 1);
  await until("every event", () => sessions.every(({ id }) => new Set(turnsOf(id)).size === TURNS));
  for (const { id } of sessions) {
    expect(turnsOf(id)).toEqual(turnsOf(id).toSorted((a, b) => a - b));
    expect([...new Set(turnsOf(id))]).toEqual(all);
  }
  expect(await last.stop()).toBe(0);
});

test("a server that is reached from outside does not call this machine, unless the operator allows it", async () => {
  using directory = scratchDirectory();
  const flags = ["--host", "0.0.0.0"];
  await using server = await startProcess({ dataDirectory: directory.path, flags });
  server.address = server.address.replace("0.0.0.0", "127.0.0.1");
  const url = "http://127.0.0.1:3000/hook";
  const refused = await server.post("/v1/webhooks", { ...SUBSCRIPTION, url });
  expect([refused.status, refused.body.error.param]).toEqual([400, "url"]);
  await server.stop();
  await using allowing = await startProcess({ dataDirectory: directory.path, flags, environment: { CAIRN_WEBHOOK_ALLOW_PRIVATE: "1" } });
  allowing.address = allowing.address.replace("0.0.0.0", "127.0.0.1");
  expect((await allowing.post("/v1/webhooks", { ...SUBSCRIPTION, url })).status).toBe(201);
  expect((await allowing.post("/v1/webhooks", { ...SUBSCRIPTION, url: "http://169.254.169.254/" })).status).toBe(400);
});

test("a loopback listener under a public name calls this machine no more than one that is reached from outside, and its metrics need a key", async () => {
  using directory = scratchDirectory();
  const metrics = async ({ address }: { address: string }, headers: Record<string, string> = {}) =>
    (await fetch(`${address}/metrics`, { headers })).status;
  const url = "http://127.0.0.1:3000/hook";
  await using server = await startProcess({
    dataDirectory: directory.path,
    environment: { CAIRN_ALLOWED_HOSTS: "cairn.example" },
  });
  const refused = await server.post("/v1/webhooks", { ...SUBSCRIPTION, url });
  expect([refused.status, refused.body.error.param]).toEqual([400, "url"]);
  expect([await metrics(server), await metrics(server, { "X-API-Key": KEY })]).toEqual([401, 200]);
  expect([await metrics(server, { Host: "cairn.example", "X-API-Key": KEY }), await metrics(server, { Host: "x.example" })]).toEqual([
    200, 403,
  ]);
  await server.stop();
  await using alone = await startProcess({ dataDirectory: directory.path });
  expect((await alone.post("/v1/webhooks", { ...SUBSCRIPTION, url })).status).toBe(201);
  expect(await metrics(alone)).toBe(200);
});
