/**
 * Turns: the table of URLs.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpoint, type Endpoint } from "../http/endpoint.ts";
import { ListOf } from "../http/types.ts";
import { cursorOf } from "../http/validate.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Records } from "../traces/record.ts";
import { NewTurn, TOOL_RESPONSE, Turn, TurnPage } from "./schema.ts";
import { addTurn, getTurn, listTurns } from "./turns.ts";

const EXAMPLE_REQUEST = {
  input: { type: "text", content: "Where is my order?" },
  output: { type: "text", content: "It arrives tomorrow." },
  reasoning: "The carrier says so.",
};
const EXAMPLE = {
  object: "turn",
  id: "turn_0VQk3bD5c6Ef",
  session_id: "sess_0VQk3aB4x1Zq",
  turn_number: 1,
  created_at: "2026-05-07T08:00:05.000Z",
  ...EXAMPLE_REQUEST,
  metadata: {},
  state_before: null,
  state_after: null,
};
const tag = "Turns";

export function turnEndpoints(records: Records): Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/v1/sessions/{session_id}/turns",
      tag,
      scope: "write",
      status: 201,
      summary: "Add a turn",
      query: Type.Object({}),
      body: NewTurn,
      response: Turn,
      errors: ["session_not_found"],
      example: { request: EXAMPLE_REQUEST, response: EXAMPLE },
      run: ({ params, body, caller }) =>
        addTurn(records, caller, params.session_id, {
          input: body.input,
          output: { type: body.output.type === TOOL_RESPONSE ? "tool_result" : body.output.type, content: body.output.content },
          reasoning: body.reasoning,
          metadata: body.metadata ?? {},
          stateBefore: body.state_before ?? null,
          stateAfter: body.state_after ?? null,
        }),
    }),
    endpoint({
      method: "GET",
      path: "/v1/sessions/{session_id}/turns",
      tag,
      scope: "read",
      status: 200,
      summary: "List the turns of a session",
      query: TurnPage,
      body: null,
      response: ListOf(Turn, "A page of turns."),
      errors: ["session_not_found"],
      example: { response: { object: "list", data: [EXAMPLE], has_more: false, first_id: EXAMPLE.id, last_id: EXAMPLE.id } },
      run: ({ params, query }) =>
        listTurns(records, params.session_id, {
          limit: query.limit ?? LIMITS.listDefault,
          startingAfter: cursorOf("turn", query.starting_after),
          order: query.order ?? "desc",
        }),
    }),
    endpoint({
      method: "GET",
      path: "/v1/sessions/{session_id}/turns/{turn_id}",
      tag,
      scope: "read",
      status: 200,
      summary: "Get a turn",
      query: Type.Object({}),
      body: null,
      response: Turn,
      errors: ["session_not_found", "turn_not_found"],
      example: { response: EXAMPLE },
      run: ({ params }) => getTurn(records, params.session_id, params.turn_id),
    }),
  ];
}
