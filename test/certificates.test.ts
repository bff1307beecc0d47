/**
 * The certificate of a server's domains: when one is asked for, and what is said while none can be had.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { listenWithCertificates } from "../src/cli/domain-listeners.ts";
import { readConfig } from "../src/config.ts";
import { certificateOf, isOverdue, renewalOf } from "../src/certificates/certificate.ts";
import { parseDomains } from "../src/lib/domains.ts";
import { createApp } from "../src/server/app.ts";
import { startCairn, type Cairn, type Options } from "./support/cairn.ts";
import { freePorts } from "./support/pebble.ts";
import { onEmbedded } from "./support/stores.ts";

const TASK = "certificate";
const DOMAIN = "memory.example.org";
const TLS = join(import.meta.dir, "support/tls");
/** From 2026-05-01 to 2026-07-30: 90 days. */
const NINETY_DAYS = readFileSync(join(TLS, "ninety-days.pem"), "utf8");
const [CHAIN = "", KEY = ""] = NINETY_DAYS.split(/(?=-----BEGIN PRIVATE)/);
const FIXTURES = [
  { chain: CHAIN, key: KEY },
  { chain: readFileSync(join(TLS, "certificate.pem"), "utf8"), key: readFileSync(join(TLS, "key.pem"), "utf8") },
] as const;

interface Authority extends AsyncDisposable {
  readonly certificate: NonNullable<Options["certificate"]>;
  /** Number of requests that it got. */
  asked: number;
  /** Answers each of them. */
  answer: () => Response;
}

/** A certificate authority that gives none. */
function startAuthority(): Authority {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      authority.asked++;
      return authority.answer();
    },
  });
  const authority: Authority = {
    certificate: { domains: [DOMAIN], directory: new URL(`http://127.0.0.1:${server.port}/dir`) },
    asked: 0,
    answer: () => Response.json({ type: "urn:ietf:params:acme:error:serverInternal", detail: "Out to lunch." }, { status: 503 }),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return authority;
}

/** Keeps a certificate as a server does that has got one. */
async function keep(cairn: Cairn, { certificate }: Authority, domains = certificate.domains): Promise<void> {
  const text = JSON.stringify({ directory: certificate.directory.href, domains, chain: CHAIN, key: KEY });
  const { database, dataDirectory } = cairn.place;
  if (database === undefined) {
    mkdirSync(join(dataDirectory, "tls"), { recursive: true });
    return writeFileSync(join(dataDirectory, "tls/certificate.json"), text);
  }
  await using sql = new SQL(database);
  await sql`insert into cairn.certificates values ('certificate', ${text})`;
}

const status = async (cairn: Cairn) => (await cairn.ok(cairn.get("/v1/stats"))).certificate;

/** Has the server that may order look at what is due, and then all at what came of it. */
async function run(cairn: Cairn): Promise<void> {
  await cairn.runTaskOnce(TASK);
  for (const { tasks } of cairn.services) await tasks.find(({ name }) => name === TASK)?.run();
}

test("domains are host names, each once, as certificates have them", () => {
  expect(parseDomains("Memory.Example.org, notes.example.org,memory.example.org")).toEqual(["memory.example.org", "notes.example.org"]);
  expect(parseDomains("bücher.example")).toEqual(["xn--bcher-kva.example"]);
  expect(parseDomains("localhost")).toEqual(["localhost"]);
  const long = Array.from({ length: 101 }, (_, i) => `a${i}.example`).join(",");
  for (const wrong of [
    "",
    ",",
    "a..b",
    "-a.example",
    "*.example.org",
    "192.0.2.1",
    "::1",
    "a.example:443",
    "https://a.example",
    "a b",
    long,
  ])
    expect([wrong, parseDomains(wrong)]).toEqual([wrong, undefined]);
});

test("a certificate is renewed with a third of its time left, and overdue from 20 days or 2/9 of it", () => {
  const certificate = certificateOf(CHAIN, KEY, [DOMAIN]);
  expect(new Date(renewalOf(certificate)).toISOString()).toBe("2026-06-30T00:00:00.000Z");
  const until = Date.parse("2026-07-10T00:00:00Z");
  expect([isOverdue(certificate, until), isOverdue(certificate, until + 1)]).toEqual([false, true]);
  expect([isOverdue({ ...certificate, from: 0, until: 9000 }, 7000), isOverdue({ ...certificate, from: 0, until: 9000 }, 7001)]).toEqual([
    false,
    true,
  ]);
  expect(() => certificateOf(CHAIN, KEY, [DOMAIN, "other.example.org"])).toThrow("does not name other.example.org");
  expect(() => certificateOf(CHAIN, FIXTURES[1].key, [DOMAIN])).toThrow("not that of the certificate");
});

