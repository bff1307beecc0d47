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
import { wordsOf } from "../embeddings/words/terms.ts";
import { nextTurn } from "../lib/clock.ts";
import { HOUR_MS } from "../lib/duration.ts";
import { NO_PARTITION, withPrefix, type BareId } from "../lib/ids.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import { generationOf, removeVector } from "../storage/memory-records.ts";
import { memories, pendingEmbeddings, provider, PROVIDER_KEY } from "../storage/tables.ts";
import { NotFetched, type Reader, type Tx } from "../storage/access.ts";
import { hasVector, MEMORIES, type Collection } from "../storage/collections.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Task } from "../tasks/task.ts";
import { storedGeneration, storedMemory } from "../vectors/encoding.ts";
import { storeVector } from "../vectors/store-vector.ts";
import type { CandidateIndex } from "../vectors/candidate-index.ts";
import type { MemoryDeps } from "./deps.ts";

const NAME = "embeddings";

const EVICTED_PER_COMMIT = 200;
/** The built-in provider makes these in a few milliseconds; another takes them as one request, which leaves room for others. */
const MADE_PER_COMMIT = 64;
const CHARACTERS_PER_COMMIT = 100_000;
const LOOKED_AT_PER_RUN = 1_000;
/** To split as many into words takes a few milliseconds. */
const CHARACTERS_PER_TURN = 50_000;

const IDLE_MS = 60_000;
/** The pause after a failure that is not the texts' own fault, and did not bring the provider down. */
const RETRY_MS = 5_000;
/** A text that the provider rejects may be taken once it is set up in another way, which nobody tells us. */
const RETRY_REJECTED_MS = HOUR_MS;
const PROGRESS_MS = 5_000;

/** The records of a collection, for what concerns their vectors. */
export interface Embedded {
  readonly collection: Collection;
  readonly index: CandidateIndex;
  /**
   * Text that the vector of a record is made of; undefined for one that is gone, has a vector or wants none.
   *
   * @param isMadeAgain - whether it may have one
   */
  textOf(reader: Reader, record: BareId, isMadeAgain?: boolean): string | undefined;
  /** Name of a record in the log. */
  nameOf(record: BareId): string;
}

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

