/**
 * Makes pending vectors, of memories and of all else that is searched: those that a provider could not give in time, and all of them
 * after a change of provider.
 *
 * After a change the vectors of earlier generations are evicted in batches, and their records get pending ones: until these are made
 * they are found by their words. All that has to be done is in the store, so nothing is forgotten when the process ends; what changed or
 * went meanwhile is found out in the transaction that stores the vector.
 *
 * ```
 * earlier generations ──evict──▶ pending ──make──▶ the current generation
 *                                 │ ▲
 *                   rejected by itself: retried after an hour, or when another provider is set
 * ```
 * While the provider is down it is asked now and then, and nothing is sent to it.
 *
 * @module
 */
import { BACKGROUND, type Active } from "../embeddings/embeddings.ts";
import type { Embedding } from "../embeddings/embedder.ts";
import { ProviderError } from "../embeddings/remote/provider-error.ts";
import { HOUR_MS } from "../lib/duration.ts";
import { NO_PARTITION, withPrefix, type BareId } from "../lib/ids.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import { generationOf, removeVector } from "../storage/memory-records.ts";
import { memories, PENDING_TABLES } from "../storage/tables.ts";
import { NotFetched, type Reader, type Tx } from "../storage/access.ts";
import { hasVector, MEMORIES } from "../storage/collections.ts";
import type { Task } from "../tasks/task.ts";
import { storeVector } from "../search/store-vector.ts";
import type { MemoryDeps } from "./deps.ts";
import { evict, type Embedded, type Eviction } from "./eviction.ts";

export type { Embedded } from "./eviction.ts";

/** The built-in provider makes these in a few milliseconds; another takes them as one request, which leaves room for others. */
const MADE_PER_COMMIT = 64;
const CHARACTERS_PER_COMMIT = 100_000;
const LOOKED_AT_PER_RUN = 1_000;

const IDLE_MS = 60_000;
/** The pause after a failure that is not the texts' own fault, and did not bring the provider down. */
const RETRY_MS = 5_000;
/** A text that the provider rejects may be taken once it is set up in another way, which nobody tells us. */
const RETRY_REJECTED_MS = HOUR_MS;
const PROGRESS_MS = 5_000;

export function memoryTexts({ vectors: index }: Pick<MemoryDeps, "vectors">): Embedded {
  return {
    collection: MEMORIES,
    index,
    textOf(reader, memory, isMadeAgain = false) {
      const row = reader.get(memories, memory);
      return row === undefined || !row.embed || (hasVector(row) && !isMadeAgain) ? undefined : row.content;
    },
    nameOf: (memory) => withPrefix("mem", memory),
  };
}

/** Dependencies of making vectors. */
export type BackfillDeps = Pick<MemoryDeps, "store" | "clock" | "log" | "embeddings" | "backfill">;

/** The records that one task makes vectors of. */
export interface Backfilled {
  /** The task's name. */
  readonly name: string;
  /** Kinds of records; all of them wait in one table. */
  readonly kinds: readonly Embedded[];
  /** Kinds whose vectors of earlier generations it evicts: one task evicts all, others leave that to it. */
  readonly evicted?: readonly Embedded[];
  /** The share of the time that it works, 0 to 1; all of it unless given. */
  readonly share?: () => number;
}

