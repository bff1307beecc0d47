/**
 * The commands on the pages of the documentation, run as they are printed, with the executable on the path.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { endOf } from "../support/backups.ts";
import { buildBinary } from "../support/binary.ts";
import { startEmbeddingServer } from "../support/embedding-server.ts";
import { GENERATIONS } from "../support/mcp.ts";
import { block, pageText } from "../support/pages.ts";
import { CURL, needs } from "../support/platform.ts";
import { KEY, runCairn, scratchDirectory, startProcess, type CairnProcess, type Scratch } from "../support/process.ts";

const QUICKSTART = "src/docs/guide/quickstart.md";
const ADDRESS = "http://127.0.0.1:8700";

/** Puts a command `cairn`, which is the executable, and others that do nothing on the path. */
async function pathWithCairn(scratch: Scratch, ...doingNothing: readonly string[]): Promise<string> {
  mkdirSync(scratch.at("bin"));
  symlinkSync(await buildBinary(), scratch.at("bin/cairn"));
  for (const name of doingNothing) symlinkSync(Bun.which("true") ?? "", scratch.at(`bin/${name}`));
  return `${scratch.at("bin")}:${process.env["PATH"] ?? ""}`;
}

async function shell(commands: string, cwd: string, env: Record<string, string>) {
  const child = Bun.spawn(["sh", "-eu", "-c", commands], { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { stdout, stderr, code };
}

/** Defines `c`, which the pages take from the quick start, for this server. */
function definition(server: CairnProcess): string {
  const printed = block(QUICKSTART, "sh", "KEY=crn_…");
  expect(printed).toContain(ADDRESS);
  return printed.replace("KEY=crn_…", `KEY=${KEY}`).replaceAll(ADDRESS, server.address);
}

/** Runs blocks of pages that call `c`. @returns the lines that it printed */
async function called(server: CairnProcess, env: Record<string, string>, ...blocks: readonly string[]): Promise<string[]> {
  const { stdout, stderr, code } = await shell([definition(server), ...blocks].join(""), "/", env);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return stdout.trim().split("\n");
}

const PATH = { PATH: process.env["PATH"] ?? "" };

needs(CURL)("the quick start works line by line", async () => {
  await using server = await startProcess();
  const blocks = Array.from(pageText(QUICKSTART).matchAll(/```sh\n((?:S=|c )[\s\S]*?)```/g), ([, text = ""]) => text);
  expect(blocks.length).toBe(5);
  const [id, ...answers] = await called(server, PATH, ...blocks);
  const [memory, turn, first, second, context, undone, traces] = answers.map((line) => JSON.parse(line));
  expect(memory.content).toBe("Lives in Lisbon with two dogs.");
  expect([turn.object, first.state_version, second.state_version]).toEqual(["turn", 1, 2]);
  expect(context.memories[0].score).toBeGreaterThanOrEqual(0.7);
  expect(undone).toMatchObject({ id, state: { order: "A-17", step: 1 }, state_version: 3 });
  expect(traces.data.map(({ action }: { action: string }) => action)).toEqual([
    "state.rolled_back",
    "state.updated",
    "state.updated",
    "turn.added",
    "memory.created",
    "session.created",
  ]);
});

needs(CURL)("settings are changed and a webhook is created as their pages say", async () => {
  await using server = await startProcess();
  const [changed, reset, webhook] = (
    await called(
      server,
      PATH,
      block("src/docs/operate/configuration.md", "sh", "c settings"),
      block("src/docs/guide/webhooks.md", "sh", "c webhooks"),
    )
  ).map((line) => JSON.parse(line));
  expect([changed.region.value, changed.webhooks.timeout.value, changed.webhooks.retry_schedule.value]).toEqual(["eu", "5s", "10s,1m,10m"]);
  expect([reset.webhooks.timeout.value, reset.webhooks.retry_schedule.value]).toEqual(["15s", "10s,1m,10m"]);
  expect(webhook).toMatchObject({ object: "webhook", secret: expect.stringMatching(/^whsec_/) });
});

needs(CURL)("another embedding is set as its page says", async () => {
  using scratch = scratchDirectory();
  await using provider = startEmbeddingServer();
  await using server = await startProcess({ dataDirectory: scratch.at("data") });
  const printed = block("src/docs/guide/search.md", "sh", "ollama pull");
  expect(printed).toContain("http://127.0.0.1:11434/v1");
  const commands = printed.replace("http://127.0.0.1:11434/v1", provider.baseUrl);
  const [answer] = await called(server, { PATH: await pathWithCairn(scratch, "ollama") }, commands);
  expect(JSON.parse(answer ?? "").embedding).toMatchObject({ provider: { value: "openai" }, query_prefix: { value: "search_query: " } });
});

test("a store is backed up, restored, exported, imported and checked as the page says", async () => {
  using scratch = scratchDirectory();
  mkdirSync(scratch.at("backups"));
  const env = { PATH: await pathWithCairn(scratch), CAIRN_DATA_DIR: scratch.at("data") };
  await using server = await startProcess({ dataDirectory: scratch.at("data") });
  const { id } = await server.createSession();
  expect(await server.stop()).toBe(0);
  const lines = block("src/docs/operate/backup-restore.md", "sh", "cairn backup /backups/today").trimEnd().split("\n");
  expect(lines.length).toBe(7);
  for (const line of lines) {
    // What is restored and imported needs a data directory without a store.
    const data = /cairn (restore|import)/.test(line) ? scratch.at(`data-of-${/cairn (\w+)/.exec(line)?.[1]}`) : env.CAIRN_DATA_DIR;
    const { code, stderr } = await shell(line.replace("/backups/", scratch.at("backups/")), scratch.path, { ...env, CAIRN_DATA_DIR: data });
    expect({ line, code, stderr: code === 0 ? "" : stderr }).toEqual({ line, code: 0, stderr: "" });
  }
  for (const name of ["data-of-restore", "data-of-import"]) {
    await using again = await startProcess({ dataDirectory: scratch.at(name) });
    expect(await again.ok(again.get(`/v1/sessions/${id}`))).toMatchObject({ id });
  }
});

test("what is left of a store is saved as the page says", async () => {
  using scratch = scratchDirectory();
  await using server = await startProcess({ dataDirectory: scratch.at("data") });
  await server.createSession();
  expect(await server.stop()).toBe(0);
  const env = { PATH: await pathWithCairn(scratch), CAIRN_DATA_DIR: scratch.at("data") };
  const { code, stderr } = await shell(block("src/docs/operate/damage.md", "sh", "--salvage"), scratch.path, env);
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(existsSync(scratch.at("NEW/store/data.mdb"))).toBe(true);
});

needs(CURL)("a backup is made and downloaded over HTTP as the page says", async () => {
  using scratch = scratchDirectory();
  await using server = await startProcess({ dataDirectory: scratch.at("data") });
  const [make = "", list = "", download = ""] = block("src/docs/operate/backup-restore.md", "sh", "curl -sX POST")
    .replaceAll("localhost:8700", server.address)
    .split("\n");
  const run = (command: string) => shell(`KEY=${KEY}\n${command}`, scratch.path, PATH);
  const { id } = JSON.parse((await run(make)).stdout);
  await endOf(server, id);
  expect(JSON.parse((await run(list)).stdout).data).toMatchObject([{ id, status: "ready" }]);
  expect(await run(download.replace("bkp_…", id))).toMatchObject({ code: 0 });
  expect(await runCairn(["restore", scratch.at("today"), "--data-dir", scratch.at("restored")])).toMatchObject({ code: 0 });
});

test("keys are made, listed, rolled and revoked as the page says", async () => {
  using scratch = scratchDirectory();
  const env = { PATH: await pathWithCairn(scratch), CAIRN_DATA_DIR: scratch.at("data") };
  const printed = block("src/docs/reference/keys-and-scopes.md", "sh", "cairn keys create").split("\n");
  const [create = "", list = "", roll = "", revoke = ""] = printed;
  const run = async (command: string) => {
    const { code, stdout, stderr } = await shell(command, scratch.path, env);
    expect({ command, code, stderr: code === 0 ? "" : stderr }).toEqual({ command, code: 0, stderr: "" });
    return stdout;
  };
  const [key = ""] = /crn_[0-9A-Za-z]{24}/.exec(await run(create)) ?? [];
  expect(key).not.toBe("");
  const [id = ""] = /key_[0-9A-Za-z]{12}/.exec(await run(list)) ?? [];
  expect(id).not.toBe("");
  expect(await run(roll.replace("ID", id))).toMatch(/crn_[0-9A-Za-z]{24}/);
  await run(revoke.replace("ID", id));
});

test("every command of the page exists, and the page has every command", async () => {
  const listed = block("src/docs/operate/commands.md", "", "cairn serve");
  const names = new Set(
    Array.from(listed.matchAll(/^cairn ([\w-]+)(?: \| (\w+))?/gm), ([, ...found]) => found.filter((name) => name !== undefined)).flat(),
  );
  const { stdout } = await runCairn(["--help"]);
  // What a command does stands apart from how it is called.
  const known = Array.from(stdout.matchAll(/^ {2}cairn ([\w-]+)(?: \S+)* {2,}\S/gm), ([, name = ""]) => name);
  expect([...names].filter((name) => !name.startsWith("--")).toSorted()).toEqual([...new Set(known)].toSorted());
});

test("an export has the lines that its specification has", async () => {
  using scratch = scratchDirectory();
  await using server = await startProcess({ dataDirectory: scratch.at("data") });
  const session = await server.createSession();
  await server.ok(server.post("/v1/memory", { session_id: session.id, content: "Lives in Lisbon with two dogs." }));
  expect(await server.stop()).toBe(0);
  const { stdout } = await runCairn(["export", "--data-dir", scratch.at("data")]);
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const specified = block("src/docs/reference/export-format.md", "json", "cairn_export")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const shapes = [lines[0], lines.find(({ table }) => table === "sessions"), lines.find(({ table }) => table === "memories"), lines.at(-1)];
  expect(shapes.map((line) => Object.keys(line ?? {}))).toEqual(specified.map((line) => Object.keys(line)));
  expect(lines.at(-1)).toEqual({ end: lines.length - 2 });
});

test("what the page on MCP has a client set up connects", async () => {
  using scratch = scratchDirectory();
  await using server = await startProcess({ dataDirectory: scratch.at("data") });
  const page = "src/docs/guide/mcp.md";
  const { command, args } = JSON.parse(block(page, "json", '"command"')).mcpServers.cairn;
  expect(command).toEndWith("/cairn");
  const connect = GENERATIONS["2026-07-28"]!;
  {
    await using mcp = await connect({ command: await buildBinary(), args, env: { HOME: scratch.path } });
    expect(await mcp.use("update_state", { changes: { step: 1 } })).toMatchObject({ version: 1 });
    expect(readdirSync(scratch.at(".local/share"))).toEqual(["cairn"]);
  }
  const codex = (Bun.TOML.parse(block(page, "toml", "mcp_servers")) as { mcp_servers: { cairn: Record<string, any> } }).mcp_servers.cairn;
  const settings = [
    JSON.parse(block(page, "json", '"mcpServers": { "cairn": { "url"')).mcpServers.cairn,
    JSON.parse(block(page, "json", '"inputs"')).servers.cairn,
    { url: codex["url"], headers: { ...codex["http_headers"], Authorization: `Bearer $${codex["bearer_token_env_var"]}` } },
  ] as { url: string; headers: Record<string, string> }[];
  for (const { url, headers } of settings) {
    const filled = Object.entries(headers).map(([name, value]) => [name, value.replace(/\$\{[\w:-]+\}|\$\w+/, KEY)] as const);
    expect(filled.some(([, value]) => value.includes(KEY))).toBe(true);
    expect(url).toStartWith(ADDRESS);
    await using mcp = await connect({ url: url.replace(ADDRESS, server.address), headers: Object.fromEntries(filled) });
    expect(await mcp.use("update_state", { changes: { step: 1 } })).toMatchObject({ version: expect.any(Number) });
  }
  expect(await server.all("/v1/sessions?user_id=ada")).toHaveLength(1);
});
