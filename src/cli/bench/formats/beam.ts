/**
 * BEAM as published in its repository: a directory for each chat, with `chat.json` and `probing_questions/probing_questions.json`.
 *
 * A chat is an array of batches (of 10M tokens an array of plans, each with batches), a batch has turns, a turn messages with a number;
 * questions stand under the ability that they test, and name the numbers of the messages with their evidence.
 *
 * @module
 */
import type { Haystack, Message, Question } from "../haystack.ts";
import type { Part } from "./part.ts";

export const CHAT = "chat.json";
export const QUESTIONS = "probing_questions/probing_questions.json";
const UNANSWERABLE = "abstention";

/** @param name - of the chat */
export function beam(name: string, chat: Part, questions: Part): Haystack {
  const batches = chat.items().flatMap(batchesOf);
  const conversations = batches.map((batch, i) => ({ id: `batch ${i + 1}`, messages: messagesOf(batch) }));
  return { id: name, language: "", conversations, questions: questions.names().flatMap((ability) => questionsOf(ability, questions)) };
}

/** A batch, or the batches of a plan: `{ "plan-3": [ … ] }`. */
function batchesOf(item: Part): Part[] {
  const plans = item.names().filter((name) => /^plan-\d+$/.test(name));
  return plans.length === 0 ? [item] : plans.flatMap((plan) => item.member(plan).items());
}

function messagesOf(batch: Part): Message[] {
  return batch
    .member("turns")
    .items()
    .flatMap((turn) => turn.items().map((message) => ({ id: message.member("id").id(), text: message.member("content").text() })));
}

function questionsOf(ability: string, questions: Part): Question[] {
  return questions
    .member(ability)
    .items()
    .map((one, i) => ({
      id: `${ability} ${i + 1}`,
      text: one.member("question").text(),
      category: ability,
      evidence: ability === UNANSWERABLE ? [] : Array.from(new Set(numbersIn(one.member("source_chat_ids")))),
      conversations: [],
      isUnanswerable: ability === UNANSWERABLE,
    }));
}

/** The numbers stand in arrays, or in arrays by what they are: `{ "original_info": [86], "updated_info": [114] }`. */
function numbersIn(part: Part): string[] {
  if (part.isMissing) return [];
  if (typeof part.value === "number") return [part.id()];
  const inner = Array.isArray(part.value) ? part.items() : part.names().map((name) => part.member(name));
  return inner.flatMap(numbersIn);
}
