import { expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import manifest from "../../package.json";
import { RATE_LIMITS, TRACE_RETENTION_DAYS } from "../../src/keys/tiers.ts";
import { LIMITS } from "../../src/lib/limits.ts";
import { block, pageText, ROOT } from "../support/pages.ts";
import { CURL, GIT, needs, PYTHON } from "../support/platform.ts";
import { startReceiver } from "../support/receiver.ts";
import { KEY, scratchDirectory, startProcess, until } from "../support/process.ts";

const PROGRAMS = "src/docs/guide/programs.md";

async function run(command: readonly string[], options: { cwd?: string; env?: Record<string, string> } = {}) {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe", ...options });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { stdout, stderr, code };
}

/** The commands of the first conversation. */
function conversation(address: string, key: string): string {
  const commands = block("README.md", "sh", "KEY=crn_").replace("KEY=crn_…", `KEY=${key}`).replaceAll("http://127.0.0.1:8700", address);
  expect(commands).toContain(key);
  expect(commands).toContain(address);
  return commands;
}

/** The shells that people have: Debian's `sh` is dash. */
for (const shell of ["bash", "sh"]) {
  needs(CURL)(`the first conversation of the README works as it is printed, in ${shell}`, async () => {
    await using cairn = await startProcess();
    const { stdout, stderr, code } = await run([shell, "-eu", "-c", conversation(cairn.address, KEY)]);
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });

    const [id, ...lines] = stdout.trim().split("\n");
    const answers = lines.map((line) => JSON.parse(line));
    expect(answers.map(({ object, error }) => object ?? error ?? "context")).toEqual(["memory", "turn", "session", "context", "list"]);
    expect(answers[2].id).toBe(id);
    const found = [{ content: "Lives in Lisbon with two dogs." }];
    expect(answers[3]).toMatchObject({
      state: { order: "A-17", step: 1 },
      memories: found,
      recent_turns: [{ input: { content: "Where is my order?" } }],
    });
    expect(answers[3].memories[0].score).toBeGreaterThanOrEqual(0.7);
    expect(answers[4]).toMatchObject({ query: "Hat sie Haustiere?", data: found });
  });
}

for (const page of ["README.md", "src/docs/guide/quickstart.md"]) {
  needs(CURL)(`a wrong key in the first conversation of ${page} is said to be wrong, and no command takes that text apart`, async () => {
    await using cairn = await startProcess();
    const key = "crn_000000000000000000000000";
    const blocks = Array.from(pageText(page).matchAll(/```sh\n((?:KEY=|S=|c )[\s\S]*?)```/g), ([, text = ""]) => text);
    const commands = blocks.join("").replace("KEY=crn_…", `KEY=${key}`).replaceAll("http://127.0.0.1:8700", cairn.address);
    const { stdout, stderr } = await run(["sh", "-c", commands]);
    const { body } = await cairn.request("GET", "/v1/sessions", undefined, { "X-API-Key": key });
    expect(body.error.code).toBe("authentication_failed");
    expect(stdout.split("\n")[0]).toBe(`"message":"${body.error.message}"`);
    // One line of curl's for each address that would have the id of the session.
    expect(stderr.trim().split("\n")).toHaveLength(commands.match(/^c "[^"]*\$S/gm)!.length);
  });
}

/** A clone of what is here, with what the first `scripts/start` makes, so that it need not make it again. */
async function cleanClone(path: string): Promise<void> {
  const listed = await run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], { cwd: ROOT });
  for (const name of listed.stdout.split("\0").filter((name) => name !== "" && existsSync(join(ROOT, name))))
    cpSync(join(ROOT, name), join(path, name), { verbatimSymlinks: true });
  for (const name of ["node_modules", ".tools", "native"]) {
    // Hard links take a second or two. Where there can be none, and on macOS, it is a copy.
    const linked = await run(["cp", "-al", join(ROOT, name), join(path, name)]);
    if (linked.code !== 0) cpSync(join(ROOT, name), join(path, name), { recursive: true, verbatimSymlinks: true });
  }
  const commit = ["-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "clone"];
  for (const command of [["init", "--quiet"], ["add", "--all"], commit])
    expect(await run(["git", ...command], { cwd: path })).toMatchObject({ code: 0 });
}

/** Starts Cairn as the README says, on any port, and stops it when the work is done. */
async function withStarted(clone: string, work: (address: string, printed: string) => Promise<void>): Promise<void> {
  const child = Bun.spawn(["sh", "-c", `exec ${block("README.md", "sh", "scripts/start        #")}`], {
    cwd: clone,
    env: { PATH: process.env["PATH"] ?? "", CAIRN_PORT: "0" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let printed = "";
  const stdout = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) printed += text;
  })();
  const stderr = new Response(child.stderr).text();
  try {
    const [, address = ""] = await until("scripts/start to serve", async () => {
      if (child.exitCode !== null) throw new Error(`scripts/start ended with code ${child.exitCode}: ${await stderr}`);
      return /is serving on (\S+)\n/.exec(printed);
    });
    await work(address, printed);
  } finally {
    child.kill("SIGTERM");
    await Promise.all([child.exited, stdout, stderr]);
  }
}

