/**
 * `cairn bench recall` of the executable: every form of a benchmark, files that do not fit, and a run that goes on after `kill -9`.
 *
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { beamChat, beamQuestions, locomo, longMemEval, plain, realTalk, writeJson } from "../support/benchmarks.ts";
import { buildBinary } from "../support/binary.ts";
import { KEY, runCairn, scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";

const scratch = scratchDirectory();
let started: Promise<CairnProcess> | undefined;
const server = () => (started ??= startProcess());
afterAll(async () => {
  await (await started)?.[Symbol.asyncDispose]();
  scratch[Symbol.dispose]();
});

/** Runs it on the server of this file. */
async function benchAt(args: readonly string[], environment: Record<string, string> = { CAIRN_API_KEY: KEY }) {
  return runCairn(["bench", "recall", ...args, "--url", (await server()).address], { environment });
}

const FILES = {
  "longmemeval_s.json": longMemEval(),
  "locomo10.json": locomo(),
  "Chat_1_Ada_Ilse.json": realTalk(),
  "chats/1/chat.json": beamChat(),
  "chats/1/probing_questions/probing_questions.json": beamQuestions(),
  "chats/1/plan-0/chat.json": [],
  "huge/9/chat.json": [{ "plan-1": beamChat() }],
  "huge/9/probing_questions/probing_questions.json": beamQuestions(),
  "own.json": plain(),
};
for (const [name, content] of Object.entries(FILES)) writeJson(scratch.at(name), content);

const all = (questions: number, conversations = questions) => ({ name: "all", questions, conversations });
const one = (name: string) => ({ name, questions: 1, conversations: 1 });
const FORMS: readonly [string, object][] = [
  [
    "longmemeval_s.json",
    {
      format: "longmemeval",
      haystacks: 2,
      questions: 2,
      messages: 6,
      groups: [all(1), one("single-session-user")],
      unanswerable: { abstention: { questions: 1 } },
      missing: { left_out: 0, partly: 0 },
    },
  ],
  [
    "locomo10.json",
    {
      format: "locomo",
      haystacks: 1,
      questions: 5,
      messages: 4,
      groups: [all(3), one("single-hop"), one("multi-hop"), one("temporal")],
      unanswerable: { adversarial: { questions: 1 } },
      missing: { left_out: 1, partly: 1 },
    },
  ],
  [
    "Chat_1_Ada_Ilse.json",
    {
      format: "realtalk",
      haystacks: 1,
      questions: 3,
      messages: 3,
      groups: [all(3), one("multi-hop"), one("commonsense"), one("temporal")],
      unanswerable: {},
      missing: { left_out: 0, partly: 0 },
    },
  ],
  ...["chats", "huge"].map((directory): [string, object] => [
    directory,
    {
      format: "beam",
      haystacks: 1,
      questions: 3,
      messages: 3,
      groups: [all(2), one("information_extraction"), one("knowledge_update")],
      unanswerable: { abstention: { questions: 1 } },
      missing: { left_out: 0, partly: 1 },
    },
  ]),
  [
    "own.json",
    {
      format: "plain",
      haystacks: 2,
      questions: 6,
      messages: 5,
      groups: [
        all(5),
        { name: "direct", questions: 2, conversations: 2 },
        { name: "other", questions: 2, conversations: 2 },
        one("question"),
        { name: "language en", questions: 4, conversations: 4 },
        one("language de"),
      ],
      unanswerable: { question: { questions: 1 } },
      missing: { left_out: 0, partly: 0 },
    },
  ],
];

