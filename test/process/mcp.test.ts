/**
 * `cairn mcp`: the executable as a client of MCP starts it, alone, together with others, next to a server, and after their death.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { buildBinary } from "../support/binary.ts";
import { diskShim } from "../support/disk-shim.ts";
import { GENERATIONS, useEverything, type McpClient } from "../support/mcp.ts";
import { KEY, scratchDirectory, startProcess, until } from "../support/process.ts";
import { onLinux } from "../support/platform.ts";

const it = onLinux("open files in /proc");

async function startMcp(args: readonly string[], { generation = "2026-07-28", env = {} } = {}): Promise<McpClient> {
  return GENERATIONS[generation]!({ command: await buildBinary(), args: ["mcp", ...args], env });
}

for (const generation of Object.keys(GENERATIONS)) {
  test(`every tool works over standard input and output, for the client of ${generation}`, async () => {
    using home = scratchDirectory();
    await using mcp = await startMcp(["--user", "ada", "--agent", "editor"], { generation, env: { HOME: home.path } });
    await mcp.tools();
    // Lists are answered before anything is opened.
    expect(readdirSync(home.path)).toEqual([]);
    await useEverything(mcp, "ada");
    expect(readdirSync(home.at(".local/share"))).toEqual(["cairn"]);
  });
}

test("the data is where XDG_DATA_HOME says, and stays when the client has closed its end", async () => {
  using data = scratchDirectory();
  const env = { HOME: "/nonexistent", XDG_DATA_HOME: data.path };
  for (const step of [1, 2]) {
    await using mcp = await startMcp([], { env });
    expect(await mcp.use("update_state", { changes: { [`step${step}`]: true } })).toMatchObject({ version: step });
  }
  await until("the announcement to be withdrawn", () => !existsSync(data.at("cairn/local.json")));
});

/** The executable with its streams, once it has been initialized. */
async function spawnMcp(directory: string, env: Readonly<Record<string, string>> = {}) {
  const child = Bun.spawn([await buildBinary(), "mcp", "--data-dir", directory, "--log-level", "debug"], {
    env,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  const clientInfo = { name: "test", version: "1" };
  const initialize = { id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } };
  const messages = [initialize, { method: "notifications/initialized" }];
  await child.stdin.write(messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join(""));
  return child;
}

const CALL = { jsonrpc: "2.0", method: "tools/call", params: { name: "update_state", arguments: { changes: { step: 1 } } } };

test("it ends when its client leaves in the middle of calls, and when a message is too long", async () => {
  using data = scratchDirectory();
  const calls = Array.from({ length: 20 }, (_, n) => `${JSON.stringify({ ...CALL, id: n + 2 })}\n`).join("");
  // The first opens the store, the second asks it, and the third says more than is read.
  for (const said of [calls, calls.repeat(2), `${"x".repeat(11_000_000)}\n`]) {
    const child = await spawnMcp(data.at("data"));
    const say = async () => {
      await child.stdin.write(said);
      if (said.startsWith("x")) await child.stdin.flush();
      else await child.stdin.end();
    };
    // It ends as soon as it has read too much, which can be before all is written.
    await say().catch((error: NodeJS.ErrnoException) => expect(error.code).toBe("EPIPE"));
    expect(await child.exited).toBe(0);
  }
  await using next = await startMcp(["--data-dir", data.at("data")]);
  expect(await next.use("list_sessions")).toMatchObject({ has_more: false });
});

test("standard output has nothing but MCP, whatever comes in", async () => {
  using data = scratchDirectory();
  const child = await spawnMcp(data.at("data"));
  const odd = ["not JSON", "[]", "null", '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":{},"method":"x"}'];
  await child.stdin.write(`${[...odd, JSON.stringify({ ...CALL, id: 2 })].join("\n")}\n`);
  await child.stdin.flush();
  let said = "";
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    said += decoder.decode(chunk, { stream: true });
    if (said.includes('"id":2') && said.endsWith("\n")) await child.stdin.end();
  }
  const messages = said
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(messages.filter(({ jsonrpc }) => jsonrpc !== "2.0")).toEqual([]);
  expect(messages.at(-1)).toMatchObject({ id: 2, result: { structuredContent: { version: 1, state: { step: 1 } } } });
  expect(await child.exited).toBe(0);
});

