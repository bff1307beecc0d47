/**
 * The form of Cairn's own data, which is specified in `docs/reference/benchmark-format.md`: corpora with memories or conversations, and
 * queries that name what answers them.
 *
 * @module
 */
import type { Conversation, Haystack, Question } from "../haystack.ts";
import type { Part } from "./part.ts";

const CATEGORY = "question";

/** @param number - of the corpus in its file */
export function plain(corpus: Part, number: number): Haystack {
  const language = corpus.member("language");
  return {
    id: idOf(corpus, `corpus ${number}`),
    language: language.isMissing ? "" : language.text(),
    conversations: conversationsOf(corpus),
    questions: corpus.member("queries").items().map(questionOf),
  };
}

function idOf(part: Part, otherwise: string): string {
  const id = part.member("id");
  return id.isMissing ? otherwise : id.id();
}

function conversationsOf(corpus: Part): Conversation[] {
  const conversations = corpus.member("conversations");
  if (!corpus.member("memories").isMissing || conversations.isMissing)
    return [{ id: "memories", messages: corpus.member("memories").items().map(messageOf) }];
  return conversations.items().map((one) => ({ id: one.member("id").id(), messages: one.member("messages").items().map(messageOf) }));
}

const messageOf = (message: Part) => ({ id: message.member("id").id(), text: message.member("text").text() });

function questionOf(query: Part, i: number): Question {
  const category = query.member("category");
  const namesIn = (part: Part) => part.items().map((name) => name.id());
  const evidence = namesIn(query.member("relevant"));
  const named = query.member("conversations");
  const conversations = named.isMissing ? [] : namesIn(named);
  return {
    id: idOf(query, String(i + 1)),
    text: query.member("text").text(),
    category: category.isMissing ? CATEGORY : category.text(),
    evidence,
    conversations,
    isUnanswerable: evidence.length === 0 && conversations.length === 0,
  };
}
