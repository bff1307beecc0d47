/**
 * What only a connection shows: clients that are slow, rude or broken.
 *
 * @module
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { LIMITS } from "../src/lib/limits.ts";
import { refusal } from "./support/answers.ts";
import { until } from "./support/process.ts";
import { startServer, type Server } from "./support/server.ts";
import { onEmbedded } from "./support/stores.ts";

const JSON_TYPE = "Content-Type: application/json";
const MAX = 1_048_576;

/** Serves somebody else, changes something, and has no fault to report. */
async function expectHealthy(server: Server): Promise<void> {
  const body = '{"agent_id":"healthy"}';
  expect((await server.ask(server.head("GET /health"))).body).toMatchObject({ status: "ready" });
  const made = await server.ask(server.head("POST /v1/sessions", JSON_TYPE, `Content-Length: ${body.length}`), body);
  expect(made).toMatchObject({ status: 201, body: { agent_id: "healthy" } });
  expect(server.cairn.logged.filter((line) => /"level":"(warn|error)"/.test(line))).toEqual([]);
}

/** A session whose turns are far more than the system takes for a client that does not read. */
async function largeSession({ cairn }: Server, turns: number): Promise<string> {
  const { id } = await cairn.createSession();
  for (let turn = 0; turn < turns; turn++) await cairn.addTurn(id, "x".repeat(900_000));
  return id;
}

type Client = Awaited<ReturnType<Server["connect"]>>;

/** How many bodies are waited for. A request is pending before: on a database its key is looked up first. */
const arriving = ({ cairn }: Server): number => cairn.service.arrivals.open.size;

/** One chunk of a chunked body. */
const chunk = (length: number) => `${length.toString(16)}\r\n${"x".repeat(length)}\r\n`;

test("a body that declares more than the limit is refused before any of it is sent, however large", async () => {
  await using server = await startServer();
  for (const length of [MAX + 1, 2_000_000_000, 9_000_000_000_000_000]) {
    const answer = await server.ask(server.head("POST /v1/sessions", JSON_TYPE, `Content-Length: ${length}`));
    expect(refusal(answer)).toEqual({ status: 413, code: "payload_too_large", param: undefined });
    expect(answer.headers.get("x-ratelimit-limit")).toBe("60000");
  }
  await expectHealthy(server);
});

test("a client that sends a refused body all the same can go on with its connection", async () => {
  await using server = await startServer();
  const connection = await server.connect();
  connection.send(server.head("POST /v1/sessions", JSON_TYPE, `Content-Length: ${MAX * 3}`));
  expect((await connection.answer()).status).toBe(413);
  connection.send("x".repeat(MAX * 3));
  connection.send(server.head("GET /v1/sessions"));
  expect((await connection.answer()).body).toMatchObject({ object: "list", data: [] });
});

test("a chunked body is refused at the limit, without waiting for its end", async () => {
  await using server = await startServer();
  const connection = await server.connect();
  connection.send(server.head("POST /v1/sessions", JSON_TYPE, "Transfer-Encoding: chunked"));
  for (let sent = 0; sent <= MAX; sent += 65_536) connection.send(chunk(65_536));
  expect(refusal(await connection.answer())).toEqual({ status: 413, code: "payload_too_large", param: undefined });
  connection.send("0\r\n\r\n");
  connection.send(server.head("GET /v1/sessions"));
  expect((await connection.answer()).body).toMatchObject({ object: "list", data: [] });
});

