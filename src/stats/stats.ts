/**
 * Sizes and activity: counts that the store keeps anyway, and what the servers have seen in the last hour, day or week.
 *
 * @module
 */
import { toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import type { Settings } from "../settings/settings.ts";
import {
  deliveries,
  documentVectors,
  indexedTurns,
  memories,
  meta,
  pendingEmbeddings,
  pendingTurns,
  sessions,
  traces,
  turns,
  TURNS_SEARCHED,
  vectors,
  versions,
} from "../storage/tables.ts";
import type { Deps } from "../traces/record.ts";
import { turnIndexingIn } from "../turns/index-task.ts";
import { failedAttempts } from "../webhooks/stats.ts";
import type { Activity } from "./activity.ts";
import type { HISTORY_SPANS } from "./spans.ts";

export interface StatsDeps extends Pick<Deps, "store" | "clock"> {
  readonly settings: Pick<Settings, "values">;
  readonly activity: Pick<Activity, "of">;
  /** None on a database. */
  readonly scheduledBackups: { status(): Promise<object> } | undefined;
  /** Undefined without domains to get one for. */
  readonly certificates?: { status(): object } | undefined;
  /** `clock.elapsed()` at the start. */
  readonly startedAt: number;
}

const { inLine, failed } = deliveries.index;

export async function getStats(
  { store, clock, settings, activity, scheduledBackups, certificates, startedAt }: StatsDeps,
  span?: (typeof HISTORY_SPANS)[number],
): Promise<JsonText> {
  const seen = span === undefined ? undefined : await activity.of(span);
  const records = [sessions, turns, versions, memories, traces, indexedTurns] as const;
  const counted = [...records, vectors, documentVectors, pendingEmbeddings, pendingTurns, inLine, failed];
  const counts = await Promise.all(counted.map(async (table) => store.count(table)));
  const [ofSessions, ofTurns, ofVersions, ofMemories, ofTraces, indexed] = counts;
  const [stored, storedOfDocuments, pending, pendingOfTurns, ofPending, ofFailed] = counts.slice(records.length);
  const [failedAttemptsOfDay, indexing, areSearched] = await store.read((reader) => {
    reader.ahead(meta, [TURNS_SEARCHED]);
    return [failedAttempts(reader), turnIndexingIn(reader), reader.has(meta, TURNS_SEARCHED)] as const;
  });
  const { index_turns: index } = settings.values;
  const isReady = indexing?.index === index && indexing.after === undefined;
  return toJson({
    object: "stats",
    sessions: ofSessions,
    turns: ofTurns,
    versions: ofVersions,
    memories: ofMemories,
    traces: ofTraces,
    vectors: { stored: Math.max(0, stored! + storedOfDocuments! - pending!), pending },
    turn_index: {
      index_turns: index,
      state: index === "words" && !areSearched ? "unused" : isReady ? "ready" : "indexing",
      looked_at: isReady ? ofTurns : indexing?.index === index ? indexing.done : 0,
      indexed,
      pending: pendingOfTurns,
    },
    deliveries: { pending: ofPending, failed: failedAttemptsOfDay, exhausted: ofFailed },
    store: {
      bytes: store.bytes,
      used_bytes: store.bytesUsed,
      max_bytes: settings.values.max_store_bytes,
    },
    backups: (await scheduledBackups?.status()) ?? null,
    certificate: certificates?.status() ?? null,
    uptime_seconds: Math.floor((clock.elapsed() - startedAt) / 1000),
    history: seen && {
      bucket_seconds: seen.bucketSeconds,
      points: seen.points.map(({ at, requests, errors, changes, memories, searches, p50Ms, p99Ms }) => ({
        at: toIso(at),
        requests,
        errors,
        changes,
        memories,
        searches,
        p50_ms: p50Ms,
        p99_ms: p99Ms,
      })),
    },
  });
}
