/**
 * Opens every part on a data directory, and closes them again.
 *
 * @module
 */
import { BackupCopies } from "../backups/backup-copies.ts";
import { Backups } from "../backups/backups.ts";
import { OWN_PROGRAM } from "../backups/command.ts";
import { NoBackups } from "../backups/no-backups.ts";
import { ScheduledBackups } from "../backups/scheduled-backups.ts";
import { Certificates, type CertificateOptions } from "../certificates/certificates.ts";
import { commandEnvironment } from "../config.ts";
import type { ContextDeps } from "../context/context.ts";
import type { DocumentDeps } from "../documents/documents.ts";
import { wordsCounted } from "../embeddings/builtin/token-count.ts";
import { wordsSplit } from "../embeddings/words/terms.ts";
import { Embeddings } from "../embeddings/embeddings.ts";
import { Arrivals } from "../http/arrivals.ts";
import { Idempotency } from "../http/idempotency.ts";
import { KeptBytes } from "../http/kept-bytes.ts";
import { keyRegistration } from "../keys/first-key.ts";
import { LastUses } from "../keys/last-use.ts";
import { Tickets } from "../keys/tickets.ts";
import type { KeyBuckets } from "../lib/bucket.ts";
import { chance } from "../lib/chance.ts";
import { bounded, type Clock } from "../lib/clock.ts";
import { FairSemaphore } from "../lib/fair-semaphore.ts";
import { LIMITS } from "../lib/limits.ts";
import { describeError, type Log } from "../lib/log.ts";
import type { BucketAccess } from "../lib/s3.ts";
import { lacksAvx2, removeOtherAddons } from "../lib/native.ts";
import { systemResolve } from "../lib/outbound.ts";
import { recordTasks } from "./record-tasks.ts";
import { removeLeftovers } from "../operations/new-store.ts";
import { backUpBefore } from "../operations/upgrade.ts";
import { RetrievalLog } from "../retrievals/log.ts";
import { NAMES_FILL } from "../sessions/names.ts";
import { parseOAuthClients } from "../settings/oauth-clients.ts";
import { StoreQuotas } from "../settings/quotas.ts";
import type { GivenSettings } from "../settings/schema.ts";
import { Settings } from "../settings/settings.ts";
import { settingsWatch } from "../settings/watch.ts";
import type { Durability } from "../storage/durability.ts";
import { fillStore } from "../storage/fills.ts";
import { leasedTask, type Leases } from "../storage/leases.ts";
import { prepareDirectory } from "../storage/lmdb/directory/data-directory.ts";
import { lockDirectory } from "../storage/lmdb/directory/directory-lock.ts";
import type { Store } from "../storage/lmdb/store.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { Activity } from "../stats/activity.ts";
import { storeWatch } from "../storage/watch.ts";
import { SecretPolicy } from "../secrets/secret-policy.ts";
import { warnOfClock } from "./clock-check.ts";
import { openStoreParts, type SharedState, type StoreOptions, type StoreParts } from "./store-parts.ts";
import { Driver } from "../tasks/driver.ts";
import { Activator, type Task } from "../tasks/task.ts";
import { TraceFeed } from "../traces/feed.ts";
import { systemCaller, type Caller, type Deps } from "../traces/record.ts";
import type { TurnDeps } from "../turns/indexed-turns.ts";
import { RecentTurns } from "../turns/recent-turns.ts";
import { TurnSearches } from "../turns/turn-searches.ts";
import { USERS_FILL } from "../users/directory.ts";
import { endsErasure, erasureWatch, forgetAll, type Forgetful } from "../users/forgetting.ts";
import { ClientDocuments } from "../oauth/client-documents.ts";
import type { OAuthDeps } from "../oauth/requests.ts";
import { openWebhooks, type WebhookOptions, type Webhooks } from "../webhooks/open.ts";
import type { WebhookDeps } from "../webhooks/webhooks.ts";

