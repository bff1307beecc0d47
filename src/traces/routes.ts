/**
 * Traces: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import { Type } from "@sinclair/typebox";
import { LIMITS } from "../lib/limits.ts";
import type { TraceFeed } from "./feed.ts";
import type { Deps } from "./record.ts";
import { EVENT_FILTER, EventStream, Trace, TRACE_FILTER } from "./schema.ts";
import { getTrace, listTraces, readerOf } from "./traces.ts";

const traces = endpointGroup({ name: "Traces", description: "Who changed what, and when." });

export interface TraceDeps extends Deps {
  readonly feed: TraceFeed;
}

export function traceEndpoints(deps: TraceDeps): Endpoint[] {
  return [
    traces.list("/v1/traces", {
      summary: "List traces",
      description:
        "Newest first. Every change leaves one; traces outlive their sessions. Filters combine with AND. Only keys with the scope `admin` see the traces of administration (keys, settings, webhooks, backups, erasures of users).",
      filter: TRACE_FILTER,
      cursor: Cursor("trace"),
      response: ListOf(Trace, "A page of traces."),
      run: ({ filter, page, caller }) => listTraces(deps, readerOf(caller), filter, page),
    }),
    traces.get("/v1/traces/{trace_id}", {
      summary: "Get a trace",
      description:
        "Only a key with the scope `admin` finds the traces of administration (keys, settings, webhooks, backups, erasures of users).",
      response: Trace,
      run: ({ params, caller }) => getTrace(deps, readerOf(caller), params.trace_id),
    }),
    traces.send("/v1/events", {
      summary: "Watch the traces",
      description:
        "Streams traces as they happen, as server-sent events. Filters combine with AND. With the header `Last-Event-ID` the stream begins " +
        "with the traces that followed that id. A client that does not keep up is disconnected; it misses nothing if it reconnects with " +
        `the last id that it got. A comment is sent every ${LIMITS.eventCommentSeconds} s. The stream ends within a second of its key being revoked or expiring. A key has at most ` +
        `${LIMITS.eventStreamsOfKeyMax} streams at a time (else 429), all keys together ${LIMITS.eventStreamsMax} on a server. Where these are all taken, a key with ` +
        "fewer takes the place of the newest stream of the key with the most, which ends and may continue later; an admin key takes a place in any " +
        "case; others get 503 as long as no key has two more than they. What a command such as `cairn keys` changes while the server runs is sent only after a reconnection with `Last-Event-ID`. " +
        "Where several servers share a database, the changes of the others arrive within a second, and after a reconnection traces of the ten seconds before `Last-Event-ID` can be sent again.",
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