test("a body of exactly the limit is accepted, declared or in chunks, and one of a byte more is not", async () => {
  await using server = await startServer();
  const frame = JSON.stringify({ agent_id: "a", initial_state: { text: "" } });
  const body = JSON.stringify({ agent_id: "a", initial_state: { text: "x".repeat(MAX - frame.length) } });
  const declared = await server.ask(server.head("POST /v1/sessions", JSON_TYPE, `Content-Length: ${MAX}`), body);
  const inChunks = await server.ask(
    server.head("POST /v1/sessions", JSON_TYPE, "Transfer-Encoding: chunked"),
    `${MAX.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  );
  expect([declared.status, inChunks.status]).toEqual([201, 201]);
  const more = await server.ask(server.head("POST /v1/sessions", JSON_TYPE, "Transfer-Encoding: chunked"), `${chunk(MAX + 1)}0\r\n\r\n`);
  expect(refusal(more)).toMatchObject({ status: 413, code: "payload_too_large" });
});

test("a body that is not complete when its time is up is refused, and its connection closed", async () => {
  await using server = await startServer();
  const { cairn } = server;
  const late: Client[] = [];
  for (const sent of [`Content-Length: 100\r\n\r\n{"agent_id":`, 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"age\r\n']) {
    const connection = await server.connect();
    connection.send(`${server.head("POST /v1/sessions", JSON_TYPE).slice(0, -2)}${sent}`);
    late.push(connection);
  }
  await until("both bodies", () => arriving(server) === 2);
  // A body of no declared length has as long as the longest one.
  cairn.clock.advance({ seconds: LIMITS.bodySecondsMax, ms: -1 });
  await cairn.runTaskOnce("deadlines of request bodies");
  expect(arriving(server)).toBe(2);
  cairn.clock.advance({ seconds: MAX / LIMITS.bodyBytesPerSecondMin - LIMITS.bodySecondsMax, ms: 1 });
  await cairn.runTaskOnce("deadlines of request bodies");
  for (const connection of late) {
    const answer = await connection.answer();
    expect(refusal(answer)).toEqual({ status: 408, code: "request_timeout", param: undefined });
    expect(answer.headers.get("connection")).toBe("close");
    expect(await connection.ended()).toBe("");
  }
  await expectHealthy(server);
  expect(await cairn.list("/v1/sessions")).toHaveLength(1);
});

test("bodies that are not complete take no more memory than there is for them, nor one key all of it", async () => {
  await using server = await startServer();
  const { cairn } = server;
  const others = await cairn.newKey();
  const small = '{"agent_id":"small"}';
  const ask = (key: string) =>
    server.ask(server.head("POST /v1/sessions", JSON_TYPE, `Content-Length: ${small.length}`).replace(cairn.key, key), small);
  const open: Client[] = [];
  for (let i = 0; i < LIMITS.arrivingBytesMax / 2 / MAX; i++) {
    const connection = await server.connect();
    connection.send(server.head("POST /v1/sessions", JSON_TYPE, `Content-Length: ${MAX}`));
    open.push(connection);
  }
  await until("all bodies", () => arriving(server) === open.length);
  const refused = await ask(cairn.key);
  expect(refusal(refused)).toEqual({ status: 503, code: "service_unavailable", param: undefined });
  expect([refused.headers.get("retry-after"), refused.body.error.retry_after]).toEqual(["1", 1]);
  expect((await ask(others)).status).toBe(201);

  for (const connection of open) connection.close();
  await until("them to be given up", () => server.pendingRequests === 0);
  expect((await ask(cairn.key)).status).toBe(201);
  await expectHealthy(server);
});

test("bodies that nobody reads leave the connection fit for the next request", async () => {
  await using server = await startServer();
  const connection = await server.connect();
  const unread = [
    { head: server.head("GET /v1/sessions", JSON_TYPE, "Content-Length: 3"), status: 200 },
    { head: server.head("GET /v1/sessions/sess_000000000000", JSON_TYPE, "Content-Length: 3"), status: 404 },
    { head: server.head("PUT /v1/sessions", JSON_TYPE, "Content-Length: 3"), status: 405 },
    { head: server.head("POST /nowhere", JSON_TYPE, "Content-Length: 3"), status: 404 },
    { head: "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n", status: 401 },
    { head: server.head("POST /v1/sessions", "Content-Encoding: gzip", "Content-Length: 3"), status: 400 },
  ];
  for (const { head, status } of unread) {
    connection.send(`${head}abc`);
    expect((await connection.answer()).status).toBe(status);
  }
});

onEmbedded("its answers are there at once")("requests sent without waiting are answered in their order", async () => {
  await using server = await startServer();
  const { id } = await server.cairn.createSession();
  const connection = await server.connect();
  connection.send(
    ["GET /v1/sessions", "GET /v1/sessions/x", `GET /v1/sessions/${id}`, "PUT /v1/sessions"].map((line) => server.head(line)).join(""),
  );
  const answers = [await connection.answer(), await connection.answer(), await connection.answer(), await connection.answer()];
  expect(answers.map(({ status, body }) => [status, body.id ?? body.object ?? body.error.code])).toEqual([
    [200, "list"],
    [404, "session_not_found"],
    [200, id],
    [405, "invalid_request"],
  ]);
});

test("requests sent behind a write that is under way may lose the connection, but the write is made once, as its key tells", async () => {
  await using server = await startServer();
  const write = `${server.head("POST /v1/sessions", JSON_TYPE, "Idempotency-Key: k", "Content-Length: 16")}{"agent_id":"a"}`;
  for (let i = 0; i < 20; i++) {
    const connection = await server.connect();
    connection.send(write + server.head("GET /v1/sessions") + write);
    connection.end();
    await connection.ended();
  }
  const connection = await server.connect();
  connection.send(write);
  const { body, headers } = await connection.answer();
  expect(headers.get("idempotency-replayed")).toBe("true");
  expect((await server.cairn.get("/v1/sessions")).body.data).toEqual([body]);
  await expectHealthy(server);
});

test("a HEAD is a GET without the body, so that the next answer is in its place", async () => {
  await using server = await startServer();
  const connection = await server.connect();
  for (const { path, status } of [
    { path: "/v1/sessions", status: 200 },
    { path: "/v1/sessions/x", status: 404 },
    { path: "/health", status: 200 },
  ]) {
    connection.send(server.head(`GET ${path}`));
    const full = await connection.answer();
    connection.send(server.head(`HEAD ${path}`));
    const head = await connection.answer({ hasBody: false });
    expect([full.status, head.status]).toEqual([status, status]);
    expect(head.headers.get("content-length")).toBe(full.headers.get("content-length"));
    expect(head.headers.get("x-ratelimit-limit")).toBe(full.headers.get("x-ratelimit-limit"));
  }
});

test("a HEAD says the encoding and the length of what a GET sends, in gzip and in pieces, and holds no memory of answers", async () => {
  await using server = await startServer();
  const random = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000))).toString("base64");
  const { id } = await server.cairn.createSession({ initial_state: { random } });
  const ask = async (method: string, path: string, encoding: string) => {
    const connection = await server.connect();
    connection.send(server.head(`${method} ${path}`, `Accept-Encoding: ${encoding}`, "Connection: close"));
    const whole = await connection.ended();
    const end = whole.indexOf("\r\n\r\n");
    const headers = new Headers(
      whole
        .slice(0, end)
        .split("\r\n")
        .slice(1)
        .map((line) => line.split(/: ?(.*)/s, 2) as [string, string]),
    );
    return { headers, body: whole.slice(end + 4) };
  };
  /** Bytes of content, of which the frames of chunks are no part. */
  const sent = ({ headers, body }: Awaited<ReturnType<typeof ask>>): number => {
    if (headers.get("transfer-encoding") !== "chunked") return body.length;
    let length = 0;
    for (let at = 0; ;) {
      const start = body.indexOf("\r\n", at) + 2;
      const size = Number.parseInt(body.slice(at, start), 16);
      if (size === 0) return length;
      length += size;
      at = start + size + 2;
    }
  };
  const paths = [`/v1/sessions/${id}/state`, `/v1/sessions/${id}`, "/openapi.json", "/v1/sessions/x"];
  for (const path of paths)
    for (const encoding of ["gzip", "identity"]) {
      const [get, head] = [await ask("GET", path, encoding), await ask("HEAD", path, encoding)];
      expect([path, encoding, head.body, head.headers.get("content-length")]).toEqual([path, encoding, "", String(sent(get))]);
      for (const name of ["content-encoding", "vary", "content-type"]) expect(head.headers.get(name)).toBe(get.headers.get(name));
    }
  // More than all unread answers of a key may take together.
  const large = await server.cairn.createSession({ initial_state: { text: "x".repeat(1_000_000) } });
  for (let i = 0; i < LIMITS.unsentBytesMax / 2 / 1_000_000 + 10; i++)
    expect((await server.ask(server.head(`HEAD /v1/sessions/${large.id}/state`, "Connection: close"))).status).toBe(200);
});

test("a name that is a path of its own is no id for a listening server either", async () => {
  await using server = await startServer();
  for (const method of ["GET", "PATCH", "DELETE"]) {
    const answer = await server.ask(server.head(`${method} /v1/memory/search`));
    expect({ status: answer.status, allow: answer.headers.get("allow") }).toEqual({ status: 405, allow: "POST" });
  }
});

test("HTTP/1.0 needs no Host, and its paths and queries are read like any other", async () => {
  await using server = await startServer();
  const ask = (line: string) => server.ask(`${line} HTTP/1.0\r\nX-API-Key: ${server.cairn.key}\r\n\r\n`);
  expect((await ask("GET /v1/sessions?limit=1")).body).toMatchObject({ object: "list" });
  expect(refusal(await ask("GET /v1/sessions?limit=0"))).toEqual({ status: 400, code: "invalid_request", param: "limit" });
  expect((await ask("GET /v1/none?x=1")).body.error.message).toBe("There is nothing at /v1/none. The paths are documented at /docs.");
  expect(refusal(await server.ask("GET /v1/none HTTP/1.0\r\n\r\n"))).toMatchObject({ status: 401 });
  expect((await ask("GET /v1/none/of/these/health")).body.error.message).toBe(
    "There is nothing at /v1/none/of/these/health. The paths are documented at /docs.",
  );
  const session = await server.cairn.ok(server.cairn.post("/v1/sessions", { agent_id: "a" }));
  expect((await ask(`GET /v1/sessions/${session.id}`)).body).toEqual(session);
  expect((await ask(`GET /v1/sessions/${session.id}/turns?limit=1`)).body).toMatchObject({ object: "list", data: [] });
  expect((await server.ask("HEAD /metrics HTTP/1.0\r\n\r\n")).status).toBe(200);
});

test("a request whose body comes after its key was revoked changes nothing", async () => {
  await using server = await startServer();
  const { cairn } = server;
  const key = await cairn.ok(cairn.post("/v1/api_keys", { name: "agent", scopes: ["write"] }));
  const body = '{"agent_id":"late"}';
  const late = await server.connect();
  late.send(
    `POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${key.key}\r\n${JSON_TYPE}\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  await until("the body", () => arriving(server) === 1);
  await cairn.ok(cairn.delete(`/v1/api_keys/${key.id}`));
  late.send(body);
  expect(refusal(await late.answer())).toMatchObject({ status: 401, code: "authentication_failed" });
  expect(await cairn.ok(cairn.get("/v1/sessions?agent_id=late"))).toMatchObject({ data: [] });
});

test("open metrics need a key from who comes through a proxy", async () => {
  await using server = await startServer();
  const ask = (header: string) => server.ask(`HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n${header}\r\n`);
  expect((await ask("")).status).toBe(200);
  for (const header of [
    "X-Forwarded-For: 9.9.9.9",
    "X-Forwarded-Proto: https",
    "X-Real-IP: 9.9.9.9",
    "Forwarded: for=9.9.9.9",
    "Via: 1.1 proxy",
  ]) {
    expect({ header, status: (await ask(`${header}\r\n`)).status }).toEqual({ header, status: 401 });
    expect((await ask(`${header}\r\nX-API-Key: ${server.cairn.key}\r\n`)).status).toBe(200);
  }
});

test("a host of however few letters is asked like any other", async () => {
  await using server = await startServer({ allowedHosts: ["a", "ai", "api", "mem0"] });
  for (const host of ["a", "ai", "api", "api:80", "mem0", "a:8"]) {
    const ask = (line: string) => server.ask(`${line} HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: ${server.cairn.key}\r\n\r\n`);
    expect((await ask("GET /health")).body).toMatchObject({ status: "ready" });
    const body = JSON.stringify({ agent_id: `agent of ${host}` });
    const created = await server.ask(
      `POST /v1/sessions HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: ${server.cairn.key}\r\n${JSON_TYPE}\r\nContent-Length: ${body.length}\r\n\r\n`,
      body,
    );
    expect(created).toMatchObject({ status: 201, body: { agent_id: `agent of ${host}` } });
    expect((await ask(`GET /v1/sessions/${created.body.id}?x=/`)).body).toMatchObject({ id: created.body.id });
  }
});

test("an idempotency key stands for one path in HTTP/1.0 too", async () => {
  await using server = await startServer();
  const ask = (path: string) =>
    server.ask(
      `POST ${path} HTTP/1.0\r\nX-API-Key: ${server.cairn.key}\r\n${JSON_TYPE}\r\nIdempotency-Key: k\r\nContent-Length: 16\r\n\r\n`,
      '{"agent_id":"a"}',
    );
  expect((await ask("/v1/sessions")).status).toBe(201);
  expect((await ask("/v1/sessions")).headers.get("idempotency-replayed")).toBe("true");
  expect(refusal(await ask("/v1/sessions?x=1"))).toEqual({ status: 400, code: "invalid_request", param: "Idempotency-Key" });
});

test("requests without a key share one rate limit per address, and no client with a key is held up by them", async () => {
  await using server = await startServer();
  const connection = await server.connect();
  const keyless = "GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n";
  connection.send(keyless.repeat(201));
  const statuses: number[] = [];
  for (let i = 0; i < 201; i++) statuses.push((await connection.answer()).status);
  expect(statuses).toEqual([...Array.from({ length: 200 }, () => 401), 429]);
  expect((await server.ask(keyless)).status).toBe(429);
  expect((await server.ask(server.head("GET /v1/sessions"))).status).toBe(200);
});

test("many clients that stop in the middle of a request hold nobody up", async () => {
  await using server = await startServer();
  for (let i = 0; i < 60; i++) {
    const connection = await server.connect();
    if (i % 3 === 0) connection.send("POST /v1/sess");
    else if (i % 3 === 1) connection.send(server.head("POST /v1/sessions", JSON_TYPE, "Content-Length: 100") + '{"agent_id":');
    else connection.send(`${server.head("POST /v1/sessions", JSON_TYPE, "Idempotency-Key: k", "Transfer-Encoding: chunked")}5\r\n{"age`);
  }
  await expectHealthy(server);
});

for (const { part, status, text } of [
  { part: "head", status: 200, text: (server: Server) => server.head("GET /v1/sessions") },
  {
    part: "body",
    status: 201,
    text: (server: Server) => `${server.head("POST /v1/sessions", JSON_TYPE, "Content-Length: 16")}{"agent_id":"a"}`,
  },
]) {
  test(`a ${part} that comes a byte at a time is answered at its end while others are served`, async () => {
    await using server = await startServer();
    const connection = await server.connect();
    const bytes = text(server);
    const slow = part === "head" ? bytes : bytes.slice(-16);
    connection.send(bytes.slice(0, -slow.length));
    for (const byte of slow) {
      connection.send(byte);
      expect((await server.ask(server.head("GET /health"))).status).toBe(200);
    }
    expect((await connection.answer()).status).toBe(status);
  });
}

test("a client that says nothing, sends a request drop by drop or never reads an answer loses the connection when its time is up", async () => {
  await using server = await startServer({ idleTimeoutSeconds: 4 });
  const id = await largeSession(server, 30);
  const post = (...headers: string[]) => server.head("POST /v1/sessions", JSON_TYPE, ...headers);
  const clients = [
    { name: "says nothing", sends: "" },
    { name: "stops in the head", sends: "POST /v1/sess" },
    { name: "stops in the body", sends: `${post("Content-Length: 100")}{"agent_id":` },
    { name: "stops between two chunks", sends: `${post("Transfer-Encoding: chunked")}5\r\n{"age\r\n` },
    { name: "drips its head", sends: "GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", drop: "a" },
    { name: "drips its body", sends: `${post("Content-Length: 100000")}{"agent_id":"`, drop: "a" },
    { name: "drips chunks", sends: post("Transfer-Encoding: chunked"), drop: "1\r\n \r\n" },
  ];
  const slow: { name: string; drop?: string; connection: Client }[] = [];
  for (const { sends, ...client } of clients) {
    const connection = await server.connect();
    connection.send(sends);
    slow.push({ ...client, connection });
  }
  const quiet = await server.connect();
  quiet.send(server.head("GET /v1/sessions"));
  expect((await quiet.answer()).status).toBe(200);
  const deaf = await server.connect();
  deaf.pause();
  deaf.send(server.head(`GET /v1/sessions/${id}/turns?limit=100`));
  await until("the long answer to begin", () => server.pendingRequests > 0);

  const areDropped = () => {
    for (const { drop, connection } of slow) if (drop !== undefined && !connection.closed) connection.send(drop);
    return quiet.closed && slow.every(({ connection }) => connection.closed) && server.pendingRequests === 0;
  };
  // Bun has 12 s of its own for a head, whatever its options say.
  await until("all of them to be dropped", areDropped, 60);
  for (const { name, connection } of slow) expect({ name, got: await connection.ended() }).toEqual({ name, got: "" });
  deaf.resume();
  expect((await deaf.ended()).length).toBeLessThan(30 * 900_000);
  await expectHealthy(server);
}, 90_000);

onEmbedded("its answers are there at once")(
  "answers that are not read take no more memory than there is for them, nor one key all of it",
  async () => {
    await using server = await startServer();
    const { cairn } = server;
    const id = await largeSession(server, 10);
    const others = await cairn.newKey();
    const list = server.head(`GET /v1/sessions/${id}/turns?limit=100`);
    const get = (key: string) => server.ask(server.head(`GET /v1/sessions/${id}`).replace(cairn.key, key));
    const deaf: Client[] = [];
    while ((await get(cairn.key)).status === 200) {
      const connection = await server.connect();
      connection.pause();
      connection.send(list);
      deaf.push(connection);
      await until("the answer to begin", () => server.pendingRequests === deaf.length);
    }
    expect(deaf.length).toBe(Math.floor(LIMITS.unsentBytesMax / 2 / (10 * 900_000)));
    const refused = await get(cairn.key);
    expect(refusal(refused)).toEqual({ status: 503, code: "service_unavailable", param: undefined });
    expect([refused.headers.get("retry-after"), refused.body.error.retry_after]).toEqual(["1", 1]);
    expect((await server.ask(list.replace(cairn.key, others))).body.data).toHaveLength(10);

    // One of them is read, the others leave.
    const [read, ...left] = deaf;
    read?.resume();
    expect((await read?.answer())?.body.data).toHaveLength(10);
    for (const connection of left) connection.close();
    await until("them to be given up", () => server.pendingRequests === 0);
    for (let i = 0; i < 2 * deaf.length; i++) expect((await server.ask(list)).body.data).toHaveLength(10);
    await expectHealthy(server);
  },
);

test("clients that vanish while a large answer is sent to them do no harm", async () => {
  await using server = await startServer();
  const id = await largeSession(server, 10);
  const list = server.head(`GET /v1/sessions/${id}/turns?limit=100`);
  for (let i = 0; i < 10; i++) {
    const connection = await server.connect();
    connection.pause();
    connection.send(list);
    await until("the answer to begin", () => server.pendingRequests > 0);
    connection.close();
    await until("the client to be given up", () => server.pendingRequests === 0);
  }
  await expectHealthy(server);
  expect((await server.ask(list)).body.data).toHaveLength(10);
});

test("clients that hang up in the middle of a body change nothing and are no fault of ours", async () => {
  await using server = await startServer();
  for (const length of ["Content-Length: 100", "Transfer-Encoding: chunked"]) {
    for (const leave of ["end", "close"] as const) {
      const connection = await server.connect();
      connection.send(server.head("POST /v1/sessions", JSON_TYPE, length, "Expect: 100-continue"));
      expect((await connection.answer()).status).toBe(100);
      connection.send('a\r\n{"agent_id');
      connection[leave]();
      await connection.ended();
    }
  }
  await expectHealthy(server);
  expect((await server.cairn.get("/v1/sessions")).body.data).toHaveLength(1);
});

test("a client that hangs up before its answer has its change made, once", async () => {
  await using server = await startServer();
  const connection = await server.connect();
  connection.send(`${server.head("POST /v1/sessions", JSON_TYPE, "Idempotency-Key: gone", "Content-Length: 16")}{"agent_id":"a"}`);
  connection.end();
  await connection.ended();
  const again = await server.ask(
    server.head("POST /v1/sessions", JSON_TYPE, "Idempotency-Key: gone", "Content-Length: 16"),
    '{"agent_id":"a"}',
  );
  expect(again.status).toBe(201);
  expect((await server.cairn.get("/v1/sessions")).body.data.map(({ id }: { id: string }) => id)).toEqual([again.body.id]);
});

const unreadable: Record<string, (head: Server["head"]) => string> = {
  "no Host in HTTP/1.1": () => "GET /health HTTP/1.1\r\n\r\n",
  "a TLS greeting": () => "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  "two different lengths": (head) => `${head("POST /v1/sessions", "Content-Length: 2", "Content-Length: 3")}{} `,
  "a length and chunks": (head) => `${head("POST /v1/sessions", "Content-Length: 2", "Transfer-Encoding: chunked")}0\r\n\r\n`,
  "a negative length": (head) => head("POST /v1/sessions", "Content-Length: -1"),
  "a length that is no number": (head) => head("POST /v1/sessions", "Content-Length: 1e3"),
  "a space before the colon": (head) => head("GET /health", "X-Odd : 1"),
  "headers without end": (head) => head("GET /health", `X-Long: ${"a".repeat(100_000)}`),
};

for (const [name, bytes] of Object.entries(unreadable)) {
  test(`what is no request is refused and the connection closed: ${name}`, async () => {
    await using server = await startServer();
    const connection = await server.connect();
    connection.send(bytes((line, ...headers) => server.head(line, ...headers)));
    // Sent by Bun itself, before there is a request.
    expect(await connection.ended()).toStartWith(name === "headers without end" ? "HTTP/1.1 431 " : "HTTP/1.1 400 Bad Request\r\n");
    await expectHealthy(server);
  });
}

test("bytes of any kind, and requests with any of their bytes changed, do no harm", async () => {
  await using server = await startServer();
  const request = Buffer.from(`${server.head("POST /v1/sessions/x/turns?limit=1", JSON_TYPE, "Content-Length: 16")}{"agent_id":"a"}`);
  const garbage = fc.uint8Array({ minLength: 1, maxLength: 2_000 });
  const damaged = fc
    .array(fc.record({ at: fc.nat(request.length - 1), byte: fc.nat(255) }), { minLength: 1, maxLength: 8 })
    .map((changes) => {
      const bytes = Uint8Array.from(request);
      for (const { at, byte } of changes) bytes[at] = byte;
      return bytes;
    });
  const cut = fc.nat(request.length - 1).map((length) => Uint8Array.from(request.subarray(0, length)));
  const property = fc.asyncProperty(fc.oneof(garbage, damaged, cut), async (bytes) => {
    const connection = await server.connect();
    connection.send(bytes);
    connection.end();
    // 505 is Bun's word for a version of HTTP that is none.
    const statuses = Array.from((await connection.ended()).matchAll(/HTTP\/1\.1 (\d+) /g), (match) => match[1]);
    expect(statuses.filter((status) => !/^([1-4]\d\d|505)$/.test(status ?? ""))).toEqual([]);
  });
  await fc.assert(property, { numRuns: 300 });
  await expectHealthy(server);
}, 30_000);