export function backfill(deps: BackfillDeps, { name, kinds, evicted, share = () => 1 }: Backfilled): Task {
  const { store, clock, embeddings } = deps;
  const watch = new ProgressLog(deps);
  const bad = new BadRows(store, deps.log, name);
  /** `clock.elapsed()` before which it does not work again. */
  let restsUntil = Number.NEGATIVE_INFINITY;
  /** The key at which this pass continues, and what it came to. */
  let from = "";
  let made = 0;
  let failed = 0;
  /** True if this pass retries rejected texts, and when the next one does. */
  let isRetryingAll = false;
  let retryAllAt = Number.NEGATIVE_INFINITY;
  const eviction: Eviction = { generation: 0, kind: 0, after: "" };
  return {
    name,
    activator: deps.backfill,
    async run() {
      const startedAt = clock.elapsed();
      if (startedAt < restsUntil) return restsUntil - startedAt;
      await embeddings.startGenerationIfNeeded();
      if (evicted !== undefined && (await evict(deps, evicted, bad, eviction))) {
        await watch.logProgress();
        return 0;
      }
      const waiting = await recovered(deps, watch);
      if (waiting > 0) return waiting;
      if (from === "") {
        made = failed = 0;
        isRetryingAll = clock.elapsed() >= retryAllAt;
        if (isRetryingAll) retryAllAt = clock.elapsed() + RETRY_REJECTED_MS;
      }
      const { active } = embeddings;
      const batch = await store.read((reader) => nextBatch(reader, kinds, active, from, isRetryingAll, bad));
      if (batch.pending.length > 0) {
        if (batch.next !== undefined) await watch.logProgress();
        const outcomes = await make(deps, active, batch.pending, bad);
        made += outcomes.filter((outcome) => outcome === "made").length;
        failed += outcomes.filter((outcome) => outcome === "failed").length;
        watch.logRejected(batch.pending.filter((_, i) => outcomes[i] === "rejected"));
      }
      from = batch.next ?? "";
      const worked = clock.elapsed() - startedAt;
      const rest = worked / share() - worked;
      restsUntil = clock.elapsed() + rest;
      // The end of a pass. Memories changed meanwhile may be pending again, so only a pass that makes nothing is the last.
      if (batch.next !== undefined || made > 0) return rest;
      await watch.logEnd();
      return failed > 0 ? RETRY_MS : IDLE_MS;
    },
  };
}

/** Logs progress, not too often. */
class ProgressLog {
  readonly #deps: BackfillDeps;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #hasLoggedProgress = false;
  /** Reason why the provider does not work, as it was last logged; undefined while it does. */
  #reason: string | undefined;

  constructor(deps: BackfillDeps) {
    this.#deps = deps;
  }

  async logProgress(): Promise<void> {
    const now = this.#deps.clock.elapsed();
    if (now - this.#loggedAt < PROGRESS_MS) return;
    this.#loggedAt = now;
    this.#hasLoggedProgress = true;
    const { ready, pending: left } = await this.#deps.embeddings.progress();
    this.#deps.log.info("embedding pending texts", {
      ready,
      pending: left,
      percent: Math.floor((100 * ready) / Math.max(1, ready + left)),
    });
  }

  async logEnd(): Promise<void> {
    if (!this.#hasLoggedProgress) return;
    this.#hasLoggedProgress = false;
    this.#loggedAt = Number.NEGATIVE_INFINITY;
    const { ready, pending: left } = await this.#deps.embeddings.progress();
    this.#deps.log.info(left === 0 ? "all vectors are made" : "all vectors are made that can be made now", { ready, pending: left });
  }

  /** Logs each reason once: a probe may say more than what failed first. */
  logDown({ message: reason }: ProviderError): void {
    if (this.#reason === reason) return;
    this.#reason = reason;
    this.#deps.log.warn("the embedding provider does not work", { reason });
  }

  async logUp(): Promise<void> {
    if (this.#reason === undefined) return;
    this.#reason = undefined;
    this.#deps.log.info("the embedding provider works again", { ...(await this.#deps.embeddings.progress()) });
  }

  /** The reason is not logged, since it may repeat the text. */
  logRejected([first, ...others]: readonly Pending[]): void {
    if (first?.of === undefined) return;
    const { of } = first;
    this.#deps.log.warn("the embedding provider rejects a text for its content; searches do not find it", {
      [of.collection.name]: of.nameOf(first.key),
      others: others.length,
    });
  }
}

/** Sees to it that the provider can be asked. @returns how long to wait before it makes sense to try; 0: it can be */
async function recovered({ embeddings, clock }: BackfillDeps, watch: ProgressLog): Promise<number> {
  const { remote, calibration } = embeddings.active;
  if (remote === undefined || (remote.openCircuit === undefined && calibration !== undefined)) {
    await watch.logUp();
    return 0;
  }
  if (remote.openCircuit !== undefined) watch.logDown(remote.openCircuit.error);
  const untilRetry = () => (remote.openCircuit?.retryAtMs ?? 0) - clock.elapsed();
  if (untilRetry() > 0) return Math.min(untilRetry(), IDLE_MS);
  try {
    await embeddings.recover();
    await watch.logUp();
    return 0;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (embeddings.active.remote === remote && !embeddings.isClosed) watch.logDown(error);
    return Math.max(RETRY_MS, Math.min(untilRetry(), IDLE_MS));
  }
}

