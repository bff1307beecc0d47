/**
 * LongMemEval as published (`longmemeval_s.json`, `_m`, `_oracle`, cleaned or not): an array of questions, each with conversations of
 * its own.
 *
 * A conversation that answers is named by its id; of its messages those that have the evidence carry `has_answer`. A question whose id
 * ends with `_abs` has no answer.
 *
 * @module
 */
import type { Haystack } from "../haystack.ts";
import type { Part } from "./part.ts";

export function longMemEval(record: Part): Haystack {
  const id = record.member("question_id").id();
  const names = record.member("haystack_session_ids");
  const sessions = record.member("haystack_sessions").items();
  const ids = names.items().map((name) => name.id());
  if (ids.length !== sessions.length) names.refuse(`as long as haystack_sessions, which has ${sessions.length} items`);
  const evidence: string[] = [];
  const conversations = sessions.map((session, s) => ({
    id: ids[s]!,
    messages: session.items().map((message, m) => {
      const name = `${ids[s]}:${m}`;
      if (message.member("has_answer").value === true) evidence.push(name);
      return { id: name, text: message.member("content").text() };
    }),
  }));
  const isUnanswerable = id.endsWith("_abs");
  const question = {
    id,
    text: record.member("question").text(),
    category: isUnanswerable ? "abstention" : record.member("question_type").text(),
    evidence,
    conversations: record
      .member("answer_session_ids")
      .items()
      .map((name) => name.id()),
    isUnanswerable,
  };
  return { id, language: "", conversations, questions: [question] };
}
