/**
 * Statistics: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { refuseBound } from "../storage/owner.ts";
import { Stats, STATS_QUERY } from "./schema.ts";
import { getStats, type StatsDeps } from "./stats.ts";

const stats = endpointGroup({ name: "Stats", description: "Counts of records, and recent traffic." });

export function statsEndpoints(deps: StatsDeps): Endpoint[] {
  return [
    stats.get("/v1/stats", {
      summary: "Get the statistics",
      description:
        "Counts of what is stored, and on request what the servers have seen in the last hour, day or week. Not for a key that is bound to a user or an agent.",
      query: STATS_QUERY,
      response: Stats,
      run: ({ query, caller }) => {
        refuseBound(caller.owner);
        return getStats(deps, query.history);
      },
    }),
  ];
}
