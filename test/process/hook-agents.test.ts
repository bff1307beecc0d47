/**
 * `cairn hook` of each agent other than Claude Code: events and transcripts in the shape in which the agent writes them.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { appendFileSync, writeFileSync } from "node:fs";
import { openCodePlugin } from "../../src/cli/setup/own-files.ts";
import { buildBinary } from "../support/binary.ts";
import { event, hook, injected, lines, PATIENT, remember, SILENT, turnsOf, type Agent } from "../support/hook.ts";
import { runCairn, scratchDirectory, startProcess } from "../support/process.ts";

const at = "2026-11-20T10:00:00.000Z";
const rollout = (type: string, payload: object) => ({ timestamp: at, type, payload });
const prompted = (id: string, text: string) =>
  rollout("event_msg", { type: "item_completed", item: { type: "UserMessage", id, content: [{ type: "text", text }] } });
const message = (role: string, text: string) => rollout("response_item", { type: "message", role, content: [{ text }] });
const chat = (type: string, id: string, content: unknown, more: object = {}) => ({ id, timestamp: at, type, content, ...more });

interface Sample {
  readonly agent: string;
  readonly promptEvent: string;
  readonly stopEvent: string;
  /** Transcript of two turns, of which the second is answered in `rest`. */
  readonly begun: string;
  readonly rest: string;
  readonly turns: readonly (readonly string[])[];
  readonly version?: string;
}

const SAMPLES: readonly Sample[] = [
  {
    agent: "codex",
    promptEvent: "UserPromptSubmit",
    stopEvent: "Stop",
    begun: lines(
      rollout("session_meta", { id: "s-1", cli_version: "0.171.0" }),
      message("developer", "<permissions instructions>"),
      message("user", "<environment_context>\n  <cwd>/src</cwd>\n</environment_context>"),
      rollout("turn_context", { turn_id: "t-1", model: "gpt-5" }),
      message("user", "Fix the bug."),
      prompted("u-1", "Fix the <private>secret</private>bug."),
      message("assistant", "I look."),
      rollout("response_item", { type: "function_call", name: "shell", arguments: "{}" }),
      rollout("response_item", { type: "function_call_output", output: "secret" }),
      message("assistant", "Fixed."),
      rollout("event_msg", { type: "user_message", message: "Thanks" }),
      prompted("u-2", "Thanks"),
    ),
    rest: lines(message("assistant", "Welcome.")),
    turns: [
      ["Fix the bug.", "I look.\n\nFixed."],
      ["Thanks", "Welcome."],
    ],
    version: "0.171.0",
  },
  {
    agent: "gemini",
    promptEvent: "BeforeAgent",
    stopEvent: "AfterAgent",
    begun: lines(
      { sessionId: "s-1", startTime: at, kind: "main" },
      { $set: { messages: [chat("user", "c", [{ text: "<session_context>\nToday\n</session_context>" }])] } },
      chat("user", "c", [{ text: "<session_context>\nToday\n</session_context>" }]),
      chat("user", "u-1", [{ text: "<hook_context>&lt;cairn-memory></hook_context>\n\nFix the bug." }]),
      chat("gemini", "a-1", "I look."),
      chat("gemini", "a-1", "I look.", { toolCalls: [{ name: "read_file", args: { file_path: "/a.ts" } }], model: "gemini" }),
      chat("user", "r-1", [{ functionResponse: { response: "secret" } }]),
      chat("gemini", "a-2", "Fixed."),
      { $set: { messages: [chat("gemini", "a-2", [{ text: "Fixed." }])] } },
      chat("user", "u-2", [{ text: "Thanks" }]),
    ),
    rest: lines(chat("gemini", "a-3", "Welcome.")),
    turns: [
      ["Fix the bug.", "I look.\n\nFixed."],
      ["Thanks", "Welcome."],
    ],
  },
];

