/**
 * Memories: the table of URLs.
 *
 * @module
 */
import { parseFilter } from "../filters/filter.ts";
import { endpointGroup, type ApiCaller, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import { fieldReader } from "../http/validate.ts";
import { ApiError } from "../lib/errors.ts";
import { hasScope } from "../lib/scopes.ts";
import { tagsOf } from "./comma-lists.ts";
import type { NewMemory as NewMemoryFields } from "./create.ts";
import type { MemoryDeps } from "./deps.ts";
import { MEMORY_MEMBERS } from "./filter.ts";
import { forgetMemories } from "./forget.ts";
import { addMemories, addMemory, deleteMemory, getMemory, listMemories, memoryHistory, updateMemory } from "./memories.ts";
import {
  AddedMemories,
  AddedMemory,
  Forgetting,
  Forgotten,
  Memory,
  MEMORY_FILTER,
  MemoryBatch,
  MemoryChanges,
  MemoryHistory,
  NewMemory,
  Search,
} from "./schema.ts";
import { SearchAnswer } from "../retrievals/schema.ts";
import { searchMemories } from "./search.ts";
import { withSimilar } from "./similar.ts";

const memories = endpointGroup({ name: "Memories", description: "What outlasts a conversation, found by meaning and by words." });

const fieldsOfNew = fieldReader(NewMemory);

/** Returns what operations get of a memory in an array. */
function newMemoryOf(sent: object): NewMemoryFields {
  return { ...(fieldsOfNew(sent as Record<string, unknown>) as unknown as NewMemoryFields), sent };
}

/** @throws {ApiError} `permission_denied` where an answer would show a key without the scope `read` what it did not send */
function refuseUnread({ scopes }: ApiCaller, inputs: readonly NewMemoryFields[]): void {
  if (hasScope(scopes, "read") || inputs.every(({ similar }) => similar === undefined)) return;
  throw new ApiError("permission_denied", "similar shows other memories: it needs a key with the scope read.", { param: "similar" });
}

export function memoryEndpoints(deps: MemoryDeps): Endpoint[] {
  return [
    memories.post("/v1/memory", {
      summary: "Add a memory",
      echoes: true,
      memoryOperation: "create_memory",
      ahead: ["search"],
      description: "Search finds it once this is answered.",
      status: 201,
      existing:
        "The memory that its owner has already, by the external_id (`if_exists`) or as one that says the same (`on_duplicate`): as it was (`return`) or changed (`update`).",
      body: NewMemory,
      response: AddedMemory,
      errors: ["session_not_found", "memory_not_found", "already_exists", "version_conflict", "content_too_large"],
      run: async ({ body, sent, caller }) => {
        refuseUnread(caller, [body]);
        const [input] = await withSimilar(deps, caller, [{ ...body, sent }]);
        return addMemory(deps, caller, input!);
      },
    }),
    memories.post("/v1/memory/batch", {
      summary: "Add many memories",
      memoryOperation: "create_memory",
      ahead: ["search"],
      description: "All are added, or none: one transaction, with a trace and an event for each memory.",
      status: 201,
      body: MemoryBatch,
      response: AddedMemories,
      errors: ["session_not_found", "memory_not_found", "already_exists", "version_conflict", "content_too_large"],
      run: async ({ sent, caller }) => {
        const inputs = sent.memories.map(newMemoryOf);
        refuseUnread(caller, inputs);
        return addMemories(deps, caller, await withSimilar(deps, caller, inputs, "memories"));
      },
    }),
    memories.post("/v1/memory/search", {
      summary: "Search memories",
      memoryOperation: "search_memory",
      ahead: ["search"],
      description: "Finds memories by meaning and by words. Filters combine with AND, tags and types with OR among themselves.",
      scope: "read",
      body: Search,
      response: SearchAnswer,
      errors: ["session_not_found"],
      run: ({ body, caller }) =>
        searchMemories(deps, caller, { ...body, filter: body.filter && parseFilter(body.filter, "filter", MEMORY_MEMBERS) }),
    }),
    memories.post("/v1/memory/forget", {
      summary: "Forget memories",
      memoryOperation: "delete_memory",
      description:
        "Deletes the memories that pass a filter, past and future ones too, each with its trace. A dry run, which is the default, deletes nothing: it counts them, shows some, and answers with a token that has exactly these deleted. One request deletes all that it counts, or nothing; while `has_more` is true, the same request takes the next ones.",
      body: Forgetting,
      response: Forgotten,
      errors: ["version_conflict"],
      run: ({ body, caller }) => {
        if (Object.keys(body.filter).length === 0)
          throw new ApiError("invalid_request", "filter must name what is to be forgotten; it is empty.", { param: "filter" });
        return forgetMemories(deps, caller, { ...body, filter: parseFilter(body.filter, "filter", MEMORY_MEMBERS) });
      },
    }),
    memories.list("/v1/memory", {
      summary: "List memories",
      description: "Newest first. Filters combine with AND, tags with OR among themselves.",
      filter: MEMORY_FILTER,
      cursor: Cursor("mem"),
      response: ListOf(Memory, "A page of memories."),
      errors: ["session_not_found"],
      run: ({ filter: { filter, tags, ...rest }, page, caller }) => {
        const parsed = { filter: filter && parseFilter(filter, "filter", MEMORY_MEMBERS), tags: tags && tagsOf(tags) };
        return listMemories(deps, caller.owner, { ...rest, ...parsed }, page);
      },
    }),
    memories.get("/v1/memory/{memory_id}", {
      summary: "Get a memory",
      response: Memory,
      run: ({ params, caller }) => getMemory(deps, caller.owner, params.memory_id),
    }),
    memories.get("/v1/memory/{memory_id}/history", {
      summary: "Get memory history",
      description:
        "The contents that it had: when, by whom and why. An edit adds one; a memory that supersedes it has a history of its own.",
      response: MemoryHistory,
      run: ({ params, caller }) => memoryHistory(deps, caller.owner, params.memory_id),
    }),
    memories.patch("/v1/memory/{memory_id}", {
      summary: "Update a memory",
      memoryOperation: "update_memory",
      description: "A changed content gets a new embedding.",
      body: MemoryChanges,
      response: Memory,
      errors: ["already_exists", "version_conflict", "content_too_large"],
      run: ({ params, body, caller }) => updateMemory(deps, caller, params.memory_id, body),
    }),
    memories.delete("/v1/memory/{memory_id}", {
      summary: "Delete a memory",
      memoryOperation: "delete_memory",
      description: "Permanent; removes the memory and its vector.",
      deletes: Memory,
      run: ({ params, query, caller }) => deleteMemory(deps, caller, params.memory_id, query.reason),
    }),
  ];
}
