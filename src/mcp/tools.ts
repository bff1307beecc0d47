/**
 * Tools of an agent over MCP: a line of this table for each tool, which makes a call or two of the API.
 *
 * Descriptions say when to use a tool. Every client puts names, descriptions and inputs of all tools before its model, so they are
 * short.
 *
 * @module
 */
import { Type, type Static, type TObject, type TSchema } from "@sinclair/typebox";
import { Context, ContextRequest } from "../context/schema.ts";
import { IN_BRACKETS, Limit, OneOf, OrNull, Text, UserObject } from "../http/types.ts";
import { ApiError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { Memory, MemoryChanges, NewMemory, Search } from "../memories/schema.ts";
import { SearchAnswer } from "../retrievals/schema.ts";
import { Fork, NewSession, Rollback, Session, StateUpdate, StateVersion } from "../sessions/schema.ts";
import { NewStep, Turn, TurnResults, TurnSearch } from "../turns/schema.ts";
import { contextOf, CONTEXT_TURNS } from "./context.ts";
import { SESSION_TTL_SECONDS, type ToolContext } from "./tool-context.ts";

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: TObject;
  readonly output: TSchema;
  readonly hints: Hints;
  run(context: ToolContext, input: never): Promise<JsonObject>;
}

interface Hints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: false;
}

const READS: Hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
/** Loses nothing: what was there before can be had again. */
const ADDS: Hints = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false };
const DESTROYS: Hints = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false };

/** A field of the API as a model is shown it; without a description its name has to say enough. */
function field<Field extends TSchema>(schema: Field, description?: string): Field {
  const { description: _, ...rest } = schema;
  return { ...rest, ...(description === undefined ? {} : { description }) } as Field;
}

const SessionId = Type.Optional(Text(1, undefined, { description: "Leave out for the session of this connection." }));
const InSession = { session_id: Type.String() };
/** null: there is no session of this connection yet, and reading makes none. */
const SessionOrNone = { session_id: OrNull(Type.String()) };
const MemoryId = Text(1, undefined);
const StartingAfter = Type.Optional(Text(1, undefined, { description: "`last_id` of the previous page." }));
const { type, tags } = NewMemory.properties;
const MemoryType = Type.Optional(field(type, "fact, preference, event, policy, observation, general or your own."));
const Tags = (description?: string) => Type.Optional(field(tags, description));
const State = { version: Type.Integer(), state: Session.properties.state };
/** A session has more members. */
const SessionOfAnswer = Type.Pick(Session, ["id", "agent_id", "user_id", "state_version", "state", "created_at"]);
const VersionOfAnswer = Type.Pick(StateVersion, ["version", "created_at"]);
const page = (item: TSchema) => ({ data: Type.Array(item), has_more: Type.Boolean() });
/** Members of memories that clients learn of before they see one; a memory has more. */
const MemoryOfAnswer = Type.Pick(Memory, ["id", "content", "type", "tags"]);
/** Shown without what was just sent. */
const TurnOfAnswer = Type.Object({
  ...Type.Pick(Turn, ["id", "session_id", "turn_number", "state_version"]).properties,
  memories: Type.Optional(Type.Array(MemoryOfAnswer)),
});
const MemoryOfStep = Type.Object({
  content: field(NewMemory.properties.content),
  type: Type.Optional(field(type)),
  tags: Tags(),
  importance: field(NewMemory.properties.importance),
  expires_at: field(NewMemory.properties.expires_at),
  supersedes: field(NewMemory.properties.supersedes),
});
const { data: searched } = SearchAnswer.properties;
const FoundOfAnswer = Type.Object({
  ...Type.Omit(SearchAnswer, ["retrieval_id"]).properties,
  data: Type.Array(Type.Omit(searched.items, ["explanation", "ranking_score"])),
});
/** With `text` instead of fields, a block alone. */
const ContextOfAnswer = Type.Partial(
  Type.Object({
    state: Context.properties.state,
    memories: Type.Array(Type.Omit(Context.properties.memories.items, ["explanation", "ranking_score"])),
    recent_turns: Context.properties.recent_turns,
    token_count: Type.Integer(),
    omitted: Type.Object({}),
    text: Type.String(),
  }),
);
const NOTHING_FOUND = { data: [], has_more: false };

/** Without its texts, of which the passage is what was found. */
const TurnFound = Type.Pick(TurnResults.properties.data.items, ["id", "session_id", "created_at", "score", "passage"]);

function foundTurn({ id, session_id, created_at, score, passage }: JsonObject): JsonObject {
  return { id, session_id, created_at, score, passage } as JsonObject;
}

