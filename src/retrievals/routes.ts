/**
 * Retrievals: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { getRetrieval, giveFeedback, listRetrievals, listSearches, type RetrievalDeps } from "./retrievals.ts";
import { NewFeedback, Retrieval, RETRIEVAL_FILTER, SEARCH_FILTER } from "./schema.ts";

const retrievals = endpointGroup({ name: "Retrievals", description: "What searches and contexts found, by session, user or agent." });

export function retrievalEndpoints(deps: RetrievalDeps): Endpoint[] {
  return [
    retrievals.list("/v1/sessions/{session_id}/retrievals", {
      summary: "List the retrievals of a session",
      description:
        "Which memories searches and contexts found for a query, newest first. Logged while the setting `retrieval_log` is on: searches " +
        "that name the session, and contexts with a query (searches that name none: `GET /v1/retrievals`). Kept for `retrieval_log_days`, and no longer than the " +
        "session. What was answered before this request is in the list, unless the disk takes longer than a second. A row is written " +
        "after its answer: it is lost when the process is killed within a tenth of a second, when the disk or the store is nearly full " +
        `(a tenth of \`max_store_bytes\` is left to changes), or while ${LIMITS.retrievalsWaitingMax} others wait for the disk.`,
      filter: RETRIEVAL_FILTER,
      cursor: Cursor("ret"),
      response: ListOf(Retrieval, "A page of retrievals."),
      run: ({ params, filter, page, caller }) => listRetrievals(deps, caller.owner, params.session_id, filter, page),
    }),
    retrievals.list("/v1/retrievals", {
      summary: "List the searches of no session",
      description:
        "Searches that named no session, of a user or an agent, newest first, with which memories they found. Logged while the setting " +
        "`retrieval_log` is on, and kept for `retrieval_log_days`; those of a session are listed with it. A search of all users and " +
        "agents is not logged.",
      filter: SEARCH_FILTER,
      cursor: Cursor("ret"),
      response: ListOf(Retrieval, "A page of retrievals."),
      run: ({ filter, page, caller }) => listSearches(deps, caller.owner, filter, page),
    }),
    retrievals.get("/v1/retrievals/{retrieval_id}", {
      summary: "Get a retrieval",
      description: "It is removed with its session, and after `retrieval_log_days`.",
      response: Retrieval,
      run: ({ params, caller }) => getRetrieval(deps, caller.owner, params.retrieval_id),
    }),
    retrievals.post("/v1/retrievals/{retrieval_id}/feedback", {
      summary: "Rate a retrieval",
      description: "Says which of the memories and turns helped. Kept with the retrieval, and gone with it; it changes no score.",
      body: NewFeedback,
      response: Retrieval,
      run: ({ params, body, caller }) => giveFeedback(deps, caller, params.retrieval_id, body),
    }),
  ];
}
