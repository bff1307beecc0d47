import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RATE_LIMITS, TRACE_RETENTION_DAYS } from "../../src/keys/tiers.ts";
import { LIMITS } from "../../src/lib/limits.ts";
import { CURL, needs, PYTHON } from "../support/platform.ts";
import { startReceiver } from "../support/receiver.ts";
import { KEY, scratchDirectory, startProcess } from "../support/process.ts";

const README = readFileSync(join(import.meta.dir, "../../README.md"), "utf8");

/** The one block of a language that holds a text, as it is printed. */
function block(language: "sh" | "js" | "ts" | "python", part: string): string {
  const blocks = Array.from(README.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g")), (match) => match[1] as string);
  const [found, ...more] = blocks.filter((text) => text.includes(part));
  if (found === undefined || more.length > 0) throw new Error(`the README has not one block of ${language} with ${part}`);
  return found;
}

needs(CURL)("the first conversation of the README works as it is printed", async () => {
  await using cairn = await startProcess();
  const commands = block("sh", "KEY=crn_").replace("KEY=crn_…", `KEY=${KEY}`).replaceAll("http://127.0.0.1:8700", cairn.address);
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
});

test("the client of the README works as it is printed", async () => {
  using directory = scratchDirectory();
  await using cairn = await startProcess({ dataDirectory: `${directory.path}/data` });
  const program = `${directory.path}/client.mjs`;
  const text = block("js", "fetch(").replace('"crn_…"', JSON.stringify(KEY)).replace("http://127.0.0.1:8700", cairn.address);
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

needs(PYTHON)("the Python client of the README works as it is printed", async () => {
  using directory = scratchDirectory();
  await using cairn = await startProcess({ dataDirectory: `${directory.path}/data` });
  const program = `${directory.path}/client.py`;
  const text = block("python", "class Cairn").replace('"crn_…"', JSON.stringify(KEY)).replace("http://127.0.0.1:8700", cairn.address);
  expect(text).toContain(KEY);
  expect(text).toContain(cairn.address);
  writeFileSync(program, text.replace("print(cairn(", "print(json.dumps(cairn(").replace(/\)\s*$/, "))\n"));
  const child = Bun.spawn(["python3", program], { cwd: directory.path, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  expect(JSON.parse(stdout)).toMatchObject({ memories: [{ content: "The customer prefers e-mail to phone calls." }] });
});

test("the check of webhooks in the README takes what Cairn sends and nothing else", async () => {
  using directory = scratchDirectory();
  await using receiver = startReceiver();
  await using cairn = await startProcess({ dataDirectory: `${directory.path}/data` });
  const { secret } = await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["session.created"] }));
  await cairn.createSession();
  await receiver.got(1);
  const { body, headers } = receiver.received[0]!;
  const signature = headers["x-webhook-signature"] ?? "";

  const program = `${directory.path}/check.ts`;
  writeFileSync(program, block("ts", "isFromCairn"));
  const { isFromCairn } = (await import(program)) as { isFromCairn: (secret: string, body: string, signature: string) => boolean };
  expect(isFromCairn(secret, body, signature)).toBe(true);
  const wrong = [`${signature.slice(0, -1)}${signature.endsWith("0") ? "1" : "0"}`, signature.slice(0, -2), `${signature}00`, "ü", ""];
  expect(wrong.map((text) => isFromCairn(secret, body, text))).toEqual(wrong.map(() => false));
  expect([isFromCairn(secret, `${body} `, signature), isFromCairn(`${secret}x`, body, signature)]).toEqual([false, false]);
});

test("the README has the limits of sessions, traces and rates as they are", () => {
  const text = README.replaceAll(/\s+/g, " ");
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