function tool<Input extends TObject>(
  line: Omit<Tool, "input" | "run"> & { input: Input; run(context: ToolContext, input: Static<Input>): Promise<JsonObject> },
): Tool {
  return line;
}

export const TOOLS: readonly Tool[] = [
  tool({
    name: "get_context",
    title: "Get context",
    description: "Call this first in a task: the session's state, the memories that matter for the query, and the latest turns.",
    input: Type.Object({
      query: field(ContextRequest.properties.query, "What you were asked or are about to do."),
      memory_limit: { ...field(ContextRequest.properties.memory_limit), default: LIMITS.contextMemoriesDefault },
      turn_limit: { ...field(ContextRequest.properties.turn_limit), default: CONTEXT_TURNS },
      max_tokens: field(ContextRequest.properties.max_tokens, "Fills as many tokens, at most."),
      format: Type.Optional(OneOf(["json", "text"], { description: "`text`: one block, no fields." })),
      session_id: SessionId,
    }),
    output: Type.Object({ ...SessionOrNone, ...ContextOfAnswer.properties }),
    hints: READS,
    run: (context, { session_id, ...request }) => contextOf(context, session_id, request),
  }),
  tool({
    name: "search_memories",
    title: "Search memories",
    description:
      "Find what is known, by meaning and by words. Use it before asking the user something they may have said before. Results with a score of 0.7 or more are about the query.",
    input: Type.Object({
      query: field(Search.properties.query, "A question or a few words."),
      type: MemoryType,
      tags: Tags("Memories with any of them."),
      filter: Type.Optional(UserObject({ description: 'Such as {"metadata.city": "Oslo"}; also $gt, $in, $or.' })),
      as_of: field(Search.properties.as_of),
      limit: field(Search.properties.limit),
      threshold: { ...field(Search.properties.threshold, "Lowest score."), default: 0 },
    }),
    output: FoundOfAnswer,
    hints: READS,
    // Of a few words 0.7 finds next to nothing, and a model reads the scores.
    run: (context, { threshold = 0, ...request }) =>
      context.call("POST /v1/memory/search", { body: { ...request, threshold, user_id: context.identity.userId } }),
  }),
  tool({
    name: "add_memory",
    title: "Add a memory",
    description:
      "Keep a fact, preference, decision or event that will matter in later conversations: one each, as a sentence that stands on its own.",
    input: Type.Object({
      content: field(NewMemory.properties.content),
      type: MemoryType,
      tags: Tags(),
      metadata: field(NewMemory.properties.metadata),
      importance: field(NewMemory.properties.importance, undefined),
      pinned: field(NewMemory.properties.pinned, "In every context."),
      expires_at: field(NewMemory.properties.expires_at),
      supersedes: field(NewMemory.properties.supersedes, "Ids of those it replaces."),
      external_id: field(NewMemory.properties.external_id, "Your name for it; upserts."),
      on_duplicate: Type.Optional(OneOf(["return", "update"])),
      session_id: Type.Optional(Text(1, undefined, { description: "Leave out to keep it for the user." })),
    }),
    output: MemoryOfAnswer,
    hints: ADDS,
    run: async (context, { session_id, ...memory }) =>
      context.call("POST /v1/memory", {
        body: { ...memory, ...(await ownerOf(context, session_id)), ...(memory.external_id === undefined ? {} : { if_exists: "update" }) },
      }),
  }),
  tool({
    name: "update_memory",
    title: "Correct a memory",
    description: "Correct a memory that was wrong. For what has changed add one that supersedes it.",
    input: Type.Object({
      memory_id: MemoryId,
      content: field(MemoryChanges.properties.content),
      type: MemoryType,
      tags: Tags("Replaces the tags."),
      metadata: field(MemoryChanges.properties.metadata, "Merged; a null removes a key."),
      reason: field(MemoryChanges.properties.reason),
    }),
    output: MemoryOfAnswer,
    hints: DESTROYS,
    run: (context, { memory_id, ...changes }) => context.call("PATCH /v1/memory/{memory_id}", { path: { memory_id }, body: changes }),
  }),
  tool({
    name: "delete_memory",
    title: "Delete a memory",
    description: "Delete a memory for good, when the user asks to forget it.",
    input: Type.Object({ memory_id: MemoryId, reason: field(Rollback.properties.reason) }),
    output: Type.Object({ id: Type.String(), deleted: Type.Boolean() }),
    hints: DESTROYS,
    run: (context, { memory_id, reason }) => context.call("DELETE /v1/memory/{memory_id}", { path: { memory_id }, query: { reason } }),
  }),
  tool({
    name: "list_memories",
    title: "List memories",
    description: "The newest memories, page by page. To find something use search_memories.",
    input: Type.Object({
      type: MemoryType,
      tags: Tags("Memories with any of them."),
      limit: field(Limit()),
      starting_after: StartingAfter,
    }),
    output: Type.Object({ ...page(MemoryOfAnswer), last_id: OrNull(Type.String()) }),
    hints: READS,
    // Of several values each is a tag, which may have commas; an empty one is ignored.
    run: (context, { tags, ...rest }) =>
      context.call("GET /v1/memory", { query: { ...rest, tags: tags && [...tags, ""], user_id: context.identity.userId } }),
  }),
  tool({
    name: "get_state",
    title: "Get the state",
    description: "The session's state, or an earlier version of it.",
    input: Type.Object({ version: field(StateUpdate.properties.expected_version), session_id: SessionId }),
    output: Type.Object({ ...SessionOrNone, ...State }),
    hints: READS,
    run: (context, { version, session_id }) => stateOf(context, session_id, version),
  }),
  tool({
    name: "update_state",
    title: "Update the state",
    description:
      "Save progress: the keys given here are set, a null removes one, all others stay. It makes a new version, so rollback_state undoes it.",
    input: Type.Object({
      changes: field(StateUpdate.properties.state, "Keys to set."),
      reasoning: field(StateUpdate.properties.reasoning, "Why, for the record."),
      session_id: SessionId,
    }),
    output: Type.Object({ ...InSession, ...State }),
    hints: { ...ADDS, idempotentHint: true },
    run: async (context, { changes, reasoning, session_id }) => {
      const path = { session_id: await context.openSession(session_id) };
      return context.call("PATCH /v1/sessions/{session_id}/state", { path, body: { state: changes, reasoning } });
    },
  }),
  tool({
    name: "rollback_state",
    title: "Roll the state back",
    description: "Bring an earlier state back, as a new version. -1 undoes the last change.",
    input: Type.Object({
      version: Type.Optional({ ...field(Rollback.properties.version), default: -1 }),
      reason: field(Rollback.properties.reason),
      session_id: SessionId,
    }),
    output: Type.Object({ ...InSession, ...State }),
    hints: ADDS,
    run: async (context, { version = -1, reason, session_id }) => {
      const path = { session_id: await context.openSession(session_id) };
      return stateIn(await context.call("POST /v1/sessions/{session_id}/rollback", { path, body: { version, reason } }));
    },
  }),
  tool({
    name: "list_versions",
    title: "List the versions of the state",
    description: "The history of the state, newest first: when, why and by whom.",
    input: Type.Object({ limit: field(Limit()), session_id: SessionId }),
    output: Type.Object({ ...SessionOrNone, ...page(VersionOfAnswer) }),
    hints: READS,
    run: async (context, { limit, session_id }) => {
      const id = await context.findSession(session_id);
      if (id === undefined) return { session_id: null, ...NOTHING_FOUND };
      const found = await context.call("GET /v1/sessions/{session_id}/versions", { path: { session_id: id }, query: { limit } });
      return { session_id: id, ...found };
    },
  }),
  tool({
    name: "add_turn",
    title: "Log a turn",
    description:
      "Log one exchange: what came in and what you answered, and save progress with it, all or nothing. For agents whose host does not log by itself.",
    input: Type.Object({
      input: Type.String(),
      output: Type.String(),
      reasoning: field(Turn.properties.reasoning),
      changes: field(NewStep.properties.state_patch, "Keys of the state to set; a null removes one."),
      memories: Type.Optional(
        Type.Array(MemoryOfStep, {
          maxItems: LIMITS.stepMemoriesMax,
          description: "Of this session, and kept as long; add_memory keeps one.",
          [IN_BRACKETS]: true,
        }),
      ),
      external_id: field(NewStep.properties.external_id, "Of the message: a second time logs nothing."),
      session_id: SessionId,
    }),
    output: TurnOfAnswer,
    hints: ADDS,
    run: async (context, { input, output, changes, session_id, ...turn }) => {
      const path = { session_id: await context.openSession(session_id) };
      const body = { input: { type: "text", content: input }, output: { type: "text", content: output }, state_patch: changes, ...turn };
      return context.call("POST /v1/sessions/{session_id}/turns", { path, body });
    },
  }),
  tool({
    name: "search_turns",
    title: "Search turns",
    description: "Find what was said before, in all sessions of this user unless one is named: the passage, and when.",
    input: Type.Object({
      query: field(TurnSearch.properties.query),
      filter: Type.Optional(UserObject({ description: 'Such as {"created_at": {"$gt": "2026-05-07"}}.' })),
      limit: field(TurnSearch.properties.limit),
      session_id: Type.Optional(Text(1, undefined)),
    }),
    output: Type.Object({ data: Type.Array(TurnFound), partial: field(TurnResults.properties.partial) }),
    hints: READS,
    run: async (context, search) => {
      const body = { ...search, threshold: 0, user_id: context.identity.userId };
      const { data, partial } = await context.call("POST /v1/turns/search", { body });
      return { data: (data as JsonObject[]).map(foundTurn), ...(partial === true ? { partial } : {}) };
    },
  }),
  tool({
    name: "list_sessions",
    title: "List sessions",
    description: "The sessions of this user, newest first.",
    input: Type.Object({ limit: field(Limit()), starting_after: StartingAfter }),
    output: Type.Object({ ...page(SessionOfAnswer), last_id: OrNull(Type.String()) }),
    hints: READS,
    run: (context, query) => context.call("GET /v1/sessions", { query: { ...query, user_id: context.identity.userId } }),
  }),
  tool({
    name: "start_session",
    title: "Start a session",
    description: "Begin a new session, empty or as a fork of another one at one of its versions. Pass its session_id to the other tools.",
    input: Type.Object({
      fork_of: Type.Optional(Text(1, undefined, { description: "The session to fork." })),
      version: field(Fork.properties.version, "Of that session's state; the current one unless given."),
      initial_state: field(NewSession.properties.initial_state),
      metadata: field(NewSession.properties.metadata),
    }),
    output: Type.Object({ session_id: Type.String(), ...SessionOfAnswer.properties }),
    hints: ADDS,
    run: async (context, input) => {
      const session = await startSession(context, input);
      return { session_id: session["id"] ?? null, ...session };
    },
  }),
];

