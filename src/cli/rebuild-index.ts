/**
 * `cairn rebuild-index`: rebuilds the vector index, which a server would do too, but while it serves. As there, only where
 * there are vectors enough.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import { readCommandLine, type Prepare } from "./command-line.ts";
import { print } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function rebuildIndex(args: readonly string[], prepare: Prepare): Promise<number> {
  const { config } = readCommandLine({ command: "rebuild-index", file: "none", needsStore: true }, args, prepare);
  const { rebuildGraph } = await import("../operations/graph.ts");
  const { withLockedStore } = await import("../operations/with-store.ts");
  using progress = showProgress("Building", "vectors");
  const { indexed, vectors, graphFrom, removed, warnings } = await withLockedStore(config.dataDirectory, systemClock, (store) =>
    rebuildGraph(store, config, (done, total) => progress.show(done, total)),
  );
  progress.clear();
  for (const warning of warnings) console.error(warning);
  if (indexed !== undefined) await print(`Built the vector index of ${indexed} vectors`);
  else {
    const from = graphFrom.toLocaleString("en");
    const before = removed ? "; the one that was there is removed" : "";
    await print(`Built no vector index: there are ${vectors} vectors, and it is of no use below ${from} (CAIRN_GRAPH_FROM)${before}`);
  }
  return 0;
}
