/**
 * Opens every part on a data directory, and closes them again.
 *
 * @module
 */
import { Embeddings } from "./embeddings/embeddings.ts";
import { Idempotency } from "./http/idempotency.ts";
import { chance } from "./lib/chance.ts";
import { wait, type Clock, type Wait } from "./lib/clock.ts";
import { IdSource } from "./lib/ids.ts";
import type { Log } from "./lib/log.ts";
import { BACKFILL, backfill } from "./memories/backfill.ts";
import type { MemoryParts } from "./memories/memories.ts";
import { Settings } from "./settings/settings.ts";
import { sessionExpiry } from "./sessions/expiry.ts";
import { sessionRemoval } from "./sessions/removal.ts";
import { claim, prepareDirectory } from "./storage/claim.ts";
import { AFTER_ALL } from "./storage/keys.ts";
import { Store } from "./storage/store.ts";
import { type EmbeddingSettings, apiKeysById, memories, outbox, payloads, sessions, traces, webhooks } from "./storage/tables.ts";
import { Driver } from "./tasks/driver.ts";
import type { Task } from "./tasks/task.ts";
import type { Caller, Records } from "./traces/record.ts";
import { traceRetention } from "./traces/retention.ts";
import { TRACE_RETENTION_DAYS } from "./keys/tiers.ts";
import { VectorIndex } from "./vectors/vector-index.ts";
import type { WebhookParts } from "./webhooks/subscriptions.ts";
import { openWebhooks, type WebhookOptions } from "./webhooks/webhooks.ts";

export interface ServiceOptions {
  /** What the environment says of the embedding provider. */
  embedding?: EmbeddingSettings;
  webhooks?: WebhookOptions;
  wait?: Wait;
}

export interface Service extends MemoryParts, WebhookParts {
  readonly settings: Settings;
  readonly idempotency: Idempotency;
  readonly tasks: readonly Task[];
  /** Starts the timers. */
  start(): void;
  close(): Promise<void>;
}

/** Opens the records of a data directory, beside a running server too. */
export async function openRecords(dataDirectory: string, clock: Clock): Promise<Records> {
  const directory = prepareDirectory(dataDirectory);
  const store = await Store.open(directory, clock);
  return { store, clock, ids: new IdSource(clock, { startAfter: newestId(store) }) };
}

/**
 * Opens everything for serving; nobody else can serve from the directory until `close`.
 *
 * @throws {DirectoryInUseError}
 */
export async function openService(dataDirectory: string, clock: Clock, log: Log, options: ServiceOptions = {}): Promise<Service> {
  const release = claim(prepareDirectory(dataDirectory));
  try {
    const records = await openRecords(dataDirectory, clock);
    const settings = new Settings(records.store, options.embedding ?? {});
    // Tasks are made of the parts, and some parts wake a task.
    const timers: { driver?: Driver } = {};
    const wakeBackfill = () => timers.driver?.wake(BACKFILL);
    const means = { clock, wait: options.wait ?? wait, random: chance, onFailure: wakeBackfill };
    const embeddings = await Embeddings.open(records.store, settings.inForce.embedding, means);
    const vectors = new VectorIndex(records.store, log);
    const idempotency = new Idempotency(records.store, clock);
    const timer: Caller = {
      actor: "system",
      keyId: null,
      retentionDays: TRACE_RETENTION_DAYS.enterprise,
      requestId: null,
      startedAt: null,
    };
    const wakeTask = (name: string) => timers.driver?.wake(name);
    const hooks = openWebhooks(records, { log, wait: means.wait, random: chance }, options.webhooks ?? {}, wakeTask);
    const { wakeOutbox, parts: webhookParts } = hooks;
    const parts = { ...records, log, embeddings, vectors, settings, wakeBackfill, wakeOutbox, wait: means.wait, webhooks: webhookParts };
    const tasks = [
      sessionExpiry(parts, timer),
      sessionRemoval(records),
      traceRetention(records),
      ...hooks.tasks,
      idempotency.retention(),
      backfill(parts),
    ];
    const driver = new Driver(tasks, log);
    timers.driver = driver;
    await vectors.open();
    return {
      ...parts,
      idempotency,
      tasks,
      start: () => driver.start(),
      async close() {
        embeddings.close();
        await hooks.stop();
        await driver.stop();
        await vectors.close();
        await records.store.close();
        release();
      },
    };
  } catch (error) {
    release();
    throw error;
  }
}

/** Ids go on after the newest one stored, even when the clock has been set back. */
function newestId(store: Store): string | undefined {
  const newest = [sessions, memories, traces, outbox, apiKeysById, webhooks, payloads].flatMap((table) =>
    store.keys(table, { from: "", to: AFTER_ALL, limit: 1, descending: true }),
  );
  return newest.sort().at(-1);
}
