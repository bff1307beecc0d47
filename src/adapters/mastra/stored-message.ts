/**
 * Messages as Mastra has them, of documents and of changes.
 *
 * @module
 */
import { MessageList, type MastraDBMessage } from "@mastra/core/agent/message-list";
import type { Document, JsonObject } from "../../client/index.ts";
import { fromStored } from "../shared/stored-json.ts";

export type MessageUpdate = Partial<Omit<MastraDBMessage, "content">> & { id: string; content?: object };

/** Returns messages as Mastra's own stores give them. */
export function asMastraHasThem(messages: MastraDBMessage[]): MastraDBMessage[] {
  return new MessageList().add(messages, "memory").get.all.db();
}

export function groupedByThread(messages: Iterable<MastraDBMessage>): Map<string, MastraDBMessage[]> {
  const grouped = new Map<string, MastraDBMessage[]>();
  for (const message of messages) {
    const { threadId = "" } = message;
    const ofThread = grouped.get(threadId) ?? [];
    ofThread.push(message);
    grouped.set(threadId, ofThread);
  }
  return grouped;
}

export function updated(before: MastraDBMessage, { threadId, content, ...update }: MessageUpdate): MastraDBMessage {
  const given = Object.fromEntries(Object.entries(update).filter(([, value]) => value !== undefined));
  const after = { ...before, ...given, threadId: threadId || before.threadId } as MastraDBMessage;
  if (content === undefined) return after;
  const changed = { ...before.content, ...content } as MastraDBMessage["content"];
  const both = before.content.metadata && changed.metadata ? { metadata: { ...before.content.metadata, ...changed.metadata } } : {};
  return { ...after, content: { ...changed, ...both } };
}

export function messageOf({ value }: Document): MastraDBMessage {
  const message = fromStored(value) as MastraDBMessage;
  return { ...message, createdAt: new Date(message.createdAt), content: contentOf(value) };
}

/** A text alone is content of an older format. */
export function contentOf({ content = {} }: JsonObject): MastraDBMessage["content"] {
  const kept = fromStored(content);
  if (typeof kept !== "string") return kept as MastraDBMessage["content"];
  return { format: 2, content: kept, parts: [{ type: "text", text: kept }] };
}
