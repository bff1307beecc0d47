/**
 * `cairn setup` and `cairn hook` in coding agents themselves, with a stand-in for their models. Only with `scripts/test --all`: they are
 * hundreds of megabytes each.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { CLAUDE_CODE, CODEX, GEMINI, OPENCODE, type NpmAgent } from "../support/npm-agents.ts";
import { runCairn, scratchDirectory, startProcess, type CairnProcess, type Scratch } from "../support/process.ts";
import { onlyLong } from "../support/rounds.ts";
import { standInModel } from "../support/stand-in-model.ts";

interface RealAgent {
  /** As `cairn setup` calls it. */
  readonly name: string;
  readonly agent: NpmAgent;
  readonly environment: (model: string) => Readonly<Record<string, string>>;
  /** Files in its home directory. */
  readonly files?: (model: string) => Readonly<Record<string, string>>;
  readonly first: readonly string[];
  /** Arguments that take up the last conversation. */
  readonly next: readonly string[];
}

const REAL_AGENTS: readonly RealAgent[] = [
  {
    name: "claude-code",
    agent: CLAUDE_CODE,
    environment: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" }),
    first: ["-p"],
    next: ["-p", "--continue"],
  },
  {
    name: "codex",
    agent: CODEX,
    environment: () => ({}),
    files: (url) => ({
      ".codex/config.toml": `model = "stand-in"\nmodel_provider = "test"\n\n[model_providers.test]\nname = "test"\nbase_url = "${url}/v1"\nwire_api = "responses"\n`,
    }),
    first: ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"],
    next: ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "resume", "--last"],
  },
  {
    name: "gemini",
    agent: GEMINI,
    environment: (url) => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: "none", GEMINI_CLI_TRUST_WORKSPACE: "true" }),
    files: () => ({ ".gemini/settings.json": `{ "security": { "auth": { "selectedType": "gemini-api-key" } } }` }),
    first: ["-m", "gemini-2.5-flash", "-p"],
    next: ["-m", "gemini-2.5-flash", "--resume", "latest", "-p"],
  },
  {
    name: "opencode",
    agent: OPENCODE,
    environment: () => ({}),
    files: (url) => ({
      ".config/opencode/opencode.json": JSON.stringify({
        model: "test/stand-in",
        small_model: "test/stand-in",
        autoupdate: false,
        provider: {
          test: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${url}/v1`, apiKey: "none" },
            models: { "stand-in": {} },
          },
        },
      }),
    }),
    first: ["run"],
    next: ["run", "--continue"],
  },
];

/** Returns each turn in a line, without the quotes that `opencode run` puts around a prompt. */
async function turnsOf(cairn: CairnProcess, agent: string): Promise<string[][]> {
  const { data } = await cairn.ok(cairn.get(`/v1/sessions?agent_id=${agent}`));
  const turns = await Promise.all(data.map(({ id }: { id: string }) => cairn.all(`/v1/sessions/${id}/turns?order=asc`)));
  return turns.map((session) =>
    session.map(
      ({ input, output }: Record<"input" | "output", { content: string }>) => `${input.content.replaceAll('"', "")} ${output.content}`,
    ),
  );
}

/** Sets it up in a home directory, and gives the function that has it answer a prompt. */
async function prepared({ name, agent, environment, files }: RealAgent, work: Scratch, url: string) {
  const [dataDirectory, directory] = [work.at("data"), work.at("project")];
  mkdirSync(directory);
  for (const [path, text] of Object.entries(files?.(url) ?? {})) {
    mkdirSync(work.at(path.slice(0, path.lastIndexOf("/"))), { recursive: true });
    writeFileSync(work.at(path), text);
  }
  const variables = { HOME: work.path, USER: "ada", PATH: process.env["PATH"] ?? "" };
  const line = ["setup", name, "--yes", "--data-dir", dataDirectory];
  expect(await runCairn(line, { directory, environment: variables })).toMatchObject({ code: 0, stderr: "" });
  return async (...args: string[]) => {
    const child = Bun.spawn([agent.command, ...args], {
      cwd: directory,
      env: { ...variables, ...environment(url) },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect({ code: await child.exited, stdout, stderr }).toEqual({ code: 0, stdout: "Yes, it is.\n", stderr: expect.any(String) });
  };
}

for (const real of REAL_AGENTS) {
  const { name, agent, first, next } = real;
  const it = onlyLong(agent);
  it(`${agent.name} shows its model what was remembered, and each of its turns is logged once, also after a resume and a kill of the server`, async () => {
    using work = scratchDirectory();
    using model = standInModel("Yes, it is.");
    const dataDirectory = work.at("data");
    const ask = await prepared(real, work, model.url);
    {
      await using cairn = await startProcess({ dataDirectory });
      await cairn.ok(cairn.post("/v1/memory", { content: "Ada deploys on Thursdays.", user_id: "ada" }));
      await ask(...first, "Is it Thursday?");
      const withMemory = model.asked.filter((body) => body.includes("Ada deploys on Thursdays."));
      expect(withMemory.length).toBeGreaterThan(0);
      for (const body of withMemory) expect(body.split("Ada deploys on Thursdays.").length).toBe(2);
      expect(await turnsOf(cairn, name)).toEqual([["Is it Thursday? Yes, it is."]]);
      await cairn.kill();
    }
    await ask(...next, "Without a server?");
    await using cairn = await startProcess({ dataDirectory });
    await ask(...next, "And now?");
    expect((await turnsOf(cairn, name)).flat().sort()).toEqual([
      "And now? Yes, it is.",
      "Is it Thursday? Yes, it is.",
      "Without a server? Yes, it is.",
    ]);
    expect(model.asked.at(-1)?.split("Ada deploys on Thursdays.").length).toBe(2);
    expect((await cairn.all("/v1/memory")).length).toBe(1);
    const status = await runCairn(["hook", "status", "--data-dir", dataDirectory]);
    expect(status.stdout).toContain(`${name}: last event `);
    // A deadline that ran out is caught up at the next event.
    expect(status.stdout).not.toMatch(/problem: (?!it was not done within)/);
  }, 240_000);
}

test("the stand-in streams an answer as each API does", async () => {
  using model = standInModel("Yes.");
  const ask = async (path: string, body: object = { model: "m", stream: true }) =>
    await (await fetch(`${model.url}${path}`, { method: "POST", body: JSON.stringify(body) })).text();
  const whole = { model: "m", type: "message", content: [{ type: "text", text: "Yes." }] };
  expect(JSON.parse(await ask("/v1/messages", { model: "m" }))).toMatchObject(whole);
  expect(await ask("/v1/messages")).toMatch(/event: message_start\n[^]*"text":"Yes\."[^]*event: message_stop\n/);
  expect(await ask("/v1/responses")).toMatch(/event: response\.created\n[^]*"delta":"Yes\."[^]*event: response\.completed\n/);
  expect(await ask("/v1/chat/completions")).toMatch(/"content":"Yes\."[^]*data: \[DONE\]\n/);
  expect(await ask("/v1beta/models/m:streamGenerateContent")).toMatch(/^data: .*"text":"Yes\."/);
  expect(model.asked.length).toBe(5);
});
