/**
 * Certificates that a server gets by itself, from Pebble.
 *
 * @module
 */
import { SQL } from "bun";
import { expect } from "bun:test";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { connect, type PeerCertificate } from "node:tls";
import { freePorts, PEBBLE, startPebble, type Pebble } from "../support/pebble.ts";
import { needs } from "../support/platform.ts";
import { Postgres, POSTGRES } from "../support/postgres.ts";
import { beginProcess, KEY, runCairn, scratchDirectory, startProcess, until } from "../support/process.ts";
import { onlyLong } from "../support/rounds.ts";

const it = needs(PEBBLE);
const DOMAINS = ["memory.example.org", "notes.example.org"];

const flagsOf = ({ httpPort }: Pick<Pebble, "httpPort">, port: number, domains = DOMAINS) => [
  "--domain",
  domains.join(","),
  "--host",
  "127.0.0.1",
  "--port",
  String(port),
  "--http-redirect-port",
  String(httpPort),
];

/** The certificate that a new connection is shown. */
function shown(port: number, servername: string, ca: string): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, servername, ca }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

const ask = (port: number, path: string, ca: string, headers: Record<string, string> = {}) =>
  fetch(`https://127.0.0.1:${port}${path}`, {
    headers: { Host: DOMAINS[0]!, ...headers },
    tls: { ca, checkServerIdentity: () => undefined },
  });

it("a server gets a certificate for its domains, keeps it, and asks nobody at its next start", async () => {
  await using pebble = await startPebble();
  const [port] = freePorts(1) as [number];
  using directory = scratchDirectory();
  const start = () => startProcess({ dataDirectory: directory.path, environment: pebble.environment, flags: flagsOf(pebble, port) });
  {
    await using cairn = await start();
    expect(cairn.address).toBe(`https://memory.example.org:${port}`);
    expect(cairn.stdout).toContain("waits for the first certificate for memory.example.org, notes.example.org");
    for (const name of DOMAINS) expect((await shown(port, name, pebble.root)).subjectaltname).toContain(`DNS:${name}`);
    const health = (await (await ask(port, "/health", pebble.root)).json()) as { certificate: { expires_at: string } };
    expect(health).toMatchObject({ status: "ready", certificate: { overdue: false, error: null } });
    const stats = (await (await ask(port, "/v1/stats", pebble.root, { "X-API-Key": KEY })).json()) as object;
    expect(stats).toMatchObject({ certificate: { domains: DOMAINS, failures: 0, expires_at: health.certificate.expires_at } });

    const plain = (host: string, path: string) =>
      fetch(`http://127.0.0.1:${pebble.httpPort}${path}`, { redirect: "manual", headers: { Host: host } });
    const redirected = await plain(DOMAINS[1]!, "/v1/sessions?limit=2");
    expect([redirected.status, redirected.headers.get("location")]).toEqual([308, `https://${DOMAINS[1]}:${port}/v1/sessions?limit=2`]);
    expect((await plain("another.example", "/")).status).toBe(403);
    expect((await plain(DOMAINS[0]!, "/.well-known/acme-challenge/nobody")).status).toBe(308);
    // Only its owner can read the keys.
    const kept = join(directory.path, "tls");
    const modes = readdirSync(kept).map((name) => `${name} ${(statSync(join(kept, name)).mode & 0o777).toString(8)}`);
    expect(modes.toSorted()).toEqual(["account.json 600", "attempts.json 600", "certificate.json 600"]);
    expect(statSync(kept).mode & 0o777).toBe(0o700);
    expect(await cairn.stop()).toBe(0);
  }
  await pebble.stop();
  await using cairn = await start();
  expect(cairn.stdout).not.toContain("waits");
  expect((await ask(port, "/health", pebble.root)).status).toBe(200);
  // A second server does not share the port.
  using other = scratchDirectory();
  const second = await runCairn(["serve", "--data-dir", other.path, ...flagsOf(pebble, port)], { environment: pebble.environment });
  expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining(`port ${port}: something else listens there`) });
});

it("without a certificate a server answers challenges alone, says why there is none, and waits before it asks again", async () => {
  await using pebble = await startPebble();
  await pebble.misdirect(DOMAINS[1]!);
  const [port] = freePorts(1) as [number];
  using directory = scratchDirectory();
  const begin = () => beginProcess({ dataDirectory: directory.path, environment: pebble.environment, flags: flagsOf(pebble, port) });
  const plain = () => fetch(`http://127.0.0.1:${pebble.httpPort}/health`, { headers: { Host: DOMAINS[0]! } }).catch(() => undefined);
  {
    await using cairn = await begin();
    const answer = await until("it to answer on the port for plain HTTP", plain);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "10"]);
    expect(await answer.json()).toMatchObject({ error: { code: "service_unavailable" } });
    await expect(ask(port, "/health", pebble.root)).rejects.toThrow();
    const [failure] = await until("the order to fail", () => unlessEmpty(cairn.logged("could not get a certificate")));
    expect(failure).toMatchObject({
      level: "error",
      failures: 1,
      reason: expect.stringMatching(/^notes\.example\.org is not proven: \w+: /),
    });
    expect(await cairn.stop()).toBe(0);
  }
  const orders = pebble.orders();
  expect(orders).toBe(1);
  // A new start is no reason to ask earlier.
  await using cairn = await begin();
  await until("it to answer on the port for plain HTTP", plain);
  expect(await cairn.stop()).toBe(0);
  expect(pebble.orders()).toBe(orders);
});

