/**
 * `cairn setup` and `cairn hook` in Claude Code itself, with a stand-in for its model. Only with `scripts/test --all`: it is 400 MB.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { CLAUDE_CODE } from "../support/npm-agents.ts";
import { needs } from "../support/platform.ts";
import { runCairn, scratchDirectory, startProcess, type CairnProcess } from "../support/process.ts";
import { longRounds } from "../support/rounds.ts";
import { standInModel } from "../support/stand-in-model.ts";

const it = longRounds(undefined, needs(CLAUDE_CODE));

async function turnsOf(cairn: CairnProcess): Promise<string[][]> {
  const { data } = await cairn.ok(cairn.get("/v1/sessions?agent_id=claude-code"));
  const turns = await Promise.all(data.map(({ id }: { id: string }) => cairn.all(`/v1/sessions/${id}/turns?order=asc`)));
  return turns.map((session) =>
    session.map(({ input, output }: Record<"input" | "output", { content: string }>) => `${input.content} ${output.content}`),
  );
}

it?.(
  "Claude Code shows its model what was remembered, and each of its turns is logged once, also after a resume and a kill of the server",
  async () => {
    using work = scratchDirectory();
    using model = standInModel("Yes, it is.");
    mkdirSync(work.at("project"));
    const [dataDirectory, directory] = [work.at("data"), work.at("project")];
    const environment = { HOME: work.path, USER: "ada", PATH: process.env["PATH"] ?? "" };
    expect(await runCairn(["setup", "claude-code", "--yes", "--data-dir", dataDirectory], { directory, environment })).toMatchObject({
      code: 0,
    });
    const claude = async (...args: string[]) => {
      const variables = { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" };
      const child = Bun.spawn([CLAUDE_CODE.command, "-p", ...args], {
        cwd: directory,
        env: { ...environment, ...variables },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      expect({ code: await child.exited, stdout, stderr }).toEqual({ code: 0, stdout: "Yes, it is.\n", stderr: expect.any(String) });
    };
    {
      await using cairn = await startProcess({ dataDirectory });
      await cairn.ok(cairn.post("/v1/memory", { content: "Ada deploys on Thursdays.", user_id: "ada" }));
      await claude("Is it Thursday?");
      const withMemory = model.asked.filter((body) => body.includes("Ada deploys on Thursdays."));
      expect(withMemory.length).toBeGreaterThan(0);
      for (const body of withMemory) expect(body.split("Ada deploys on Thursdays.").length).toBe(2);
      expect(await turnsOf(cairn)).toEqual([["Is it Thursday? Yes, it is."]]);
      await cairn.kill();
    }
    await claude("--continue", "Without a server?");
    await using cairn = await startProcess({ dataDirectory });
    await claude("--continue", "And now?");
    expect((await turnsOf(cairn)).flat().sort()).toEqual([
      "And now? Yes, it is.",
      "Is it Thursday? Yes, it is.",
      "Without a server? Yes, it is.",
    ]);
    expect((await cairn.all("/v1/memory")).length).toBe(1);
  },
  240_000,
);

test("the stand-in streams an answer as the Messages API does", async () => {
  using model = standInModel("Yes.");
  const ask = (stream: boolean) => fetch(`${model.url}/v1/messages`, { method: "POST", body: JSON.stringify({ model: "m", stream }) });
  expect(await (await ask(false)).json()).toMatchObject({ model: "m", content: [{ type: "text", text: "Yes." }], stop_reason: "end_turn" });
  expect(await (await ask(true)).text()).toMatch(/event: message_start\n[^]*"text":"Yes\."[^]*event: message_stop\n/);
  expect(model.asked.length).toBe(2);
});
