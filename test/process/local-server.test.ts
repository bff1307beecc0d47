/**
 * What commands send to the server of a data directory, and to a process that is not that server.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { chownSync, existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { buildBinary } from "../support/binary.ts";
import { GENERATIONS } from "../support/mcp.ts";
import { IPV6, needs, onLinux, ROOT } from "../support/platform.ts";
import { failed, runCairn, scratchDirectory, startProcess, succeeded, type CairnProcess } from "../support/process.ts";
import { longRounds } from "../support/rounds.ts";
import { connectFrom, SAME_PORT, type Connection } from "../support/same-port.ts";

const READY = { code: 0, stdout: "ready\n", stderr: "" };
const UNPROVEN = "what listens there did not prove that it is the server of ";
const tls = (name: string) => join(import.meta.dir, "../support/tls", name);

const startMcp = async (directory: string) =>
  GENERATIONS["2026-07-28"]!({ command: await buildBinary(), args: ["mcp", "--data-dir", directory], env: {} });

/** Listens and keeps what it gets. */
async function stranger(host: string, port: number, answer: (socket: Socket, said: string) => void) {
  let heard = "";
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      heard += bytes.toString("latin1");
      answer(socket, bytes.toString("latin1"));
    });
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  return {
    port: (server.address() as { port: number }).port,
    heard: () => heard,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Any number of nonces, and nothing else. */
const NONCES = /^(GET \/local\/proof\?nonce=[0-9A-Za-z]{32} HTTP\/1\.1\r\nHost: localhost\r\n\r\n)+$/;

const ok = (body: string) => `HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 60000\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const FORGED: Record<string, (socket: Socket, said: string) => void> = {
  "a proof under another key": (socket) => void socket.write(ok(`{"proof":"${"A".repeat(43)}"}`)),
  "no proof, as an older version": (socket) => void socket.write(ok('{"status":"ready"}').replace("200 OK", "404 Not Found")),
  "the nonce": (socket, said) => void socket.write(ok(`{"proof":"${/nonce=(\w+)/.exec(said)?.[1]}"}`)),
  "more than fits": (socket) => void socket.write(`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(100_000)}`),
  "nothing, and closes": (socket) => void socket.destroy(),
};

const CASES = [
  { host: "127.0.0.1", answers: Object.keys(FORGED), way: "the socket" },
  { host: "127.0.0.1", answers: ["a proof under another key"], way: "the port" },
  { host: "::1", answers: ["a proof under another key"], way: "the port" },
].flatMap(({ answers, ...rest }) => answers.map((answer) => ({ ...rest, answer })));

/** Makes a data directory in which no socket can be. */
function makeWithoutSocket(directory: string): void {
  mkdirSync(join(directory, "local.sock"), { recursive: true });
  writeFileSync(join(directory, "serve.lock"), "");
}

for (const { host, answer, way } of CASES) {
  (host === "::1" ? needs(IPV6) : test)(
    `who has taken the port of a killed server on ${host} and answers ${answer} gets nonces, and no key and no content: found by ${way}`,
    async () => {
      using scratch = scratchDirectory();
      if (way === "the port") makeWithoutSocket(scratch.at("data"));
      await using server = await startProcess({ dataDirectory: scratch.at("data"), flags: ["--host", host] });
      const { address, dataDirectory } = server;
      // One that has asked before keeps its connection, and asks again.
      await using mcp = await startMcp(dataDirectory);
      await mcp.use("update_state", { changes: { step: 1 } });
      await server.kill();
      await using other = await stranger(host, Number(new URL(address).port), FORGED[answer]!);

      expect(await server.command("dashboard")).toEqual(
        failed(
          `cairn: No server answers at ${address}: ${UNPROVEN}${dataDirectory}. Start it with cairn serve, or say where it is with --url.\n`,
        ),
      );
      expect(await server.command("health")).toEqual(failed(`cairn: ${address} is not ready: ${UNPROVEN}${dataDirectory}\n`));
      expect(other.heard()).toMatch(NONCES);
      expect(await mcp.use("update_state", { changes: { secret: "Ada's PIN" } })).toMatchObject({ version: 2 });
      expect(other.heard()).toMatch(NONCES);
    },
  );
}

/** Announces a server as if it listened elsewhere, and not on the socket. */
function announceElsewhere({ dataDirectory }: CairnProcess, change: object): void {
  const file = join(dataDirectory, "local.json");
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), socket: false, ...change }));
}

/** Passes on what comes, and what is answered. */
function pass(to: number, connectOn: typeof connectAnywhere) {
  const onward = new Map<Socket, Connection>();
  return (socket: Socket, said: string) => {
    const connection = onward.get(socket) ?? connectOn(socket.remotePort ?? 0, to, (text) => void socket.write(text, "latin1"));
    if (!onward.has(socket)) socket.once("close", () => connection[Symbol.dispose]());
    onward.set(socket, connection);
    connection.write(said);
  };
}

function connectAnywhere(_: number, to: number, onData: (text: string) => void): Connection {
  const socket = connect({ host: "127.0.0.1", port: to });
  socket.on("data", (bytes) => onData(bytes.toString("latin1")));
  return { write: (text) => void socket.write(text, "latin1"), [Symbol.dispose]: () => void socket.destroy() };
}

const RELAYS = {
  "from a port of its own": { it: test, connectOn: connectAnywhere },
  "from the port that it is asked from": { it: needs(SAME_PORT), connectOn: connectFrom },
};

for (const [from, { it, connectOn }] of Object.entries(RELAYS)) {
  it(`who passes everything on to the server itself, ${from}, gets no key either: the proof is of the connection`, async () => {
    await using server = await startProcess();
    await using relay = await stranger("127.0.0.1", 0, pass(Number(new URL(server.address).port), connectOn));
    const url = `http://127.0.0.1:${relay.port}`;
    // Somebody names its port.
    expect(await server.command("dashboard", "--port", String(relay.port))).toEqual(
      failed(expect.stringContaining(`answers at ${url}: ${UNPROVEN}`)),
    );
    announceElsewhere(server, { url });
    expect(await server.command("dashboard")).toEqual(failed(expect.stringContaining(`answers at ${url}: ${UNPROVEN}`)));
    expect(await server.command("health")).toEqual(failed(expect.stringContaining(`${url} is not ready: ${UNPROVEN}`)));
    expect(relay.heard()).toMatch(NONCES);
    // Without the relay it is found.
    announceElsewhere(server, { url: server.address });
    expect(await server.command("health")).toEqual(READY);
  });
}

