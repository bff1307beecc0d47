/**
 * The context: its URL.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpoint, type Endpoint } from "../http/endpoint.ts";
import { LIMITS } from "../lib/limits.ts";
import type { MemoryParts } from "../memories/memories.ts";
import { getContext } from "./context.ts";
import { Context, ContextRequest } from "./schema.ts";

export function contextEndpoints(parts: MemoryParts): Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/v1/sessions/{session_id}/context",
      tag: "Context",
      scope: "read",
      status: 200,
      summary: "Get the context of a session",
      description:
        "State, memories and latest turns in one read. Memories are the session's own and, when it has a user, all of that user's.",
      query: Type.Object({}),
      body: ContextRequest,
      response: Context,
      errors: ["session_not_found"],
      example: {
        request: { query: "How does the customer prefer to be contacted?", memory_limit: 5 },
        response: {
          state: { step: 1 },
          memories: [
            {
              id: "mem_0VQk3cF8g9Hi",
              content: "The customer prefers e-mail to phone calls.",
              type: "preference",
              score: 0.857357,
              created_at: "2026-05-07T08:00:07.000Z",
            },
          ],
          recent_turns: [
            {
              id: "turn_0VQk3bD5c6Ef",
              input: { type: "text", content: "Where is my order?" },
              output: { type: "text", content: "It arrives tomorrow." },
              created_at: "2026-05-07T08:00:05.000Z",
            },
          ],
        },
      },
      run: ({ params, body, caller }) =>
        getContext(parts, caller.keyId, params.session_id, {
          query: body.query,
          memoryLimit: body.memory_limit ?? LIMITS.contextMemoriesDefault,
          turnLimit: body.turn_limit ?? LIMITS.contextTurnsDefault,
          explain: body.explain ?? false,
        }),
    }),
  ];
}
