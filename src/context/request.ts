/**
 * Request of a context.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import type { RankingWishes } from "../memories/ranking-score.ts";

/** Parts of a context. */
export const CONTEXT_PARTS = ["state", "pinned", "memories", "turns"] as const;
export type ContextPart = (typeof CONTEXT_PARTS)[number];

export const CONTEXT_FORMATS = ["json", "text", "messages"] as const;
export const MEMORY_SCOPES = ["session", "user", "agent"] as const;

export interface ContextRequest extends RankingWishes {
  query?: string | undefined;
  memoryLimit?: number | undefined;
  turnLimit?: number | undefined;
  explain: boolean;
  /** The moment whose memories are shown; now unless given. */
  asOf?: number | undefined;
  /** Largest number of tokens of its block. */
  maxTokens?: number | undefined;
  format: (typeof CONTEXT_FORMATS)[number];
  memoryScope?: (typeof MEMORY_SCOPES)[number] | undefined;
  include?: readonly ContextPart[] | undefined;
  /** Memories that are shown. */
  filter?: RecordFilter | undefined;
}