const long = onlyLong(PEBBLE);

long("a certificate is renewed without a restart, and an authority that fails takes nothing down", async () => {
  await using pebble = await startPebble({ validSeconds: 36 });
  const [port] = freePorts(1) as [number];
  await using cairn = await startProcess({ environment: pebble.environment, flags: flagsOf(pebble, port) });
  const first = await shown(port, DOMAINS[0]!, pebble.root);
  const second = await until("another certificate", async () => {
    const now = await shown(port, DOMAINS[0]!, pebble.root);
    return now.serialNumber === first.serialNumber ? undefined : now;
  });
  expect(second.subjectaltname).toBe(first.subjectaltname);
  expect((await ask(port, "/health", pebble.root)).status).toBe(200);
  await pebble.stop();
  const [failure] = await until("a renewal to fail", () => unlessEmpty(cairn.logged("could not renew the certificate")));
  expect(failure).toMatchObject({ level: "warn", failures: 1, reason: expect.stringContaining("nothing listens there") });
  // It is served beyond its end.
  const anyCertificate = () =>
    fetch(`https://127.0.0.1:${port}/health`, { headers: { Host: DOMAINS[0]! }, tls: { rejectUnauthorized: false } });
  const health = await until("it to have ended", async () => {
    const body = (await (await anyCertificate()).json()) as { certificate: { expires_at: string } };
    return Date.parse(body.certificate.expires_at) < Date.now() ? body : undefined;
  });
  expect(health).toMatchObject({
    status: "ready",
    certificate: { overdue: true, error: expect.stringContaining("nothing listens there") },
  });
  expect(await cairn.stop()).toBe(0);
});

long("a server that is killed while it orders gets one at its next start", async () => {
  await using pebble = await startPebble();
  const [port] = freePorts(1) as [number];
  using directory = scratchDirectory();
  const begin = () => beginProcess({ dataDirectory: directory.path, environment: pebble.environment, flags: flagsOf(pebble, port) });
  for (let orders = 1; orders <= 5; orders++) {
    await using cairn = await begin();
    await until("an order", () => pebble.orders() >= orders || cairn.logged("using a certificate").length > 0);
    // At another of its steps each time.
    await Bun.sleep(orders * 100);
    await cairn.kill();
  }
  await using cairn = await begin();
  await cairn.listening();
  expect((await ask(port, "/health", pebble.root)).status).toBe(200);
});

const onDatabase = onlyLong(PEBBLE, POSTGRES);

onDatabase("servers that share a database order one certificate between them, and answer for each other", async () => {
  await using pebble = await startPebble();
  await using ended = new AsyncDisposableStack();
  const postgres = ended.adopt(await Postgres.start(), (started) => started.stop());
  const url = await postgres.migrated();
  await using sql = new SQL(url);
  // Nobody orders before both are there.
  await sql`insert into cairn.leases (key, row, rev, until) values ('certificate', 'a test', 1, ${Date.now() + 86_400_000})`;
  const [port, otherPort, ...plainPorts] = freePorts(4) as [number, number, number, number];
  const environment = { ...pebble.environment, CAIRN_STORE: url };
  const begin = (httpPort: number, at: number) => beginProcess({ environment, flags: flagsOf({ httpPort }, at) });
  const askPlain = (at: number, path: string) =>
    fetch(`http://127.0.0.1:${at}${path}`, { headers: { Host: DOMAINS[0]! }, redirect: "manual" });
  const answers: string[][] = [];
  using _asked = Bun.serve({
    hostname: "127.0.0.1",
    port: pebble.httpPort,
    fetch: async ({ url: asked }) => {
      const both = await Promise.all(plainPorts.map(async (at) => (await askPlain(at, new URL(asked).pathname)).text()));
      answers.push(both);
      return new Response(both[0]);
    },
  });
  await using first = await begin(plainPorts[0], port);
  await using second = await begin(plainPorts[1], otherPort);
  for (const at of plainPorts) await until("it to answer on the port for plain HTTP", () => askPlain(at, "/").catch(() => undefined));
  await sql`update cairn.leases set until = 0 where key = 'certificate'`;
  await Promise.all([first.listening(), second.listening()]);
  const [one, other] = await Promise.all([port, otherPort].map((at) => shown(at, DOMAINS[0]!, pebble.root)));
  expect(one!.serialNumber).toBe(other!.serialNumber);
  expect([first, second].flatMap((server) => server.logged("ordering a certificate"))).toHaveLength(1);
  expect(answers.length).toBeGreaterThanOrEqual(DOMAINS.length);
  for (const [ofFirst, ofSecond] of answers) expect(ofFirst).toBe(ofSecond);
  // What is left in the database: nothing that answers a challenge.
  expect((await sql`select name from cairn.certificates order by name`).map(({ name }: { name: string }) => name)).toEqual([
    "account",
    "attempts",
    "certificate",
  ]);
});

function unlessEmpty<Item>(items: readonly Item[]): readonly Item[] | undefined {
  return items.length === 0 ? undefined : items;
}