export interface ServiceOptions extends StoreOptions {
  /** Values from the environment for settings that the API can change. */
  environment?: GivenSettings;
  /** Network for receivers of webhooks, and resolver of names. */
  network?: WebhookOptions;
  /** Called with why the store fails when it begins to, and with undefined when it works again. */
  onStoreChange?: (problem: string | undefined) => void;
  /** Address at which clients reach this server. */
  publicUrl?: string | undefined;
  /** An admin key that the operator chose. */
  apiKey?: string | undefined;
  listProbesMax?: number;
  keptAnswerBytesMax?: number;
  /** The encoder's thread; a test has another. */
  newEncoder?: () => Worker;
  /** Program that makes backups; this one unless a test has another. */
  backupProgram?: readonly string[];
  /** Access to the bucket that backups are copied to. */
  bucketAccess?: BucketAccess;
  /** Domains to get a certificate for. */
  certificate?: CertificateOptions | undefined;
}

export interface Service extends ContextDeps, DocumentDeps, TurnDeps, WebhookDeps, OAuthDeps {
  readonly settings: Settings;
  readonly secrets: SecretPolicy;
  /** Makes the changes that no request asks for. */
  readonly system: Caller;
  readonly arrivals: Arrivals;
  readonly idempotency: Idempotency;
  readonly activity: Activity;
  readonly feed: TraceFeed;
  /** `clock.elapsed()` when it was opened. */
  readonly startedAt: number;
  readonly lastUses: LastUses;
  readonly tickets: Tickets;
  readonly backups: Backups | NoBackups;
  readonly scheduledBackups: ScheduledBackups | undefined;
  /** The certificate of its domains; undefined where it has none to get. */
  readonly certificates: Certificates | undefined;
  /** The data directory. */
  readonly directory: string;
  /** The embedded store, where that is the one, for what only that has. */
  readonly embedded: Store | undefined;
  /** Buckets of keys that several servers share. */
  readonly buckets: KeyBuckets | undefined;
  readonly leases: Leases;
  /** Standing of this server among those that share a database. */
  readonly servers: SharedState | undefined;
  readonly tasks: readonly Task[];
  readonly durability: Durability;
  /** Aborted once the server is going to stop: proxies are to ask another one. */
  readonly stopping: AbortSignal;
  /** Starts the timers. */
  start(): void;
  /** Tells proxies that it is going to stop, and keeps working. */
  drain(): void;
  close(): Promise<void>;
}

/**
 * Opens everything for serving, an older store brought up to date; nobody else can serve from the directory until `close`.
 *
 * @throws {Error} while another process has locked the directory
 */
export async function openService(dataDirectory: string, given: Clock, log: Log, options: ServiceOptions = {}): Promise<Service> {
  // Closed in reverse order, also when a later part cannot be opened.
  await using opened = new AsyncDisposableStack();
  const directory = prepareDirectory(dataDirectory);
  opened.use(lockDirectory(directory));
  removeInterrupted(directory, log);
  const parts = await openStoreParts(opened, directory, given, log, options);
  await warnOfClock(parts.store, parts.clock, log);
  const lastUses = opened.adopt(new LastUses(parts.store, log), (kept) => writeAtStop(kept, parts.store, log));
  const activity = opened.adopt(new Activity(parts.store, bounded(parts.clock), log), (kept) => writeAtStop(kept, parts.store, log));
  const { deps, system, hooks } = await openDeps(opened, parts, activity, log, options);
  const { store, clock, embeddings } = deps;
  const requests = openRequests(deps, parts, options);
  const { feed } = requests;
  const forgetful = [embeddings, wordsCounted, wordsSplit, deps.recentTurns, ...parts.forgetful];
  notifyOfCommits(store, { activity, feed, forgetful, hooks });
  const own = openBackups(parts, { ...deps, tickets: requests.tickets, system }, options);
  const certificates = await Certificates.open(options.certificate, { ...parts, clock: deps.clock, log });
  const tasks = await openTasks({ parts, deps, system, hooks, requests, forgetful, lastUses, activity, own, certificates }, log, options);
  const driver = new Driver(tasks, log);
  opened.defer(() => stopWork({ feed, embeddings, hooks, driver, parts }));
  // Before the driver, which waits for the one that is being made.
  opened.defer(async () => {
    certificates?.close();
    own?.copies.close();
    await own?.backups.close();
  });
  await parts.openIndexes();
  const closing = opened.move();
  const stop = new AbortController();
  const { embedded, buckets, servers, leases } = parts;
  return {
    ...deps,
    ...requests,
    activity,
    directory,
    embedded,
    buckets,
    servers,
    leases,
    system,
    lastUses,
    backups: own?.backups ?? new NoBackups(),
    scheduledBackups: own?.scheduledBackups,
    certificates,
    tasks,
    startedAt: clock.elapsed(),
    durability: options.durability ?? "strict",
    stopping: stop.signal,
    start: () => {
      driver.start();
      embeddings.active.builtin?.open();
    },
    drain: () => stop.abort(),
    close: () => closing.disposeAsync(),
  };
}

