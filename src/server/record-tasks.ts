/**
 * Tasks on the records of all. Where several servers share a store, one of them at a time runs each.
 *
 * @module
 */
import type { ContextDeps } from "../context/context.ts";
import type { DocumentDeps } from "../documents/documents.ts";
import { documentExpiry, documentRemoval } from "../documents/removal.ts";
import { documentTexts } from "../documents/search.ts";
import { idempotencyRetention } from "../http/idempotency.ts";
import { keyExpiry } from "../keys/sign-in.ts";
import { TRACE_RETENTION_DAYS } from "../keys/tiers.ts";
import type { Log } from "../lib/log.ts";
import { backfill, memoryTexts } from "../memories/backfill.ts";
import { memoryExpiry } from "../memories/expiry.ts";
import { retrievalRetention } from "../retrievals/retention.ts";
import { sessionExpiry } from "../sessions/expiry.ts";
import { sessionRemoval } from "../sessions/removal.ts";
import type { Settings } from "../settings/settings.ts";
import type { RecordStore } from "../storage/record-store.ts";
import type { Task } from "../tasks/task.ts";
import type { Caller } from "../traces/record.ts";
import { traceRetention } from "../traces/retention.ts";
import { turnIndexTask } from "../turns/index-task.ts";
import { turnBackfills, turnTexts, type TurnDeps } from "../turns/indexed-turns.ts";
import { userDirectory } from "../users/directory.ts";
import { userErasure } from "../users/erasure.ts";

type TaskDeps = ContextDeps & DocumentDeps & TurnDeps & { readonly log: Log; readonly settings: Settings };

export function recordTasks(deps: TaskDeps, system: Caller): ((leased: RecordStore) => Task)[] {
  const { log, settings } = deps;
  const retentionDays = () => [...Object.values(TRACE_RETENTION_DAYS), settings.values.trace_retention_days];
  const embeddedTexts = [memoryTexts(deps), documentTexts(deps)];
  return [
    (store) => sessionExpiry({ ...deps, store }, system),
    (store) => sessionRemoval({ ...deps, store }, log),
    (store) => memoryExpiry({ ...deps, store }, system),
    (store) => documentExpiry({ ...deps, store }, log),
    (store) => documentRemoval({ ...deps, store }, log),
    (store) => userErasure({ ...deps, store }, log),
    (store) => userDirectory(store),
    (store) => traceRetention({ ...deps, store }, retentionDays, log),
    (store) => retrievalRetention({ ...deps, store }, log),
    (store) => idempotencyRetention({ ...deps, store }, log),
    (store) => keyExpiry({ ...deps, store }, log),
    (store) => backfill({ ...deps, store }, { name: "embeddings", kinds: embeddedTexts, evicted: [...embeddedTexts, turnTexts(deps)] }),
    (store) => turnBackfills({ ...deps, store }),
    (store) => turnIndexTask({ ...deps, store }, log),
  ];
}
