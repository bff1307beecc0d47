/**
 * Turns in the transcript of Gemini CLI, a chat. Pure.
 *
 * A message of the model is written again as it grows, by the same id. Lines with `$set` repeat a whole chat when it is taken up again.
 *
 * @module
 */
import { eachLine, isObject, saidIn, SeenTurns, textIn, textOf, toolNamed, type Seen } from "./transcript.ts";

/** Text that the agent puts before the first prompt. */
const CONTEXT = /^\s*<session_context>/;

/** @param bytes - whole lines, of which the first need not be a prompt */
export function geminiTurnsIn(bytes: Uint8Array): Seen {
  const turns = new SeenTurns();
  const unread = eachLine(bytes, (line, from) => {
    const { type, content } = line;
    const id = textOf(line["id"]);
    if (id === undefined) return;
    if (type === "gemini") {
      const calls = Array.isArray(line["toolCalls"]) ? line["toolCalls"].filter(isObject) : [];
      const tools = calls.flatMap(({ name, args }) => (typeof name === "string" ? [toolNamed(name, args)] : []));
      turns.answer({ id, text: textIn(content).trim(), tools, model: textOf(line["model"]) });
    }
    const text = type === "user" ? textIn(content) : "";
    const input = CONTEXT.test(text) ? "" : saidIn(text);
    if (input !== "") turns.prompt({ id, at: textOf(line["timestamp"]), input }, from);
  });
  return turns.seen(undefined, unread);
}
