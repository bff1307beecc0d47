/**
 * `cairn import --from`: histories of other programs, in the shapes in which these write them.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { buildBinary } from "../support/binary.ts";
import { longRounds } from "../support/rounds.ts";
import { runCairn, scratchDirectory, startProcess, succeeded, until, type CairnProcess } from "../support/process.ts";

const SESSION = "0b5e8e1c-6f0a-4c58-9d35-2f8f5a6f9a01";
const lines = (...all: readonly unknown[]) => all.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");

const common = (timestamp: string) => ({
  parentUuid: null,
  isSidechain: false,
  userType: "external",
  cwd: "/srv/ada/shop",
  sessionId: SESSION,
  version: "2.1.332",
  gitBranch: "main",
  timestamp,
});
const user = (uuid: string, timestamp: string, content: unknown, more: object = {}) => ({
  ...common(timestamp),
  type: "user",
  uuid,
  message: { role: "user", content },
  ...more,
});
const assistant = (timestamp: string, content: unknown, more: object = {}) => ({
  ...common(timestamp),
  type: "assistant",
  uuid: `a-${timestamp}`,
  message: { id: "msg_1", type: "message", role: "assistant", model: "claude-opus", content },
  ...more,
});
const text = (said: string) => [{ type: "text", text: said }];

/** A day's question and answer. */
const day = (month: number, question: string, answer: string) => {
  const at = `2026-${String(month).padStart(2, "0")}-05T10:00:00.000Z`;
  return [user(`u-${month}`, at, question), assistant(at, text(answer))];
};

const importFrom = (cairn: CairnProcess, paths: readonly string[], ...flags: string[]) =>
  runCairn(["import", "--from", "claude-code", "--data-dir", cairn.dataDirectory, "--user", "ada", ...paths, ...flags]);

async function turnsOf(cairn: CairnProcess, name = `code:claude-code:${SESSION}`): Promise<any[]> {
  const { data } = await cairn.ok(cairn.get(`/v1/sessions?external_id=${name}`));
  expect(data.length).toBeLessThan(2);
  return data.length === 0 ? [] : cairn.all(`/v1/sessions/${data[0].id}/turns?order=asc`);
}

const saidIn = (turns: readonly any[]) => turns.map(({ input, output }) => [input.content, output.content]);

