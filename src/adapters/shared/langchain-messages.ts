/**
 * Texts of LangChain's messages.
 *
 * @module
 */
import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import type { ConversationMessage } from "./sessions.ts";

/** An answer that calls tools is none yet. */
export function spokenIn(message: BaseMessage): ConversationMessage {
  const { type, text } = message;
  if (type === "human") return { role: "user", text };
  const isAnswer = type === "ai" && ((message as AIMessage).tool_calls ?? []).length === 0;
  return { role: isAnswer ? "assistant" : "other", text };
}