test("a certificate that is kept is used without asking anybody, and one for other domains is not", async () => {
  await using authority = startAuthority();
  await using cairn = await startCairn({ certificate: authority.certificate });
  await keep(cairn, authority);
  await run(cairn);
  await cairn.restart();
  expect(await status(cairn)).toEqual({
    domains: [DOMAIN],
    expires_at: "2026-07-30T00:00:00.000Z",
    renews_at: "2026-06-30T00:00:00.000Z",
    overdue: false,
    error: null,
    failures: 0,
  });
  expect((await cairn.get("/health")).body.certificate).toEqual({ expires_at: "2026-07-30T00:00:00.000Z", overdue: false, error: null });
  cairn.clock.set("2026-06-29T23:00:00Z");
  await run(cairn);
  expect(authority.asked).toBe(0);
});

test("one that is kept for other domains is not used, and a server without domains says nothing of certificates", async () => {
  await using authority = startAuthority();
  {
    await using cairn = await startCairn({ certificate: authority.certificate });
    await keep(cairn, authority, [DOMAIN, "notes.example.org"]);
    await run(cairn);
    expect(await status(cairn)).toMatchObject({ expires_at: null, overdue: false, failures: 1 });
  }
  await using cairn = await startCairn();
  expect(await status(cairn)).toBeNull();
  expect((await cairn.get("/health")).body.certificate).toBeUndefined();
  expect((await cairn.plain("GET", "/metrics")).text).not.toContain("cairn_certificate");
});

test("an authority that fails is asked again after pauses, also by the next start; from 20 days before the end all say so", async () => {
  await using authority = startAuthority();
  await using cairn = await startCairn({ certificate: authority.certificate });
  await keep(cairn, authority);
  cairn.clock.set("2026-06-30T00:00:00Z");
  await run(cairn);
  const reason = `${authority.certificate.directory.origin} answered 503: serverInternal: Out to lunch.`;
  expect(await status(cairn)).toMatchObject({ error: reason, failures: 1, overdue: false });
  expect(authority.asked).toBe(1);
  await cairn.restart();
  await run(cairn);
  cairn.clock.advance({ seconds: 59 });
  await run(cairn);
  expect(authority.asked).toBe(1);
  cairn.clock.advance({ seconds: 61 });
  await run(cairn);
  expect([authority.asked, (await status(cairn)).failures]).toEqual([2, 2]);

  // The authority says when it wants to be asked.
  authority.answer = () =>
    Response.json({ type: "urn:ietf:params:acme:error:rateLimited" }, { status: 429, headers: { "Retry-After": "7200" } });
  cairn.clock.advance({ seconds: 301 });
  await run(cairn);
  expect([authority.asked, (await status(cairn)).error]).toEqual([3, expect.stringContaining("429: rateLimited")]);
  cairn.clock.advance({ seconds: 7_100 });
  await run(cairn);
  expect(authority.asked).toBe(3);

  // What a clock noted that was a month ahead is no reason to wait for a month.
  cairn.clock.set("2026-07-25T00:00:00Z");
  await run(cairn);
  expect(authority.asked).toBe(4);
  cairn.clock.set("2026-07-10T00:00:01Z");
  await run(cairn);
  expect(authority.asked).toBe(5);
  expect((await cairn.get("/health")).body).toMatchObject({ status: "ready", certificate: { overdue: true } });
  const { text } = await cairn.plain("GET", "/metrics");
  const figures = ["expires_time_seconds 1785369600", "overdue 1", "failures 5"];
  for (const figure of figures) expect(text).toContain(`cairn_certificate_${figure}\n`);
  const levels = cairn.logged
    .map((line) => JSON.parse(line))
    .filter(({ message }) => /^could not (get|renew) (a|the) certificate$/.test(message))
    .map(({ level }) => level);
  expect(levels).toEqual(["warn", "warn", "warn", "error", "error"]);
  // It stays in use beyond its end.
  cairn.clock.set("2026-09-01T00:00:00Z");
  await cairn.restart();
  expect(await status(cairn)).toMatchObject({ expires_at: "2026-07-30T00:00:00.000Z", overdue: true });
});

