import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { KEY, scratchDirectory, startProcess } from "../support/process.ts";

const README = readFileSync(join(import.meta.dir, "../../README.md"), "utf8");

/** The commands of the first conversation, as they are printed. */
function conversation(): string {
  const block = Array.from(README.matchAll(/```sh\n([\s\S]*?)```/g), (match) => match[1] as string).find((text) =>
    text.includes("KEY=crn_"),
  );
  if (block === undefined) throw new Error("the README has no first conversation");
  return block;
}

test("the first conversation of the README works as it is printed", async () => {
  using directory = scratchDirectory();
  await using cairn = await startProcess({ dataDirectory: directory.path });
  const commands = conversation().replace("KEY=crn_…", `KEY=${KEY}`).replaceAll("http://127.0.0.1:8700", cairn.address);
  expect(commands).toContain(KEY);
  expect(commands).toContain(cairn.address);
  const shell = Bun.spawn(["bash", "-eu", "-c", commands], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([new Response(shell.stdout).text(), new Response(shell.stderr).text(), shell.exited]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });

  const answers = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(answers.map(({ object, error }) => object ?? error ?? "context")).toEqual(["memory", "turn", "session", "context"]);
  expect(answers.at(-1)).toMatchObject({
    state: { order: "A-17", step: 1 },
    memories: [{ content: "The customer prefers e-mail to phone calls." }],
    recent_turns: [{ input: { content: "Where is my order?" } }],
  });
  expect(answers.at(-1).memories[0].score).toBeGreaterThanOrEqual(0.7);
}, 60_000);