test.each(FORMS)("%s is known by its form, and every question and its evidence is counted", async (name, expected) => {
  const { code, stdout, stderr } = await benchAt([scratch.at(name), "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const { groups, unanswerable, ...found } = JSON.parse(stdout);
  expect({
    ...found,
    groups: groups.map(({ name: group, messages, conversations }: any) => ({
      name: group,
      questions: messages.questions,
      conversations: conversations.questions,
    })),
    unanswerable: Object.fromEntries(Object.entries<any>(unanswerable).map(([category, { questions }]) => [category, { questions }])),
  }).toMatchObject(expected);
  // The texts share words with their questions, and with nothing else.
  expect(groups[0].messages).toMatchObject({ hit_at_1: 1, mrr: 1, recall_at: { "5": 1, "50": 1 } });
  expect(groups[0].conversations).toMatchObject({ hit_at_1: 1 });
  expect((await (await server()).all("/v1/sessions")).length).toBe(0);
});

test.each(["words", "meaning"])("messages as turns are found by %s, and each question is a line of JSON", async (kind) => {
  const path = scratch.at(`${kind}.jsonl`);
  const flags = ["--store-as", kind, "--limit", "3", "--questions", "2", "--results", path];
  const { code, stdout } = await benchAt([scratch.at("own.json"), ...flags]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^cairn \S+, plain: 1 haystack and 2 questions; messages as turns, found by .*; 3 results asked for\n/);
  expect(stdout).toMatch(/\nmessages +n +hit@1 +MRR +nDCG@10\nall +2 +100\.0 +100\.0 +100\.0\n/);
  expect(stdout).toContain("memory of the server: not known of a server that is named with --url\n");
  const [header, ...lines] = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(header).toMatchObject({ benchmark: "recall", format: "plain", stored_as: kind, limit: 3, run: expect.any(String) });
  expect(lines.map(({ found, tokens, ms, ...line }) => ({ ...line, first: found[0], hasTokens: tokens > 0, hasTime: ms > 0 }))).toEqual(
    [0, 1].map((i) => ({
      haystack: 0,
      question: i,
      id: `corpus 1 ${i + 1}`,
      category: "direct",
      language: "en",
      unanswerable: false,
      relevant: [`m${i}`],
      relevant_conversations: ["memories"],
      missing: [],
      first: { message: `m${i}`, conversation: "memories", score: expect.any(Number) },
      hasTokens: true,
      hasTime: true,
    })),
  );
});

test("a file that does not fit is refused before anything is stored", async () => {
  const file = scratch.at("slip.json");
  const [first] = longMemEval();
  writeJson(file, [first, { ...first, question: 7 }]);
  const ended = await runCairn(["bench", "recall", file, "--dir", scratch.path, "--results", scratch.at("none.jsonl")]);
  expect(ended).toEqual({ code: 1, stdout: "", stderr: `cairn: ${file}, record 2: question must be a text; got 7.\n` });
  expect(readdirSync(scratch.path).filter((name) => /^(cairn-bench-|none)/.test(name))).toEqual([]);
});

test("wrong flags are refused with what may stand there", async () => {
  const file = scratch.at("own.json");
  const refused: readonly [readonly string[], string][] = [
    [[], "cairn bench is one of recall and load"],
    [["speed"], "cairn bench is one of recall and load; got speed"],
    [["recall"], "cairn bench recall needs the files of a benchmark, or their directory"],
    [["recall", file, "--format", "csv"], "--format must be one of longmemeval, locomo, realtalk, plain, beam; got csv"],
    [["recall", file, "--store-as", "text"], "--store-as must be one of memories, words, meaning; got text"],
    [["recall", file, "--limit", "51"], "--limit must be a whole number from 1 to 50; got 51"],
    [["recall", file, "--questions", "0"], "--questions must be a whole number from 1 to 1000000; got 0"],
    [["recall", file, "--concurrency", "x"], "--concurrency must be a whole number from 1 to 64; got x"],
    [["recall", file, "--data-dir", "x"], "cairn bench recall takes no --data-dir: its server is its own, or that of --url"],
    [["recall", file, "--url", "http://127.0.0.1:1"], "--url needs CAIRN_API_KEY: a key of that server"],
  ];
  for (const [args, said] of refused) {
    const { code, stderr } = await runCairn(["bench", ...args]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: `cairn: ${said}\nTry: cairn bench --help\n` });
  }
  // The format that is named says what does not fit.
  expect((await benchAt([file, "--format", "locomo"])).stderr).toBe(
    `cairn: ${file}, record 1: sample_id must be a text or number; got nothing.\n`,
  );
  expect((await benchAt([file], { CAIRN_API_KEY: "crn_wrong" })).stderr).toContain("cairn: ");
});

const MANY = {
  corpora: [0, 1].map((corpus) => ({
    id: `c${corpus}`,
    memories: [{ id: "m", text: "The ferry to Rauma leaves at noon." }],
    queries: Array.from({ length: 60 }, (_, i) => ({ text: `When does the ferry leave on day ${i}?`, relevant: ["m"] })),
  })),
};

/** Starts it, and kills it once it has written some results. */
async function killed(args: readonly string[], results: string, environment: Record<string, string>): Promise<string> {
  const child = Bun.spawn([await buildBinary(), "bench", "recall", ...args, "--results", results], {
    env: environment,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  await until("some results", () => existsSync(results) && readFileSync(results, "utf8").split("\n").length > 5);
  child.kill("SIGKILL");
  await child.exited;
  return readFileSync(results, "utf8");
}

test.each(["a store of its own", "a server"])("after kill -9 it goes on where it was, on %s, and leaves nothing", async (where) => {
  const file = scratch.at("many.json");
  const results = scratch.at(`${where}.jsonl`);
  writeJson(file, MANY);
  const isOwn = where === "a store of its own";
  const cairn = isOwn ? undefined : await server();
  const args = [file, ...(cairn === undefined ? ["--dir", scratch.path] : ["--url", cairn.address])];
  const environment = cairn === undefined ? {} : { CAIRN_API_KEY: KEY };
  const before = await killed(args, results, environment);
  // Its server ends with it, and takes the store along.
  const stores = () => readdirSync(scratch.path).filter((name) => name.startsWith("cairn-bench-"));
  await until("the store is gone", () => stores().length === 0);
  appendFileSync(results, '{"haystack":1,"quest');

  const other = await runCairn(["bench", "recall", ...args, "--limit", "7", "--results", results], { environment });
  expect(other).toEqual({
    code: 1,
    stdout: "",
    stderr: `cairn: ${results} has the results of another run: limit is 50 there, and 7 now. Name another file, or replace it with --force.\n`,
  });
  const { code, stdout, stderr } = await runCairn(["bench", "recall", ...args, "--results", results, "--json"], { environment });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const whole = before.slice(0, before.lastIndexOf("\n") + 1);
  const after = readFileSync(results, "utf8");
  expect(after.startsWith(whole)).toBe(true);
  const lines = after.trimEnd().split("\n").slice(1);
  const asked = lines.map((line) => JSON.parse(line)).map(({ haystack, question }) => 60 * haystack + question);
  expect(asked.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 120 }, (_, i) => i));
  expect(JSON.parse(stdout)).toMatchObject({
    questions: 120,
    before: whole.split("\n").length - 2,
    groups: [{ name: "all", messages: { questions: 120 } }, {}],
    memory_mb: isOwn ? { own: expect.any(Number) } : null,
  });
  expect(stores()).toEqual([]);
  if (cairn !== undefined) expect(await cairn.all("/v1/sessions")).toEqual([]);

  // Nothing is left to ask, and no server is started for it.
  const again = await runCairn(["bench", "recall", file, "--results", results, "--dir", "/nowhere"], { environment: {} });
  expect(again.stdout).toContain("\n120 questions were answered by an earlier run\n");
});

test("a file of something else is no file of results, and --force replaces it", async () => {
  const results = scratch.at("other.txt");
  writeFileSync(results, "my notes\n");
  const args = [scratch.at("own.json"), "--questions", "1", "--results", results];
  expect((await benchAt(args)).stderr).toBe(
    `cairn: ${results} is not a file of results of cairn bench recall. Name another one, or replace it with --force.\n`,
  );
  expect(readFileSync(results, "utf8")).toBe("my notes\n");
  expect((await benchAt([...args, "--force"])).code).toBe(0);
  expect(readFileSync(results, "utf8").trimEnd().split("\n").length).toBe(2);
});
