/**
 * Interface that finds the candidates of a search, wherever the vectors are.
 *
 * @module
 */
import type { CacheUses } from "../lib/cache.ts";
import type { Filter } from "../storage/walk.ts";
import type { Candidate } from "./candidates.ts";
import type { Query } from "./query.ts";
import type { IndexBytes, IndexStatus } from "./index-status.ts";

export interface CandidateIndex {
  readonly status: IndexStatus;
  readonly bytes: IndexBytes;
  /** Hits and misses of vectors in memory. */
  readonly cacheUses: CacheUses;
  /** Reason why some searches are answered 503 at present; undefined when none is. */
  problem(): string | undefined;
  /**
   * Candidates for a query: about `limit` records that pass the filter, those that are best by words and cosine together, or all that
   * pass when they are no more; in no order. Every vector committed before the call is taken into account.
   *
   * @param mayHoldMuch - whether it may hold more than a few hundred candidates while other requests are answered
   * @returns undefined when it would have to
   * @throws {ApiError} `service_unavailable` when it cannot answer at present
   */
  nearest(query: Query, filter: Filter, mayHoldMuch: boolean): Promise<Candidate[] | undefined>;
  /** To be called after a commit that stored or removed vectors. */
  changed(): void;
}
