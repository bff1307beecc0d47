/**
 * Metrics of the store, the index and the process.
 *
 * @module
 */
import type { ScheduledBackups } from "../backups/scheduled-backups.ts";
import type { Certificates } from "../certificates/certificates.ts";
import type { ContextDeps } from "../context/context.ts";
import { fromBase62 } from "../lib/base62.ts";
import type { CacheUses } from "../lib/cache.ts";
import type { MetricSource } from "../http/metrics.ts";
import type { DocumentDeps } from "../documents/documents.ts";
import type { Settings } from "../settings/settings.ts";
import { FIRST } from "../storage/access.ts";
import { NUMBER_KEY_LENGTH } from "../storage/keys.ts";
import {
  apiKeys,
  deliveries,
  memories,
  outbox,
  documentVectors as documentVectorTable,
  pendingEmbeddings,
  retrievals,
  sessions,
  traces,
  turns,
  vectors as vectorTable,
  versions,
} from "../storage/tables.ts";
import type { SecretPolicy } from "../secrets/secret-policy.ts";
import type { SharedState } from "./store-parts.ts";
import { sumOf } from "../search/index-status.ts";
import { failedAttempts } from "../webhooks/stats.ts";
import type { WebhookDeps } from "../webhooks/webhooks.ts";

type MetricDeps = ContextDeps &
  DocumentDeps &
  WebhookDeps & {
    readonly settings: Pick<Settings, "values">;
    readonly scheduledBackups: ScheduledBackups | undefined;
    readonly secrets: SecretPolicy;
    readonly certificates?: Certificates | undefined;
  };

export function storeMetrics(deps: MetricDeps): MetricSource[] {
  const { store, settings, clock } = deps;
  return [
    gauge(
      "cairn_records",
      "Records in the store, by kind.",
      async () => {
        const counted = [sessions, versions, turns, memories, retrievals, traces, apiKeys];
        return Object.fromEntries(await Promise.all(counted.map(async ({ name }) => [name, await store.count({ name })] as const)));
      },
      "kind",
    ),
    gauge("cairn_store_bytes", "Size of the store on disk.", () => store.bytes),
    gauge(
      "cairn_store_used_bytes",
      "Bytes of the store that hold records; the rest of its file is free for new ones. max_store_bytes limits this.",
      () => store.bytesUsed,
    ),
    gauge("cairn_store_max_bytes", "The setting max_store_bytes; 0 without a limit.", () => settings.values.max_store_bytes ?? 0),
    ...vectorMetrics(deps),
    gauge("cairn_outbox_events", "Events of which no deliveries were made yet.", () => store.count(outbox)),
    gauge("cairn_webhook_deliveries_pending", "Deliveries still to be made, those that wait for another attempt included.", () =>
      store.count(deliveries.index.inLine),
    ),
    gauge("cairn_webhook_deliveries_exhausted", "Deliveries that are not tried again.", () => store.count(deliveries.index.failed)),
    gauge("cairn_webhook_attempts_failed_last_day", "Attempts to deliver that failed in this hour and the 24 before it.", () =>
      store.read(failedAttempts),
    ),
    ...outcomeMetrics(deps),
    ...secretMetrics(deps),
    ...backupMetrics(deps),
    ...certificateMetrics(deps),
    gauge("cairn_expiry_lag_seconds", "How long the session that is overdue longest has been waiting to be removed.", async () => {
      const [first] = await store.read((reader) => reader.keys(sessions.index.byExpiry, FIRST));
      return first === undefined ? 0 : Math.max(0, clock.now() - fromBase62(first.slice(0, NUMBER_KEY_LENGTH))) / 1000;
    }),
    ...cacheMetrics(deps),
    gauge("process_resident_memory_bytes", "Memory of the process, the mapped store included.", () => process.memoryUsage.rss()),
    counter("process_cpu_seconds_total", "Processor time of the process.", () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    }),
  ];
}

/** Standing of a server among those that share a database; none where it is alone. */
export function sharedMetrics(servers: SharedState | undefined): MetricSource[] {
  if (servers === undefined) return [];
  return [
    gauge(
      "cairn_lease_held",
      "Whether this server holds a lease, by the task that runs under it: of all servers together one does.",
      () => servers.leases(),
      "lease",
    ),
    gauge(
      "cairn_clock_offset_seconds",
      "How far the clock of this server's system is ahead of that of the database, by which it works.",
      () => servers.clockOffsetMs() / 1000,
    ),
    counter("cairn_conflicts_total", "Transactions that this server ran again, because another one had changed what they build on.", () =>
      servers.conflicts(),
    ),
    gauge(
      "cairn_search_replica_ready",
      "Whether this server has its copy of what is searched. Without it searches of everything compare the newest 20,000.",
      () => (servers.replica().isReady ? 1 : 0),
    ),
    gauge("cairn_search_replica_vectors", "Vectors in the copy, of memories and documents.", () => servers.replica().vectors),
    gauge(
      "cairn_search_replica_lag_transactions",
      "Transactions of any server that are known of and not in the copy yet.",
      () => servers.replica().transactionsBehind,
    ),
    gauge(
      "cairn_search_replica_lag_seconds",
      "How long ago the copy was as the database was. A search brings it up to date first.",
      () => servers.replica().msBehind / 1000,
    ),
  ];
}