test("transcripts of Claude Code become sessions and turns of their times, each once, and those that hooks have logged are there already", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const folder = work.at("projects/-srv-ada-shop");
  mkdirSync(folder, { recursive: true });
  const transcript = `${folder}/${SESSION}.jsonl`;
  const first = [
    { type: "summary", summary: "Shop", leafUuid: "x" },
    user("u-1", "2026-01-05T10:00:00.000Z", "Fix the <private>secret</private>cart."),
    assistant("2026-01-05T10:00:05.000Z", [
      { type: "thinking", thinking: "hm", signature: "s" },
      ...text("I look."),
      { type: "tool_use", id: "t", name: "Read", input: { file_path: "/a.ts" } },
    ]),
    user("r-1", "2026-01-05T10:00:06.000Z", [{ type: "tool_result", tool_use_id: "t", content: "file" }]),
    assistant("2026-01-05T10:00:09.000Z", text("Of a helper."), { isSidechain: true }),
    assistant("2026-01-05T10:00:10.000Z", text("The cart adds up now.")),
  ];
  writeFileSync(transcript, lines(...first));
  const hook = Bun.spawn([await buildBinary(), "hook", "--data-dir", cairn.dataDirectory, "--user", "ada", "--wait", "60000"], {
    env: {},
    stdin: new Blob([JSON.stringify({ session_id: SESSION, hook_event_name: "Stop", cwd: "/srv/ada/shop", transcript_path: transcript })]),
  });
  expect(await hook.exited).toBe(0);
  const logged = await turnsOf(cairn);
  expect(saidIn(logged)).toEqual([["Fix the cart.", "I look.\n\nThe cart adds up now."]]);

  const [question, answer] = day(2, "Which database do we take?", "PostgreSQL, for the stock.");
  const result = user("r-2", "2026-02-05T10:00:00.000Z", [{ type: "tool_result", tool_use_id: "t", content: "x".repeat(5_000_000) }]);
  const looked = assistant("2026-02-05T10:00:00.000Z", text("I look."));
  appendFileSync(transcript, lines(question, looked, result, result, answer));
  const other = "7d0c5a52-93b6-4a53-b0f4-7b6d7a1a0002";
  writeFileSync(`${folder}/${other}.jsonl`, lines(...day(3, "In another project", "Yes.")).replaceAll("/srv/ada/shop", "/srv/ada/blog"));
  writeFileSync(work.at("projects/notes.txt"), "no transcript");
  const paths = [work.at("projects")];

  const dry = await importFrom(cairn, paths, "--dry-run");
  const times = "from 2026-02-05T10:00:00.000Z to 2026-03-05T10:00:00.000Z";
  expect(dry).toEqual(
    succeeded(
      [
        `Would import 2 turns, ${times}; 1 session new.`,
        "There already: 1 turn.",
        "  2026-02-05T10:00:00.000Z  Which database do we take?",
        "  2026-03-05T10:00:00.000Z  In another project",
        "",
      ].join("\n"),
    ),
  );
  expect(await turnsOf(cairn)).toEqual(logged);

  expect(await importFrom(cairn, paths, "--project", "/srv/ada/shop")).toEqual(
    succeeded("Imported 1 turn, from 2026-02-05T10:00:00.000Z to 2026-02-05T10:00:00.000Z; 0 sessions new.\nThere already: 1 turn.\n"),
  );
  expect(await importFrom(cairn, paths, "--since", "2026-03-01")).toEqual(succeeded(/^Imported 1 turn, .*; 1 session new\.\n$/));
  expect(await importFrom(cairn, paths)).toEqual(succeeded("Imported 0 turns; 0 sessions new.\nThere already: 3 turns.\n"));
  expect(saidIn(await turnsOf(cairn))).toEqual([
    ...saidIn(logged),
    ["Which database do we take?", "I look.\n\nPostgreSQL, for the stock."],
  ]);

  // What an import has made is removed, and nothing else.
  const session = (await cairn.ok(cairn.get(`/v1/sessions?external_id=code:claude-code:${other}`))).data[0];
  expect(session).toMatchObject({ agent_id: "claude-code", user_id: "ada", metadata: { source: "import", directory: "/srv/ada/blog" } });
  expect(await importFrom(cairn, paths, "--remove")).toEqual(succeeded("Removed 1 session of earlier imports.\n"));
  expect((await cairn.all("/v1/sessions")).map(({ external_id: name }) => name)).toEqual([`code:claude-code:${SESSION}`]);
});

