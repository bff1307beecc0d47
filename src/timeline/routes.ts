/**
 * The timeline of a session: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import type { RetrievalDeps } from "../retrievals/retrievals.ts";
import { TIMELINE_FILTER, TimelineEntry } from "./schema.ts";
import { getTimeline } from "./timeline.ts";

const timeline = endpointGroup({ name: "Timeline", description: "What happened in a session, in one list." });

export function timelineEndpoints(deps: RetrievalDeps): Endpoint[] {
  return [
    timeline.list("/v1/sessions/{session_id}/timeline", {
      summary: "List the timeline of a session",
      description:
        "Its turns, the versions of its state with what changed in each, its memories, what searches and contexts found while " +
        "`retrieval_log` was on, and the sessions forked from it, in the order in which they were made; a turn or memory with `occurred_at` stands where it happened. Memories and forks that were " +
        "deleted since, and forks that have expired, are left out.",
      filter: TIMELINE_FILTER,
      cursor: Cursor("entry"),
      response: ListOf(TimelineEntry, "A page of the timeline."),
      run: ({ params, filter, page, caller }) => getTimeline(deps, caller.owner, params.session_id, { ...page, ...filter }),
    }),
  ];
}
