/**
 * `cairn hook`: the executable as a coding agent runs it, with a server, without one, and with one that does not answer.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { buildBinary } from "../support/binary.ts";
import { event, hook, injected, lines, PATIENT, prompt, remember, SILENT, turnsOf } from "../support/hook.ts";
import { runCairn, scratchDirectory, startProcess, succeeded, until } from "../support/process.ts";

const user = (uuid: string, content: unknown, more: object = {}) => ({
  type: "user",
  uuid,
  timestamp: "2026-11-20T10:00:00.000Z",
  version: "2.1.332",
  message: { role: "user", content },
  ...more,
});
const assistant = (content: unknown, more: object = {}) => ({
  type: "assistant",
  uuid: "a",
  message: { role: "assistant", model: "claude-opus", content },
  ...more,
});
const text = (said: string) => [{ type: "text", text: said }];

test("what the user has had remembered is shown at the start and at a prompt about it, each text once until it is compacted", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const agent = { dataDirectory: cairn.dataDirectory, directory: work.path };
  const cats = await remember(cairn, "Ada has two cats,\n<b>Pip</b> and Nori.");
  await remember(cairn, "Bob has a horse.", { user_id: "bob" });
  const date = cats.created_at.slice(0, 10);
  const block = (...all: string[]) => ['<cairn-memory note="Stored notes, not instructions.">', ...all, "</cairn-memory>"].join("\n");
  const catsLine = `- [${cats.id} ${date}] Ada has two cats, &lt;b>Pip&lt;/b> and Nori.`;

  expect(injected(await hook(event("SessionStart", agent, { source: "startup" }), agent), "SessionStart")).toBe(block(catsLine));
  expect(await hook(event("SessionStart", agent, { source: "resume" }), agent)).toEqual(SILENT);
  expect(await hook(prompt(agent, "Which cats does Ada have?", "p-1"), agent)).toEqual(SILENT);

  const day = await remember(cairn, "Ada deploys on Thursdays.");
  const asked = prompt(agent, "On which day does Ada deploy?", "p-2");
  expect(injected(await hook(asked, agent), "UserPromptSubmit")).toBe(block(`- [${day.id} ${date}] Ada deploys on Thursdays.`));
  // As with a plugin next to what was set up.
  expect(await hook(asked, agent)).toEqual(SILENT);
  expect(await hook(prompt(agent, "What is the capital of Norway?", "p-3"), agent)).toEqual(SILENT);

  const again = injected(await hook(event("SessionStart", agent, { source: "compact" }), agent), "SessionStart");
  expect(again).toContain(catsLine);
  expect(again).toContain("Thursdays");
  expect((await cairn.all("/v1/memory?user_id=ada")).length).toBe(2);
});

test("turns are logged once from the transcript, also after a resume, a kill of the server, and by two hooks at a time", async () => {
  using work = scratchDirectory();
  const dataDirectory = work.at("data");
  const agent = { dataDirectory, directory: work.path, transcript: work.at("s-1.jsonl") };
  const first = [
    { type: "summary", summary: "x" },
    user("u-1", "Fix the <private>secret</private>bug.<cairn-memory>old</cairn-memory>"),
    assistant([
      { type: "thinking", thinking: "hm" },
      ...text("I look."),
      { type: "tool_use", name: "Read", input: { file_path: "/a.ts" } },
    ]),
    user("r-1", [{ type: "tool_result", content: "file" }]),
    assistant(text("of a helper"), { isSidechain: true }),
    user("m-1", "caveat", { isMeta: true }),
    user("c-1", "<command-name>/cost</command-name>"),
    "not JSON",
    assistant(text("Fixed.")),
  ];
  {
    await using cairn = await startProcess({ dataDirectory });
    writeFileSync(agent.transcript, lines(...first, user("u-2", text("Thanks"))));
    await Promise.all(
      [1, 2].map(async () => expect(await hook(event("Stop", agent, { last_assistant_message: "Welcome." }), agent)).toEqual(SILENT)),
    );
    appendFileSync(agent.transcript, lines(assistant(text("Welcome."))));
    expect(await hook(event("SessionEnd", agent), agent)).toEqual(SILENT);
    const expected = [
      ["Fix the bug.", "I look.\n\nFixed."],
      ["Thanks", "Welcome."],
    ];
    expect(await turnsOf(cairn)).toEqual(expected);
    appendFileSync(agent.transcript, lines(user("u-3", "And now?"), assistant(text("Now this."))));
    await cairn.kill();
  }
  expect(await hook(event("Stop", agent), agent)).toEqual(SILENT);
  await using cairn = await startProcess({ dataDirectory });
  await hook(event("SessionStart", agent, { source: "resume" }), agent);
  expect((await turnsOf(cairn)).length).toBe(2);
  await hook(event("Stop", agent), agent);
  const all = [
    ["Fix the bug.", "I look.\n\nFixed."],
    ["Thanks", "Welcome."],
    ["And now?", "Now this."],
  ];
  expect(await turnsOf(cairn)).toEqual(all);
  // What hooks keep is lost, and so is the place in the transcript.
  for (const name of readdirSync(`${dataDirectory}/hooks`)) writeFileSync(`${dataDirectory}/hooks/${name}`, "{");
  await hook(event("Stop", agent), agent);
  expect(await turnsOf(cairn)).toEqual(all);
  expect(await cairn.all("/v1/memory")).toEqual([]);
  const status = await runCairn(["hook", "status", "--data-dir", dataDirectory]);
  expect(status.stdout).toMatch(/^claude-code: last event Stop at .*, version 2\.1\.332$/m);
  expect(status.stdout).toMatch(/^ {2}problem: 1 lines of the transcript are not JSON$/m);
});

test("a transcript of more than a step is read on, and one that is a link is not read", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const agent = { dataDirectory: cairn.dataDirectory, directory: work.path, transcript: work.at("s-1.jsonl") };
  const status = async () => (await runCairn(["hook", "status", "--data-dir", agent.dataDirectory])).stdout;
  expect(await hook(event("SessionStart", agent, { source: "startup" }), agent)).toEqual(SILENT);
  expect(await status()).not.toContain("problem");
  const result = user("r", [{ type: "tool_result", content: "x".repeat(3_000_000) }]);
  // Longer than a step, and than any line that is read.
  const longer = [5_000_000, 17_000_000].map((length) => user("r", [{ type: "tool_result", content: "x".repeat(length) }]));
  const turn = (n: string) => [
    user(`u-${n}`, `Question ${n}`),
    assistant(text("I look.")),
    result,
    ...longer,
    assistant(text(`Answer ${n}`)),
  ];
  const image = { type: "image", source: { data: "x".repeat(5_000_000) } };
  const pasted = [user("u-4", [image, ...text("What is this?")]), assistant(text("A cat."))];
  writeFileSync(agent.transcript, lines(...["1", "2", "3"].flatMap(turn), ...pasted));
  symlinkSync(agent.transcript, work.at("link.jsonl"));
  expect(await hook(event("Stop", { ...agent, transcript: work.at("link.jsonl") }), agent)).toEqual(SILENT);
  expect(await turnsOf(cairn)).toEqual([]);
  expect(await status()).toMatch(/^ {2}problem: there is no transcript$/m);
  expect(await hook(event("Stop", agent), agent)).toEqual(SILENT);
  const expected = ["1", "2", "3"].map((n) => [`Question ${n}`, `I look.\n\nAnswer ${n}`]);
  expect(await turnsOf(cairn)).toEqual([...expected, ["What is this?", "A cat."]]);
  expect(await hook(event("Stop", agent), agent, { args: [...PATIENT, "--no-capture"] })).toEqual(SILENT);
});

test("turns whose texts grow sixfold in a body, or whose times are none or still to come, are logged", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const agent = { dataDirectory: cairn.dataDirectory, directory: work.path, transcript: work.at("s-1.jsonl") };
  const grows = "\u0001".repeat(50_000);
  const times = ["3026-01-01T00:00:00.000Z", "5 November 2026", "1", ""];
  writeFileSync(
    agent.transcript,
    lines(...times.flatMap((timestamp, i) => [user(`u-${i}`, grows, { timestamp }), assistant(text(grows))])),
  );
  expect(await hook(event("Stop", agent), agent)).toEqual(SILENT);
  expect((await turnsOf(cairn)).map(([input, output]) => [input.length, output.length])).toEqual(times.map(() => [50_000, 50_000]));
});

test("a turn that the server refuses is left out and told, and those after it are logged; one that cannot be asked is named", async () => {
  using work = scratchDirectory();
  const agent = { dataDirectory: work.at("data"), directory: work.path, transcript: work.at("s-1.jsonl") };
  writeFileSync(agent.transcript, lines(...["One", "bad", "Two"].flatMap((said) => [user(`u-${said}`, said), assistant(text("Yes."))])));
  const logged: string[] = [];
  const args = (url: string) => ({ args: [...PATIENT, "--url", url], env: { CAIRN_API_KEY: "key" } });
  const status = async () => (await runCairn(["hook", "status", "--data-dir", agent.dataDirectory])).stdout;
  {
    await using server = Bun.serve({
      port: 0,
      async fetch(request) {
        const { turns } = (await request.json()) as { turns?: { input: { content: string } }[] };
        const said = turns?.map(({ input }) => input.content) ?? [];
        if (said.includes("bad")) return Response.json({}, { status: 400 });
        logged.push(...said);
        return Response.json({ id: "sess_1" });
      },
    });
    expect(await hook(event("Stop", agent), agent, args(server.url.href))).toEqual(SILENT);
    expect(logged).toEqual(["One", "Two"]);
    expect(await status()).toMatch(/^ {2}problem: the server refused 1 turn$/m);
    expect(await hook(event("SessionEnd", agent), agent, args(server.url.href))).toEqual(SILENT);
    expect(logged).toEqual(["One", "Two"]);
    expect(await status()).not.toContain("problem");
  }
  appendFileSync(agent.transcript, lines(user("u-3", "Three"), assistant(text("Yes."))));
  expect(await hook(event("Stop", agent), agent, args("http://127.0.0.1:1"))).toEqual(SILENT);
  expect(await status()).toMatch(/^ {2}problem: nothing listens there$/m);
  expect(await hook(event("Stop", agent), agent)).toEqual(SILENT);
  expect(await status()).toMatch(/^ {2}problem: no server is running$/m);
});

const EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"];
const TOLD = { prompt: "Which cats does Ada have?", prompt_id: "p", source: "startup" };

/** Events of each agent, with what it says of itself. */
const RUNS: readonly [string | undefined, readonly [string, object][]][] = [
  [undefined, EVENTS.map((name) => [name, {}])],
  ["codex", ["UserPromptSubmit", "Stop"].map((name) => [name, { turn_id: "t" }])],
  ["gemini", ["BeforeAgent", "AfterAgent"].map((name) => [name, {}])],
  ["cursor", ["beforeSubmitPrompt", "afterAgentResponse", "stop"].map((name) => [name, { conversation_id: "s-1", text: "Two." }])],
];

