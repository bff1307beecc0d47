import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createServer } from "node:tls";
import { Connections, type Network } from "../../../src/lib/outbound.ts";
import { deliver } from "../../../src/webhooks/attempt.ts";
import type { Answer } from "../../../src/webhooks/outcome.ts";
import { isAllowed } from "../../../src/webhooks/target.ts";
import { dialHere, publicUrl, startRawReceiver, startReceiver } from "../../support/receiver.ts";

const HERE: Network = {
  isAllowed: (kind) => isAllowed(kind, { loopback: true, private: false }),
  resolve: () => Promise.reject(new Error("nothing is looked up")),
};
/** A receiver at a public address, as far as can be seen. */
const OUTSIDE: Partial<Network> = { resolve: () => Promise.resolve(["93.184.215.14"]), dial: dialHere };
const [CERTIFICATE = "", CERTIFICATE_KEY = ""] = ["certificate.pem", "key.pem"].map((name) =>
  readFileSync(join(import.meta.dir, "../../support/tls", name), "utf8"),
);

const never = new AbortController().signal;

function post(url: string, network: Partial<Network> = {}, signal = never): Promise<Answer> {
  const headers = { "Content-Type": "application/json", "X-One": "1" };
  return deliver({ ...HERE, ...network }, { url: new URL(url), headers, body: '{"text":"Grüße 😀"}' }, signal);
}

test("a delivery is a POST of the body as it is, with its headers and the Host of the URL", async () => {
  await using receiver = startReceiver((_, count) => new Response(`heard ${count}`, { status: 202 }));
  const { port } = new URL(receiver.url);
  expect(await post(`http://agents.example.com:${port}/hook?a=%20b`, OUTSIDE)).toEqual({
    status: 202,
    retryAfter: undefined,
    body: "heard 1",
    error: null,
  });
  expect(receiver.received).toMatchObject([
    {
      method: "POST",
      path: "/hook",
      body: '{"text":"Grüße 😀"}',
      headers: { host: `agents.example.com:${port}`, "content-type": "application/json", "x-one": "1", "content-length": "23" },
    },
  ]);
});

test("the address that was checked is the one that is dialled: the name is looked up once for each attempt", async () => {
  await using receiver = startReceiver();
  const { port } = new URL(receiver.url);
  // The first answer may be dialled, the second must never be asked for.
  const answers = [["127.0.0.1"], ["169.254.169.254"]];
  const asked: string[] = [];
  const resolve = (name: string) => {
    asked.push(name);
    return Promise.resolve(answers[asked.length - 1] ?? []);
  };
  const url = `http://rebinding.example.com:${port}/hook`;
  expect(await post(url, { resolve })).toMatchObject({ status: 200 });
  expect([asked, receiver.received.length]).toEqual([["rebinding.example.com"], 1]);
  expect(await post(url, { resolve })).toEqual({
    status: null,
    body: null,
    error: "rebinding.example.com (169.254.169.254) is not an address that can be a receiver's.",
  });
  expect([asked.length, receiver.received.length]).toEqual([2, 1]);
});

test("over TLS the certificate has to be of the name in the URL, though an address is dialled", async () => {
  const names: (string | false | null)[] = [];
  const server = createServer({ key: CERTIFICATE_KEY, cert: CERTIFICATE }, (socket) => {
    names.push(socket.servername);
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end("HTTP/1.1 204 No Content\r\n\r\n"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const network = { ca: CERTIFICATE, resolve: () => Promise.resolve(["127.0.0.1"]) };
  expect(await post(`https://localhost:${port}/`, network)).toMatchObject({ status: 204 });
  expect(names).toEqual(["localhost"]);
  expect(await post(`https://other.example.com:${port}/`, network)).toMatchObject({ error: expect.stringContaining("ALTNAME") });
  expect(await post(`https://localhost:${port}/`, { resolve: network.resolve })).toMatchObject({
    error: expect.stringContaining("CERT"),
  });
  server.close();
});

test("a redirect is not followed, and a proxy of the environment not used", async () => {
  await using elsewhere = startReceiver();
  await using receiver = startReceiver(() => Response.redirect(elsewhere.url, 307));
  expect(await post(receiver.url)).toMatchObject({ status: 307 });
  expect(elsewhere.received).toEqual([]);
  const before = process.env["http_proxy"];
  process.env["http_proxy"] = elsewhere.url;
  expect(await post(receiver.url)).toMatchObject({ status: 307 });
  if (before === undefined) delete process.env["http_proxy"];
  else process.env["http_proxy"] = before;
  expect([receiver.received.length, elsewhere.received.length]).toEqual([2, 0]);
});

test("of an answer without end 64 KiB are read and 2 KiB kept, cut between two characters", async () => {
  let chunks = 0;
  const endless = () =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        chunks++;
        controller.enqueue(new TextEncoder().encode("é".repeat(8_192)));
      },
    });
  await using receiver = startReceiver(() => new Response(endless(), { status: 500, headers: { "retry-after": "7" } }));
  expect(await post(publicUrl(receiver.url), OUTSIDE)).toMatchObject({ status: 500, retryAfter: "7", body: "é".repeat(1_024) });
  expect(chunks).toBeLessThan(10_000);
});

test("an answer of bytes that are no text, and one that pretends to be compressed, are shown as they can be", async () => {
  await using receiver = startReceiver((_, count) =>
    count === 1 ? new Response(new Uint8Array([0x61, 0xff, 0x62])) : new Response("plain", { headers: { "content-encoding": "gzip" } }),
  );
  expect(await post(publicUrl(receiver.url), OUTSIDE)).toMatchObject({ status: 200, body: "a\ufffdb" });
  expect(await post(publicUrl(receiver.url), OUTSIDE)).toMatchObject({ status: 200, body: "plain" });
});

