/**
 * `cairn rebuild-index`: rebuilds the vector index as a server does while it serves, if there are vectors enough.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import { rebuildGraph } from "../operations/graph.ts";
import { withLockedStore } from "../operations/with-store.ts";
import type { CommandLine } from "./command-line.ts";
import { print } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function rebuildIndex({ config }: CommandLine): Promise<number> {
  using progress = showProgress("Building", "vectors");
  const { indexed, vectors, graphFrom, removed } = await withLockedStore(config.dataDirectory, systemClock, (store) =>
    rebuildGraph(store, config, progress.show),
  );
  progress.clear();
  const from = `it is of no use below ${graphFrom.toLocaleString("en")} (CAIRN_GRAPH_FROM)`;
  await print(
    indexed === undefined
      ? `Built no vector index: there are ${vectors} vectors, and ${from}${removed ? "; the one that was there is removed" : ""}`
      : `Built the vector index of ${indexed} vectors`,
  );
  return 0;
}