test("rollouts of Codex become sessions and turns, also where a step of reading ends between the two forms of a prompt", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const rollout = (type: string, payload: object) => ({ timestamp: "2026-04-05T10:00:00.000Z", type, payload });
  const message = (role: string, said: string) => rollout("response_item", { type: "message", role, content: [{ text: said }] });
  const prompt = (id: string, said: string) =>
    rollout("event_msg", { type: "item_completed", item: { type: "UserMessage", id, content: text(said) } });
  const output = rollout("response_item", { type: "function_call_output", output: "x".repeat(1_100_000) });
  const folder = work.at("sessions/2026/04/05");
  mkdirSync(folder, { recursive: true });
  const id = "019a0b5e-8e1c-7f0a-8c58-9d352f8f5a6f";
  writeFileSync(
    `${folder}/rollout-2026-04-05T10-00-00-${id}.jsonl`,
    lines(
      rollout("session_meta", { id, cwd: "/srv/ada/shop", cli_version: "0.171.0" }),
      message("developer", "<permissions instructions>"),
      message("user", "<environment_context>\n</environment_context>"),
      prompt("p-1", "Fix the cart."),
      message("assistant", "I look."),
      output,
      message("assistant", "Fixed."),
      prompt("p-2", "Thanks"),
      output,
      rollout("event_msg", { type: "user_message", message: "Thanks" }),
      message("assistant", "Welcome."),
      ...["And then?", "And after that?"].flatMap((said) => [
        rollout("event_msg", { type: "user_message", message: said }),
        message("assistant", `Of ${said}`),
      ]),
    ),
  );
  const command = ["import", "--from", "codex", "--data-dir", cairn.dataDirectory, "--user", "ada"];
  const environment = { CODEX_HOME: work.path };
  expect(await runCairn(command, { environment })).toEqual(succeeded(/^Imported 4 turns, .*; 1 session new\.\n$/));
  expect(await runCairn([...command, "--project=/srv/ada"], { environment })).toEqual(succeeded(/There already: 4 turns\.\n$/));
  expect(await runCairn([...command, "--project=/srv/a"], { environment })).toEqual(succeeded("Imported 0 turns; 0 sessions new.\n"));
  const turns = await turnsOf(cairn, `code:codex:${id}`);
  expect(saidIn(turns)).toEqual([
    ["Fix the cart.", "I look.\n\nFixed."],
    ["Thanks", "Welcome."],
    ["And then?", "Of And then?"],
    ["And after that?", "Of And after that?"],
  ]);
  expect(turns.map(({ external_id: name }) => name).slice(0, 2)).toEqual(["p-1", "p-2"]);
});

test("a year that was imported is found by what was said, and shown at its own times", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const months = Array.from({ length: 12 }, (_, i) => i + 1).filter((month) => month !== 12);
  const said = ["ferry timetable", "tax return", "bread recipe", "bicycle chain", "wedding guests", "printer driver", "garden fence"];
  const year = months.flatMap((month) =>
    day(month, `A question about the ${said[month % said.length]}, number ${month}`, `Answer ${month}.`),
  );
  writeFileSync(work.at(`${SESSION}.jsonl`), lines(...year));
  expect(await importFrom(cairn, [work.at(`${SESSION}.jsonl`)])).toEqual(succeeded(/^Imported 11 turns, from 2026-01-05.* to 2026-11-05/));

  const turns = await turnsOf(cairn);
  expect(turns.map(({ occurred_at: at }) => at.slice(0, 7))).toEqual(months.map((month) => `2026-${String(month).padStart(2, "0")}`));
  const [session] = await cairn.all("/v1/sessions");
  expect(session).toMatchObject({ occurred_at: "2026-01-05T10:00:00.000Z", ttl_expires_at: null, turn_count: 11 });
  const found = await until("the turns to be indexed", async () => {
    const { data } = await cairn.ok(cairn.post("/v1/turns/search", { query: "printer driver", user_id: "ada", threshold: 0.5 }));
    return data.length === 0 ? undefined : data;
  });
  expect(found[0].occurred_at).toBe("2026-05-05T10:00:00.000Z");
  const timeline = await cairn.ok(cairn.get(`/v1/sessions/${session.id}/timeline`));
  expect(JSON.stringify(timeline)).toContain("2026-05-05T10:00:00.000Z");
});