for (const { agent: name, promptEvent, stopEvent, begun, rest, turns, version } of SAMPLES) {
  test(`${name}: memories are shown once, turns are logged once, and a transcript that is not understood is named`, async () => {
    using work = scratchDirectory();
    await using cairn = await startProcess();
    const agent: Agent = { name, dataDirectory: cairn.dataDirectory, directory: work.path, transcript: work.at("s-1.jsonl") };
    const status = async () => (await runCairn(["hook", "status", "--data-dir", agent.dataDirectory])).stdout;
    await remember(cairn, "Ada has two cats.");
    writeFileSync(work.at("s-1.jsonl"), "");
    expect(injected(await hook(event("SessionStart", agent, { source: "startup" }), agent), "SessionStart")).toContain("two cats");
    const asked = event(promptEvent, agent, { prompt: "Which cats does Ada have?", turn_id: "t-1" });
    expect(await hook(asked, agent)).toEqual(SILENT);
    await remember(cairn, "Ada deploys on Thursdays.");
    const other = event(promptEvent, agent, { prompt: "<hook_context>x</hook_context>On which day does Ada deploy?", turn_id: "t-2" });
    expect(injected(await hook(other, agent), promptEvent)).toContain("Thursdays");

    writeFileSync(work.at("s-1.jsonl"), begun);
    await hook(event("SessionStart", agent, { source: "resume" }), agent);
    expect(await turnsOf(cairn, "s-1", name)).toEqual(turns.slice(0, 1));
    appendFileSync(work.at("s-1.jsonl"), rest);
    for (const kind of [stopEvent, stopEvent, "SessionEnd"]) expect(await hook(event(kind, agent), agent)).toEqual(SILENT);
    expect(await turnsOf(cairn, "s-1", name)).toEqual(turns as string[][]);
    const { data } = await cairn.ok(cairn.get(`/v1/sessions?agent_id=${name}`));
    const [first] = await cairn.all(`/v1/sessions/${data[0].id}/turns?order=asc`);
    expect(first.metadata.tools).toEqual([name === "codex" ? "shell" : "read_file /a.ts"]);
    expect(await status()).toMatch(
      new RegExp(`^${name}: last event SessionEnd at .*${version === undefined ? "" : `, version ${version}`}`, "m"),
    );
    expect(await status()).not.toContain("problem:");

    appendFileSync(work.at("s-1.jsonl"), lines({ kind: "entry", who: "person", says: "And now?" }));
    expect(await hook(event(stopEvent, agent), agent)).toEqual(SILENT);
    expect(await status()).toContain("problem: the transcript has neither a prompt nor an answer that is known");
  });
}

test("cursor: turns are what its events say, logged once, also those of a time without a server", async () => {
  using work = scratchDirectory();
  const agent: Agent = { name: "cursor", dataDirectory: work.at("data"), directory: work.path };
  const cursor = (name: string, id: string, more: object = {}) =>
    hook(
      { conversation_id: "s-1", generation_id: id, hook_event_name: name, workspace_roots: [work.path], cursor_version: "3.1.0", ...more },
      agent,
      { env: { CURSOR_VERSION: "3.1.0" } },
    );
  const turn = async (id: string, asked: string, ...answers: string[]) => {
    const said = await cursor("beforeSubmitPrompt", id, { prompt: asked });
    for (const text of answers) expect(await cursor("afterAgentResponse", id, { text })).toEqual(SILENT);
    for (const name of ["stop", "stop"]) expect(await cursor(name, id, { status: "completed" })).toEqual(SILENT);
    return said;
  };
  const status = async () => (await runCairn(["hook", "status", "--data-dir", agent.dataDirectory])).stdout;
  const context = ({ stdout }: { stdout: string }) => JSON.parse(stdout);
  {
    await using cairn = await startProcess({ dataDirectory: agent.dataDirectory });
    await remember(cairn, "Ada has two cats.");
    expect(context(await cursor("sessionStart", "g-0"))).toEqual({ additional_context: expect.stringContaining("two cats") });
    await remember(cairn, "Ada deploys on Thursdays.");
    const asked = await turn("g-1", "On which day does <private>she</private>Ada deploy?", "I look.", "On Thursdays.");
    expect(context(asked)).toEqual({ continue: true, additional_context: expect.stringContaining("Thursdays") });
    expect(await turnsOf(cairn, "s-1", "cursor")).toEqual([["On which day does Ada deploy?", "I look.\n\nOn Thursdays."]]);
    expect(await status()).toMatch(/^cursor: last event stop at .*, version 3\.1\.0/m);
    await cairn.kill();
  }
  expect(await turn("g-2", "Without a server?", "Yes.")).toEqual(SILENT);
  await using cairn = await startProcess({ dataDirectory: agent.dataDirectory });
  expect(await turn("g-3", "And now?", "Now.")).toEqual(SILENT);
  expect((await turnsOf(cairn, "s-1", "cursor")).slice(1)).toEqual([
    ["Without a server?", "Yes."],
    ["And now?", "Now."],
  ]);
  await cursor("preCompact", "g-4");
  expect(context(await cursor("sessionStart", "g-5")).additional_context).toContain("two cats");
  await cursor("beforeSubmitPrompt", "g-6", { prompt: "Will the format change?" });
  expect(await cursor("stop", "g-6")).toEqual(SILENT);
  expect(await status()).toContain("problem: there was no answer before its end");
  const claude = { session_id: "s-2", conversation_id: "s-1", hook_event_name: "SessionStart", cwd: work.path };
  expect(await hook(claude, { ...agent, name: "codex" })).toEqual(SILENT);
});

