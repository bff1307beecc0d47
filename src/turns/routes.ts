/**
 * Turns: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import type { Deps } from "../traces/record.ts";
import { NewTurn, TOOL_RESPONSE, Turn, TURN_ORDER } from "./schema.ts";
import { addTurn, getTurn, listTurns } from "./turns.ts";

const turns = endpointGroup({ name: "Turns", description: "What came in and what went out, in the order of the session." });
const path = "/v1/sessions/{session_id}/turns";

export function turnEndpoints(deps: Deps): Endpoint[] {
  return [
    turns.post(path, {
      summary: "Add a turn",
      echoes: true,
      status: 201,
      body: NewTurn,
      response: Turn,
      run: ({ params, body, caller }) =>
        addTurn(deps, caller, params.session_id, {
          ...body,
          output: { ...body.output, type: body.output.type === TOOL_RESPONSE ? "tool_result" : body.output.type },
          stateBefore: body.stateBefore ?? null,
          stateAfter: body.stateAfter ?? null,
        }),
    }),
    turns.list(path, {
      summary: "List the turns of a session",
      filter: TURN_ORDER,
      cursor: Cursor("turn"),
      response: ListOf(Turn, "A page of turns."),
      run: ({ params, filter, page, caller }) => listTurns(deps, caller.owner, params.session_id, { ...page, ...filter }),
    }),
    turns.get(`${path}/{turn_id}`, {
      summary: "Get a turn",
      response: Turn,
      run: ({ params, caller }) => getTurn(deps, caller.owner, params.session_id, params.turn_id),
    }),
  ];
}