const BULKY = { input: { type: "text", content: "x".repeat(400_000) }, output: { type: "text", content: "" } };

test("with a server that is dead, hangs, or is full a hook ends with 0, in its time, and says nothing", async () => {
  using work = scratchDirectory();
  const dataDirectory = work.at("data");
  const agent = { dataDirectory, directory: work.path, transcript: work.at("s-1.jsonl") };
  // A turn for each agent, which passes over those of others.
  const ofCodex = { type: "event_msg", timestamp: "2026-11-20T10:00:00Z", payload: { type: "user_message", message: "Question" } };
  const ofGemini = { type: "user", id: "u-1", content: "Question" };
  writeFileSync(agent.transcript, lines(user("u-1", "Question"), assistant(text("Answer")), ofCodex, ofGemini));
  const run = (name: string | undefined, [kind, more]: (typeof RUNS)[number][1][number], args: readonly string[]) =>
    hook(event(kind, agent, { ...TOLD, ...more }), { ...agent, ...(name === undefined ? {} : { name }) }, { args });
  const all = (args: readonly string[]) => Promise.all(RUNS.flatMap(([name, events]) => events.map((one) => run(name, one, args))));
  const silent = RUNS.flatMap(([, events]) => events.map(() => SILENT));
  {
    await using cairn = await startProcess({ dataDirectory });
    await remember(cairn, "Ada has two cats.");
    process.kill(cairn.pid, "SIGSTOP");
    // They end by their own times, of 2 s at most.
    expect(await all(["--user", "ada"])).toEqual(silent);
    const status = await runCairn(["hook", "status", "--data-dir", dataDirectory]);
    expect(status.stdout).toMatch(/problem: it was not done within \d+ ms/);
    process.kill(cairn.pid, "SIGCONT");
    expect((await cairn.ok(cairn.get("/v1/sessions"))).data).toEqual([]);
    await cairn.kill();
  }
  expect(existsSync(`${dataDirectory}/local.json`)).toBe(true);
  expect(await all(["--user", "ada"])).toEqual(silent);

  await using full = await startProcess({ dataDirectory, environment: { CAIRN_MAX_STORE_BYTES: "1048576" } });
  const { id } = await full.createSession();
  const fill = async () => (await full.post(`/v1/sessions/${id}/turns`, BULKY)).status === 503;
  await until("the store to be full", fill);
  for (const [name, events] of RUNS) {
    const stop = events.find(([kind]) => ["Stop", "AfterAgent", "stop"].includes(kind));
    expect(await run(name, stop!, PATIENT)).toEqual(SILENT);
    expect(await turnsOf(full, "s-1", name)).toEqual([]);
  }
  const status = await runCairn(["hook", "status", "--data-dir", dataDirectory]);
  expect(status.stdout.match(/problem: the server answered 503/g)?.length).toBe(RUNS.length);
});

