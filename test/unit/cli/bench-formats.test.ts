/**
 * Forms of benchmarks: of a file that does not fit the first place is named.
 *
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { haystacksOf, sourceOf } from "../../../src/cli/bench/formats/formats.ts";
import { messageOf } from "../../../src/lib/errors.ts";
import { beamChat, beamQuestions, locomo, longMemEval, plain, realTalk, writeJson } from "../../support/benchmarks.ts";
import { scratchDirectory } from "../../support/process.ts";

const scratch = scratchDirectory();
afterAll(() => scratch[Symbol.dispose]());

/** What is said of a file or directory; nothing where it fits. */
async function saidOf(path: string): Promise<string> {
  try {
    for await (const _ of haystacksOf(await sourceOf([path], undefined)));
    return "";
  } catch (error) {
    return messageOf(error).replaceAll(path, "FILE");
  }
}

/** Each has one slip. @returns the place that is named */
const SLIPS: readonly [string, unknown, string][] = [
  ["not JSON", "{ no", "FILE, record 1: the file ends within it."],
  ["empty", "", "There is no record in FILE."],
  ["another form", [{ title: "x", rows: [] }], "FILE, record 1 has none of the forms that are known: it has title, rows. "],
  ["an array of numbers", [1], "FILE, record 1: is not an object."],
  ["cut off", JSON.stringify(locomo()).slice(0, -3), "FILE, record 1: the file ends within it."],
  ...slipsOf(longMemEval, [
    [([, second]) => (second.haystack_sessions[1][0].content = 3), "record 2: haystack_sessions[1][0].content must be a text; got 3."],
    [([first]) => delete first.answer_session_ids, "record 1: answer_session_ids must be an array; got nothing."],
    [
      ([first]) => first.haystack_session_ids.pop(),
      'record 1: haystack_session_ids must be as long as haystack_sessions, which has 2 items; got ["answer_1"].',
    ],
  ]),
  ...slipsOf(locomo, [
    [([only]) => (only.qa[2].evidence[0] = { id: 1 }), 'record 1: qa[2].evidence[0] must be a text; got {"id":1}.'],
    [([only]) => (only.qa[1].category = 9), "record 1: qa[1].category must be a number from 1 to 5; got 9."],
    [([only]) => (only.conversation.session_2 = "x"), 'record 1: conversation.session_2 must be an array; got "x".'],
    [([only]) => (only.conversation = {}), "record 1: conversation.session_1 must be an array of messages; got nothing."],
  ]),
  ...slipsOf(realTalk, [
    [(chat) => delete chat.session_1[1].clean_text, "record 1: session_1[1].text must be a text; got nothing."],
    [(chat) => (chat.name = 1), "record 1: name must be an object; got 1."],
  ]),
  ...slipsOf(plain, [
    [({ corpora }) => delete corpora[1].queries[0].relevant, "record 2: queries[0].relevant must be an array; got nothing."],
    [({ corpora }) => delete corpora[0].memories[3].id, "record 1: memories[3].id must be a text or number; got nothing."],
  ]),
];

function slipsOf(make: () => any, slips: readonly [(value: any) => unknown, string][]): [string, unknown, string][] {
  return slips.map(([slip, said]) => {
    const value = make();
    slip(value);
    return [said, value, `FILE, ${said}`];
  });
}

test.each(SLIPS)("the first place that does not fit is named: %s", async (_, content, expected) => {
  const file = scratch.at("slip.json");
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  expect(await saidOf(file)).toStartWith(expected);
});

test("the example of the specification is read as it says", async () => {
  const page = readFileSync(join(import.meta.dir, "../../../src/docs/reference/benchmark-format.md"), "utf8");
  const file = scratch.at("example.json");
  writeFileSync(file, /```json\n([^]*?)```/.exec(page)![1]!);
  const source = await sourceOf([file], undefined);
  expect(await Array.fromAsync(haystacksOf(source))).toEqual([
    {
      id: "support",
      language: "en",
      conversations: [
        {
          id: "c1",
          messages: [
            { id: "m1", text: "Ada: My accordion is in the workshop." },
            { id: "m2", text: "Ilse: Until Friday?" },
          ],
        },
      ],
      questions: [
        { id: "q1", text: "Where is Ada's accordion?", category: "place", evidence: ["m1"], conversations: [], isUnanswerable: false },
        { id: "q2", text: "Which dentist does Ada go to?", category: "place", evidence: [], conversations: [], isUnanswerable: true },
      ],
    },
  ]);
});

test("of BEAM the file that does not fit is named, and one that is missing", async () => {
  const directory = scratch.at("beam");
  const questions = `${directory}/probing_questions/probing_questions.json`;
  writeJson(`${directory}/chat.json`, beamChat());
  expect(await saidOf(directory)).toBe("FILE/chat.json has no questions: there is no FILE/probing_questions/probing_questions.json.");
  writeJson(questions, { summarization: [{ question: 1 }] });
  expect(await saidOf(directory)).toBe("FILE/probing_questions/probing_questions.json: summarization[0].question must be a text; got 1.");
  writeJson(questions, beamQuestions());
  writeJson(`${directory}/chat.json`, [{ turns: [[{ id: {}, content: "x" }]] }]);
  expect(await saidOf(directory)).toBe("FILE/chat.json: [0].turns[0][0].id must be a text or number; got {}.");
  writeJson(`${directory}/chat.json`, beamChat());
  expect(await saidOf(directory)).toBe("");
});
