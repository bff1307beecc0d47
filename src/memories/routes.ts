/**
 * Memories: the table of URLs.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpoint, type Endpoint } from "../http/endpoint.ts";
import { Deleted, ListOf, Reason } from "../http/types.ts";
import { createdOf, cursorOf } from "../http/validate.ts";
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength } from "../lib/text.ts";
import { addMemory, deleteMemory, getMemory, listMemories, updateMemory, type MemoryParts } from "./memories.ts";
import { MEMORY_TYPE_DEFAULT, Memory, MemoryChanges, MemoryFilter, NewMemory, Search, SearchAnswer } from "./schema.ts";
import { searchMemories } from "./search.ts";

const CONTENT = "The customer prefers e-mail to phone calls.";
const EXAMPLE = {
  object: "memory",
  id: "mem_0VQk3cF8g9Hi",
  session_id: "sess_0VQk3aB4x1Zq",
  content: CONTENT,
  type: "preference",
  tags: ["contact"],
  metadata: {},
  created_at: "2026-05-07T08:00:07.000Z",
  embedding_id: "emb_0VQk3cF9j0Kl",
  vector_available: true,
};
const RESULT_EXAMPLE = {
  id: EXAMPLE.id,
  session_id: EXAMPLE.session_id,
  content: CONTENT,
  type: EXAMPLE.type,
  tags: EXAMPLE.tags,
  score: 0.857357,
  created_at: EXAMPLE.created_at,
};
const tag = "Memories";

export function memoryEndpoints(parts: MemoryParts): Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/v1/memory",
      tag,
      scope: "write",
      status: 201,
      summary: "Add a memory",
      description: "Search finds it as soon as this is answered.",
      query: Type.Object({}),
      body: NewMemory,
      response: Memory,
      errors: ["session_not_found", "content_too_large"],
      example: { request: { session_id: EXAMPLE.session_id, content: CONTENT, type: "preference", tags: ["contact"] }, response: EXAMPLE },
      run: ({ body, caller }) =>
        addMemory(parts, caller, {
          sessionId: body.session_id,
          content: body.content,
          type: body.type ?? MEMORY_TYPE_DEFAULT,
          tags: body.tags ?? [],
          metadata: body.metadata ?? {},
          embed: body.embed ?? true,
        }),
    }),
    endpoint({
      method: "POST",
      path: "/v1/memory/search",
      tag,
      scope: "read",
      status: 200,
      summary: "Search memories",
      description: "Finds memories by meaning and by words. Filters combine with AND, tags with OR among themselves.",
      query: Type.Object({}),
      body: Search,
      response: SearchAnswer,
      errors: ["session_not_found"],
      example: {
        request: { query: "How does the customer prefer to be contacted?", user_id: "user-42" },
        response: { object: "list", query: "How does the customer prefer to be contacted?", data: [RESULT_EXAMPLE] },
      },
      run: ({ body, caller }) =>
        searchMemories(parts, caller.keyId, {
          query: body.query,
          sessionId: body.session_id,
          userId: body.user_id,
          type: body.type,
          tags: body.tags,
          limit: body.limit ?? LIMITS.searchDefault,
          threshold: body.threshold ?? LIMITS.searchThresholdDefault,
          explain: body.explain ?? false,
        }),
    }),
    endpoint({
      method: "GET",
      path: "/v1/memory",
      tag,
      scope: "read",
      status: 200,
      summary: "List memories",
      description: "Newest first. Filters combine with AND, tags with OR among themselves.",
      query: MemoryFilter,
      body: null,
      response: ListOf(Memory, "A page of memories."),
      errors: ["session_not_found"],
      example: { response: { object: "list", data: [EXAMPLE], has_more: false, first_id: EXAMPLE.id, last_id: EXAMPLE.id } },
      run: ({ query }) =>
        listMemories(
          parts,
          {
            sessionId: query.session_id,
            userId: query.user_id,
            type: query.type,
            tags: query.tags === undefined ? undefined : tagsOf(query.tags),
            ...createdOf(query),
          },
          { limit: query.limit ?? LIMITS.listDefault, startingAfter: cursorOf("mem", query.starting_after) },
        ),
    }),
    endpoint({
      method: "GET",
      path: "/v1/memory/{memory_id}",
      tag,
      scope: "read",
      status: 200,
      summary: "Get a memory",
      query: Type.Object({}),
      body: null,
      response: Memory,
      errors: ["memory_not_found"],
      example: { response: EXAMPLE },
      run: ({ params }) => getMemory(parts, params.memory_id),
    }),
    endpoint({
      method: "PATCH",
      path: "/v1/memory/{memory_id}",
      tag,
      scope: "write",
      status: 200,
      summary: "Update a memory",
      description: "A changed content gets a new embedding.",
      query: Type.Object({}),
      body: MemoryChanges,
      response: Memory,
      errors: ["memory_not_found", "content_too_large"],
      example: { request: { tags: ["contact"] }, response: EXAMPLE },
      run: ({ params, body, caller }) => updateMemory(parts, caller, params.memory_id, body),
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/memory/{memory_id}",
      tag,
      scope: "write",
      status: 200,
      summary: "Delete a memory",
      description: "Permanent; removes the memory and its vector.",
      query: Reason,
      body: null,
      response: Deleted("memory"),
      errors: ["memory_not_found"],
      example: { response: { object: "memory", id: EXAMPLE.id, deleted: true } },
      run: ({ params, query, caller }) => deleteMemory(parts, caller, params.memory_id, query.reason),
    }),
  ];
}

/** One value is a list with commas; of several each is a tag. */
function tagsOf(values: readonly string[]): string[] {
  const isList = values.length === 1;
  const tags = (isList ? (values[0] ?? "").split(",") : values).filter((part) => part.trim() !== "");
  const long = tags.find((part) => codePointLength(part) > LIMITS.tagLengthMax);
  if (tags.length === 0 || tags.length > LIMITS.tagsMax || long !== undefined) {
    throw new ApiError(
      "invalid_request",
      `tags must be 1 to ${LIMITS.tagsMax} tags of at most ${LIMITS.tagLengthMax} characters, separated by commas or in a parameter each; got ${tags.length}${long === undefined ? "" : `, one of ${codePointLength(long)} characters`}.`,
      { param: "tags" },
    );
  }
  // A tag may begin or end with spaces, and who lists several may put some between.
  return isList ? tags.flatMap((tag) => [tag, tag.trim()]) : tags;
}