test("an import that is killed and runs again leaves nothing out and nothing twice; the turn that an agent is at waits", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const path = work.at(`${SESSION}.jsonl`);
  const count = 1_500;
  const at = (i: number) => new Date(Date.UTC(2025, 0, 1) + i * 60_000).toISOString();
  const all = Array.from({ length: count }, (_, i) => [user(`u-${i}`, at(i), `Question ${i}`), assistant(at(i), text(`Answer ${i}`))]);
  writeFileSync(path, lines(...all.flat()));
  const args = ["import", "--from", "claude-code", "--data-dir", cairn.dataDirectory, "--user", "ada", path];
  const child = Bun.spawn([await buildBinary(), ...args], { env: {}, stdout: "ignore", stderr: "ignore" });
  const stored = () => cairn.ok(cairn.get("/v1/sessions")).then(({ data }) => data[0]?.turn_count ?? 0);
  await until("a part to be stored", async () => (await stored()) > 0);
  child.kill("SIGKILL");
  await child.exited;

  const now = new Date().toISOString();
  appendFileSync(path, lines(user("u-now", now, "Still at it?"), assistant(now, text("I"))) + '{"type":"assis');
  expect(await importFrom(cairn, [path])).toEqual(succeeded(/Left for the next time.*: the last turn of 1 transcript\.\nSkipped 1 record/));
  const turns = await turnsOf(cairn);
  expect(saidIn(turns)).toEqual(Array.from({ length: count }, (_, i) => [`Question ${i}`, `Answer ${i}`]));
  expect(new Set(turns.map(({ external_id: name }) => name)).size).toBe(count);
});

test("what does not fit is skipped and its place named; --strict stops there, and what is no transcript at all is refused", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const path = work.at(`${SESSION}.jsonl`);
  const odd = ["not JSON", "[1]", `{"type":"user","uuid":"long","message":{"content":"${"x".repeat(17_000_000)}"}}`];
  const clock = user("u-2", "3026-01-05T10:00:00.000Z", "From the future, with half a \ud83d pair");
  writeFileSync(path, lines(...day(1, "One", "Uno."), ...odd, clock, assistant("2026-02-05T10:00:00.000Z", text("Dos."))));

  const strict = await importFrom(cairn, [path], "--strict");
  expect(strict).toMatchObject({
    code: 1,
    stdout: "",
    stderr: `cairn: ${path}, line 3: is not JSON. What stands before it is imported.\n`,
  });
  expect(await importFrom(cairn, [path], "--report", work.at("report"))).toEqual(
    succeeded(new RegExp(`Skipped 3 records\\. The first: ${path}, line 3: is not JSON\n$`)),
  );
  expect(
    readFileSync(work.at("report"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { place: `${path}, line 3`, reason: "is not JSON" },
    { place: `${path}, line 4`, reason: "is not an object" },
    { place: `${path}, line 5`, reason: "longer than 16 MiB" },
  ]);
  const turns = await turnsOf(cairn);
  expect(saidIn(turns)).toEqual([
    ["One", "Uno."],
    ["From the future, with half a \ufffd pair", "Dos."],
  ]);
  expect(turns[1].occurred_at).toBeUndefined();

  writeFileSync(work.at("other.jsonl"), lines({ hello: "world" }));
  const refused = async (said: RegExp, ...paths: string[]) =>
    expect(await importFrom(cairn, paths)).toEqual({ code: 1, stdout: "", stderr: expect.stringMatching(said) });
  await refused(/no transcript of Claude Code: .*other\.jsonl, line 1, names no session/, work.at("other.jsonl"));
  mkdirSync(work.at("empty"));
  await refused(/no transcript of Claude Code: .*empty has no file that ends with \.jsonl/, work.at("empty"));
  await refused(/none cannot be read: /, work.at("none"));
  expect(await runCairn(["import", "--from", "diary", "--data-dir", cairn.dataDirectory])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--from must be one of/),
  });
  expect(await runCairn(["import", "--from=claude-code", "--data-dir", cairn.dataDirectory, "--since", "soon", path])).toMatchObject({
    code: 2,
  });
});