const copilotEvent = (type: string, id: string, data: object) => ({ type, id, timestamp: at, data });
const copilotTranscript = lines(
  copilotEvent("session.start", "e-0", { sessionId: "s-1", copilotVersion: "1.0.40", selectedModel: "gpt-5" }),
  copilotEvent("user.message", "u-1", { content: "Fix the <private>secret</private>bug." }),
  copilotEvent("assistant.message", "a-1", { content: "I look.", toolRequests: [{ name: "view", arguments: { file_path: "/a.ts" } }] }),
  copilotEvent("assistant.message", "a-2", { content: "Of a subagent.", parentToolCallId: "c-1" }),
  copilotEvent("tool.execution_complete", "t-1", { result: { content: "secret" } }),
  copilotEvent("assistant.message", "a-3", { content: "Fixed." }),
);

for (const [name, command, input] of [
  [
    "copilot",
    "copilot",
    { sessionStart: { sessionId: "s-1", source: "new" }, agentStop: { sessionId: "s-1", transcriptPath: "PATH", stopReason: "end_turn" } },
  ],
  [
    "vscode",
    "claude-code",
    {
      SessionStart: { hookEventName: "SessionStart", sessionId: "s-1", source: "new", transcript_path: "PATH" },
      UserPromptSubmit: { hookEventName: "UserPromptSubmit", sessionId: "s-1", prompt: "On which day does Ada deploy?" },
      Stop: { hookEventName: "Stop", sessionId: "s-1", transcript_path: "PATH" },
    },
  ],
] as const) {
  test(`${name}: memories are shown at the start alone, turns are logged once, also by the hooks of ${command}`, async () => {
    using work = scratchDirectory();
    await using cairn = await startProcess();
    const agent: Agent = { name: command, dataDirectory: cairn.dataDirectory, directory: work.path };
    await remember(cairn, "Ada deploys on Thursdays.");
    writeFileSync(work.at("events.jsonl"), copilotTranscript);
    for (const [event, more] of Object.entries({ ...input, ...input })) {
      const text = JSON.stringify({ cwd: work.path, ...more }).replace("PATH", work.at("events.jsonl"));
      const answer = await hook(text, agent, { args: [...PATIENT, "--event", event] });
      expect(answer).toMatchObject({ code: 0, stderr: "" });
      if (event.toLowerCase() !== "sessionstart") expect(answer).toEqual(SILENT);
      else {
        const said = JSON.parse(answer.stdout);
        expect(name === "copilot" ? said : said.hookSpecificOutput).toMatchObject({
          additionalContext: expect.stringContaining("Thursdays"),
        });
      }
    }
    expect(await turnsOf(cairn, "s-1", name)).toEqual([["Fix the bug.", "I look.\n\nFixed."]]);
    const { stdout } = await runCairn(["hook", "status", "--data-dir", agent.dataDirectory]);
    expect(stdout).toMatch(new RegExp(`^${name}: last event (Stop|agentStop) at .*, version 1\\.0\\.40`, "m"));
    expect(stdout).not.toContain("problem:");
  });
}