needs(SAME_PORT)("who passes everything on from the server's port at another address gets no key either", async () => {
  await using server = await startProcess();
  const { port } = new URL(server.address);
  await using relay = await stranger("127.0.0.2", Number(port), pass(Number(port), connectFrom));
  expect(await server.command("dashboard", "--host", "127.0.0.2", "--port", port)).toEqual(
    failed(expect.stringContaining(`answers at http://127.0.0.2:${port}: ${UNPROVEN}`)),
  );
  expect(relay.heard()).toMatch(NONCES);
});

onLinux("a loopback interface of more addresses")(
  "a server on every address proves itself at any of loopback, where nobody else can listen on its port",
  async () => {
    await using server = await startProcess({ flags: ["--host", "0.0.0.0"] });
    const { port } = new URL(server.address);
    expect(await server.command("dashboard", "--host", "127.0.0.2", "--port", port)).toEqual(
      succeeded(new RegExp(`^http://127\\.0\\.0\\.2:${port}/dashboard/#key=crn_`)),
    );
    for (const host of ["127.0.0.1", "127.0.0.2"])
      await expect(stranger(host, Number(port), () => undefined)).rejects.toMatchObject({ code: "EADDRINUSE" });
  },
);

test("a nonce that is none is refused, and the proof of one is another for each nonce and connection", async () => {
  await using server = await startProcess();
  const ask = async (nonce: string) => {
    const answer = await fetch(`${server.address}/local/proof?nonce=${nonce}`, { headers: { Connection: "close" } });
    return { status: answer.status, ...((await answer.json()) as { proof?: string; error?: { param: string } }) };
  };
  for (const nonce of ["", "a".repeat(31), "a".repeat(33), `${"a".repeat(31)}%0a`])
    expect(await ask(nonce)).toMatchObject({ status: 400, error: { param: "nonce" } });
  const proofs = [await ask("a".repeat(32)), await ask("a".repeat(32)), await ask("b".repeat(32))].map(({ proof }) => proof);
  expect(new Set(proofs).size).toBe(3);
});

const PLAIN: string[] = [];
const TLS = ["--tls-cert", tls("certificate.pem"), "--tls-key", tls("key.pem")];

