/**
 * Sessions and their states: the table of URLs.
 *
 * @module
 */
import { endpoint, type Endpoint } from "../http/endpoint.ts";
import { Deleted, ListOf, Reason } from "../http/types.ts";
import { createdOf, cursorOf } from "../http/validate.ts";
import { EMPTY_OBJECT, toJson } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Records } from "../traces/record.ts";
import {
  Fork,
  NewSession,
  Nothing,
  Rollback,
  Session,
  SessionChanges,
  SessionFilter,
  StateUpdate,
  StateVersion,
  VersionPage,
} from "./schema.ts";
import { createSession, deleteSession, forkSession, getSession, listSessions, updateSession } from "./sessions.ts";
import { getVersion, listVersions, rollbackSession, updateState } from "./versions.ts";

const SESSION_EXAMPLE = {
  object: "session",
  id: "sess_0VQk3aB4x1Zq",
  agent_id: "support-bot",
  user_id: "user-42",
  created_at: "2026-05-07T08:00:00.000Z",
  updated_at: "2026-05-07T08:00:00.000Z",
  state: { step: 0 },
  state_version: 0,
  metadata: { channel: "chat" },
  memory_count: 0,
  turn_count: 0,
  ttl_expires_at: "2026-05-08T08:00:00.000Z",
};
const VERSION_EXAMPLE = {
  object: "version",
  version: 1,
  created_at: "2026-05-07T08:00:03.000Z",
  reasoning: "The customer gave the order number.",
  actor: "crn_9fK2",
  source: "update",
};
const page = (items: unknown[], id: string) => ({ object: "list", data: items, has_more: false, first_id: id, last_id: id });
const tag = "Sessions";

