/**
 * Opens every part on a data directory, and closes them again.
 *
 * @module
 */
import { Embeddings } from "./embeddings/embeddings.ts";
import { Arrivals } from "./http/arrivals.ts";
import { Idempotency } from "./http/idempotency.ts";
import { chance } from "./lib/chance.ts";
import { bounded, type Clock } from "./lib/clock.ts";
import { DAY_MS } from "./lib/duration.ts";
import { bareIdTime } from "./lib/ids.ts";
import { FairSemaphore } from "./lib/fair-semaphore.ts";
import { LIMITS } from "./lib/limits.ts";
import { describeError, type Log } from "./lib/log.ts";
import { systemResolve } from "./lib/outbound.ts";
import { toIso } from "./lib/time.ts";
import { backfill } from "./memories/backfill.ts";
import type { MemoryParts } from "./memories/memories.ts";
import { removeIncoming } from "./operations/new-store.ts";
import { openUpToDate } from "./operations/upgrade.ts";
import { StoreQuotas } from "./settings/quotas.ts";
import type { GivenSettings } from "./settings/schema.ts";
import { Settings } from "./settings/settings.ts";
import { sessionExpiry } from "./sessions/expiry.ts";
import { sessionRemoval } from "./sessions/removal.ts";
import { lockDirectory } from "./storage/directory-lock.ts";
import { makePrivate, prepareDirectory } from "./storage/data-directory.ts";
import { deadReaders } from "./storage/dead-readers.ts";
import type { Durability } from "./storage/durability.ts";
import type { Migration } from "./storage/migrate.ts";
import { Store } from "./storage/store.ts";
import { storeWatch } from "./storage/watch.ts";
import { Driver } from "./tasks/driver.ts";
import { Activator, type Task } from "./tasks/task.ts";
import { systemCaller, type Caller, type Records } from "./traces/record.ts";
import { traceRetention } from "./traces/retention.ts";
import { keyRegistration, type KeyMaker } from "./keys/keys.ts";
import { LastUses } from "./keys/last-use.ts";
import { TRACE_RETENTION_DAYS } from "./keys/tiers.ts";
import { indexWatch } from "./vectors/index-watch.ts";
import { VectorIndex, type IndexOptions } from "./vectors/vector-index.ts";
import type { WebhookParts } from "./webhooks/subscriptions.ts";
import { openWebhooks, type WebhookOptions } from "./webhooks/webhooks.ts";

export interface ServiceOptions {
  /** What the environment says of the settings that the API can change. */
  environment?: GivenSettings;
  /** How receivers of webhooks are reached, and what names stand for. */
  network?: WebhookOptions;
  index?: IndexOptions;
  /** What brings the store of an older Cairn up to date; those there are unless a test has its own. */
  migrations?: readonly Migration[];
  durability?: Durability;
  /** Called with why the store fails when it begins to, and with undefined when it works again. */
  onStoreChange?: (problem: string | undefined) => void;
  /** An admin key that the operator chose. */
  apiKey?: string | undefined;
  listLooksMax?: number;
}

export interface Service extends MemoryParts, WebhookParts {
  readonly settings: Settings;
  /** Who changes what no request asks for. */
  readonly system: Caller;
  readonly arrivals: Arrivals;
  readonly idempotency: Idempotency;
  readonly lastUses: LastUses;
  readonly tasks: readonly Task[];
  readonly durability: Durability;
  /** Starts the timers. */
  start(): void;
  close(): Promise<void>;
}

/** What a command of the operator's works with. */
export interface RecordsOfCommand extends Records {
  readonly operator: KeyMaker;
}

/** Opens the records of a data directory, beside a running server too. */
export async function openRecords(dataDirectory: string, clock: Clock): Promise<RecordsOfCommand> {
  const directory = prepareDirectory(dataDirectory);
  const store = await Store.open(directory, clock);
  makePrivate(directory);
  const { trace_retention_days } = new Settings(store, {}).values;
  return { store, clock: bounded(clock), operator: { ...systemCaller(() => trace_retention_days), scopes: ["admin"] } };
}