test("a number that was changed by reading it is refused, and one call that is refused keeps no other from its answer", async () => {
  using data = scratchDirectory();
  await using mcp = await startMcp(["--data-dir", data.at("data")]);
  const large = mcp.refusal("update_state", { changes: { order: { id: 2 ** 60 } } });
  const [, { state }] = await Promise.all([large, mcp.use("update_state", { changes: { order: { id: "1152921504606846977" } } })]);
  expect(await large).toMatch(/^invalid_request: 1152921504606847000 .* send it as text/);
  expect(state).toEqual({ order: { id: "1152921504606846977" } });
});

test("a directory whose announcement leads to something else is served all the same", async () => {
  using data = scratchDirectory();
  await using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json({ status: "ready" }) });
  const directory = data.at("data");
  await using first = await startMcp(["--data-dir", directory]);
  await first.use("list_sessions");
  const file = join(directory, "local.json");
  const announced = readFileSync(file, "utf8");
  writeFileSync(file, JSON.stringify({ url: other.url.origin, key: "crl_000000000000000000000000" }));
  await using second = await startMcp(["--data-dir", directory]);
  const asked = second.use("update_state", { changes: { step: 1 } });
  writeFileSync(file, announced);
  expect(await asked).toMatchObject({ version: 1 });
});

test("it listens on a socket that only its owner can reach, and where there can be none on a port of this machine", async () => {
  using data = scratchDirectory();
  const directory = data.at("data");
  const socket = join(directory, "local.sock");
  const serve = async (address: RegExp) => {
    await using first = await startMcp(["--data-dir", directory]);
    const { version } = await first.use("update_state", { changes: { step: address.source } });
    expect(JSON.parse(readFileSync(join(directory, "local.json"), "utf8")).url).toMatch(address);
    if (statSync(socket).isSocket()) expect(statSync(socket).mode & 0o777).toBe(0o600);
    await using second = await startMcp(["--data-dir", directory]);
    expect(await second.use("get_state")).toMatchObject({ version });
  };
  await serve(/^unix:\/\/.*\/data\/local\.sock$/);
  await until("the first one to have ended", () => !existsSync(socket));
  mkdirSync(socket);
  await serve(/^http:\/\/127\.0\.0\.1:\d+$/);
});

test("with --url it asks that server, with the key in CAIRN_API_KEY", async () => {
  await using server = await startProcess();
  await using mcp = await startMcp(["--url", server.address, "--user", "ada", "--tools", "memory"], { env: { CAIRN_API_KEY: KEY } });
  const { id } = await mcp.use("add_memory", { content: "Ada likes tea." });
  expect(await server.all("/v1/memory?user_id=ada")).toMatchObject([{ id }]);
  expect(await mcp.tools()).toHaveLength(6);
  await using stranger = await startMcp([], { env: { CAIRN_URL: server.address, CAIRN_API_KEY: "crn_000000000000000000000000" } });
  expect(await stranger.refusal("list_sessions")).toMatch(/^authentication_failed: /);
});

