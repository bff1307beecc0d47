/**
 * Figures of `cairn bench recall`, against values calculated by hand.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { Figures } from "../../../src/cli/bench/figures.ts";
import type { Answer } from "../../../src/cli/bench/trial.ts";

function answer(found: readonly string[], relevant: readonly string[], more: Partial<Answer> = {}): Answer {
  return {
    haystack: 0,
    question: 0,
    id: "q",
    category: "c",
    language: "",
    unanswerable: false,
    relevant,
    relevant_conversations: Array.from(new Set(relevant.map((name) => name.charAt(0)))),
    missing: [],
    found: found.map((message, i) => ({ message, conversation: message.charAt(0), score: 1 - i / 20 })),
    tokens: 100,
    ms: 2,
    ...more,
  };
}

test("recall, reciprocal rank and discounted gain are those of the definition, for messages and for conversations", () => {
  const figures = new Figures(10);
  // Two of three that answer are found, second and sixth.
  figures.add(answer(["a1", "b1", "a2", "a3", "a4", "b2", "a5"], ["b1", "b2", "c1"]));
  const [all] = figures.summary.groups;
  expect(all!.messages).toEqual({
    questions: 1,
    hit_at_1: 0,
    recall_at: { "1": 0, "5": 1 / 3, "10": 2 / 3 },
    any_at: { "1": 0, "5": 1, "10": 1 },
    all_at: { "1": 0, "5": 0, "10": 0 },
    mrr: 1 / 2,
    ndcg_at_10: (1 / Math.log2(3) + 1 / Math.log2(7)) / (1 + 1 / Math.log2(3) + 1 / Math.log2(4)),
  });
  // Conversation a is found before b; c is not found.
  expect(all!.conversations).toMatchObject({ hit_at_1: 0, recall_at: { "1": 0, "5": 1 / 2 }, mrr: 1 / 2 });
});

test("questions without an answer, and without evidence that is there, are counted and in no mean", () => {
  const figures = new Figures(50);
  figures.add(answer(["a1"], ["a1"], { ms: 1, tokens: 10 }));
  figures.add(answer(["a1"], [], { missing: ["z9"], ms: 3, tokens: 30 }));
  figures.add(answer(["a1", "b1"], ["b1"], { missing: ["z9"], category: "d", ms: 2, tokens: 20 }));
  figures.add(answer(["a1"], [], { unanswerable: true, category: "none", ms: 4, tokens: 40 }));
  figures.add(answer([], [], { unanswerable: true, category: "none", ms: 5, tokens: 50 }));
  const { groups, ...rest } = figures.summary;
  expect(groups.map(({ name, messages }) => [name, messages.questions, messages.mrr])).toEqual([
    ["all", 2, 0.75],
    ["c", 1, 1],
    ["d", 1, 0.5],
  ]);
  expect(rest).toEqual({
    unanswerable: { none: { questions: 2, answered: 1 } },
    missing: { left_out: 1, partly: 1 },
    tokens: { mean: 30, p95: 50 },
    search_ms: { p50: 3, p95: 5 },
    results_at_threshold: 1,
  });
});

test("a conversation that is named answers, though none of its messages does", () => {
  const figures = new Figures(50);
  figures.add(answer(["a1", "b1"], [], { relevant_conversations: ["b"] }));
  const [all] = figures.summary.groups;
  expect([all!.messages.questions, all!.conversations.questions, all!.conversations.mrr]).toEqual([0, 1, 0.5]);
});

test("of no question all figures are 0", () => {
  expect(new Figures(50).summary).toMatchObject({ groups: [{ name: "all" }], search_ms: { p50: 0, p95: 0 }, tokens: { mean: 0 } });
});