for (const [i, host] of ["127.0.0.1", "0.0.0.0", "::1", "::", "localhost"].entries()) {
  (host.includes("::") ? needs(IPV6) : test)(
    `a server on ${host} is found by its data directory, by its socket and without one, with TLS and without`,
    async () => {
      using scratch = scratchDirectory();
      mkdirSync(join(scratch.at("without"), "local.sock"), { recursive: true });
      writeFileSync(scratch.at("without/serve.lock"), "");
      for (const directory of ["with", "without"]) {
        // In the gate each host has both ways and both kinds of connection, and the next host the other pairs of them.
        for (const more of (directory === "with") === (i % 2 === 0) ? longRounds([TLS], [TLS, PLAIN]) : longRounds([PLAIN], [PLAIN, TLS])) {
          await using server = await startProcess({ dataDirectory: scratch.at(directory), flags: ["--host", host, ...more] });
          const isSocket = lstatSync(join(server.dataDirectory, "local.sock")).isSocket();
          const { url, socket } = JSON.parse(readFileSync(join(server.dataDirectory, "local.json"), "utf8"));
          expect({ directory, isSocket, socket }).toEqual({ directory, isSocket: directory === "with", socket: directory === "with" });
          expect(await server.command("health")).toEqual(READY);
          const link = new RegExp(`^${url.replaceAll(/[[\]]/g, "\\$&")}/dashboard/#key=crn_[0-9A-Za-z]{24}\\n$`);
          expect(await server.command("dashboard")).toEqual(succeeded(link));
          expect(await server.stop()).toBe(0);
          expect(existsSync(join(server.dataDirectory, "local.json"))).toBe(false);
        }
      }
    },
  );
}

test("a server whose directory has a longer path than a socket may have is found by it, also by cairn mcp", async () => {
  using scratch = scratchDirectory();
  await using server = await startProcess({ dataDirectory: scratch.at(join("d".repeat(100), "e".repeat(100))) });
  expect(await server.command("health")).toEqual(READY);
  expect(await server.command("dashboard")).toEqual(succeeded(new RegExp(`^${server.address}/dashboard/#key=crn_`)));
  await using mcp = await startMcp(server.dataDirectory);
  const { id } = await mcp.use("add_memory", { content: "Ada likes tea." });
  expect((await server.get(`/v1/memory/${id}`)).status).toBe(200);
});

// Whose files are trusted is tested in `unit/cli/announcement.test.ts` too.
needs(ROOT)("as root, a socket and an announcement of another user are refused", async () => {
  await using server = await startProcess();
  const { dataDirectory } = server;
  const ownedByAnother = (name: string) =>
    `${join(dataDirectory, name)} belongs to another user (65534), who could read what is sent there: it is not used`;
  await using mcp = await startMcp(dataDirectory);

  chownSync(join(dataDirectory, "local.sock"), 65534, 65534);
  expect(await server.command("dashboard")).toEqual(failed(expect.stringContaining(ownedByAnother("local.sock"))));
  expect(await mcp.refusal("list_sessions")).toBe(`service_unavailable: ${ownedByAnother("local.sock")}`);

  chownSync(join(dataDirectory, "local.json"), 65534, 65534);
  expect(await server.command("dashboard")).toEqual(failed(`cairn: ${ownedByAnother("local.json")}\n`));
  expect(await mcp.refusal("list_sessions")).toBe(`service_unavailable: ${ownedByAnother("local.json")}`);
  // To ask whether it is ready takes neither: the address of the settings will do.
  expect(await runCairn(["health"], { environment: { CAIRN_DATA_DIR: dataDirectory, CAIRN_PORT: new URL(server.address).port } })).toEqual(
    READY,
  );

  // Of a directory that is all another user's, root may use everything.
  chownSync(dataDirectory, 65534, 65534);
  expect(await server.command("health")).toEqual(READY);
});

test("cairn dashboard and cairn health say of a directory without a server, and of that of a cairn mcp, what there is", async () => {
  using scratch = scratchDirectory();
  const directory = scratch.at("data");
  const dashboard = () => runCairn(["dashboard", "--data-dir", directory]);
  const advice = "Start it with cairn serve, or say where it is with --url.\n";
  {
    await using mcp = await startMcp(directory);
    await mcp.use("list_sessions");
    expect(await dashboard()).toEqual(
      failed(`cairn: A cairn mcp serves the data directory ${directory}, on no port that a browser could open. ${advice}`),
    );
    expect(await runCairn(["health", "--data-dir", directory])).toEqual(READY);
  }
  expect(await dashboard()).toEqual(failed(`cairn: No server runs in the data directory ${directory}. ${advice}`));
});