test("a mark of byte order, ends of lines of Windows and bytes that are no UTF-8 are read; another system's directory is below none of this one", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const [question, answer] = day(1, "Shall we?", "Yes \ufffd");
  const odd = `\ufeff${lines(question, answer)
    .replaceAll("\n", "\r\n\r\n")
    .replace("/srv/ada/shop", String.raw`C:\\shop`)}`;
  const bytes = Buffer.from(odd);
  const at = bytes.indexOf("\ufffd");
  const invalid = Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff]), bytes.subarray(at + 3)]);
  writeFileSync(work.at(`${SESSION}.jsonl`), invalid);
  writeFileSync(work.at("1.jsonl"), "");
  const paths = [work.path];
  expect(await importFrom(cairn, paths, "--project", process.cwd())).toEqual(succeeded("Imported 0 turns; 0 sessions new.\n"));
  // A line that does not fit ends it after what stands before.
  writeFileSync(work.at(`${SESSION}.jsonl`), Buffer.concat([invalid, Buffer.from(lines(...day(2, "And now?", "No."), "{"))]));
  expect(await importFrom(cairn, paths, "--strict")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is not JSON\. What stands/),
  });
  expect(saidIn(await turnsOf(cairn))).toEqual([["Shall we?", "Yes \ufffd"]]);
  const all = await importFrom(cairn, paths);
  expect(all).toEqual(succeeded(/^Imported 1 turn, .*; 0 sessions new\.\nThere already: 1 turn\.\nSkipped 1 record\./));
});

test("without a server the import serves the data directory itself; a dry run and a removal make none", async () => {
  using work = scratchDirectory();
  const path = work.at(`${SESSION}.jsonl`);
  writeFileSync(path, lines(...day(1, "One", "Uno.")));
  const args = ["import", "--from", "claude-code", "--data-dir", work.at("data"), "--user", "ada", path];
  expect(await runCairn([...args, "--dry-run"])).toEqual(succeeded(/^Would import 1 turn, /));
  mkdirSync(work.at("shop"));
  symlinkSync(work.at("shop"), work.at("link"));
  writeFileSync(work.at("linked.jsonl"), lines(...day(1, "One", "Uno.")).replaceAll("/srv/ada/shop", realpathSync(work.at("shop"))));
  const linked = [...args, work.at("linked.jsonl"), "--dry-run", "--project", work.at("link")];
  expect(await runCairn(linked)).toEqual(succeeded(/^Would import 1 turn, /));
  expect(await runCairn([...args, "--remove"])).toEqual(succeeded("Removed 0 sessions of earlier imports.\n"));
  expect(existsSync(work.at("data"))).toBe(false);
  expect(await runCairn(args)).toEqual(succeeded(/^Imported 1 turn, .*; 1 session new\.\n$/));
  expect(await runCairn(args)).toEqual(succeeded(/There already: 1 turn\.\n$/));
});

const MB = 1_000_000;

longRounds(undefined, test)?.(
  "1 GB of transcript is imported within 200 MB of memory",
  async () => {
    using work = scratchDirectory();
    await using cairn = await startProcess();
    const path = work.at(`${SESSION}.jsonl`);
    const file = Bun.file(path).writer();
    const filler = "The stock is counted every night. ".repeat(60);
    let [bytes, count] = [0, 0];
    for (; bytes < 1_000_000_000; count++) {
      const at = new Date(Date.UTC(2025, 0, 1) + count * 1_000).toISOString();
      const result = user(`r-${count}`, at, [{ type: "tool_result", content: "x".repeat(40_000) }]);
      const turn = lines(user(`u-${count}`, at, `Question ${count}`), result, assistant(at, text(`Answer ${count} ${filler}`)));
      void file.write(turn);
      bytes += Buffer.byteLength(turn);
      if (count % 100 === 0) await file.flush();
    }
    await file.end();
    const args = ["import", "--from", "claude-code", "--data-dir", cairn.dataDirectory, "--user", "ada", path];
    const child = Bun.spawn([await buildBinary(), ...args], { env: {}, stdout: "pipe", stderr: "inherit" });
    expect(await new Response(child.stdout).text()).toStartWith(`Imported ${count} turns`);
    await child.exited;
    const used = (child.resourceUsage()?.maxRSS ?? Number.POSITIVE_INFINITY) / MB;
    console.log(`An import of ${Math.round(bytes / MB)} MB took ${Math.round(used)} MB of memory.`);
    expect(used).toBeLessThan(200);
  },
  600_000,
);
