/**
 * The timeline of a session: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import type { Deps } from "../traces/record.ts";
import { TIMELINE_FILTER, TimelineEntry } from "./schema.ts";
import { getTimeline } from "./timeline.ts";

const timeline = endpointGroup({ name: "Timeline", description: "What happened in a session, in one list." });

export function timelineEndpoints(deps: Deps): Endpoint[] {
  return [
    timeline.list("/v1/sessions/{session_id}/timeline", {
      summary: "List the timeline of a session",
      description:
        "Its turns, the versions of its state with what changed in each, its memories, and the sessions forked from it, in the order in " +
        "which they were made. Memories and forks that were deleted since, and forks that have expired, are left out.",
      filter: TIMELINE_FILTER,
      cursor: Cursor("entry"),
      response: ListOf(TimelineEntry, "A page of the timeline."),
      run: ({ params, filter, page, caller }) => getTimeline(deps, caller.owner, params.session_id, { ...page, ...filter }),
    }),
  ];
}
