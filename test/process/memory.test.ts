/**
 * What clients can have the server hold in memory: a multiple of what they send or ask for would let one of them take it all.
 *
 * @module
 */
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { KEY, startProcess, until, type CairnProcess } from "../support/process.ts";
import { Connection } from "../support/server.ts";
import { onLinux } from "../support/platform.ts";

const test = onLinux("the memory of a process's own in /proc");

const MIB = 1024 * 1024;

/** Memory of the process's own; the pages of the store's file that it has mapped are not counted. */
function ownMemory({ pid }: CairnProcess): number {
  const [, kilobytes] = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

function head(line: string, ...headers: string[]): string {
  return [`${line} HTTP/1.1`, "Host: localhost", `X-API-Key: ${KEY}`, ...headers, "", ""].join("\r\n");
}

async function connectionsTo(server: CairnProcess, count: number): Promise<Connection[]> {
  const connections = Array.from({ length: count }, () => new Connection());
  for (const connection of connections) await connection.open(Number(new URL(server.address).port));
  return connections;
}

test("a body in chunks of one byte takes memory for its bytes, not for its chunks", async () => {
  await using server = await startProcess();
  const before = ownMemory(server);
  const connections = await connectionsTo(server, 6);
  for (const connection of connections) {
    connection.send(head("POST /v1/sessions", "Content-Type: application/json", "Transfer-Encoding: chunked"));
    connection.send("1\r\n \r\n".repeat(300_000));
  }
  for (const connection of connections) connection.send('14\r\n{"agent_id":"chunks"\r\n');
  await until("all of it to be sent", () => connections.every(({ isSent }) => isSent));
  expect((await server.get("/v1/sessions")).status).toBe(200);
  // 1.8 MB were sent. What was thrown away goes with the next collection of garbage.
  await until("the memory of the chunks to be free again", () => ownMemory(server) - before < 48 * MIB);
  for (const connection of connections) connection.send("1\r\n}\r\n0\r\n\r\n");
  for (const connection of connections) expect(await connection.answer()).toMatchObject({ status: 201, body: { agent_id: "chunks" } });
});

const contextOverMcp = (session_id: string) =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "get_context", arguments: { session_id, turn_limit: 50 } },
  });

for (const { answers, method, route, requestFor, count } of [
  {
    answers: "pages of turns",
    method: "GET",
    route: "/turns",
    requestFor: (id: string) => head(`GET /v1/sessions/${id}/turns?limit=100`),
    count: 60,
  },
  {
    // With the text of the context beside its fields each is twice as long.
    answers: "contexts over MCP",
    method: "POST",
    route: "/mcp",
    requestFor(id: string) {
      const body = contextOverMcp(id);
      return `${head("POST /mcp", "Content-Type: application/json", "Accept: application/json, text/event-stream", `Content-Length: ${body.length}`)}${body}`;
    },
    count: 30,
  },
]) {
  test(`answers that nobody reads take a part of the memory that they would all take: ${answers}`, async () => {
    await using server = await startProcess();
    const { id } = await server.createSession();
    const turn = { input: { type: "text", content: "x".repeat(900_000) }, output: { type: "text", content: "" } };
    for (let i = 0; i < 10; i++) await server.ok(server.post(`/v1/sessions/${id}/turns`, turn));
    const before = ownMemory(server);
    const connections = await connectionsTo(server, count);
    for (const connection of connections) {
      connection.pause();
      connection.send(requestFor(id));
    }
    // Answered, or refused with a few bytes: 540 MB of answers were asked for.
    const asked = () => server.logged("request").filter((one) => one.method === method && one.route.endsWith(route)).length;
    await until("all of them to be asked", () => asked() === connections.length);
    await until("memory to be free again", () => ownMemory(server) - before < 160 * MIB);
    expect(await server.stop()).toBe(0);
  });
}

test("lists that compare many large documents with a filter hold a few of them, however many lists there are", async () => {
  await using server = await startProcess();
  const namespace = ["large"];
  const value = { text: "x".repeat(1_000_000) };
  for (let i = 0; i < 25; i++) await server.ok(server.post("/v1/documents/batch", { operations: [{ op: "put", namespace, value }] }));
  const before = ownMemory(server);
  let most = 0;
  const sampling = setInterval(() => (most = Math.max(most, ownMemory(server) - before)), 5);
  const list = { op: "list", namespace, filter: { text: "y" } };
  const pages = await Promise.all(Array.from({ length: 40 }, () => server.post("/v1/documents/query", { operations: [list] })));
  clearInterval(sampling);
  expect(pages.map(({ body }) => body.data)).toEqual(pages.map(() => [{ object: "list", data: [], has_more: false, next_cursor: null }]));
  // 40 lists of 25 megabytes; what was read and let go waits for the next collection of garbage.
  expect(most).toBeLessThan(500 * MIB);
  expect(await server.stop()).toBe(0);
});

/** Looks again and again how much memory a server has. */
class Sampling implements Disposable {
  most = 0;
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(server: CairnProcess) {
    this.#timer = setInterval(() => (this.most = Math.max(this.most, ownMemory(server))), 5);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

for (const { when, isLive } of [
  { when: "live", isLive: true },
  { when: "after an id", isLive: false },
]) {
  test(`a hundred streams that nobody reads hold less than 256 KiB each, and hardly more while large events come: ${when}`, async () => {
    await using server = await startProcess();
    const { id } = await server.createSession();
    const turn = { input: { type: "text", content: "in" }, output: { type: "text", content: "out" }, reasoning: "x".repeat(400_000) };
    // More than the system takes for a connection.
    const addTurns = async () => {
      for (let i = 0; i < 14; i++) await server.ok(server.post(`/v1/sessions/${id}/turns`, turn));
    };
    const [first] = (await server.ok(server.get("/v1/traces?limit=1"))).data;
    const keys: string[] = [];
    for (let i = 0; i < 10; i++) keys.push((await server.ok(server.post("/v1/api_keys", { name: "reader", scopes: ["read"] }))).key);
    if (!isLive) await addTurns();
    const before = ownMemory(server);
    using sampling = new Sampling(server);
    const connections = await connectionsTo(server, 100);
    for (const [i, connection] of connections.entries()) {
      connection.pause();
      const after = isLive ? [] : [`Last-Event-ID: ${first.id}`];
      connection.send(["GET /v1/events HTTP/1.1", "Host: localhost", `X-API-Key: ${keys[i % 10]}`, ...after, "", ""].join("\r\n"));
    }
    await until("all of it to be sent", () => connections.every(({ isSent }) => isSent));
    expect((await server.get("/v1/sessions")).status).toBe(200);
    // Live ones are dropped meanwhile, as they take nothing.
    if (isLive) await addTurns();
    else await until("what they hold to be all", () => ownMemory(server) - before < 25 * MIB);
    // What was read and let go waits for the next collection of garbage: 14 such changes take 35 MiB without any stream.
    expect(sampling.most - before).toBeLessThan(120 * MIB);
  });
}