/** The names of the tools of `tools=memory`: the first six. */
export const MEMORY_TOOLS: ReadonlySet<string> = new Set(TOOLS.slice(0, 6).map(({ name }) => name));

/** Tools that show nothing but what they were given: for keys that may not read. They need a `session_id`, which no list can find. */
export const ECHOING_TOOLS: ReadonlySet<string> = new Set(["add_memory", "add_turn", "delete_memory"]);

/** Owner of a memory: that of the session that was named, or else the user; without a user it goes with the session. */
async function ownerOf(context: ToolContext, named: string | undefined): Promise<JsonObject> {
  const { userId, agentId, sessionId } = context.identity;
  if (named !== undefined || sessionId !== undefined || userId === undefined) return { session_id: await context.openSession(named) };
  return { user_id: userId, agent_id: agentId };
}

async function stateOf(context: ToolContext, named: string | undefined, version: number | undefined): Promise<JsonObject> {
  const id = await context.findSession(named);
  if (id === undefined) {
    if (version !== undefined) throw new ApiError("session_not_found", "There is no session of this connection yet.");
    return { session_id: null, version: 0, state: {} };
  }
  if (version === undefined) return context.call("GET /v1/sessions/{session_id}/state", { path: { session_id: id } });
  const found = await context.call("GET /v1/sessions/{session_id}/versions/{version}", { path: { session_id: id, version } });
  return { session_id: id, ...found };
}

function stateIn({ id, state_version, state, redacted }: JsonObject): JsonObject {
  return { session_id: id ?? null, version: state_version ?? 0, state: state ?? {}, ...(redacted === undefined ? {} : { redacted }) };
}

interface Start {
  fork_of?: string;
  version?: number;
  initial_state?: JsonObject;
  metadata?: JsonObject;
}

function startSession(context: ToolContext, { fork_of, version, initial_state, metadata }: Start): Promise<JsonObject> {
  if (fork_of === undefined) {
    if (version !== undefined) throw new ApiError("invalid_request", "version is that of a session to fork: it needs fork_of.");
    const { agentId, userId } = context.identity;
    const body = { agent_id: agentId, user_id: userId, initial_state, metadata, ttl_seconds: SESSION_TTL_SECONDS };
    return context.call("POST /v1/sessions", { body });
  }
  if (initial_state !== undefined || metadata !== undefined)
    throw new ApiError("invalid_request", "A fork has the state and metadata of its session: leave out initial_state and metadata.");
  return context.call("POST /v1/sessions/{session_id}/fork", { path: { session_id: fork_of }, body: { version } });
}
