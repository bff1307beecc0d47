/**
 * Turns in the transcript of Copilot, a log of events, which VS Code writes in the same shape. Pure.
 *
 * @module
 */
import {
  eachLine,
  isObject,
  saidIn,
  SeenTurns,
  textIn,
  textOf,
  toolNamed,
  type JsonObject,
  type Seen,
  type SeenAnswer,
} from "./transcript.ts";

/** @param bytes - whole lines, of which the first need not be a prompt */
export function copilotTurnsIn(bytes: Uint8Array): Seen {
  const turns = new SeenTurns();
  let version: string | undefined;
  let model: string | undefined;
  const unread = eachLine(bytes, (line, from) => {
    const { type, data } = line;
    if (!isObject(data)) return;
    // An event of a conversation within this one names the call that began it.
    if (data["parentToolCallId"] !== undefined) return;
    if (type === "session.start") {
      version = textOf(data["copilotVersion"]) ?? version;
      model = textOf(data["selectedModel"]) ?? model;
    }
    if (type === "session.model_change") model = textOf(data["newModel"]) ?? model;
    const id = textOf(line["id"]);
    const input = type === "user.message" ? saidIn(textIn(data["content"])) : "";
    if (id !== undefined && input !== "") turns.prompt({ id, at: textOf(line["timestamp"]), input }, from);
    if (type === "assistant.message") turns.answer(answerIn(data, model));
  });
  return turns.seen(version, unread);
}

function answerIn(data: JsonObject, model: string | undefined): SeenAnswer {
  const requests = Array.isArray(data["toolRequests"]) ? data["toolRequests"].filter(isObject) : [];
  const tools = requests.flatMap(({ name, arguments: args }) => (typeof name === "string" ? [toolNamed(name, args)] : []));
  return { text: textIn(data["content"]).trim(), tools, model: textOf(data["model"]) ?? model };
}