type OpenDeps = Awaited<ReturnType<typeof openDeps>>["deps"];

/** Opens what the operations of the API work with. */
async function openDeps(opened: AsyncDisposableStack, parts: StoreParts, activity: Activity, log: Log, options: ServiceOptions) {
  const { store, leases, vectors, documentVectors, turnVectors } = parts;
  const clock = bounded(parts.clock);
  const records = { store, clock, listProbesMax: options.listProbesMax };
  const settings = await Settings.open(store, options.environment ?? {});
  const system = systemCaller(() => settings.values.trace_retention_days);
  const backfill = new Activator();
  const embeddings = await openEmbeddings({ store, clock, log, settings }, options, () => backfill.wake());
  const policy = () => settings.effective.webhooks;
  const hooks = openWebhooks({ ...records, log, random: chance, system, leases }, policy, options.network ?? {});
  const quotas = new StoreQuotas(store, clock, () => settings.values);
  const secrets = new SecretPolicy(() => settings.values);
  const isOn = () => settings.values.retrieval_log;
  const days = () => settings.values.retrieval_log_days;
  const retrievals = opened.adopt(new RetrievalLog({ store, clock, quotas, log, secrets, isOn, days }), (open) => open.settled());
  store.onCommit = () => retrievals.flush();
  const deps = {
    ...records,
    log,
    settings,
    quotas,
    secrets,
    retrievals,
    embeddings,
    backfill,
    vectors,
    documentVectors,
    turnVectors,
    turnBackfill: new Activator(),
    turnSearches: new TurnSearches(clock),
    documentQueries: new FairSemaphore({ max: LIMITS.documentQueriesAtOnceMax, ofOwnerMax: LIMITS.documentQueriesOfKeyAtOnceMax }),
    searches: new FairSemaphore({
      max: LIMITS.searchesAtOnceMax,
      ofOwnerMax: LIMITS.searchesOfKeyAtOnceMax,
      onPermit: () => activity.addSearch(),
    }),
    recentTurns: new RecentTurns(),
    webhooks: hooks.webhooks,
    oauth: {
      documents: new ClientDocuments(clock, { resolve: systemResolve, ...options.network }),
      publicUrl: options.publicUrl,
      clients: () => parseOAuthClients(settings.values.oauth_clients) ?? [],
    },
  };
  return { deps, system, hooks };
}

/** Opens what requests work with besides. */
function openRequests({ store, clock, quotas }: OpenDeps, { follower }: StoreParts, { keptAnswerBytesMax }: ServiceOptions) {
  return {
    arrivals: new Arrivals(clock),
    idempotency: new Idempotency(store, quotas, new KeptBytes(clock, keptAnswerBytesMax)),
    feed: new TraceFeed(store, clock, follower),
    tickets: new Tickets(clock),
  };
}

async function openEmbeddings(
  { store, clock, log, settings }: { store: RecordStore; clock: Clock; log: Log; settings: Settings },
  { network, newEncoder }: ServiceOptions,
  onFailure: () => void,
): Promise<Embeddings> {
  const embeddings = await Embeddings.open(store, settings.effective.embedding, {
    clock,
    random: chance,
    resolve: network?.resolve ?? systemResolve,
    onFailure,
    onEncoderFailure: (reason) => log.error("the thread of the built-in encoder has ended", { reason }),
    newEncoder,
  });
  if (embeddings.active.builtin !== undefined && lacksAvx2()) {
    log.warn("this processor has no AVX2: the built-in encoder takes about four times as long for a text");
  }
  return embeddings;
}

interface CommitListeners {
  activity: Activity;
  feed: TraceFeed;
  forgetful: readonly Forgetful[];
  hooks: Webhooks;
}