export function sessionEndpoints(records: Records): Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/v1/sessions",
      tag,
      scope: "write",
      status: 201,
      summary: "Create a session",
      query: Nothing,
      body: NewSession,
      response: Session,
      errors: [],
      example: {
        request: { agent_id: "support-bot", user_id: "user-42", initial_state: { step: 0 }, metadata: { channel: "chat" } },
        response: SESSION_EXAMPLE,
      },
      run: ({ body, caller }) =>
        createSession(records, caller, {
          agentId: body.agent_id,
          userId: body.user_id ?? null,
          initialState: body.initial_state === undefined ? EMPTY_OBJECT : toJson(body.initial_state),
          metadata: body.metadata ?? {},
          ttlSeconds: body.ttl_seconds ?? LIMITS.ttlSecondsDefault,
        }),
    }),
    endpoint({
      method: "GET",
      path: "/v1/sessions",
      tag,
      scope: "read",
      status: 200,
      summary: "List sessions",
      description: "Newest first. Filters combine with AND.",
      query: SessionFilter,
      body: null,
      response: ListOf(Session, "A page of sessions."),
      errors: [],
      example: { response: page([SESSION_EXAMPLE], SESSION_EXAMPLE.id) },
      run: ({ query }) =>
        listSessions(
          records,
          { agentId: query.agent_id, userId: query.user_id, ...createdOf(query) },
          { limit: query.limit ?? LIMITS.listDefault, startingAfter: cursorOf("sess", query.starting_after) },
        ),
    }),
    endpoint({
      method: "GET",
      path: "/v1/sessions/{session_id}",
      tag,
      scope: "read",
      status: 200,
      summary: "Get a session",
      query: Nothing,
      body: null,
      response: Session,
      errors: ["session_not_found"],
      example: { response: SESSION_EXAMPLE },
      run: ({ params }) => getSession(records, params.session_id),
    }),
    endpoint({
      method: "PATCH",
      path: "/v1/sessions/{session_id}",
      tag,
      scope: "write",
      status: 200,
      summary: "Update a session",
      description: "Its metadata, its time to live, or both.",
      query: Nothing,
      body: SessionChanges,
      response: Session,
      errors: ["session_not_found"],
      example: { request: { metadata: { channel: "chat" }, ttl_seconds: 86_400 }, response: SESSION_EXAMPLE },
      run: ({ params, body, caller }) =>
        updateSession(records, caller, params.session_id, { metadata: body.metadata, ttlSeconds: body.ttl_seconds }),
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/sessions/{session_id}",
      tag,
      scope: "write",
      status: 200,
      summary: "Delete a session",
      description: "Permanent; removes the session with its states, turns and memories.",
      query: Reason,
      body: null,
      response: Deleted("session"),
      errors: ["session_not_found"],
      example: { response: { object: "session", id: SESSION_EXAMPLE.id, deleted: true } },
      run: ({ params, query, caller }) => deleteSession(records, caller, params.session_id, query.reason),
    }),
    endpoint({
      method: "POST",
      path: "/v1/sessions/{session_id}/state",
      tag,
      scope: "write",
      status: 200,
      summary: "Update the state",
      description: "Replaces the state entirely and makes a new version.",
      query: Nothing,
      body: StateUpdate,
      response: Session,
      errors: ["session_not_found", "version_conflict"],
      example: {
        request: { state: { step: 1 }, reasoning: "The customer gave the order number." },
        response: { ...SESSION_EXAMPLE, state: { step: 1 }, state_version: 1 },
      },
      run: ({ params, body, caller }) =>
        updateState(records, caller, params.session_id, {
          state: body.state,
          reasoning: body.reasoning,
          expectedVersion: body.expected_version,
        }),
    }),
    endpoint({
      method: "POST",
      path: "/v1/sessions/{session_id}/rollback",
      tag,
      scope: "write",
      status: 200,
      summary: "Roll back a session",
      description: "Brings back the state of a version, as a new version.",
      query: Nothing,
      body: Rollback,
      response: Session,
      errors: ["session_not_found", "version_not_found", "version_conflict"],
      example: { request: { version: 0 }, response: { ...SESSION_EXAMPLE, state_version: 2 } },
      run: ({ params, body, caller }) =>
        rollbackSession(records, caller, params.session_id, {
          version: body.version,
          reason: body.reason,
          expectedVersion: body.expected_version,
        }),
    }),
    endpoint({
      method: "POST",
      path: "/v1/sessions/{session_id}/fork",
      tag,
      scope: "write",
      status: 201,
      summary: "Fork a session",
      description: "A new session whose initial state is a version of this one. Turns and memories are not copied.",
      query: Nothing,
      body: Fork,
      response: Session,
      errors: ["session_not_found", "version_not_found"],
      example: {
        request: { version: 0 },
        response: {
          ...SESSION_EXAMPLE,
          id: "sess_0VQk3aC7y2Xp",
          metadata: { channel: "chat", forked_from: SESSION_EXAMPLE.id, forked_version: 0 },
        },
      },
      run: ({ params, body, caller }) => forkSession(records, caller, params.session_id, body.version),
    }),
    endpoint({
      method: "GET",
      path: "/v1/sessions/{session_id}/versions",
      tag,
      scope: "read",
      status: 200,
      summary: "List the versions of the state",
      description: "Newest first. A version's number is its cursor.",
      query: VersionPage,
      body: null,
      response: ListOf(StateVersion, "A page of versions, without their states."),
      errors: ["session_not_found"],
      example: { response: page([VERSION_EXAMPLE], "1") },
      run: ({ params, query }) =>
        listVersions(records, params.session_id, {
          limit: query.limit ?? LIMITS.listDefault,
          startingAfter: query.starting_after,
        }),
    }),
    endpoint({
      method: "GET",
      path: "/v1/sessions/{session_id}/versions/{version}",
      tag,
      scope: "read",
      status: 200,
      summary: "Get a version of the state",
      query: Nothing,
      body: null,
      response: StateVersion,
      errors: ["session_not_found", "version_not_found"],
      example: { response: { ...VERSION_EXAMPLE, state: { step: 1 } } },
      run: ({ params }) => getVersion(records, params.session_id, params.version),
    }),
  ];
}