/** @param kinds - all that vectors are made of */
export function backfill(deps: BackfillDeps, kinds: readonly Embedded[]): Task {
  const { store, clock, embeddings } = deps;
  const watch = new ProgressLog(deps);
  const bad = new BadRows(store, deps.log, NAME);
  /** The key at which this pass continues, and what it came to. */
  let from = "";
  let made = 0;
  let failed = 0;
  /** True if this pass retries rejected texts, and when the next one does. */
  let isRetryingAll = false;
  let retryAllAt = Number.NEGATIVE_INFINITY;
  const eviction: Eviction = { generation: 0, kind: 0, after: "" };
  return {
    name: NAME,
    activator: deps.backfill,
    async run() {
      await embeddings.startGenerationIfNeeded();
      if (await evict(deps, kinds, bad, eviction)) {
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
      if (batch.next !== undefined) return 0;
      // The end of a pass. Memories changed meanwhile may be pending again, so only a pass that makes nothing is the last.
      if (made > 0) return 0;
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

/** Progress of evicting the vectors of generations before this one, one kind after the other. */
interface Eviction {
  generation: number;
  kind: number;
  after: BareId;
}

/** Evicts some vectors of earlier generations. @returns whether there may be more */
async function evict({ store }: BackfillDeps, kinds: readonly Embedded[], bad: BadRows, eviction: Eviction): Promise<boolean> {
  const { generation, replacesUntil: until } = (await store.read((reader) => reader.get(provider, PROVIDER_KEY))) ?? { generation: 0 };
  if (until === undefined) return false;
  if (eviction.generation !== generation) Object.assign(eviction, { generation, kind: 0, after: "" });
  let { kind, after } = eviction;
  const found: { of: Embedded; id: BareId }[] = [];
  for (; kind < kinds.length; kind++, after = "") {
    const of = kinds[kind]!;
    const limit = EVICTED_PER_COMMIT - found.length;
    const ids = await bad.keysOfOthers(of.collection.vectors, { from: successor(after), to: successor(until), limit });
    for (const id of ids) found.push({ of, id });
    after = ids.at(-1) ?? after;
    if (ids.length === limit) break;
  }
  const isEnd = kind === kinds.length;
  const words = await wordsOfFound(store, found);
  await bad.commit((tx, isolate) => {
    for (const [i, { of, id }] of found.entries()) isolate(id, () => evictOne(tx, of, id, words[i]));
    const row = tx.get(provider, PROVIDER_KEY);
    if (!isEnd || row?.generation !== generation) return;
    const { replacesUntil: _, ...done } = row;
    tx.put(provider, PROVIDER_KEY, done);
  });
  Object.assign(eviction, isEnd ? { kind: 0, after: "" } : { kind, after });
  for (const index of new Set(found.map(({ of }) => of.index))) index.changed();
  return found.length > 0;
}

/** Embedding that a record is found by until its vector is made. */
interface Words {
  readonly text: string;
  readonly embedding: Embedding;
}

/** Splits the texts of the records that some vectors are of into words, with other requests in between. */
async function wordsOfFound(store: RecordStore, found: readonly { of: Embedded; id: BareId }[]): Promise<(Words | undefined)[]> {
  const words: (Words | undefined)[] = [];
  let characters = 0;
  for (const { of, id } of found) {
    const text = await store.read((reader) => textOfVector(reader, of, id));
    words.push(text === undefined ? undefined : { text, embedding: wordsOf(text) });
    characters += text?.length ?? 0;
    if (characters < CHARACTERS_PER_TURN) continue;
    characters = 0;
    await nextTurn();
  }
  return words;
}

/** The text of the record that a vector is of; undefined where that cannot be read. */
function textOfVector(reader: Reader, of: Embedded, id: BareId): string | undefined {
  return unlessUnreadable(() => {
    const bytes = reader.vectorBytes(of.collection.vectors, id);
    return bytes === undefined ? undefined : of.textOf(reader, storedMemory(bytes), true);
  });
}

/** Leaves a record its words, where it still says what these were made of. */
function evictOne(tx: Tx, of: Embedded, id: BareId, words: Words | undefined): void {
  const { vectors, records } = of.collection;
  const bytes = tx.vectorBytes(vectors, id);
  const generation = generationOf(tx);
  if (bytes === undefined || storedGeneration(bytes) === generation) return;
  const record = storedMemory(bytes);
  tx.removeVector(vectors, id);
  const row = tx.get(records, record);
  if (row?.embedding?.id !== withPrefix("emb", id)) return;
  const { embedding: _, ...rest } = row;
  const isSame = words !== undefined && of.textOf(tx, record, true) === words.text;
  const embedding = isSame ? storeVector(tx, of.collection, record, generation, words.embedding) : undefined;
  tx.put(records, record, embedding === undefined ? rest : { ...rest, embedding });
  tx.put(pendingEmbeddings, record, "");
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
  const rows = reader.rows(pendingEmbeddings, { from, to: MAX_KEY, limit: LOOKED_AT_PER_RUN });
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
    tx.remove(pendingEmbeddings, key);
    return undefined;
  }
  if (made === undefined || made === "failed" || now !== text || generationOf(tx) !== active.generation) return "failed";
  if (made === "rejected") {
    tx.put(pendingEmbeddings, key, markOf(active));
    return wasRejected ? undefined : "rejected";
  }
  tx.remove(pendingEmbeddings, key);
  const { collection } = of;
  const row = tx.get(collection.records, key) ?? {};
  // Its words are there already, and there is nothing else.
  if (made.vector.length === 0 && row.embedding?.generation === active.generation) return undefined;
  removeVector(tx, collection, row);
  tx.put(collection.records, key, { ...row, embedding: storeVector(tx, collection, key, active.generation, made) });
  return "made";
}
