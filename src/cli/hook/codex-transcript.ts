/**
 * Turns in the transcript of Codex, a rollout. Pure.
 *
 * Prompts are taken from its events, which have what a person wrote: the items for the model have instructions and contexts as well, which
 * it sends under the name of the user. Answers are taken from the items, whose shape is that of the API.
 *
 * @module
 */
import { eachLine, isObject, saidIn, SeenTurns, textIn, textOf, type JsonObject, type Seen, type SeenAnswer } from "./transcript.ts";

const CALLS: ReadonlySet<unknown> = new Set(["function_call", "custom_tool_call", "local_shell_call", "web_search_call"]);
/** Text that the agent itself sends as a message of the user. */
const CONTEXT = /^\s*<(environment_context|user_instructions|turn_aborted)>/;

/** @param bytes - whole lines, of which the first need not be a prompt */
export function codexTurnsIn(bytes: Uint8Array): Seen {
  const turns = new SeenTurns();
  let version: string | undefined;
  let model: string | undefined;
  let unanswered: string | undefined;
  const unread = eachLine(bytes, (line, from) => {
    const { type, payload } = line;
    if (!isObject(payload)) return;
    if (type === "session_meta") version = textOf(payload["cli_version"]) ?? version;
    if (type === "turn_context") model = textOf(payload["model"]) ?? model;
    const prompt = type === "event_msg" ? promptIn(payload) : undefined;
    const answer = type === "response_item" ? answerIn(payload, model) : undefined;
    // A version may write both kinds of event.
    if (prompt !== undefined && prompt.input !== "" && prompt.input !== unanswered) {
      const at = textOf(line["timestamp"]);
      // A fork writes all that was said before at one time.
      turns.prompt({ id: prompt.id ?? `${at ?? ""}#${Bun.hash(prompt.input).toString(36)}`, at, input: prompt.input }, from);
      unanswered = prompt.input;
    }
    if (answer === undefined) return;
    turns.answer(answer);
    unanswered = undefined;
  });
  return turns.seen(version, unread);
}

/** Finds the prompt of an event: `user_message` in earlier versions, an item of the thread since. */
function promptIn(event: JsonObject): { id: string | undefined; input: string } | undefined {
  const { type, item } = event;
  if (type === "user_message") return { id: undefined, input: inputIn(textOf(event["message"]) ?? "") };
  if (type !== "item_completed" || !isObject(item) || item["type"] !== "UserMessage") return undefined;
  return { id: textOf(item["id"]), input: inputIn(textIn(item["content"])) };
}

function inputIn(text: string): string {
  return CONTEXT.test(text) ? "" : saidIn(text);
}

function answerIn(item: JsonObject, model: string | undefined): SeenAnswer | undefined {
  const { type, role } = item;
  if (type === "message" && role === "assistant") return { text: textIn(item["content"]).trim(), model };
  return CALLS.has(type) ? { text: "", tools: [textOf(item["name"]) ?? String(type)] } : undefined;
}