/**
 * Opens everything for serving, an older store brought up to date; nobody else can serve from the directory until `close`.
 *
 * @throws {Error} while another process has locked the directory
 */
export async function openService(dataDirectory: string, given: Clock, log: Log, options: ServiceOptions = {}): Promise<Service> {
  const clock = bounded(given);
  const directory = prepareDirectory(dataDirectory);
  const lock = lockDirectory(directory);
  try {
    try {
      removeIncoming(directory);
    } catch (error) {
      log.warn("could not remove the leftovers of an interrupted import or restore", { error: describeError(error) });
    }
    const store = await openUpToDate(directory, clock, log, options);
    const records = { store, clock, listLooksMax: options.listLooksMax };
    makePrivate(directory);
    warnOfClock(records.store, given, log);
    const settings = new Settings(records.store, options.environment ?? {});
    const backfilling = new Activator();
    const resolve = options.network?.resolve ?? systemResolve;
    const means = { clock, random: chance, resolve, onFailure: () => backfilling.wake() };
    const embeddings = await Embeddings.open(records.store, settings.effective.embedding, means);
    const vectors = new VectorIndex(records.store, log, options.index);
    const arrivals = new Arrivals(clock);
    const idempotency = new Idempotency(records.store, clock);
    const lastUses = new LastUses(records.store, log);
    const system = systemCaller(() => settings.values.trace_retention_days);
    const policy = () => settings.effective.webhooks;
    const hooks = openWebhooks(records, { log, random: chance, system }, policy, options.network ?? {});
    const quotas = new StoreQuotas(records.store, clock, () => settings.values);
    const parts = {
      ...records,
      quotas,
      log,
      embeddings,
      vectors,
      searches: new FairSemaphore({ max: LIMITS.searchesAtOnceMax, ofOwnerMax: LIMITS.searchesOfKeyAtOnceMax }),
      settings,
      backfill: backfilling,
      outbox: hooks.outbox,
      webhooks: hooks.parts,
    };
    const tasks = [
      sessionExpiry(parts, system),
      sessionRemoval(records, log),
      traceRetention(records, () => [...Object.values(TRACE_RETENTION_DAYS), settings.values.trace_retention_days], log),
      ...hooks.tasks,
      arrivals.deadlines(),
      idempotency.retention(log),
      lastUses.task(),
      deadReaders(records.store, log),
      storeWatch(records.store, log, options.onStoreChange ?? (() => undefined)),
      indexWatch(vectors),
      backfill(parts),
      ...(options.apiKey === undefined ? [] : [await keyRegistration(records, system, options.apiKey, log)]),
    ];
    const driver = new Driver(tasks, log);
    await vectors.open();
    return {
      ...parts,
      system,
      arrivals,
      idempotency,
      lastUses,
      tasks,
      durability: options.durability ?? "strict",
      start: () => driver.start(),
      async close() {
        embeddings.close();
        await hooks.stop();
        await driver.stop();
        // A disk that does not take it must not keep the rest from closing.
        await lastUses.writeAll().catch((error: unknown) => {
          if (!records.store.hasPanicked) log.error("the last use of keys was not written", { error: describeError(error) });
        });
        await vectors.close();
        await records.store.close();
        lock[Symbol.dispose]();
      },
    };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/** Times are the clock's; a record of a clock that was wrong keeps them. */
function warnOfClock(store: Store, given: Clock, log: Log): void {
  const [shown, now] = [given.now(), bounded(given).now()];
  if (shown !== now)
    log.warn("the system's clock shows a time outside of 1970 to 2073: the nearest one is used", { clock: toIso(shown), used: toIso(now) });
  const newest = store.newestId();
  if (newest === undefined || bareIdTime(newest) - now <= DAY_MS) return;
  log.warn(
    "the newest record is more than a day ahead of the clock: the clock was wrong then, or is now. Records made ahead of it keep their times, and expire by them",
    { newest: toIso(bareIdTime(newest)), clock: toIso(now) },
  );
}
