/**
 * How much there is and how it goes: counts that the store keeps anyway, and what the server has seen in the last hour or day.
 *
 * @module
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import type { Settings } from "../settings/settings.ts";
import { DATA_FILE } from "../storage/data-file.ts";
import { deliveries, memories, pendingEmbeddings, sessions, traces, turns, versions } from "../storage/tables.ts";
import type { Deps } from "../traces/record.ts";
import type { VectorIndex } from "../vectors/vector-index.ts";
import type { HISTORY_SPANS } from "./spans.ts";

/** What the server has seen since its start. */
export interface SeenHistory {
  of(span: (typeof HISTORY_SPANS)[number]): {
    bucketSeconds: number;
    /** `at` in Unix milliseconds. */
    points: readonly { at: number; requests: number; errors: number; changes: number; p50Ms: number | null; p99Ms: number | null }[];
  };
}

export interface StatsDeps extends Pick<Deps, "store" | "clock"> {
  readonly settings: Pick<Settings, "values">;
  readonly vectors: Pick<VectorIndex, "status">;
  readonly documentVectors: Pick<VectorIndex, "status">;
  readonly history: SeenHistory;
  /** `clock.elapsed()` at the start. */
  readonly startedAt: number;
}

export function getStats(
  { store, clock, settings, vectors, documentVectors, history, startedAt }: StatsDeps,
  span?: (typeof HISTORY_SPANS)[number],
): JsonText {
  const seen = span === undefined ? undefined : history.of(span);
  return toJson({
    object: "stats",
    sessions: store.count(sessions),
    turns: store.count(turns),
    versions: store.count(versions),
    memories: store.count(memories),
    traces: store.count(traces),
    vectors: { stored: vectors.status.vectors + documentVectors.status.vectors, owed: store.count(pendingEmbeddings) },
    deliveries: { pending: store.count(deliveries.index.inLine), failed: store.count(deliveries.index.failed) },
    store: {
      bytes: statSync(join(store.directory, DATA_FILE)).size,
      used_bytes: store.bytesUsed,
      max_bytes: settings.values.max_store_bytes,
    },
    uptime_seconds: Math.floor((clock.elapsed() - startedAt) / 1000),
    history: seen && {
      bucket_seconds: seen.bucketSeconds,
      points: seen.points.map(({ at, requests, errors, changes, p50Ms, p99Ms }) => ({
        at: toIso(at),
        requests,
        errors,
        changes,
        p50_ms: p50Ms,
        p99_ms: p99Ms,
      })),
    },
  });
}