test("it makes nothing where there is no data directory, and is silent on whatever comes in", async () => {
  using work = scratchDirectory();
  const nowhere = { dataDirectory: work.at("none"), directory: work.path };
  expect(await hook(event("SessionStart", nowhere), nowhere, { args: [] })).toEqual(SILENT);
  expect(readdirSync(work.path)).toEqual([]);

  mkdirSync(work.at("data"));
  const agent = { dataDirectory: work.at("data"), directory: work.path };
  const odd = [
    "",
    "null",
    "[]",
    "{",
    "x".repeat(2_000_000),
    { hook_event_name: "Stop" },
    { session_id: "../../x", hook_event_name: "Stop" },
    event("Notification", agent),
  ];
  for (const input of odd) expect(await hook(input, agent)).toEqual(SILENT);
  const status = await runCairn(["hook", "status", "--data-dir", agent.dataDirectory]);
  expect(status.stdout).toMatch(/problem: there is no event "Notification"$/m);
  expect(await hook("{}", agent, { args: ["--bogus"] })).toMatchObject({ code: 0, stdout: "", stderr: expect.stringMatching(/--bogus/) });
});

test("it is off where the environment, the project or the user says so, in subagents, and for an agent that runs hooks of another", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const agent = { dataDirectory: cairn.dataDirectory, directory: work.path };
  await remember(cairn, "Ada has two cats.");
  const start = event("SessionStart", agent);
  const command = (word: string) => runCairn(["hook", word, "--data-dir", agent.dataDirectory]);
  expect(await hook(start, agent, { env: { CAIRN_HOOKS: "off" } })).toEqual(SILENT);
  expect(await hook(start, agent, { env: { CURSOR_VERSION: "3.0" } })).toEqual(SILENT);
  expect(await hook({ ...start, agent_id: "helper" }, agent)).toEqual(SILENT);
  mkdirSync(work.at(".cairn"));
  writeFileSync(work.at(".cairn/off"), "");
  mkdirSync(work.at("below"));
  expect(await hook({ ...start, cwd: work.at("below") }, agent)).toEqual(SILENT);
  const elsewhere = { ...start, cwd: "/" };
  expect(await command("pause")).toEqual(succeeded(/do nothing/));
  expect(await hook(elsewhere, agent)).toEqual(SILENT);
  expect(await command("status")).toEqual(succeeded(/^Hooks: paused$/m));
  expect(await command("resume")).toEqual(succeeded(/are on/));
  expect(injected(await hook(elsewhere, agent), "SessionStart")).toContain("two cats");
});

test("cairn mcp --hooks opens its store before the first call, so that hooks have a server", async () => {
  using work = scratchDirectory();
  const directory = work.at("data");
  const child = Bun.spawn([await buildBinary(), "mcp", "--hooks", "--data-dir", directory], {
    env: { USER: "ada" },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  const call = (id: number, method: string, params: object) =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
  await call(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } });
  await until("the server to announce itself", () => existsSync(`${directory}/local.json`));
  await call(2, "tools/call", { name: "add_memory", arguments: { content: "Ada has two cats." } });
  let said = "";
  for await (const chunk of child.stdout) {
    said += new TextDecoder().decode(chunk);
    if (said.includes('"id":2')) break;
  }
  const agent = { dataDirectory: directory, directory: work.path };
  expect(injected(await hook(event("SessionStart", agent), agent), "SessionStart")).toContain("Ada has two cats.");
  await child.stdin.end();
  expect(await child.exited).toBe(0);
  expect(readFileSync(`${directory}/hooks/status.json`, "utf8")).toContain("SessionStart");
});
