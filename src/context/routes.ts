/**
 * The context: its URL.
 *
 * @module
 */
import { parseFilter } from "../filters/filter.ts";
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { MEMORY_MEMBERS } from "../memories/filter.ts";
import { getContext, type ContextDeps } from "./context.ts";
import { replayContext } from "./replay.ts";
import { Context, ContextReplay, ContextRequest } from "./schema.ts";

const context = endpointGroup({ name: "Context", description: "All an agent needs for its next step, in one call." });

export function contextEndpoints(deps: ContextDeps): Endpoint[] {
  return [
    context.post("/v1/sessions/{session_id}/context", {
      summary: "Get the context of a session",
      description:
        "State, memories and latest turns in one read. Memories are the session's own and, when it has a user, all of that user's.",
      scope: "read",
      ahead: ["state", "turns", "search"],
      latencyHeader: "X-StateBase-Latency",
      body: ContextRequest,
      response: Context,
      run: ({ params, body, caller }) =>
        getContext(deps, caller, params.session_id, { ...body, filter: body.filter && parseFilter(body.filter, "filter", MEMORY_MEMBERS) }),
    }),
    context.get("/v1/retrievals/{retrieval_id}/context", {
      summary: "Replay a context",
      description:
        "Builds a context of before again, as the agent got it: the same memories, turns, state, budget and format, from what the log of retrievals keeps " +
        "of it. A memory that was edited since has the content of then, as far as its history goes back; `changes` says what is not as it was.",
      response: ContextReplay,
      run: ({ params, caller }) => replayContext(deps, caller.owner, params.retrieval_id),
    }),
  ];
}