test("opencode: its plugin gives the model memories, once each and with every request, and logs each turn of a person once", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  await remember(cairn, "Ada has two cats.");
  const command = [await buildBinary(), "hook", "opencode", "--data-dir", cairn.dataDirectory, ...PATIENT].join(" ");
  writeFileSync(work.at("cairn.mjs"), openCodePlugin(command));
  const { Cairn } = await import(work.at("cairn.mjs"));
  const session = {
    get: async ({ path: { id } }: any) => ({ data: { id, version: "1.18.33", parentID: id === "child" ? "s-1" : undefined } }),
  };
  const start = () => Cairn({ client: { session }, directory: work.path });
  let plugin = await start();
  const prompt = (sessionID: string, id: string, text: string) =>
    plugin["chat.message"](
      { sessionID },
      {
        message: { id, sessionID },
        parts: [
          { type: "text", text },
          { type: "text", text: "synthetic", synthetic: true },
        ],
      },
    );
  const system = async (sessionID?: string) => {
    const output = { system: ["You are an agent."] };
    await plugin["experimental.chat.system.transform"]({ sessionID }, output);
    return output.system.slice(1).join("\n");
  };
  const answer = (sessionID: string, text: string) => plugin["experimental.text.complete"]({ sessionID }, { text });
  const event = (type: string, sessionID: string) => plugin.event({ event: { type, properties: { sessionID } } });

  await prompt("s-1", "m-1", "Which cats does Ada have?");
  expect((await system("s-1")).split("two cats").length).toBe(2);
  expect(await system()).toBe("");
  await remember(cairn, "Ada deploys on Thursdays.");
  for (const text of ["I look.", "Two."]) await answer("s-1", text);
  for (const type of ["session.idle", "session.idle"]) await event(type, "s-1");
  await prompt("s-1", "m-2", "On which day does Ada deploy?");
  expect((await system("s-1")).split("two cats").length).toBe(2);
  expect((await system("s-1")).split("Thursdays").length).toBe(2);
  await plugin["experimental.session.compacting"]({ sessionID: "s-1" });
  await answer("s-1", "A summary.");
  await event("session.compacted", "s-1");
  expect((await system("s-1")).split("Thursdays").length).toBe(2);
  await answer("s-1", "On Thursdays.");
  await event("session.idle", "s-1");
  await prompt("child", "m-3", "Of the agent itself.");
  await answer("child", "Yes.");
  await event("session.idle", "child");
  expect(await system("child")).toBe("");
  plugin = await start();
  await prompt("s-1", "m-4", "Again?");
  expect((await system("s-1")).split("two cats").length).toBe(2);
  await answer("s-1", "Again.");
  await event("session.idle", "s-1");
  expect(await turnsOf(cairn, "s-1", "opencode")).toEqual([
    ["Which cats does Ada have?", "I look.\n\nTwo."],
    ["On which day does Ada deploy?", "On Thursdays."],
    ["Again?", "Again."],
  ]);
  expect(await turnsOf(cairn, "child", "opencode")).toEqual([]);
  const { stdout } = await runCairn(["hook", "status", "--data-dir", cairn.dataDirectory]);
  expect(stdout).toMatch(/^opencode: last event session\.idle at .*, version 1\.18\.33/m);
  expect(stdout).not.toContain("problem:");
});

test("opencode: a plugin whose program is gone, or prints no answer, changes nothing", async () => {
  using work = scratchDirectory();
  for (const [at, command] of ["/nowhere/cairn hook opencode", "echo no JSON"].entries()) {
    writeFileSync(work.at(`${at}.mjs`), openCodePlugin(command));
    const { Cairn } = await import(work.at(`${at}.mjs`));
    const plugin = await Cairn({ client: { session: { get: () => Promise.reject(new Error("no server")) } }, directory: work.path });
    await plugin["chat.message"]({}, { message: { id: "m-1", sessionID: "s-1" }, parts: [{ type: "text", text: "Hello" }] });
    const output = { system: [] };
    await plugin["experimental.chat.system.transform"]({ sessionID: "s-1" }, output);
    expect(output.system).toEqual([]);
  }
});

test("a hook names the agent that runs it, or none for Claude Code", async () => {
  using work = scratchDirectory();
  const answer = await hook("{}", { name: "emacs", dataDirectory: work.path, directory: work.path });
  expect(answer).toEqual({ code: 0, stdout: "", stderr: "cairn: cairn hook has no emacs\n" });
});
