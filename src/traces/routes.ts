/**
 * Traces: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type ApiCaller, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import { Type } from "@sinclair/typebox";
import { LIMITS } from "../lib/limits.ts";
import type { TraceFeed } from "./feed.ts";
import type { Deps } from "./record.ts";
import { EVENT_FILTER, EventStream, Trace, TRACE_FILTER } from "./schema.ts";
import { getTrace, listTraces, type TraceReader } from "./traces.ts";

const traces = endpointGroup({ name: "Traces", description: "Who changed what, and when." });

export interface TraceDeps extends Deps {
  readonly feed: TraceFeed;
}

export function traceEndpoints(deps: TraceDeps): Endpoint[] {
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
    traces.send("/v1/events", {
      summary: "Watch the traces",
      description:
        "Traces as they happen, as server-sent events; filters combine with AND. With the header `Last-Event-ID` those come first that " +
        "followed the trace of that id. A reader that does not keep up is dropped: it asks again with the last id it got, and misses " +
        `nothing. A comment comes every ${LIMITS.eventCommentSeconds} s. The stream ends with its key. A key has at most ` +
        `${LIMITS.eventStreamsOfKeyMax} streams at a time, all together have ${LIMITS.eventStreamsMax}. What a command changes while the server runs comes with the next \`Last-Event-ID\`. ` +
        "Where several servers share a database, what another one changes comes within a second, and with `Last-Event-ID` what is less than ten seconds older than that trace comes again.",
      media: "text/event-stream",
      query: Type.Object(EVENT_FILTER),
      response: EventStream,
      send: ({ query, caller }, { headers, isAllowed }) => {
        const lastEventId = headers.get("last-event-id");
        const body = deps.feed.open({ limitsId: caller.limitsId, reader: readerOf(caller), filter: query, lastEventId, isAllowed });
        // A proxy must not keep the events until there are many.
        return { body, headers: { "X-Accel-Buffering": "no" } };
      },
    }),
  ];
}

function readerOf({ scopes, owner }: ApiCaller): TraceReader {
  return { isAdmin: scopes.includes("admin"), owner };
}
