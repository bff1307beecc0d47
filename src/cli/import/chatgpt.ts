/**
 * The export of ChatGPT, `conversations.json` or `conversations-000.json` and on: each conversation is a tree of messages, of which the
 * branch is taken that is shown, from `current_node` up. Custom instructions become preferences.
 *
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import { isObject } from "../hook/transcript.ts";
import { turnsOfMessages, type Message } from "./conversation.ts";
import type { Found, Selection } from "./found.ts";
import { memoriesOf } from "./memory.ts";
import { foundInRecords, recordsOf } from "./records.ts";
import { boundedName, nonEmpty, restOf, timeMs, titleOf } from "./values.ts";

const AGENT = "chatgpt";
const isWanted = (name: string) => /^conversations(-\d+)?\.json$/i.test(name);
const LISTS = ["conversations", "items"];
const USED = ["id", "conversation_id", "title", "create_time", "current_node", "mapping"];
/** Thoughts, calls of tools and what is set up: no text of a conversation. */
const PASSED_OVER = ["user_editable_context", "model_editable_context", "thoughts", "reasoning_recap", "system_error"];
/** Marks of citations, in characters of private use. */
const CITATION = /\ue200[^\ue201]*\ue201/g;
const INSTRUCTIONS = { "about-user": "about_user_message", instructions: "about_model_message" } as const;
const IN_CONTENT = { "about-user": "user_profile", instructions: "user_instructions" } as const;

type Kind = keyof typeof INSTRUCTIONS;
type Instructions = Map<Kind, { readonly text: string; readonly at: number }>;

/** @throws {OperationError} where nothing is a conversation of ChatGPT */
export async function* chatgpt(paths: readonly string[], selection: Selection): AsyncGenerator<Found> {
  const instructions: Instructions = new Map();
  yield* foundInRecords(
    recordsOf(paths, isWanted, LISTS),
    (record, place) => [{ place, found: conversation(record, selection, instructions) }],
    (first) => `There is no conversation of ChatGPT: ${first ?? `${paths.join(", ")} has no conversations.json`}.`,
  );
  for (const [kind, { text, at }] of instructions)
    yield* memoriesOf({ from: AGENT, name: `chatgpt:${kind}`, content: text, type: "preference", at, owner: {} }, selection);
}

/** @returns why it is none, or what it gives */
function conversation(record: JsonObject, { now, since }: Selection, instructions: Instructions): string | readonly Found[] {
  const id = nonEmpty(record["id"]) ?? nonEmpty(record["conversation_id"]);
  const { mapping } = record;
  if (id === undefined) return "has no id";
  if (!isObject(mapping)) return "has no mapping of messages";
  const branch = branchOf(mapping, record["current_node"]);
  const createdAt = timeMs(record["create_time"]);
  for (const message of branch) noteInstructions(message, createdAt ?? 0, instructions);
  const turns = turnsOfMessages(messagesOf(branch), now, since);
  const session = {
    externalId: boundedName(`chatgpt:${id}`),
    agentId: AGENT,
    metadata: { source: "import", ...titleOf(record["title"]), ...restOf(record, USED) },
  };
  return turns.map((turn) => ({ kind: "turn", session, turn }));
}

/** Messages of the branch that is shown; of that with the newest end, where no node is named. */
function branchOf(mapping: JsonObject, current: unknown): readonly JsonObject[] {
  const seen = new Set<string>();
  const branch: JsonObject[] = [];
  let name = typeof current === "string" && Object.hasOwn(mapping, current) ? current : newestLeaf(mapping);
  while (name !== undefined && Object.hasOwn(mapping, name) && !seen.has(name)) {
    seen.add(name);
    const node = mapping[name];
    if (!isObject(node)) break;
    if (isObject(node["message"])) branch.push(node["message"]);
    name = typeof node["parent"] === "string" ? node["parent"] : undefined;
  }
  return branch.toReversed();
}

function newestLeaf(mapping: JsonObject): string | undefined {
  const nodes = Object.entries(mapping).flatMap(([name, node]) => (isObject(node) ? [{ name, node }] : []));
  const parents = new Set(nodes.map(({ node }) => node["parent"]));
  let newest: { name: string; at: number } | undefined;
  for (const { name, node } of nodes) {
    const at = isObject(node["message"]) ? (timeMs(node["message"]["create_time"]) ?? 0) : 0;
    if (!parents.has(name) && (newest === undefined || at >= newest.at)) newest = { name, at };
  }
  return newest?.name;
}

function messagesOf(branch: readonly JsonObject[]): readonly Message[] {
  return branch.flatMap((message): readonly Message[] => {
    const { id, author, recipient, metadata } = message;
    const role = isObject(author) ? author["role"] : undefined;
    if ((role !== "user" && role !== "assistant") || typeof id !== "string" || id === "") return [];
    // To a tool, not to the user.
    if (typeof recipient === "string" && recipient !== "all") return [];
    if (isObject(metadata) && metadata["is_visually_hidden_from_conversation"] === true) return [];
    const text = textOf(message["content"]).trim();
    if (text === "") return [];
    const model = isObject(metadata) ? nonEmpty(metadata["model_slug"]) : undefined;
    return [{ id, side: role, text, at: timeMs(message["create_time"]), model }];
  });
}

function textOf(content: unknown): string {
  if (!isObject(content) || PASSED_OVER.includes(String(content["content_type"]))) return "";
  const { parts, text } = content;
  if (Array.isArray(parts))
    return parts
      .map(textOfPart)
      .filter((part) => part !== "")
      .join("\n\n")
      .replaceAll(CITATION, "");
  return typeof text === "string" ? text.replaceAll(CITATION, "") : "";
}

function textOfPart(part: unknown): string {
  if (typeof part === "string") return part;
  if (!isObject(part)) return "";
  if (typeof part["text"] === "string") return part["text"];
  const kind = nonEmpty(part["content_type"]) ?? "attachment";
  return `[${kind
    .replace(/_asset_pointer$/, "")
    .replaceAll("_", " ")
    .slice(0, 64)}]`;
}

/** Keeps the newest custom instructions: each conversation has those of its time. */
function noteInstructions({ content, metadata }: JsonObject, at: number, instructions: Instructions): void {
  if (!isObject(content) || content["content_type"] !== "user_editable_context") return;
  const data = isObject(metadata) ? metadata["user_context_message_data"] : undefined;
  for (const kind of Object.keys(INSTRUCTIONS) as Kind[]) {
    const text = nonEmpty(isObject(data) ? data[INSTRUCTIONS[kind]] : undefined) ?? nonEmpty(content[IN_CONTENT[kind]]);
    if (text !== undefined && at >= (instructions.get(kind)?.at ?? 0)) instructions.set(kind, { text: text.trim(), at });
  }
}
