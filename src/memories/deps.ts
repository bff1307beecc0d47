/**
 * Dependencies of operations on memories besides the store.
 *
 * @module
 */
import type { Embeddings } from "../embeddings/embeddings.ts";
import type { FairSemaphore } from "../lib/fair-semaphore.ts";
import type { Log } from "../lib/log.ts";
import type { RetrievalLog } from "../retrievals/log.ts";
import type { Activator } from "../tasks/task.ts";
import type { Deps } from "../traces/record.ts";
import type { CandidateIndex } from "../search/candidate-index.ts";

export interface MemoryDeps extends Deps {
  readonly embeddings: Embeddings;
  readonly vectors: CandidateIndex;
  /** Limits how many searches hold candidates and results, by API key. */
  readonly searches: FairSemaphore;
  /** Told what searches and contexts have found. */
  readonly retrievals: RetrievalLog;
  readonly log: Log;
  /** Has pending vectors made soon. */
  readonly backfill: Activator;
}
