/**
 * Statistics: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Stats, STATS_QUERY } from "./schema.ts";
import { getStats, type StatsDeps } from "./stats.ts";

const stats = endpointGroup({ name: "Stats", description: "How much there is, and how it goes." });

export function statsEndpoints(deps: StatsDeps): Endpoint[] {
  return [
    stats.get("/v1/stats", {
      summary: "Get the statistics",
      description: "Counts of what is stored, and on request what the server has seen in the last hour or day.",
      query: STATS_QUERY,
      response: Stats,
      run: ({ query }) => getStats(deps, query.history),
    }),
  ];
}
