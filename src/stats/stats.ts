/**
 * How much there is and how it goes: counts that the store keeps anyway, and what the server has seen in the last hour or day.
 *
 * @module
 */
import { toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import type { Settings } from "../settings/settings.ts";
import { deliveries, documentVectors, memories, pendingEmbeddings, sessions, traces, turns, vectors, versions } from "../storage/tables.ts";
import type { Deps } from "../traces/record.ts";
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
  readonly history: SeenHistory;
  /** `clock.elapsed()` at the start. */
  readonly startedAt: number;
}

export async function getStats(
  { store, clock, settings, history, startedAt }: StatsDeps,
  span?: (typeof HISTORY_SPANS)[number],
): Promise<JsonText> {
  const seen = span === undefined ? undefined : history.of(span);
  return toJson({
    object: "stats",
    sessions: await store.count(sessions),
    turns: await store.count(turns),
    versions: await store.count(versions),
    memories: await store.count(memories),
    traces: await store.count(traces),
    vectors: { stored: (await store.count(vectors)) + (await store.count(documentVectors)), owed: await store.count(pendingEmbeddings) },
    deliveries: { pending: await store.count(deliveries.index.inLine), failed: await store.count(deliveries.index.failed) },
    store: {
      bytes: store.bytes,
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