function notifyOfCommits(store: RecordStore, { activity, feed, forgetful, hooks }: CommitListeners): void {
  store.onCommitted = ({ traces, hasEvents }) => {
    activity.addChanges(traces);
    feed.published(traces);
    if (endsErasure(traces)) forgetAll(forgetful);
    if (hasEvents) hooks.wake();
  };
}

interface Workers {
  parts: StoreParts;
  deps: OpenDeps;
  system: Caller;
  hooks: Webhooks;
  requests: ReturnType<typeof openRequests>;
  forgetful: readonly Forgetful[];
  lastUses: LastUses;
  activity: Activity;
  own: OwnBackups | undefined;
  certificates: Certificates | undefined;
}

async function openTasks(
  { parts, deps, system, hooks, requests, forgetful, lastUses, activity, own, certificates }: Workers,
  log: Log,
  { apiKey, onStoreChange = () => undefined }: ServiceOptions,
): Promise<Task[]> {
  const { store, clock, settings, embeddings, retrievals } = deps;
  const { feed, arrivals } = requests;
  const fill = await openFill(parts, clock, log);
  return [
    ...parts.tasks,
    ...recordTasks(deps, system).map((make) => leasedTask(parts.leases, store, make)),
    ...hooks.tasks,
    ...(parts.embedded === undefined ? [settingsWatch(settings, embeddings, log), feed.followTask(), erasureWatch(store, forgetful)] : []),
    fill,
    retrievals.task(),
    ...(own === undefined ? [] : [own.scheduledBackups.task(), own.copies.task()]),
    ...(certificates === undefined ? [] : [certificates.task()]),
    arrivals.deadlines(),
    lastUses.task(),
    activity.task(),
    storeWatch(store, log, onStoreChange),
    ...(apiKey === undefined ? [] : [await keyRegistration(deps, system, apiKey, log)]),
  ];
}

function openFill({ store, embedded }: StoreParts, clock: Clock, log: Log): Promise<Task> {
  return fillStore({
    store,
    log,
    others: [NAMES_FILL, USERS_FILL],
    backUp: () => (embedded === undefined ? Promise.resolve() : backUpBefore("indexes", embedded, clock, log)),
  });
}

interface OwnBackups {
  backups: Backups;
  scheduledBackups: ScheduledBackups;
  copies: BackupCopies;
}

function openBackups(
  { embedded }: StoreParts,
  deps: Deps & { log: Log; settings: Settings; tickets: Tickets; system: Caller },
  { backupProgram: program = OWN_PROGRAM, bucketAccess: access = {} }: ServiceOptions,
): OwnBackups | undefined {
  if (embedded === undefined) return undefined;
  const command = { program, environment: commandEnvironment() };
  const storeBytesMax = () => deps.settings.values.max_store_bytes;
  const backups = new Backups({ ...deps, store: embedded, command, storeBytesMax });
  const copies = new BackupCopies({ ...deps, store: embedded, access });
  return { backups, copies, scheduledBackups: new ScheduledBackups({ ...deps, store: embedded, backups, copies }) };
}

interface Work {
  feed: TraceFeed;
  embeddings: Embeddings;
  hooks: Webhooks;
  driver: Driver;
  parts: StoreParts;
}

/** Ends what runs without a request. */
async function stopWork({ feed, embeddings, hooks, driver, parts }: Work): Promise<void> {
  feed.close();
  // Runs that wait for a provider or a receiver end by this.
  const embeddingsClosed = embeddings.close();
  await hooks.stop();
  await driver.stop();
  await embeddingsClosed;
  await parts.release();
}

function removeInterrupted(directory: string, log: Log): void {
  try {
    removeLeftovers(directory);
  } catch (error) {
    log.warn("could not remove the leftovers of an interrupted import, restore or drill", { error: describeError(error) });
  }
  try {
    removeOtherAddons(directory);
  } catch (error) {
    log.warn("could not remove the native add-ons of other versions", { error: describeError(error) });
  }
}

/** A disk that refuses this must not keep the rest from closing. */
async function writeAtStop(kept: LastUses | Activity, store: RecordStore, log: Log): Promise<void> {
  try {
    await kept.writeAll();
  } catch (error) {
    if (!store.health.hasPanicked) log.error(`could not write the ${kept.name}`, { error: describeError(error) });
  }
}
