/**
 * Paths of the SDKs of StateBase besides those of the API: the table of URLs. Each is an operation of the API under another
 * name, or answered in another shape.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpointGroup, type ApiCaller, type Endpoint } from "../http/endpoint.ts";
import { Cursor, exampleOf, ListOf, UserId } from "../http/types.ts";
import type { Fields } from "../http/validate.ts";
import { statusAndJson } from "../lib/answer.ts";
import { DAY_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength } from "../lib/text.ts";
import type { MemoryDeps } from "../memories/deps.ts";
import { addMemory, deleteMemory, getMemory, listMemories, updateMemory } from "../memories/memories.ts";
import { refuseLongContent } from "../memories/record.ts";
import { Memory, MEMORY_FILTER, MemoryChanges, NewMemory, Score, Search } from "../memories/schema.ts";
import { RetrievalId } from "../retrievals/schema.ts";
import { searchMemories } from "../memories/search.ts";
import { tagsOf, typesOf } from "../memories/comma-lists.ts";
import { Rollback, SessionState } from "../sessions/schema.ts";
import { createSession, updateSession } from "../sessions/sessions.ts";
import { rollbackState } from "../sessions/versions.ts";
import type { Caller } from "../traces/record.ts";

const statebase = endpointGroup({
  name: "StateBase SDKs",
  description: "Paths that the SDKs of StateBase use besides those of the API. They do the same.",
  ignoresNearMisses: true,
});

const version = Type.Integer({ examples: [2] });
const RolledBack = Type.Object(
  {
    ...SessionState.properties,
    version,
    success: Type.Literal(true),
    new_version: version,
    restored_from_version: Type.Integer({ description: "The version whose state came back.", examples: [1] }),
  },
  { title: "RolledBackState", description: "The state that came back, as a new version." },
);

const { session_id, content, type, tags, metadata, embed } = NewMemory.properties;
const NewStateBaseMemory = Type.Object(
  {
    content,
    type,
    tags,
    metadata,
    embed,
    session_id: Type.Optional({ ...session_id, description: "The session it belongs to; without one it is kept for all sessions." }),
    user_id: Type.Optional(UserId({ description: "Whose memory it is; with `session_id` the user of that session." })),
  },
  { title: "NewStateBaseMemory", description: "A memory to add." },
);

const StateBaseMemoryChanges = Type.Object(Type.Pick(MemoryChanges, ["content", "type", "tags", "metadata"]).properties, {
  title: "StateBaseMemoryChanges",
  description: "What changes; the rest stays.",
});

const Count = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.listMax, description }));
const Find = Type.Object({
  query: Type.Optional(Search.properties.query),
  session_id: MEMORY_FILTER.session_id,
  user_id: MEMORY_FILTER.user_id,
  type: MEMORY_FILTER.type,
  types: Type.Optional(Type.Array(Type.String(), { description: "Memories of ANY of these types, separated by commas." })),
  tags: MEMORY_FILTER.tags,
  limit: Count(`How many at most; a search finds ${LIMITS.searchMax}.`),
  top_k: Count("The same as `limit`."),
  threshold: Search.properties.threshold,
  starting_after: Type.Optional(Cursor("mem")),
});

const memory = Memory.properties;
const FoundMemories = Type.Object(
  {
    object: Type.Literal("list"),
    query: Type.Optional(Type.String({ description: "The query, if there was one." })),
    data: Type.Array(
      Type.Object({
        ...Type.Partial(Memory).properties,
        id: memory.id,
        session_id: memory.session_id,
        content: memory.content,
        type: memory.type,
        tags: memory.tags,
        created_at: memory.created_at,
        score: Type.Optional(Score("With a query: 0.0 to 1.0, higher is more relevant.")),
      }),
      { description: "With a query best first, without one newest first and with all that a memory has." },
    ),
    retrieval_id: RetrievalId,
    // Left out with a query.
    ...Type.Partial(Type.Pick(ListOf(Memory, ""), ["has_more", "first_id", "last_id"])).properties,
  },
  { title: "FoundMemories", description: "What was found." },
);

export function statebaseEndpoints(deps: MemoryDeps): Endpoint[] {
  return [
    statebase.post("/v1/sessions/{session_id}/state/rollback", {
      summary: "Roll back a StateBase state",
      description: "As `POST /v1/sessions/{session_id}/rollback`, answered with the state.",
      body: Type.Object({ version: Rollback.properties.version, reason: Rollback.properties.reason }, { title: "StateRollback" }),
      response: RolledBack,
      errors: ["version_not_found"],
      run: ({ params, body, caller }) => rollbackState(deps, caller, params.session_id, body),
    }),
    statebase.post("/v1/memories", {
      summary: "Add a StateBase memory",
      echoes: true,
      memoryOperation: "create_memory",
      description: "As `POST /v1/memory`. Without `session_id` it goes to the session with the `external_id` `global`, one for each user.",
      status: 201,
      body: NewStateBaseMemory,
      response: Memory,
      errors: ["session_not_found", "already_exists", "content_too_large"],
      run: async ({ body: { userId, sessionId, ...input }, caller }) => {
        // Before a session is made: what is refused changes nothing.
        refuseLongContent(input.content);
        if (sessionId !== undefined) return addMemory(deps, caller, { ...input, sessionId, userId });
        const session = await globalSession(deps, caller, userId ?? caller.owner.userId ?? null);
        return addMemory(deps, caller, { ...input, sessionId: session });
      },
    }),
    statebase.get("/v1/memories", {
      summary: "Find StateBase memories",
      memoryOperation: "search_memory",
      description: "With a `query` as `POST /v1/memory/search`, without one as `GET /v1/memory`.",
      query: Find,
      response: FoundMemories,
      errors: ["session_not_found"],
      example: { data: [exampleOf(Memory) as never] },
      run: ({ query, caller }) => findMemories(deps, caller, query),
    }),
    statebase.get("/v1/memories/{memory_id}", {
      summary: "Get a StateBase memory",
      response: Memory,
      run: ({ params, caller }) => getMemory(deps, caller.owner, params.memory_id),
    }),
    statebase.patch("/v1/memories/{memory_id}", {
      summary: "Update a StateBase memory",
      memoryOperation: "update_memory",
      body: StateBaseMemoryChanges,
      response: Memory,
      errors: ["content_too_large"],
      run: ({ params, body, caller }) => updateMemory(deps, caller, params.memory_id, body),
    }),
    statebase.delete("/v1/memories/{memory_id}", {
      summary: "Delete a StateBase memory",
      memoryOperation: "delete_memory",
      deletes: Memory,
      run: ({ params, query, caller }) => deleteMemory(deps, caller, params.memory_id, query.reason),
    }),
  ];
}

function findMemories(
  deps: MemoryDeps,
  caller: ApiCaller,
  { query, types, tags, limit, topK, threshold, startingAfter, ...filter }: Fields<typeof Find.properties>,
): Promise<JsonText> {
  const asked = { ...filter, types: types && typesOf(types), tags: tags && tagsOf(tags) };
  const count = limit ?? topK;
  if (query === undefined) return listMemories(deps, caller.owner, asked, { limit: count ?? LIMITS.listDefault, startingAfter });
  if (startingAfter !== undefined)
    throw new ApiError("invalid_request", "starting_after is for lists: a search has one page.", { param: "starting_after" });
  const found = Math.min(count ?? LIMITS.searchDefault, LIMITS.searchMax);
  return searchMemories(deps, caller, { ...asked, query, limit: found, threshold, explain: false });
}

const AGENT = "statebase";
const GLOBAL = "global";
const LEFT_MIN_MS = 15 * DAY_MS;

/** Returns the id of the session of memories that were given none, made or prolonged where needed: it is one change more. */
async function globalSession(deps: MemoryDeps, asking: Caller, userId: string | null): Promise<string> {
  // The idempotent answer is that of the memory.
  const { once: _, ...caller } = asking;
  const session = {
    agentId: caller.owner.agentId ?? AGENT,
    userId,
    externalId: globalName(userId),
    ifExists: "return" as const,
    initialState: toJson({}),
    metadata: {},
    ttlSeconds: LIMITS.ttlSecondsMax,
  };
  const { id, ttl_expires_at } = JSON.parse(statusAndJson(await createSession(deps, caller, session), 201).json) as {
    id: string;
    ttl_expires_at: string | null;
  };
  const now = await deps.store.read((reader) => reader.now);
  if (ttl_expires_at !== null && Date.parse(ttl_expires_at) - now < LEFT_MIN_MS)
    await updateSession(deps, caller, id, { ttlSeconds: LIMITS.ttlSecondsMax });
  return id;
}

function globalName(userId: string | null): string {
  const name = userId === null ? GLOBAL : `${GLOBAL}:${userId}`;
  return codePointLength(name) <= LIMITS.externalIdLengthMax ? name : `${GLOBAL}:${Bun.CryptoHasher.hash("sha256", name, "hex")}`;
}