/** None on a database, which has backups of its own. */
function backupMetrics({ scheduledBackups }: MetricDeps): MetricSource[] {
  if (scheduledBackups === undefined) return [];
  const status = () => scheduledBackups.status();
  return [
    gauge("cairn_backup_newest_time_seconds", "Unix time of the newest backup; 0 where there is none.", async () => {
      const { newest_at } = await status();
      return newest_at === null ? 0 : Date.parse(newest_at) / 1000;
    }),
    gauge("cairn_backup_overdue", "Whether a backup of the schedule has been due for more than an hour.", async () =>
      Number((await status()).overdue),
    ),
    gauge(
      "cairn_backup_copy_newest_time_seconds",
      "Unix time of the newest backup that is in the bucket; 0 where there is none.",
      async () => {
        const { copies } = await status();
        return copies === null || copies.newest_at === null ? 0 : Date.parse(copies.newest_at) / 1000;
      },
    ),
    counter("cairn_backup_copies_failed_total", "Copies of backups that failed.", async () => (await status()).copies?.failures ?? 0),
    counter("cairn_backups_failed_total", "Backups of the schedule that failed.", async () => (await status()).failures),
  ];
}

/** One for each action, so that none is there that has not happened. */
function secretMetrics({ secrets: { counts } }: MetricDeps): MetricSource[] {
  const found = (became: string) => `Secrets in requests that were ${became}, by kind.`;
  return [
    counter("cairn_secrets_tagged_total", found("stored, their records marked (secrets: tag)"), () => counts.tag, "kind"),
    counter("cairn_secrets_redacted_total", found("taken out (secrets: redact)"), () => counts.redact, "kind"),
    counter("cairn_secrets_blocked_total", found("refused with them (secrets: block)"), () => counts.block, "kind"),
  ];
}

/** None where the server gets no certificate. */
function certificateMetrics({ certificates }: MetricDeps): MetricSource[] {
  if (certificates === undefined) return [];
  return [
    gauge("cairn_certificate_expires_time_seconds", "Unix time at which the certificate in use ends; 0 while there is none.", () => {
      const { expires_at } = certificates.status();
      return expires_at === null ? 0 : Date.parse(expires_at) / 1000;
    }),
    gauge("cairn_certificate_overdue", "Whether the certificate should have been renewed long before.", () =>
      Number(certificates.status().overdue),
    ),
    gauge(
      "cairn_certificate_failures",
      "Orders of a certificate that have failed since the last one that succeeded.",
      () => certificates.status().failures,
    ),
  ];
}

/** Outcomes of attempts to deliver, and of retrievals that were to be logged. */
function outcomeMetrics({ webhooks, retrievals: { counts } }: MetricDeps): MetricSource[] {
  return [
    counter(
      "cairn_webhook_attempts_total",
      "Attempts to deliver since the start by outcome: delivered; retry: failed, with another one to come; exhausted: failed, with none to come.",
      () => {
        const { delivered, retry, exhausted } = webhooks.outcomes;
        return { delivered, retry, exhausted };
      },
      "outcome",
    ),
    counter(
      "cairn_webhooks_disabled_total",
      "Webhooks disabled because their receiver is gone or has failed for days.",
      () => webhooks.outcomes.disabled,
    ),
    counter(
      "cairn_retrievals_total",
      "Retrievals by what became of them while retrieval_log was on: logged, dropped.",
      () => ({ ...counts }),
      "outcome",
    ),
  ];
}

function vectorMetrics({ store, embeddings, vectors, documentVectors }: MetricDeps): MetricSource[] {
  return [
    gauge(
      "cairn_vectors_stored",
      "Vectors in the store, of memories and documents.",
      async () => (await store.count(vectorTable)) + (await store.count(documentVectorTable)),
    ),
    gauge(
      "cairn_vectors",
      "Vectors by where they are: in the index, not yet in it, deleted but still taking space in its graph. The first 100 of memories, and of documents, need no index.",
      () => {
        const [one, other] = [vectors.status, documentVectors.status];
        return { indexed: one.indexed + other.indexed, pending: one.pending + other.pending, removed: one.removed + other.removed };
      },
      "state",
    ),
    gauge(
      "cairn_vector_index_bytes",
      "Memory that the index takes, by part: numbers and terms of each vector (rows), ids, the index of terms, the graph.",
      () => ({ ...sumOf(vectors.bytes, documentVectors.bytes) }),
      "part",
    ),
    gauge("cairn_embeddings_pending", "Vectors still to be made.", () => store.count(pendingEmbeddings)),
    gauge("cairn_encoder_waiting", "Texts that wait for the built-in encoder.", () => embeddings.active.builtin?.waiting ?? 0),
  ];
}

function cacheMetrics(deps: MetricDeps): MetricSource[] {
  const uses = (of: keyof CacheUses) => () => {
    const queryVectors = (deps.embeddings.active.remote ?? deps.embeddings.active.builtin)?.queryVectorUses ?? { hits: 0, misses: 0 };
    const all = {
      ...deps.store.cacheUses,
      recent_turns: deps.recentTurns.uses,
      query_vectors: queryVectors,
      resident_vectors: deps.vectors.cacheUses,
      resident_document_vectors: deps.documentVectors.cacheUses,
    };
    return Object.fromEntries(Object.entries(all).map(([cache, counts]) => [cache, counts[of]]));
  };
  return [
    counter("cairn_cache_hits_total", "Look-ups in a cache that found something, by cache.", uses("hits"), "cache"),
    counter("cairn_cache_misses_total", "Look-ups in a cache that found nothing, by cache.", uses("misses"), "cache"),
  ];
}

function gauge(name: string, help: string, read: MetricSource["read"], label?: string): MetricSource {
  return { name, help, read, ...(label === undefined ? {} : { label }) };
}

/** A counter starts at 0 with the process. */
function counter(name: string, help: string, read: MetricSource["read"], label?: string): MetricSource {
  return { ...gauge(name, help, read, label), counter: true };
}
