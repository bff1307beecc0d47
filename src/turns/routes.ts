/**
 * Turns: the table of URLs.
 *
 * @module
 */
import type { Static } from "@sinclair/typebox";
import { parseFilter, type RecordFilter } from "../filters/filter.ts";
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import { fieldReader, type Fields } from "../http/validate.ts";
import type { JsonObject } from "../lib/json.ts";
import type { NewMemory } from "../memories/create.ts";
import { TURN_MEMBERS } from "./filter.ts";
import { searchTurns } from "./search.ts";
import type { TurnDeps } from "./indexed-turns.ts";
import { listTurnsByWords } from "./word-list.ts";
import {
  AddedTurns,
  NewStep,
  NewTurn,
  NewTurns,
  Step,
  StepMemory,
  TOOL_RESPONSE,
  Turn,
  TURN_FILTER,
  TurnResults,
  TurnSearch,
  WORD_FILTER,
} from "./schema.ts";
import { addTurn, addTurns, getTurn, listTurns, type NewTurn as TurnToAdd } from "./turns.ts";

const turns = endpointGroup({ name: "Turns", description: "What came in and what went out, in the order of the session." });
const path = "/v1/sessions/{session_id}/turns";

/** A turn of a batch by the names that operations have. */
const fieldsOf = fieldReader(NewTurn) as unknown as (turn: Static<typeof NewTurn>) => Fields<typeof NewTurn.properties>;

function turnOf(fields: Fields<typeof NewTurn.properties>): TurnToAdd {
  const { output, stateBefore = null, stateAfter = null } = fields;
  return { ...fields, output: { ...output, type: output.type === TOOL_RESPONSE ? "tool_result" : output.type }, stateBefore, stateAfter };
}

const memoryFieldsOf = fieldReader(StepMemory);

function memoryOf(sent: object): NewMemory {
  return { ...(memoryFieldsOf(sent as Record<string, unknown>) as unknown as NewMemory), sent };
}

function filterOf({ filter }: { filter?: JsonObject }): RecordFilter | undefined {
  return filter && parseFilter(filter, "filter", TURN_MEMBERS);
}

export function turnEndpoints(deps: TurnDeps): Endpoint[] {
  return [
    turns.post(path, {
      ahead: ["index of turns"],
      summary: "Add a turn",
      existing: "The turn of the session that has the `external_id` already; or, of a step, a memory was there by its own.",
      echoes: true,
      status: 201,
      description:
        "With `state` or `state_patch`, and `memories`, a whole step of an agent in one request: the state changes first, so that the turn " +
        "belongs to the new version; all of it is there or nothing, with the traces and events of separate requests. `reasoning` is kept with the version, too.",
      body: NewStep,
      response: Step,
      errors: ["memory_not_found", "version_conflict", "already_exists", "content_too_large"],
      run: ({ params, body, caller }) => {
        const { state, statePatch, expectedVersion, memories, ...turn } = body;
        const step = { state, statePatch, expectedVersion, memories: memories?.map(memoryOf) };
        return addTurn(deps, caller, params.session_id, turnOf(turn), step);
      },
    }),
    turns.post(`${path}/batch`, {
      summary: "Add turns",
      ahead: ["index of turns"],
      description:
        "Up to 100 turns in one transaction, all of them or none; an error names the place: `turns[3].input`. Each leaves a trace and an event. " +
        "With `external_id` a batch can be sent again: turns that are there are answered as they are.",
      echoes: true,
      existing: "At least one of the turns was there already, by its `external_id`; the others are logged.",
      status: 201,
      body: NewTurns,
      response: AddedTurns,
      run: ({ params, body, caller }) =>
        addTurns(
          deps,
          caller,
          params.session_id,
          body.turns.map((turn) => turnOf(fieldsOf(turn))),
        ),
    }),
    turns.post("/v1/turns/search", {
      summary: "Search turns",
      description:
        "Finds turns by their words, and by meaning where the setting `index_turns` or the session's own says so, each with the passage that was found. Of a session, also those that it has from the session it was forked from; never those that a rollback has hidden. Without `session_id`, `user_id` and `agent_id` all turns are searched that the key sees. An answer ends before its limit with the turn that brings it beyond 8 MiB.",
      scope: "read",
      ahead: ["search", "index of turns"],
      body: TurnSearch,
      response: TurnResults,
      errors: ["session_not_found"],
      run: ({ body, caller }) => searchTurns(deps, caller, { ...body, filter: filterOf(body) }),
    }),
    turns.list("/v1/turns", {
      summary: "List turns by their words",
      description:
        "Turns that searches find, newest first, with `q` those that have all its words. Filters combine with AND. None of sessions whose `index_turns` is `off`.",
      ahead: ["search", "index of turns"],
      filter: WORD_FILTER,
      cursor: Cursor("turn"),
      response: ListOf(Turn, "A page of turns."),
      errors: ["session_not_found"],
      run: ({ filter, page, caller }) => listTurnsByWords(deps, caller.owner, { ...filter, filter: filterOf(filter) }, page),
    }),
    turns.list(path, {
      summary: "List the turns of a session",
      filter: TURN_FILTER,
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