const UNANSWERED = { status: null };
const HINTS = "HTTP/1.1 103 Early Hints\r\n\r\n";
/** `more` comes without end after the bytes; where it is not given the receiver hangs up. */
const OUTCOMES: [name: string, outcome: object, bytes: string, more?: string][] = [
  ["hangs up without a word", UNANSWERED, ""],
  ["speaks something else", UNANSWERED, "220 mail.example.com ESMTP\r\n"],
  ["never ends its headers", UNANSWERED, "HTTP/1.1 200 OK\r\n", `X-Filler: ${"y".repeat(1_000)}\r\n`],
  ["never ends its status line", UNANSWERED, "HTTP/1.1 200 ", "y".repeat(1_000)],
  ["wants another protocol", UNANSWERED, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", ""],
  ["dies in the middle of its answer", { status: 200, body: "half" }, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"],
  ["gives early hints first", { status: 204, body: "" }, `${HINTS}HTTP/1.1 204 No Content\r\n\r\n`],
  ["gives early hints without end", { status: null, error: "The connection failed: TOO_MANY_1XX." }, HINTS, HINTS.repeat(100)],
  ["ends its answer by hanging up", { status: 500, body: "until the end" }, "HTTP/1.1 500 No\r\n\r\nuntil the end"],
];

for (const [name, outcome, bytes, more] of OUTCOMES) {
  test(`a receiver that ${name} is dealt with`, async () => {
    const pour = (socket: { write(text: string): number }) => {
      if (more) while (socket.write(more) === more.length);
    };
    using receiver = startRawReceiver((socket) => {
      socket.write(bytes);
      if (more === undefined) socket.end();
      else pour(socket);
    }, pour);
    expect(await post(publicUrl(receiver.url), OUTSIDE)).toMatchObject(outcome);
  });
}

test("an attempt ends when its signal says so, wherever it is; a status that has come counts", async () => {
  for (const [bytes, outcome] of [
    ["", { status: null, error: "No answer within the time limit." }],
    ["HTTP/1.1 200 OK\r\n", { status: null, error: "No answer within the time limit." }],
    ["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", { status: 200 }],
  ] as const) {
    const time = new AbortController();
    let isAsked: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => (isAsked = resolve));
    using receiver = startRawReceiver((socket) => {
      socket.write(bytes);
      isAsked();
    });
    const attempt = post(receiver.url, {}, time.signal);
    await asked;
    if (bytes.includes("half")) await untilRead();
    time.abort();
    expect(await attempt).toMatchObject(outcome);
  }
  const looking = post("http://slow.example.com/", { resolve: () => new Promise(() => undefined) }, AbortSignal.abort());
  expect(await looking).toMatchObject({ status: null });
});

/** Several rounds over loopback: bytes sent before them have arrived. */
async function untilRead(): Promise<void> {
  await using echo = startReceiver();
  for (let i = 0; i < 20; i++) await post(echo.url);
}

test("a connection serves several deliveries to its address; when the receiver has closed it, another is made", async () => {
  const connections = new Connections({ idleMs: 4_000, idleMax: 8 });
  const sockets = new Set<unknown>();
  let ending = false;
  using receiver = startRawReceiver((socket) => {
    // Closed by the second request on it, without an answer.
    const isOld = sockets.has(socket);
    sockets.add(socket);
    if (ending && isOld) socket.end();
    else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  for (let i = 0; i < 5; i++) expect(await post(receiver.url, { connections })).toMatchObject({ status: 200 });
  expect(sockets.size).toBe(1);
  ending = true;
  expect(await post(receiver.url, { connections })).toMatchObject({ status: 200 });
  expect(sockets.size).toBe(2);
  connections.close();
});

test("a connection is for the address that was checked, not for the name", async () => {
  await using receiver = startReceiver();
  const connections = new Connections({ idleMs: 4_000, idleMax: 8 });
  const url = `http://rebinding.example.com:${new URL(receiver.url).port}/hook`;
  expect(await post(url, { connections, resolve: () => Promise.resolve(["127.0.0.1"]) })).toMatchObject({ status: 200 });
  expect(await post(url, { connections, resolve: () => Promise.resolve(["127.0.0.2"]) })).toMatchObject({
    error: expect.stringContaining("ECONNREFUSED"),
  });
  expect(await post(url, { connections, resolve: () => Promise.resolve(["10.0.0.1"]) })).toMatchObject({
    error: expect.stringContaining("private network"),
  });
  expect(receiver.received).toHaveLength(1);
  connections.close();
});

test("where nobody listens the next address of the name is tried; where somebody does it is not", async () => {
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { port } = new URL(receiver.url);
  const url = `http://agents.example.com:${port}/hook`;
  const of = (...addresses: string[]) => ({ resolve: () => Promise.resolve(addresses) });
  expect(await post(url, of("127.0.0.2", "127.0.0.1"))).toMatchObject({ status: 500 });
  expect(await post(url, of("127.0.0.1", "127.0.0.2"))).toMatchObject({ status: 500 });
  expect(receiver.received.length).toBe(2);
  expect(await post(url, of("127.0.0.2", "127.0.0.3"))).toMatchObject({ status: null, error: "The connection failed: ECONNREFUSED." });
});