test("a deletion that is sent again, since its answer was lost, has been done; one that finds nothing at first is refused", async () => {
  const memory_id = "mem_0VQk3aB4x1Zv";
  let requests = 0;
  await using server = createServer((request, response) => {
    response.writeHead(404, { "Content-Type": "application/json" });
    if (++requests === 1) request.socket.destroy();
    else response.end(JSON.stringify({ error: { code: "memory_not_found", message: "There is none." } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await using mcp = await startMcp(["--url", `http://127.0.0.1:${port}`], { env: { CAIRN_API_KEY: KEY } });
  expect(await mcp.use("delete_memory", { memory_id })).toEqual({ id: memory_id, deleted: true });
  expect(await mcp.refusal("delete_memory", { memory_id })).toBe("memory_not_found: There is none.");
  expect(requests).toBe(3);
});

test("next to a server it asks that, with a key that only the owner can read and that administrates nothing; then it takes over", async () => {
  const server = await startProcess();
  await using _ = server;
  const file = join(server.dataDirectory, "local.json");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await using mcp = await startMcp(["--data-dir", server.dataDirectory]);
  const { id, session_id } = await mcp.use("add_memory", { content: "Ada likes tea." });
  expect(await server.all(`/v1/traces?session_id=${session_id}&action=memory.created`)).toMatchObject([{ actor: "local" }]);
  expect(await server.all("/v1/api_keys")).toHaveLength(1);

  const { key } = JSON.parse(readFileSync(file, "utf8"));
  server.key = key;
  expect((await server.get(`/v1/memory/${id}`)).status).toBe(200);
  expect((await server.get("/v1/api_keys")).status).toBe(403);
  expect((await server.post("/v1/sign_in", {})).status).toBe(401);
  server.key = `${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`;
  expect((await server.get(`/v1/memory/${id}`)).status).toBe(401);

  expect(await server.stop()).toBe(0);
  expect((await mcp.use("list_memories")).data).toMatchObject([{ id }]);
  expect(JSON.parse(readFileSync(file, "utf8")).key).not.toBe(key);
});

test("a data directory that cannot be used is a result that says why, and is tried again with the next call", async () => {
  using data = scratchDirectory();
  await Bun.write(data.at("other/file"), "somebody else's");
  await using mcp = await startMcp(["--data-dir", data.at("other")]);
  expect(await mcp.refusal("list_sessions")).toMatch(/^service_unavailable: The data directory .* contains other files and no Cairn store/);
  await Bun.file(data.at("other/file")).delete();
  expect(await mcp.use("list_sessions")).toMatchObject({ data: [] });
});

it("it ends well after the disk has failed while the directory was opened", async () => {
  using data = scratchDirectory();
  using shim = diskShim(data.path);
  {
    await using mcp = await startMcp(["--data-dir", data.at("data")]);
    await mcp.use("update_state", { changes: { step: 0 } });
  }
  shim.fail("sync", "EIO");
  const child = await spawnMcp(data.at("data"), shim.environment);
  await child.stdin.write(`${JSON.stringify({ ...CALL, id: 2 })}\n`);
  await child.stdin.flush();
  let said = "";
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    said += part;
    if (said.endsWith("\n") && said.includes('"id":2')) await child.stdin.end();
  }
  expect(said).toContain("service_unavailable");
  expect(await child.exited).toBe(0);
});

/** By hand with more: 25 takes half a minute. */
const TAKEOVERS = Number(process.env["CAIRN_TEST_TAKEOVERS"] ?? 3);

it("when the process that serves is killed, or its client leaves, another takes over, and nothing is lost or doubled", async () => {
  using data = scratchDirectory();
  const directory = data.at("data");
  const start = () => startMcp(["--data-dir", directory]);
  const places = [await start(), await start(), await start()];
  const acknowledged: string[] = [];
  const writing = new AbortController();
  const ended = new Set<McpClient>();
  let count = 0;
  let longestMs = 0;
  const write = async (place: number) => {
    while (!writing.signal.aborted) {
      const mcp = places[place]!;
      const content = `note ${++count}`;
      const began = performance.now();
      try {
        await mcp.use("add_memory", { content });
        acknowledged.push(content);
        longestMs = Math.max(longestMs, performance.now() - began);
      } catch (error) {
        // Whether this one was written is not known. Its place has another by the next look.
        if (!ended.has(mcp)) throw error;
        await until("another process in the place of the one that was killed", () => places[place] !== mcp || writing.signal.aborted);
      }
    }
  };
  const writers = places.map((_, place) => write(place));
  const written = (more: number) => {
    const from = acknowledged.length;
    return until("more memories", () => acknowledged.length >= from + more);
  };
  try {
    for (let ends = 0; ends < TAKEOVERS; ends++) {
      await written(10);
      const { index } = await until("a process that serves", () => placeOfServer(places, directory));
      const serving = places[index]!;
      ended.add(serving);
      // Mostly killed; else its client closes standard input, and waits for its end.
      if (ends % 3 === 1) await serving[Symbol.asyncDispose]();
      else process.kill(serving.pid!, "SIGKILL");
      places[index] = await start();
    }
    await written(10);
  } finally {
    writing.abort();
    await Promise.all(writers);
  }
  const found: string[] = [];
  for (let starting_after: string | undefined; ;) {
    const page = await places[0]!.use("list_memories", { limit: 100, ...(starting_after === undefined ? {} : { starting_after }) });
    found.push(...page.data.map(({ content }: { content: string }) => content));
    if (!page.has_more) break;
    starting_after = page.last_id;
  }
  for (const mcp of places) await mcp[Symbol.asyncDispose]();
  if (TAKEOVERS > 3)
    console.log({ takeovers: TAKEOVERS, acknowledged: acknowledged.length, found: found.length, longestMs: Math.round(longestMs) });
  expect(found.toSorted()).toEqual([...new Set(found)].toSorted());
  expect(acknowledged.filter((content) => !found.includes(content))).toEqual([]);
}, 600_000);

/** Which of them has the store open; an object, since the first has the index 0. */
function placeOfServer(places: readonly McpClient[], directory: string): { index: number } | undefined {
  const index = places.findIndex(({ pid }) => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === join(directory, "store/data.mdb"));
    } catch {
      return false;
    }
  });
  return index === -1 ? undefined : { index };
}