needs(GIT)("who does all that the pages say in a clean clone can start Cairn again, and has changed nothing in the clone", async () => {
  using scratch = scratchDirectory();
  const [clone, app] = [scratch.at("cairn"), scratch.at("your-app")];
  await cleanClone(clone);
  const assertUnchanged = async () =>
    expect(await run(["git", "status", "--porcelain"], { cwd: clone })).toMatchObject({ stdout: "", code: 0 });
  await withStarted(clone, async (address, printed) => {
    const [, key = ""] = /^Admin key, shown only this once: (\S+)$/m.exec(printed) ?? [];
    expect(await run(["sh", "-eu", "-c", conversation(address, key)], { cwd: clone })).toMatchObject({ code: 0 });

    const printedInstall = block(PROGRAMS, "sh", "scripts/package-client");
    expect(printedInstall).toContain(`cairn-client-${manifest.version}.tgz`);
    // Without npm, Bun does what the page has npm do.
    const install = Bun.which("npm") === null ? printedInstall.replace("npm install", `${process.execPath} add`) : printedInstall;
    const env = { PATH: process.env["PATH"] ?? "", HOME: scratch.path, npm_config_offline: "true", npm_config_update_notifier: "false" };
    const { code, stdout, stderr } = await run(["sh", "-eu", "-c", install], { cwd: clone, env });
    expect({ code, output: code === 0 ? "" : stdout + stderr }).toEqual({ code: 0, output: "" });
    await assertUnchanged();

    // It is a copy and no link: adapters import the framework of the project, not one of the clone.
    const framework = join(app, "node_modules/@langchain/core/package.json");
    mkdirSync(join(framework, ".."), { recursive: true });
    writeFileSync(framework, '{ "name": "@langchain/core", "version": "9.9.9" }');
    const adapter = realpathSync(join(app, "node_modules/cairn-client/adapters/langchain.js"));
    expect(createRequire(adapter).resolve("@langchain/core/package.json")).toBe(realpathSync(framework));
    writeFileSync(
      join(app, "main.mjs"),
      'import { Cairn } from "cairn-client";\nconst [apiKey, baseUrl] = process.argv.slice(2);\n' +
        'console.log((await new Cairn({ apiKey, baseUrl }).sessions.list({ user_id: "user-42" })).data.length);\n',
    );
    expect(await run([process.execPath, join(app, "main.mjs"), key, address])).toEqual({ stdout: "1\n", stderr: "", code: 0 });
  });
  await withStarted(clone, async (address) => {
    expect((await fetch(`${address}/health`)).status).toBe(200);
  });
  await assertUnchanged();
});

