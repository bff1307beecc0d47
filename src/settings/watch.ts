/**
 * Follows what other servers on the same store set: requests have the settings read along, tasks and the embedding provider by this.
 *
 * @module
 */
import { storedProvider, type Embeddings } from "../embeddings/embeddings.ts";
import type { Log } from "../lib/log.ts";
import type { Task } from "../tasks/task.ts";
import type { Settings } from "./settings.ts";

/** A change is followed by then. */
const LOOK_MS = 1_000;

export function settingsWatch(settings: Settings, embeddings: Embeddings, log: Log): Task {
  let isOther = false;
  return {
    name: "settings of other servers",
    async run() {
      // A change of the provider that is under way here is not taken back by what was set before it.
      await settings.serialize(async () => {
        const stored = await settings.readAlong(storedProvider);
        const isSame = embeddings.follow(settings.effective.embedding, stored);
        if (!isSame && !isOther)
          log.warn(
            "another server embeds with another provider: its environment has other settings of it; memories that this one stores are embedded by that one, and searches here find little",
          );
        isOther = !isSame;
      });
      return LOOK_MS;
    },
  };
}
