/**
 * A search, and its entry in the log of retrievals.
 *
 * @module
 */
import type { Id } from "../lib/ids.ts";
import { ownerOfSearch, sentAs, usersNamedBy, type Asking, type Retrieval } from "../retrievals/log.ts";
import type { CreatedFilter } from "../storage/list.ts";
import type { Owner } from "../storage/owner.ts";
import type { MemoryDeps } from "./deps.ts";
import { rowFilterOf } from "./filter.ts";
import type { MemoryFilter } from "./memories.ts";
import type { RankingWishes } from "./ranking-score.ts";
import type { Shown } from "./status.ts";

export interface Search extends MemoryFilter, CreatedFilter, Shown, RankingWishes {
  query: string;
  limit: number;
  threshold: number;
  explain: boolean;
}

/** A search that names no session is logged for its user or agent, be they those of the key or of a filter. */
export function trackSearch(
  { retrievals }: MemoryDeps,
  searcher: Asking & { readonly owner: Owner },
  search: Search,
  matches: Retrieval["matches"],
): Id<"ret"> | undefined {
  if (!retrievals.isOn) return undefined;
  const { sessionId, query, limit, threshold, explain: _, ...more } = search;
  const { type, types = [], tags = [] } = more;
  const isFiltered = rowFilterOf(search) !== undefined || type !== undefined || types.length + tags.length > 0;
  const asked = { sessionId, ...ownerOfSearch(searcher.owner, search), query, limit, threshold, isFiltered, request: sentAs(more) };
  return retrievals.note(searcher, { operation: "search", ...asked, matches, users: usersNamedBy(search) });
}
