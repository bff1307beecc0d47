/**
 * Traces: the table of URLs.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpoint, type ApiCaller, type Endpoint } from "../http/endpoint.ts";
import { ListOf } from "../http/types.ts";
import { createdOf, cursorOf } from "../http/validate.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Records } from "./record.ts";
import { Trace, TraceFilter } from "./schema.ts";
import { getTrace, listTraces, type TraceReader } from "./traces.ts";

const EXAMPLE = {
  object: "trace",
  id: "trace_0VQk3bD4z9Xw",
  session_id: "sess_0VQk3aB4x1Zq",
  user_id: "user-42",
  action: "state.updated",
  actor: "crn_9fK2",
  timestamp: "2026-05-07T08:00:03.000Z",
  details: {
    reasoning: "The customer gave the order number.",
    state_diff: { added: {}, removed: {}, modified: { step: { from: 0, to: 1 } } },
    version: 1,
  },
  metadata: { request_id: "req_0VQk3bD4w8Vu", latency_ms: 0.42 },
};
const tag = "Traces";

export function traceEndpoints(records: Records): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/v1/traces",
      tag,
      scope: "read",
      status: 200,
      summary: "List traces",
      description:
        "Newest first. Every change leaves one; traces outlive their sessions. Filters combine with AND. Traces of changes of keys, settings and webhooks are in the list for keys with the scope `admin` only.",
      query: TraceFilter,
      body: null,
      response: ListOf(Trace, "A page of traces."),
      errors: [],
      example: { response: { object: "list", data: [EXAMPLE], has_more: false, first_id: EXAMPLE.id, last_id: EXAMPLE.id } },
      run: ({ query, caller }) =>
        listTraces(
          records,
          readerOf(caller),
          {
            sessionId: query.session_id,
            userId: query.user_id,
            action: query.action,
            ...createdOf(query),
          },
          { limit: query.limit ?? LIMITS.listDefault, startingAfter: cursorOf("trace", query.starting_after) },
        ),
    }),
    endpoint({
      method: "GET",
      path: "/v1/traces/{trace_id}",
      tag,
      scope: "read",
      status: 200,
      summary: "Get a trace",
      description: "The trace of a change of keys, settings or webhooks is there for keys with the scope `admin` only.",
      query: Type.Object({}),
      body: null,
      response: Trace,
      errors: ["trace_not_found"],
      example: { response: EXAMPLE },
      run: ({ params, caller }) => getTrace(records, readerOf(caller), params.trace_id),
    }),
  ];
}

function readerOf({ scopes }: ApiCaller): TraceReader {
  return { isAdmin: scopes.includes("admin") };
}
