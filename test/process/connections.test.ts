import { expect, test } from "bun:test";
import { STOP_SECONDS } from "../../src/cli/serve.ts";
import { KEY, startProcess, until } from "../support/process.ts";
import { Connection } from "../support/server.ts";

const IDLE = 2_000;
/** Files that this process and the other have open beside connections. */
const OTHER_FILES = 200;
const ASKING = 32;

/** As many as wanted, or as a process may have here. */
function connectionsAllowed(): number {
  const limit = Number(Bun.spawnSync(["sh", "-c", "ulimit -H -n"]).stdout.toString());
  return Math.min(IDLE, (Number.isNaN(limit) ? Infinity : limit) - OTHER_FILES);
}

test("beside 2,000 idle connections requests are answered, and so are these when they ask; a stop does not wait for them", async () => {
  await using server = await startProcess();
  const port = Number(new URL(server.address).port);
  const head = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${KEY}\r\n\r\n`;
  const { id } = await server.createSession();
  const idle: Connection[] = [];
  while (idle.length < connectionsAllowed()) {
    const connection = new Connection();
    await connection.open(port);
    // One has said nothing yet, one has had an answer, one is in the middle of a head.
    if (idle.length % 3 === 1) {
      connection.send(head("/v1/sessions"));
      expect((await connection.answer()).status).toBe(200);
    } else if (idle.length % 3 === 2) connection.send(head(`/v1/sessions/${id}`).slice(0, -2));
    idle.push(connection);
  }

  const asked = Array.from({ length: ASKING }, async (_, number) => {
    const made = await server.ok(server.post(`/v1/sessions/${id}/state`, { state: { number } }));
    const memory = await server.addMemory(id, `Parcel ${number} waits at the counter.`);
    const { data } = await server.ok(server.post("/v1/memory/search", { query: memory.content, limit: 1 }));
    return { number: made.state.number, found: data[0].id === memory.id };
  });
  expect(await Promise.all(asked)).toEqual(Array.from({ length: ASKING }, (_, number) => ({ number, found: true })));

  const statuses = idle.map(async (connection, number) => {
    connection.send(number % 3 === 2 ? "\r\n" : head("/health"));
    // Who has asked nothing to its end may have been dropped by now.
    const answer = number % 3 === 1 ? connection.answer() : connection.answer().catch(() => ({ status: 200 }));
    return (await answer).status;
  });
  expect(await Promise.all(statuses)).toEqual(idle.map(() => 200));
  expect(await server.stop()).toBe(0);
  for (const connection of idle) expect(await connection.ended()).toBe("");
});

test("a stream of events has the changes of a server that is busy otherwise, and ends with it without delay", async () => {
  await using server = await startProcess();
  const { body } = await fetch(`${server.address}/v1/events?action=turn.added`, { headers: { "X-API-Key": server.key } });
  const { id } = await server.createSession();
  const turn = { input: { type: "text", content: "in" }, output: { type: "text", content: "out" } };
  await Promise.all(Array.from({ length: 50 }, () => server.ok(server.post(`/v1/sessions/${id}/turns`, turn))));
  let text = "";
  const reading = (async () => {
    for await (const piece of body!) text += new TextDecoder().decode(piece);
  })();
  await until("all events", () => text.split("event: trace").length === 51);
  const stopping = performance.now();
  expect(await server.stop()).toBe(0);
  await reading;
  expect(performance.now() - stopping).toBeLessThan(STOP_SECONDS * 1000);
});

test("a stop does not wait for streams that nobody reads", async () => {
  await using server = await startProcess();
  const port = Number(new URL(server.address).port);
  const unread = Array.from({ length: 3 }, () => new Connection());
  for (const connection of unread) {
    await connection.open(port);
    connection.send(`GET /v1/events HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${KEY}\r\n\r\n`);
  }
  const { body } = await fetch(`${server.address}/v1/events?action=state.updated`, { headers: { "X-API-Key": server.key } });
  let text = "";
  const reading = (async () => {
    for await (const piece of body!) text += new TextDecoder().decode(piece);
  })();
  for (const connection of unread) {
    await connection.answer({ hasBody: false });
    connection.pause();
  }
  // More than the system holds between the two.
  const { id } = await server.createSession();
  for (let step = 0; step < 40; step++) {
    const state = { step, text: String(step % 10).repeat(400_000) };
    await server.ok(server.post(`/v1/sessions/${id}/state`, { state }));
  }
  await until("all events", () => text.split("event: trace").length === 41);
  const stopping = performance.now();
  expect(await server.stop()).toBe(0);
  expect(performance.now() - stopping).toBeLessThan(STOP_SECONDS * 1000);
  await reading;
  for (const connection of unread) connection.close();
}, 60_000);
