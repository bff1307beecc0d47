/**
 * Sessions and their states: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import { toJson } from "../lib/json.ts";
import type { Deps } from "../traces/record.ts";
import {
  Fork,
  NewSession,
  Rollback,
  Session,
  SESSION_FILTER,
  SessionChanges,
  SessionState,
  StateChanges,
  StateUpdate,
  StateVersion,
  VERSION_LIST_EXAMPLE,
  VersionNumber,
} from "./schema.ts";
import { refuseNever } from "./live-session.ts";
import { createSession, deleteSession, forkSession, getSession, listSessions, updateSession } from "./sessions.ts";
import { getState, getVersion, listVersions, patchState, rollbackSession, updateState } from "./versions.ts";

const sessions = endpointGroup({
  name: "Sessions",
  description: "A session is one conversation of an agent. Its state has versions: it can be rolled back and forked.",
});
const session = "/v1/sessions/{session_id}";

export function sessionEndpoints(deps: Deps): Endpoint[] {
  return [
    sessions.post("/v1/sessions", {
      summary: "Create a session",
      echoes: true,
      status: 201,
      existing: "The session that has the `external_id` already, with `if_exists`: `return`.",
      body: NewSession,
      response: Session,
      errors: ["already_exists"],
      run: ({ body, caller }) => {
        refuseNever(deps, caller, body.ttlSeconds);
        return createSession(deps, caller, { ...body, userId: body.userId ?? null, initialState: toJson(body.initialState) });
      },
    }),
    sessions.list("/v1/sessions", {
      summary: "List sessions",
      description: "Newest first. Filters combine with AND.",
      filter: SESSION_FILTER,
      cursor: Cursor("sess"),
      response: ListOf(Session, "A page of sessions."),
      run: ({ filter, page, caller }) => listSessions(deps, caller.owner, filter, page),
    }),
    sessions.get(session, {
      summary: "Get a session",
      ahead: ["state"],
      response: Session,
      run: ({ params, caller }) => getSession(deps, caller.owner, params.session_id),
    }),
    sessions.patch(session, {
      summary: "Update a session",
      ahead: ["state"],
      description: "Its metadata, its time to live, or both.",
      body: SessionChanges,
      response: Session,
      run: ({ params, body, caller }) => {
        refuseNever(deps, caller, body.ttlSeconds);
        return updateSession(deps, caller, params.session_id, body);
      },
    }),
    sessions.delete(session, {
      summary: "Delete a session",
      description: "Permanent; removes the session with its states, turns and memories.",
      deletes: Session,
      run: ({ params, query, caller }) => deleteSession(deps, caller, params.session_id, query.reason),
    }),
    sessions.post(`${session}/state`, {
      summary: "Update the state",
      ahead: ["state"],
      description: "Replaces the state entirely and makes a new version.",
      body: StateUpdate,
      response: Session,
      errors: ["version_conflict"],
      example: { state: { step: 1 }, state_version: 1 },
      run: ({ params, body, caller }) => updateState(deps, caller, params.session_id, body),
    }),
    sessions.get(`${session}/state`, {
      summary: "Get the state",
      ahead: ["state"],
      response: SessionState,
      run: ({ params, caller }) => getState(deps, caller.owner, params.session_id),
    }),
    sessions.patch(`${session}/state`, {
      summary: "Patch the state",
      ahead: ["state"],
      description:
        "Changes some keys of the state and makes a new version, in one step: of several callers at the same time none undoes what another " +
        "did to another key. What changes nothing makes no version. A state that would become larger than a body can be is 413 " +
        "`payload_too_large`. The SDKs of StateBase use this path too, so misspelt fields are ignored here like other unknown ones.",
      // A misspelt `expected_version` is ignored, too: what these SDKs send must not be refused.
      ignoresNearMisses: true,
      body: StateChanges,
      response: SessionState,
      errors: ["version_conflict"],
      run: ({ params, body, caller }) => patchState(deps, caller, params.session_id, body),
    }),
    sessions.post(`${session}/rollback`, {
      summary: "Roll back a session",
      ahead: ["state"],
      description:
        "Brings back the state of a version, as a new version. Turns and memories stay as they are; with `turns`: `hide` those turns are hidden that were logged since.",
      body: Rollback,
      response: Session,
      errors: ["version_not_found", "version_conflict"],
      example: { state_version: 2 },
      run: ({ params, body, caller }) => rollbackSession(deps, caller, params.session_id, body),
    }),
    sessions.post(`${session}/fork`, {
      summary: "Fork a session",
      description:
        "A new session whose initial state is a version of this one. The state of that version is copied; turns and memories are not: with `turns` and `memories` the fork shows those of this session, by the same ids.",
      status: 201,
      body: Fork,
      response: Session,
      errors: ["version_not_found"],
      example: { id: "sess_0VQk3aC7y2Xp", metadata: { channel: "chat", forked_from: "sess_0VQk3aB4x1Zq", forked_version: 0 } },
      run: ({ params, body, caller }) => forkSession(deps, caller, params.session_id, body),
    }),
    sessions.list(`${session}/versions`, {
      summary: "List the versions of the state",
      description: "Newest first. A version's number is its cursor.",
      cursor: VersionNumber,
      response: ListOf(StateVersion, "A page of versions, without their states."),
      example: VERSION_LIST_EXAMPLE,
      run: ({ params, page, caller }) => listVersions(deps, caller.owner, params.session_id, page),
    }),
    sessions.get(`${session}/versions/{version}`, {
      summary: "Get a version of the state",
      response: StateVersion,
      run: ({ params, caller }) => getVersion(deps, caller.owner, params.session_id, params.version),
    }),
  ];
}