test("the client of a page works as it is printed", async () => {
  using directory = scratchDirectory();
  await using cairn = await startProcess({ dataDirectory: `${directory.path}/data` });
  const program = `${directory.path}/client.mjs`;
  const text = block(PROGRAMS, "js", "fetch(").replace('"crn_…"', JSON.stringify(KEY)).replace("http://127.0.0.1:8700", cairn.address);
  expect(text).toContain(KEY);
  expect(text).toContain(cairn.address);
  writeFileSync(program, text.replace("console.log(", "console.log(JSON.stringify(").replace(/\);\s*$/, "));"));
  const child = Bun.spawn([process.execPath, program], { cwd: directory.path, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  const { memories } = JSON.parse(stdout) as { memories: { content: string; score: number }[] };
  expect(memories).toMatchObject([{ content: "The customer prefers e-mail to phone calls." }]);
  expect(memories[0]!.score).toBeGreaterThanOrEqual(0.7);
});

needs(PYTHON)("the Python client of a page works as it is printed", async () => {
  using directory = scratchDirectory();
  await using cairn = await startProcess({ dataDirectory: `${directory.path}/data` });
  const program = `${directory.path}/client.py`;
  const text = block(PROGRAMS, "python", "class Cairn")
    .replace('"crn_…"', JSON.stringify(KEY))
    .replace("http://127.0.0.1:8700", cairn.address);
  expect(text).toContain(KEY);
  expect(text).toContain(cairn.address);
  writeFileSync(program, text.replace("print(cairn(", "print(json.dumps(cairn(").replace(/\)\s*$/, "))\n"));
  const child = Bun.spawn(["python3", program], { cwd: directory.path, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  expect(JSON.parse(stdout)).toMatchObject({ memories: [{ content: "The customer prefers e-mail to phone calls." }] });
});

test("the agent loop of the documentation asks a model with the context, runs its tools and logs the turn", async () => {
  using directory = scratchDirectory();
  const asked: { messages: { role: string; content: string }[]; tools: unknown[] }[] = [];
  const calls = [
    { id: "1", type: "function", function: { name: "remember", arguments: '{"content": "The customer prefers e-mail to phone calls."}' } },
    { id: "2", type: "function", function: { name: "update_state", arguments: '{"changes": {"order": "A-17"}}' } },
    { id: "3", type: "function", function: { name: "unknown", arguments: "{}" } },
  ];
  const replies = [{ content: null, tool_calls: calls }, { content: "It arrives tomorrow." }, { content: "By e-mail." }];
  await using model = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      asked.push((await request.json()) as (typeof asked)[number]);
      return Response.json({ choices: [{ message: { role: "assistant", ...replies[asked.length - 1] } }] });
    },
  });
  await using cairn = await startProcess({ dataDirectory: directory.at("data") });
  const program = directory.at("loop.ts");
  const text = block("src/docs/guide/agent-loop.md", "js", "callModel")
    .replace('"crn_…"', JSON.stringify(KEY))
    .replace("http://127.0.0.1:8700", cairn.address)
    .replace("http://127.0.0.1:11434/", model.url.href)
    .replace('"cairn-client"', JSON.stringify(join(ROOT, "src/client/index.ts")));
  writeFileSync(program, text);
  const child = Bun.spawn([process.execPath, program], {
    stdin: new TextEncoder().encode("Where is my order?\nHow do you contact me?\n"),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  expect({ stdout, stderr, code }).toEqual({ stdout: "It arrives tomorrow.\nBy e-mail.\n", stderr: "", code: 0 });

  expect(asked.map(({ messages, tools }) => [messages.map(({ role }) => role).join(" "), tools.length])).toEqual([
    ["system user", 2],
    ["system user assistant tool tool tool", 2],
    ["system user assistant user", 2],
  ]);
  expect(JSON.parse(asked[1]!.messages.at(-1)!.content)).toEqual({ error: expect.any(String) });
  const [system] = asked[2]!.messages;
  expect(system!.content).toContain('State: {"order":"A-17"}');
  expect(system!.content).toContain("- The customer prefers e-mail to phone calls.");
  const [session] = await cairn.all("/v1/sessions?external_id=chat-1");
  expect(await cairn.all(`/v1/sessions/${session.id}/turns`)).toMatchObject([
    { output: { content: "By e-mail." } },
    { input: { content: "Where is my order?" }, output: { content: "It arrives tomorrow." } },
  ]);
});

test("the check of webhooks in the documentation takes what Cairn sends and nothing else", async () => {
  using directory = scratchDirectory();
  await using receiver = startReceiver();
  await using cairn = await startProcess({ dataDirectory: `${directory.path}/data` });
  const { secret } = await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["session.created"] }));
  await cairn.createSession();
  await receiver.got(1);
  const { body, headers } = receiver.received[0]!;
  const signature = headers["x-webhook-signature"] ?? "";

  const program = `${directory.path}/check.ts`;
  writeFileSync(program, block("src/docs/guide/webhooks.md", "ts", "isFromCairn"));
  const { isFromCairn } = (await import(program)) as { isFromCairn: (secret: string, body: string, signature: string) => boolean };
  expect(isFromCairn(secret, body, signature)).toBe(true);
  const wrong = [`${signature.slice(0, -1)}${signature.endsWith("0") ? "1" : "0"}`, signature.slice(0, -2), `${signature}00`, "ü", ""];
  expect(wrong.map((text) => isFromCairn(secret, body, text))).toEqual(wrong.map(() => false));
  expect([isFromCairn(secret, `${body} `, signature), isFromCairn(`${secret}x`, body, signature)]).toEqual([false, false]);
});

test("the pages have the limits of sessions, traces and rates as they are", () => {
  const text = pageText("src/docs/operate/limits.md").replaceAll(/\s+/g, " ");
  const { free, pro, enterprise } = TRACE_RETENTION_DAYS;
  const rate = (tier: "free" | "pro" | "enterprise") => {
    return [RATE_LIMITS[tier].perMinute, RATE_LIMITS[tier].burst].map((count) => count.toLocaleString("en")) as [string, string];
  };
  const expected = [
    `ends** after ${LIMITS.ttlSecondsDefault / 3_600} hours, or after \`ttl_seconds\`: at most ${LIMITS.ttlSecondsMax / 86_400} days`,
    `free ${free} days, pro ${pro}, enterprise \`trace_retention_days\` of the settings (${enterprise})`,
    `free ${rate("free")[0]} a minute (burst ${rate("free")[1]}), pro ${rate("pro")[0]} (${rate("pro")[1]})`,
    `(${rate("enterprise")[0]} and ${rate("enterprise")[1]} unless given)`,
  ];
  expect(expected.filter((part) => !text.includes(part))).toEqual([]);
});