onEmbedded("files have a disk of their own")("nobody is asked for a certificate that cannot be kept, and not again and again", async () => {
  await using authority = startAuthority();
  await using cairn = await startCairn({ certificate: authority.certificate });
  // A file in place of the directory: what is written there fails.
  writeFileSync(join(cairn.directory, "tls"), "");
  await run(cairn).catch(() => undefined);
  await run(cairn).catch(() => undefined);
  expect(authority.asked).toBe(0);
  expect(await status(cairn)).toMatchObject({ failures: 1, error: expect.any(String) });
});

test("what an authority answers in place of its protocol is a failure, however odd", async () => {
  await using authority = startAuthority();
  await using cairn = await startCairn({ certificate: authority.certificate });
  const odd: (() => Response)[] = [
    () => new Response("<html>", { status: 200 }),
    () => Response.json([]),
    () => Response.json({ newNonce: "nowhere", newAccount: "x", newOrder: "y" }),
    () => Response.json({ newNonce: authority.certificate.directory, newAccount: "file:///etc/passwd", newOrder: "y" }),
    () => new Response("x".repeat(2_000_000)),
    () => new Response(null, { status: 302, headers: { Location: "http://127.0.0.1/" } }),
  ];
  for (const [i, answer] of odd.entries()) {
    authority.answer = answer;
    cairn.clock.advance({ hours: 7 });
    await run(cairn);
    expect(await status(cairn)).toMatchObject({ failures: i + 1, error: expect.any(String) });
  }
  expect(cairn.logged.filter((line) => line.includes("task failed"))).toEqual([]);
});

test("an answer to a challenge is found by every server that shares the store, and by nobody once it is withdrawn", async () => {
  await using authority = startAuthority();
  await using cairn = await startCairn({ certificate: authority.certificate });
  const [first, ...others] = cairn.services.map(({ certificates }) => certificates!.answers);
  await first!.publish("a-token", "an answer");
  for (const answers of [first!, ...others]) {
    expect(await Promise.all(["a-token", "another", "a-token"].map((token) => answers.find(token)))).toEqual([
      "an answer",
      undefined,
      "an answer",
    ]);
  }
  await first!.withdraw();
  for (const answers of [first!, ...others]) expect(await answers.find("a-token")).toBeUndefined();
  await expect(first!.publish("a/token", "x")).rejects.toThrow("none");
});

test("a new certificate is shown to new connections, and requests under way are answered on theirs", async () => {
  const [port, plainPort] = freePorts(2) as [number, number];
  await using cairn = await startCairn({ allowedHosts: [DOMAIN], host: "0.0.0.0" });
  const isHeld = Promise.withResolvers<void>();
  const app = createApp({
    ...cairn.service,
    host: "127.0.0.1",
    allowedHosts: [DOMAIN],
    metrics: "key",
    corsOrigins: [],
    requireHttps: false,
    version: "test",
  });
  app.get("/held", async () => {
    await isHeld.promise;
    return new Response("held");
  });
  const config = readConfig(
    ["--domain", DOMAIN, "--host", "127.0.0.1", "--port", String(port), "--http-redirect-port", String(plainPort)],
    {},
  );
  const plain = Bun.serve({ hostname: "127.0.0.1", port: plainPort, fetch: () => new Response() });
  let renew: (certificate: { chain: string; key: string; from: number; until: number }) => void = () => undefined;
  const [before, after] = FIXTURES.map((pair) => ({ ...pair, from: 0, until: 0 }));
  const listeners = listenWithCertificates(
    app,
    config,
    { current: before, onRenewal: (install: typeof renew) => (renew = install) } as never,
    plain,
  );
  try {
    const open = await connectTo(port);
    expect(subjectOf(open)).toBe(DOMAIN);
    const held = said(open, "/held");
    renew(after!);
    const next = await connectTo(port);
    expect(subjectOf(next)).toBe("localhost");
    expect(await said(next, "/health/live")).toContain("200");
    isHeld.resolve();
    expect(await held).toContain("held");
    for (const socket of [open, next]) socket.destroy();
  } finally {
    listeners.refuse();
    await listeners.stop();
  }
  await expect(connectTo(port)).rejects.toThrow();
});

function connectTo(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, servername: DOMAIN, rejectUnauthorized: false }, () => resolve(socket));
    socket.on("error", reject);
  });
}

const subjectOf = (socket: TLSSocket) => socket.getPeerCertificate().subject.CN;

function said(socket: TLSSocket, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once("data", (data: Buffer) => resolve(data.toString()));
    socket.once("close", () => reject(new Error("the connection was closed")));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${DOMAIN}\r\n\r\n`);
  });
}
