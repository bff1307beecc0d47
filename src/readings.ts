/**
 * The figures of the store and the index for `/metrics`.
 *
 * @module
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { fromBase62 } from "./lib/base62.ts";
import type { Reading } from "./http/metrics.ts";
import type { MemoryParts } from "./memories/memories.ts";
import type { Settings } from "./settings/settings.ts";
import { FIRST } from "./storage/access.ts";
import { DATA_FILE } from "./storage/data-file.ts";
import { NUMBER_KEY_LENGTH } from "./storage/keys.ts";
import {
  apiKeys,
  deliveriesBySession,
  memories,
  outbox,
  owed,
  sessions,
  sessionsByExpiry,
  traces,
  turns,
  versions,
} from "./storage/tables.ts";
import type { WebhookParts } from "./webhooks/subscriptions.ts";

export function readingsOf({
  store,
  settings,
  vectors,
  clock,
  webhooks,
}: MemoryParts & WebhookParts & { settings: Pick<Settings, "values"> }): Reading[] {
  return [
    {
      name: "cairn_records",
      help: "Records in the store, by kind.",
      label: "kind",
      read: () =>
        Object.fromEntries([sessions, versions, turns, memories, traces, apiKeys].map((table) => [table.name, store.count(table)])),
    },
    {
      name: "cairn_store_bytes",
      help: "Size of the store on disk.",
      read: () => statSync(join(store.directory, DATA_FILE)).size,
    },
    {
      name: "cairn_store_used_bytes",
      help: "Bytes of the store that hold records; the rest of its file is free for new ones. max_store_bytes limits this.",
      read: () => store.bytesUsed,
    },
    {
      name: "cairn_store_max_bytes",
      help: "The setting max_store_bytes; 0 without a limit.",
      read: () => settings.values.max_store_bytes ?? 0,
    },
    { name: "cairn_vectors_stored", help: "Vectors in the store.", read: () => vectors.status.vectors },
    {
      name: "cairn_vectors",
      help: "Vectors by where they are: in the index, not yet in it, deleted but still taking room in its graph. The first 100 need no index.",
      label: "state",
      read: () => {
        const { indexed, pending, removed } = vectors.status;
        return { indexed, pending, removed };
      },
    },
    { name: "cairn_vectors_owed", help: "Vectors still to be made.", read: () => store.count(owed) },
    { name: "cairn_outbox_events", help: "Events of which no deliveries were made yet.", read: () => store.count(outbox) },
    {
      name: "cairn_webhook_deliveries_pending",
      help: "Deliveries still to be made, those that wait for another attempt included.",
      read: () => store.count(deliveriesBySession),
    },
    {
      name: "cairn_webhook_attempts_total",
      help: "Attempts to deliver by what came of them: delivered, failed and to be tried again, failed for good.",
      label: "outcome",
      counter: true,
      read: () => {
        const { delivered, retry, failed } = webhooks.outcomes;
        return { delivered, retry, failed };
      },
    },
    {
      name: "cairn_webhooks_disabled_total",
      help: "Webhooks that were disabled because their receiver is gone or has failed for days.",
      counter: true,
      read: () => webhooks.outcomes.disabled,
    },
    {
      name: "cairn_expiry_lag_seconds",
      help: "How long the session that is overdue longest has been waiting to be removed.",
      read: () => {
        const [first] = store.keys(sessionsByExpiry, FIRST);
        return first === undefined ? 0 : Math.max(0, clock.now() - fromBase62(first.slice(0, NUMBER_KEY_LENGTH))) / 1000;
      },
    },
    {
      name: "process_resident_memory_bytes",
      help: "Memory of the process, the mapped store included.",
      read: () => process.memoryUsage.rss(),
    },
    {
      name: "process_cpu_seconds_total",
      help: "Processor time of the process.",
      counter: true,
      read: () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1e6;
      },
    },
  ];
}
