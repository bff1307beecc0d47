/**
 * Finds the memories a query is about.
 *
 * Two steps. The index gives the `CANDIDATES` memories nearest by cosine among those that the filter lets through; then each
 * is scored from the two texts alone, by what of the query it covers. The context endpoint ranks by the same function.
 *
 * @module
 */
import { withPrefix, type BareId } from "../lib/ids.ts";
import { jsonArray, jsonObject, toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import type { EmbeddedQuery } from "../embeddings/embedder.ts";
import type { Active } from "../embeddings/embeddings.ts";
import { isAnyBeingRemoved } from "../sessions/removal.ts";
import type { MemoryRow } from "../storage/tables.ts";
import type { Filter } from "../storage/walk.ts";
import { storedLabel, storedTerms, storedVector } from "../vectors/encoding.ts";
import { dot } from "../vectors/exact.ts";
import { memoryPostings, visibleMemory, type MemoryFilter, type MemoryParts } from "./memories.ts";
import { explain, relevance } from "./relevance.ts";

/** How many of the nearest are looked at closely. */
const CANDIDATES = 100;

export interface Match {
  key: BareId;
  row: MemoryRow;
  /** 0.0 to 1.0, higher is more relevant; 0.7 and more is about the query. */
  score: number;
  cosine: number;
}

/** What was found, and what it was found with. */
export interface Ranking {
  query: EmbeddedQuery;
  active: Active;
  /** Best first; of equal ones the newer first. */
  matches: Match[];
}

/**
 * The best memories for a query.
 *
 * @throws {ApiError} `service_unavailable` while the provider or the index cannot answer
 */
export async function rank(
  parts: MemoryParts,
  text: string,
  filter: Filter,
  options: { threshold: number; limit: number },
): Promise<Ranking> {
  for (;;) {
    const { active } = parts.embeddings;
    try {
      const query = await parts.embeddings.embedQuery(active, text);
      const candidates = query.lexical.size === 0 ? [] : await candidatesFor(parts, query.vector, filter);
      // When another provider was set meanwhile, its vectors may be among them: they mean something else.
      if (parts.embeddings.active.firstLabel === active.firstLabel) {
        return { query, active, matches: best(parts, query, active, candidates, options) };
      }
    } catch (error) {
      // What failed may be the provider before, which lets go of what is under way.
      if (parts.embeddings.active === active) throw error;
    }
  }
}

function best(
  { store }: MemoryParts,
  query: EmbeddedQuery,
  { firstLabel, calibration }: Active,
  candidates: readonly BareId[],
  { threshold, limit }: { threshold: number; limit: number },
): Match[] {
  const scored: { key: BareId; score: number; cosine: number }[] = [];
  for (const key of candidates) {
    const bytes = store.vectorBytes(key);
    if (bytes === undefined || storedLabel(bytes) < firstLabel) continue;
    const cosine = dot(query.vector, storedVector(bytes));
    const score = relevance(query, cosine, storedTerms(bytes), calibration);
    if (score >= threshold) scored.push({ key, score, cosine });
  }
  scored.sort((a, b) => b.score - a.score || (a.key < b.key ? 1 : -1));
  const matches: Match[] = [];
  for (const candidate of scored) {
    const row = visibleMemory(store, candidate.key);
    if (row === undefined) continue;
    matches.push({ ...candidate, row });
    if (matches.length === limit) break;
  }
  return matches;
}

/** While a large session is being removed its memories can be nearer than all others: then more are asked for. */
async function candidatesFor(parts: MemoryParts, query: Float32Array, filter: Filter): Promise<BareId[]> {
  for (let asked = CANDIDATES; ; asked *= 4) {
    const found = await parts.vectors.nearest(query, filter, asked);
    if (found.length < asked || !isAnyBeingRemoved(parts.store)) return found;
    const visible = found.filter((memory) => visibleMemory(parts.store, memory) !== undefined);
    if (visible.length >= CANDIDATES) return visible.slice(0, CANDIDATES);
  }
}

export interface Search extends MemoryFilter {
  query: string;
  limit: number;
  threshold: number;
  explain: boolean;
}

export async function searchMemories(parts: MemoryParts, search: Search): Promise<JsonText> {
  const filter = memoryPostings(parts, search);
  const ranking = await rank(parts, search.query, filter, search);
  return jsonObject({
    object: toJson("list"),
    query: toJson(search.query),
    data: jsonArray(
      ranking.matches.map((match) =>
        jsonObject({
          id: toJson(withPrefix("mem", match.key)),
          session_id: toJson(match.row.sessionId),
          content: toJson(match.row.content),
          type: toJson(match.row.type),
          tags: toJson(match.row.tags),
          score: toJson(match.score),
          created_at: toJson(toIso(match.row.createdAt)),
          explanation: search.explain ? explanationJson(parts, ranking, match) : undefined,
        }),
      ),
    ),
  });
}

export function explanationJson({ store }: MemoryParts, { query, active }: Ranking, match: Match): JsonText | undefined {
  const bytes = store.vectorBytes(match.key);
  return bytes === undefined ? undefined : toJson(explain(query, match.cosine, storedTerms(bytes), match.row.content, active.calibration));
}