interface Pending {
  key: BareId;
  /** undefined: there is nothing to be made after all. */
  of: Embedded | undefined;
  text: string | undefined;
  wasRejected: boolean;
}

/** Texts that the provider can be asked for at once, and the key to continue at; no `next` at the end. */
function nextBatch(
  reader: Reader,
  kinds: readonly Embedded[],
  active: Active,
  from: string,
  isRetryingAll: boolean,
  bad: BadRows,
): { pending: Pending[]; next: string | undefined } {
  const batch: Pending[] = [];
  let characters = 0;
  const rows = reader.rows(kinds[0]!.collection.pending, { from, to: MAX_KEY, limit: LOOKED_AT_PER_RUN });
  for (const { key, row: mark } of rows) {
    const wasRejected = mark === markOf(active);
    if ((wasRejected && !isRetryingAll) || bad.has(key)) continue;
    let found: Pick<Pending, "of" | "text">;
    try {
      found = textOf(reader, kinds, key);
    } catch (error) {
      if (error instanceof NotFetched) throw error;
      bad.note(key, error);
      continue;
    }
    batch.push({ key, ...found, wasRejected });
    characters += found.text?.length ?? 0;
    if (batch.length === MADE_PER_COMMIT || characters >= CHARACTERS_PER_COMMIT) return { pending: batch, next: successor(key) };
  }
  const last = rows.at(-1);
  return { pending: batch, next: last === undefined || rows.length < LOOKED_AT_PER_RUN ? undefined : successor(last.key) };
}

/** Ids are of one kind only. */
function textOf(reader: Reader, kinds: readonly Embedded[], key: BareId): Pick<Pending, "of" | "text"> {
  const of = kinds.find(({ collection }) => reader.has(collection.records, key));
  return { of, text: of?.textOf(reader, key) };
}

/** The row of a pending memory that this provider rejected. */
function markOf({ generation }: Active): string {
  return String(generation);
}

type Outcome = "made" | "rejected" | "failed";

async function make(deps: BackfillDeps, active: Active, batch: readonly Pending[], bad: BadRows): Promise<(Outcome | undefined)[]> {
  // Vectors that cannot be stored need not be paid for: this finds out if the disk is full.
  if (active.remote !== undefined) await deps.store.commit(NO_PARTITION, () => undefined);
  const embedded = async ({ key, text }: Pending) => {
    try {
      return text === undefined ? undefined : await embeddingOf(active, text);
    } catch (error) {
      bad.note(key, error);
      return "failed";
    }
  };
  const made = await Promise.all(batch.map(embedded));
  const outcomes = await deps.store.commit(NO_PARTITION, (tx) => batch.map((item, i) => settle(tx, active, item, made[i])));
  for (const index of new Set(batch.map(({ of }) => of?.index))) index?.changed();
  return outcomes;
}

async function embeddingOf({ embedder, remote }: Active, text: string): Promise<Embedding | "rejected" | "failed"> {
  try {
    return await embedder.embedMemory(text, BACKGROUND);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return error.facts.inputRejected === true && remote?.openCircuit === undefined ? "rejected" : "failed";
  }
}

/**
 * Stores a vector, unless the record or the provider is another one by now.
 *
 * @returns undefined where nothing was to be done, or nothing new is to be said
 */
function settle(
  tx: Tx,
  active: Active,
  { key, of, text, wasRejected }: Pending,
  made: Embedding | "rejected" | "failed" | undefined,
): Outcome | undefined {
  const now = of?.textOf(tx, key);
  if (of === undefined || now === undefined) {
    for (const table of PENDING_TABLES) tx.remove(table, key);
    return undefined;
  }
  if (made === undefined || made === "failed" || now !== text || generationOf(tx) !== active.generation) return "failed";
  if (made === "rejected") {
    tx.put(of.collection.pending, key, markOf(active));
    return wasRejected ? undefined : "rejected";
  }
  const { collection } = of;
  tx.remove(collection.pending, key);
  const row = tx.get(collection.records, key) ?? {};
  // Its words are there already, and there is nothing else.
  if (made.vector.length === 0 && row.embedding?.generation === active.generation) return undefined;
  removeVector(tx, collection, row);
  tx.put(collection.records, key, { ...row, embedding: storeVector(tx, collection, key, active.generation, made) });
  return "made";
}
