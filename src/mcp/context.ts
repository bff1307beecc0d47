/**
 * Answers `get_context`: with the context of a session, or with what is known of the user where there is none yet.
 *
 * @module
 */
import { answerOf, NO_STATE, type ContextRecords } from "../context/fit.ts";
import { bare, type MemoryId } from "../lib/ids.ts";
import { toJson, type JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import type { ToolContext } from "./tool-context.ts";

/** Turns of a context, unless as many are wanted as fit. */
export const CONTEXT_TURNS = 5;

interface ContextArguments {
  query?: string;
  memory_limit?: number;
  turn_limit?: number;
  max_tokens?: number;
  format?: "json" | "text";
}

/** The context of a session; without one what is known of the user. A block says all that its fields would. */
export async function contextOf(context: ToolContext, named: string | undefined, asked: ContextArguments): Promise<JsonObject> {
  const id = await context.findSession(named);
  const answer = id === undefined ? await contextOfUser(context, asked) : await contextOfSession(context, id, asked);
  const { state: _, memories: __, recent_turns: ___, ...block } = answer;
  return { session_id: id ?? null, ...(asked.format === "text" ? block : answer) };
}

function contextOfSession(context: ToolContext, session_id: string, { turn_limit, ...request }: ContextArguments): Promise<JsonObject> {
  const turns = turn_limit ?? (request.max_tokens === undefined ? CONTEXT_TURNS : undefined);
  const body = { ...request, ...(turns === undefined ? {} : { turn_limit: turns }) };
  return context.call("POST /v1/sessions/{session_id}/context", { path: { session_id }, body });
}

async function contextOfUser(context: ToolContext, asked: ContextArguments): Promise<JsonObject> {
  const memories = (await memoriesOfUser(context, asked)).map((memory) => {
    const { id, content, type, source, created_at } = memory as Record<string, string>;
    const row = {
      type: type!,
      source: source as NonNullable<ContextRecords["memories"][number]["row"]["source"]>,
      createdAt: Date.parse(created_at!),
    };
    return { key: bare(id as MemoryId), row, content: content!, tokens: undefined, json: toJson(memory) };
  });
  const { max_tokens: maxTokens, format = "json" } = asked;
  return JSON.parse(await answerOf({ state: NO_STATE, memories, pinned: 0, turns: [] }, { maxTokens, format })) as JsonObject;
}

async function memoriesOfUser(context: ToolContext, { query, memory_limit, max_tokens }: ContextArguments): Promise<JsonObject[]> {
  const user_id = context.identity.userId;
  const limit = memory_limit ?? (max_tokens === undefined ? LIMITS.contextMemoriesDefault : LIMITS.contextMemoriesMax);
  if (user_id === undefined || limit === 0) return [];
  const found =
    query === undefined
      ? await context.call("GET /v1/memory", { query: { user_id, limit } })
      : await context.call("POST /v1/memory/search", { body: { query, user_id, limit, threshold: 0 } });
  return (found["data"] as JsonObject[]).map(({ id, content, type, source, score, created_at }) => {
    return { id, content, type, source, score: score ?? 0, created_at } as JsonObject;
  });
}
