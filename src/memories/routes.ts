/**
 * Memories: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import { tagsOf } from "./comma-lists.ts";
import { addMemory, deleteMemory, getMemory, listMemories, updateMemory, type MemoryDeps } from "./memories.ts";
import { Memory, MEMORY_FILTER, MemoryChanges, NewMemory, Search, SearchAnswer } from "./schema.ts";
import { searchMemories } from "./search.ts";

const memories = endpointGroup({ name: "Memories", description: "What outlasts a conversation, found by meaning and by words." });

export function memoryEndpoints(deps: MemoryDeps): Endpoint[] {
  return [
    memories.post("/v1/memory", {
      summary: "Add a memory",
      echoes: true,
      memoryOperation: "create_memory",
      description: "Search finds it once this is answered.",
      status: 201,
      body: NewMemory,
      response: Memory,
      errors: ["session_not_found", "content_too_large"],
      run: ({ body, caller }) => addMemory(deps, caller, body),
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
      run: ({ body, caller }) => searchMemories(deps, caller, body),
    }),
    memories.list("/v1/memory", {
      summary: "List memories",
      description: "Newest first. Filters combine with AND, tags with OR among themselves.",
      filter: MEMORY_FILTER,
      cursor: Cursor("mem"),
      response: ListOf(Memory, "A page of memories."),
      errors: ["session_not_found"],
      run: ({ filter, page, caller }) => listMemories(deps, caller.owner, { ...filter, tags: filter.tags && tagsOf(filter.tags) }, page),
    }),
    memories.get("/v1/memory/{memory_id}", {
      summary: "Get a memory",
      response: Memory,
      run: ({ params, caller }) => getMemory(deps, caller.owner, params.memory_id),
    }),
    memories.patch("/v1/memory/{memory_id}", {
      summary: "Update a memory",
      memoryOperation: "update_memory",
      description: "A changed content gets a new embedding.",
      body: MemoryChanges,
      response: Memory,
      errors: ["content_too_large"],
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
