/**
 * The export of Claude.ai: `conversations.json`, of which each conversation's branch with the newest end is taken, and `memories.json`,
 * with a memory for each paragraph.
 *
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import { isObject } from "../hook/transcript.ts";
import { turnsOfMessages, type Message } from "./conversation.ts";
import type { Found, Selection } from "./found.ts";
import { markdownItems } from "./markdown.ts";
import { memoriesOf } from "./memory.ts";
import { foundInRecords, recordsOf } from "./records.ts";
import { boundedName, hashOf, nonEmpty, objectsIn, restOf, timeMs, titleOf } from "./values.ts";

const AGENT = "claude-ai";
const isWanted = (name: string) => /^(conversations|memories)(-\d+)?\.json$/i.test(name);
const USED = ["uuid", "name", "created_at", "chat_messages", "account"];
const SIDES: Readonly<Record<string, Message["side"]>> = { human: "user", assistant: "assistant" };

/** @throws {OperationError} where nothing is of Claude.ai */
export async function* claudeAi(paths: readonly string[], selection: Selection): AsyncGenerator<Found> {
  const missing = `${paths.join(", ")} has neither conversations.json nor memories.json with anything in it`;
  yield* foundInRecords(
    recordsOf(paths, isWanted, ["conversations"]),
    (record, place) => [{ place, found: foundIn(record, selection) }],
    (first) => `There is nothing of Claude.ai: ${first ?? missing}.`,
  );
}

/** @returns why it is neither a conversation nor memories, or what it gives */
function foundIn(record: JsonObject, selection: Selection): string | Iterable<Found> {
  if (Array.isArray(record["chat_messages"])) return conversation(record, record["chat_messages"], selection);
  if ("conversations_memory" in record || "project_memories" in record) return memories(record, selection);
  return "has neither chat_messages nor memories";
}

function conversation(record: JsonObject, all: unknown, { now, since }: Selection): string | readonly Found[] {
  const id = nonEmpty(record["uuid"]);
  if (id === undefined) return "has no uuid";
  const messages = branchOf(objectsIn(all)).flatMap((message, i) => messageOf(message, `${id}:${i}`));
  const session = {
    externalId: boundedName(`${AGENT}:${id}`),
    agentId: AGENT,
    metadata: { source: "import", ...titleOf(record["name"]), ...restOf(record, USED) },
  };
  return turnsOfMessages(messages, now, since).map((turn) => ({ kind: "turn", session, turn }));
}

/** Messages from the first to the newest that has none after it; all of an export of before, whose messages name no parents. */
function branchOf(messages: readonly JsonObject[]): readonly JsonObject[] {
  const byId = new Map(messages.map((message) => [message["uuid"], message]));
  const parents = new Set(messages.map((message) => message["parent_message_uuid"]).filter((id) => byId.has(id)));
  if (parents.size === 0) return messages;
  let newest: JsonObject | undefined;
  for (const message of messages)
    if (!parents.has(message["uuid"]) && (newest === undefined || atOf(message) >= atOf(newest))) newest = message;
  const branch = new Set<JsonObject>();
  for (let message = newest; message !== undefined && !branch.has(message); message = byId.get(message["parent_message_uuid"]))
    branch.add(message);
  return [...branch].toReversed();
}

function atOf(message: JsonObject): number {
  return timeMs(message["created_at"]) ?? 0;
}

function messageOf(message: JsonObject, otherwise: string): readonly Message[] {
  const { sender } = message;
  const side = typeof sender === "string" && Object.hasOwn(SIDES, sender) ? SIDES[sender] : undefined;
  const text = textOf(message);
  if (side === undefined || text === "") return [];
  return [{ id: nonEmpty(message["uuid"]) ?? otherwise, side, text, at: timeMs(message["created_at"]) }];
}

/** Text of a message with what was attached to it: without thoughts, calls of tools and their results. */
function textOf({ content, text, attachments, files }: JsonObject): string {
  const said = objectsIn(content).flatMap((block) => (block["type"] === "text" ? (nonEmpty(block["text"]) ?? []) : []));
  const attached = [...objectsIn(attachments), ...objectsIn(files)].map((file) => {
    const name = nonEmpty(file["file_name"]) ?? "attachment";
    const extracted = nonEmpty(file["extracted_content"]);
    return extracted === undefined ? `[${name}]` : `[${name}]\n${extracted}`;
  });
  return [...(said.length > 0 ? said : [nonEmpty(text) ?? ""]), ...attached].join("\n\n").trim();
}

function* memories(record: JsonObject, selection: Selection): Generator<Found> {
  const { conversations_memory: ofAll, project_memories: ofProjects } = record;
  yield* paragraphs(nonEmpty(ofAll), "memories", {}, selection);
  for (const [project, text] of Object.entries(isObject(ofProjects) ? ofProjects : {}))
    yield* paragraphs(nonEmpty(text), `project:${project}`, { project: project.slice(0, 256).toWellFormed() }, selection);
}

function* paragraphs(text: string | undefined, document: string, metadata: JsonObject, selection: Selection): Generator<Found> {
  for (const { content } of markdownItems(text ?? "")) {
    const name = `${AGENT}:${boundedName(document, 150)}:${hashOf(content)}`;
    yield* memoriesOf({ from: AGENT, name, content, type: "fact", owner: {}, document, metadata }, { ...selection, since: undefined });
  }
}
