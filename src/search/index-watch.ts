/**
 * Starts the vector index again after it has failed. A search would, too, but none comes to a server that is not ready.
 *
 * @module
 */
import type { Task } from "../tasks/task.ts";
import type { VectorIndex } from "./vector-index.ts";

const LOOK_MS = 2_000;

export function indexWatch(indexes: readonly VectorIndex[]): Task {
  return {
    name: "vector index watch",
    run() {
      for (const vectors of indexes) vectors.startAgain();
      return Promise.resolve(LOOK_MS);
    },
  };
}
