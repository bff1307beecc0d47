/**
 * LoCoMo as published (`locomo10.json`, an array, or one of its objects), and REALTALK (a file for each chat), which took its form over.
 *
 * Two people talk in sessions `session_1`, `session_2` …; a message is named by its `dia_id`, and a question names those with its evidence.
 *
 * @module
 */
import type { Conversation, Haystack, Question } from "../haystack.ts";
import type { Part } from "./part.ts";

/** By the number that LoCoMo's own evaluation gives them. */
const LOCOMO_CATEGORIES = ["multi-hop", "temporal", "open-domain", "single-hop", "adversarial"];
const REALTALK_CATEGORIES = ["multi-hop", "temporal", "commonsense"];
/** Questions about what nobody said, though a message is named that invites the mistake. */
const UNANSWERABLE = "adversarial";
const SESSION = /^session_(\d+)$/;
/** Several names in one text, a range of them, and zeros before a number, as the published files have them. */
const NAMES = /D\s?0*(\d+):0*(\d+)(?:\s*-\s*D0*(\d+):0*(\d+))?/g;
const RANGE_MAX = 100;

export function locomo(record: Part): Haystack {
  return {
    id: record.member("sample_id").id(),
    language: "",
    conversations: conversationsOf(record.member("conversation"), (message) => message.member("text").text()),
    questions: questionsOf(record.member("qa"), LOCOMO_CATEGORIES),
  };
}

/** @param file - its name without the ending, since a chat has no other */
export function realTalk(record: Part, file: string): Haystack {
  record.member("name").member("speaker_1").text();
  return {
    id: file,
    language: "",
    conversations: conversationsOf(record, (message) => {
      const text = message.member("clean_text");
      return text.isMissing ? message.member("text").text() : text.text();
    }),
    questions: questionsOf(record.member("qa"), REALTALK_CATEGORIES),
  };
}

function conversationsOf(all: Part, textOf: (message: Part) => string): Conversation[] {
  const sessions = all.names().filter((name) => SESSION.test(name));
  if (sessions.length === 0) all.member("session_1").refuse("an array of messages");
  return sessions.map((name) => ({
    id: `D${SESSION.exec(name)![1]}`,
    messages: all
      .member(name)
      .items()
      .map((message) => {
        const caption = message.member("blip_caption");
        const shown = caption.isMissing ? "" : ` [image: ${caption.text()}]`;
        return { id: message.member("dia_id").text(), text: `${message.member("speaker").text()}: ${textOf(message)}${shown}` };
      }),
  }));
}

function questionsOf(all: Part, categories: readonly string[]): Question[] {
  return all.items().map((one, i) => {
    const number = one.member("category");
    const category = categories[Number(number.id()) - 1] ?? number.refuse(`a number from 1 to ${categories.length}`);
    const evidence = one.member("evidence");
    const named = evidence.isMissing ? [] : evidence.items().flatMap((item) => namesIn(item.text()));
    return {
      id: String(i + 1),
      text: one.member("question").text(),
      category,
      evidence: category === UNANSWERABLE ? [] : Array.from(new Set(named)),
      conversations: [],
      isUnanswerable: category === UNANSWERABLE,
    };
  });
}

/** Names of messages in a text; the text itself where there is none in it, so that it counts as missing. */
function namesIn(text: string): string[] {
  const found = Array.from(text.matchAll(NAMES)).flatMap(([, session, first, lastSession, last]) => {
    const count = lastSession === session ? Math.min(RANGE_MAX, Number(last) - Number(first) + 1) : 1;
    const names = Array.from({ length: Math.max(1, count) }, (_, i) => `D${session}:${Number(first) + i}`);
    return lastSession === undefined || lastSession === session ? names : [...names, `D${lastSession}:${last}`];
  });
  return found.length > 0 ? found : [text];
}
