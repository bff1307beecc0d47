/**
 * Traces: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type ApiCaller, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import type { Deps } from "./record.ts";
import { Trace, TRACE_FILTER } from "./schema.ts";
import { getTrace, listTraces, type TraceReader } from "./traces.ts";

const traces = endpointGroup({ name: "Traces", description: "Who changed what, and when." });

export function traceEndpoints(deps: Deps): Endpoint[] {
  return [
    traces.list("/v1/traces", {
      summary: "List traces",
      description:
        "Newest first. Every change leaves one; traces outlive their sessions. Filters combine with AND. Traces of changes of keys, settings and webhooks are in the list for keys with the scope `admin` only.",
      filter: TRACE_FILTER,
      cursor: Cursor("trace"),
      response: ListOf(Trace, "A page of traces."),
      run: ({ filter, page, caller }) => listTraces(deps, readerOf(caller), filter, page),
    }),
    traces.get("/v1/traces/{trace_id}", {
      summary: "Get a trace",
      description: "The trace of a change of keys, settings or webhooks is there for keys with the scope `admin` only.",
      response: Trace,
      run: ({ params, caller }) => getTrace(deps, readerOf(caller), params.trace_id),
    }),
  ];
}

function readerOf({ scopes, owner }: ApiCaller): TraceReader {
  return { isAdmin: scopes.includes("admin"), owner };
}
