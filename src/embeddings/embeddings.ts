/**
 * The provider that is set, and which of the stored vectors are its own.
 *
 * Vectors of two providers mean different things and are never compared. Each change of the provider starts a new generation, in
 * the commit that changes its name. A vector says its generation; the memories of older ones are embedded again
 * (`memories/backfill.ts`).
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { Deadline, unlessAborted } from "../lib/deadline.ts";
import { NO_PARTITION } from "../lib/ids.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import { generationOf } from "../storage/memory-records.ts";
import type { Reader, Tx } from "../storage/access.ts";
import type { RecordStore } from "../storage/record-store.ts";
import {
  AWAITED_VECTOR_TABLES,
  pendingEmbeddings,
  provider,
  PROVIDER_KEY,
  VECTOR_TABLES,
  type AnyTable,
  type ProviderRow,
} from "../storage/tables.ts";
import { calibrate, calibrationOf } from "./calibration.ts";
import { BuiltinEmbedder, WordEmbedder } from "./builtin/builtin.ts";
import { EncoderThread } from "./builtin/encoder-thread.ts";
import type { EmbeddedQuery, Embedder, Embedding } from "./embedder.ts";
import { wordsOf } from "./words/terms.ts";
import { identityOf, PROVIDER_DEFAULTS, type EmbeddingSettings } from "./provider-settings.ts";
import { BUILTIN_CALIBRATION, type Calibration, WORDS_CALIBRATION } from "./score.ts";
import { OpenAiEmbedder, type OpenAiDeps } from "./remote/openai.ts";
import { closed, ProviderError, PUBLIC_REASON, tooLate } from "./remote/provider-error.ts";

/** A request that stores a memory waits this long for its vector; after that the vector is pending. */
const STORE_WAIT_MS = 2_500;

/** Owner in the queue of texts that no request waits for. */
export const BACKGROUND = { limitsId: "background" };

/** A request that sets a provider waits this long: clients and proxies close a connection that is silent for a minute. */
const TRIAL_MS = 50_000;

/** A text that is longer takes a millisecond and more to split into terms: many that come at once wait for their turns. */
const LONG_TEXT_LENGTH = 2_000;

export interface Active {
  /** Never changes for one object: another provider, or another setting of it, is another object. */
  readonly embedder: Embedder;
  readonly remote: OpenAiEmbedder | undefined;
  readonly builtin: BuiltinEmbedder | undefined;
  readonly generation: number;
  /** undefined for a remote provider until it is measured. */
  readonly calibration: Calibration | undefined;
}

export interface EmbeddingsDeps extends OpenAiDeps {
  /** Told why the encoder's thread has ended. */
  readonly onEncoderFailure: (reason: string) => void;
  /** A thread of its own for tests. */
  readonly newEncoder?: (() => Worker) | undefined;
  /** Called when a search could not be answered, so that the provider is probed until it is back. */
  readonly onFailure: () => void;
}

/** A provider with what is known of it. One that was tried and found to work is a candidate until it is activated. */
export interface Provider {
  readonly settings: EmbeddingSettings;
  readonly remote: OpenAiEmbedder | undefined;
  readonly builtin: BuiltinEmbedder | undefined;
  readonly row: ProviderFacts;
}

/** Facts of a provider. */
type ProviderFacts = Omit<ProviderRow, "generation" | "replacesUntil">;

/** Numbers of memories and documents that have a vector of the current provider, and that wait for one. */
export interface Progress {
  ready: number;
  pending: number;
}

/** Embedding that a memory is stored with. */
export interface MadeEmbedding extends Embedding {
  /** True if the vector is to be made later. */
  readonly isPending?: boolean;
}

export interface VectorCounts {
  /** Record that can be found, by a vector, or by words alone until there is one. */
  readonly stored: number;
  readonly pending: number;
}

export class Embeddings {
  readonly #store: RecordStore;
  readonly #deps: EmbeddingsDeps;
  readonly #closing = new AbortController();
  readonly #words = new WordEmbedder();
  #provider: Provider;
  #active: Active;
  /** Set until the generation of the active provider is started: the identity that the store still holds. */
  #notStarted: { readonly stored: string | undefined } | undefined;

  private constructor(store: RecordStore, deps: EmbeddingsDeps, settings: EmbeddingSettings, stored: ProviderRow | undefined) {
    const identity = identityOf(settings);
    const row: ProviderFacts = stored?.identity === identity ? stored : { identity };
    this.#store = store;
    this.#deps = deps;
    this.#provider = { settings, row, ...this.#embeddersOf(settings, row) };
    this.#notStarted = row === stored ? undefined : { stored: stored?.identity };
    this.#active = this.#activeOf(this.#provider, stored);
  }

  /**
   * Opens the provider that is set; if the vectors in the store are of another one, they are embedded again. The provider need
   * not be reachable, and the disk need not have room: then the generation starts later, and until then no search looks at any
   * vector.
   */
  static async open(store: RecordStore, settings: EmbeddingSettings, deps: EmbeddingsDeps): Promise<Embeddings> {
    const embeddings = new Embeddings(store, deps, settings, await store.read(storedProvider));
    try {
      await embeddings.startGenerationIfNeeded();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "service_unavailable") throw error;
    }
    return embeddings;
  }

  /**
   * Starts the generation that could not be started when the provider was opened.
   *
   * @throws {ApiError} `service_unavailable` while the disk takes nothing
   */
  async startGenerationIfNeeded(): Promise<void> {
    const notStarted = this.#notStarted;
    if (notStarted === undefined) return;
    const { row } = this.#provider;
    const isStarted = await this.#store.commit(NO_PARTITION, (tx) => {
      // Another provider may have been set meanwhile, with a generation of its own, and is about to be activated.
      if (tx.get(provider, PROVIDER_KEY)?.identity !== notStarted.stored) return false;
      startGeneration(tx, row);
      return true;
    });
    const stored = await this.#store.read(storedProvider);
    if (isStarted && this.#notStarted === notStarted) this.#activate(this.#provider, stored);
  }

  /** The provider to embed with now. Read it once per request: it is another object after a change. */
  get active(): Active {
    return this.#active;
  }

  get row(): ProviderFacts {
    return this.#provider.row;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Numbers of vectors, and of records that wait for one. */
  async counts(): Promise<VectorCounts> {
    const counted = await Promise.all([pendingEmbeddings, ...AWAITED_VECTOR_TABLES].map(async (table) => this.#store.count(table)));
    const [pending = 0, ...stored] = counted;
    return { pending, stored: stored.reduce((sum, count) => sum + count, 0) };
  }

  /** Vectors of a previous provider count as pending, whether or not they were removed yet. */
  async progress(): Promise<Progress> {
    const counts = await this.counts();
    return this.#store.read((reader) => this.progressIn(reader, counts));
  }

  /** The same inside a scope, of what was counted before. */
  progressIn(reader: Reader, { pending, stored }: VectorCounts): Progress {
    const replacesUntil = this.#notStarted === undefined ? reader.get(provider, PROVIDER_KEY)?.replacesUntil : MAX_KEY;
    // New ones are few as long as there are old ones, which are removed first.
    const newerThan = (until: string, table: AnyTable) => reader.keys(table, { from: successor(until), to: MAX_KEY }).length;
    const found =
      replacesUntil === undefined ? stored : AWAITED_VECTOR_TABLES.reduce((sum, table) => sum + newerThan(replacesUntil, table), 0);
    // A pending record has its words there already.
    const ready = Math.max(0, found - pending);
    return { ready, pending: Math.max(pending, stored - ready) };
  }

  /** Returns the vector of a memory about to be stored, or its words if the vector is left pending. Never takes longer than 2.5 s. */
  async embedMemory({ embedder, remote, builtin }: Active, text: string, limitsId: string): Promise<MadeEmbedding> {
    if (text.length > LONG_TEXT_LENGTH) await nextTurn();
    if (remote === undefined && builtin === undefined) return embedder.embedMemory(text, { limitsId });
    const pending = () => ({ ...wordsOf(text), isPending: true as const });
    if (builtin?.isPrompt === false) return pending();
    using deadline = new Deadline(this.#deps.clock, STORE_WAIT_MS);
    const { signal } = deadline;
    try {
      const made = await unlessAborted(Promise.resolve(embedder.embedMemory(text, { limitsId, signal })), signal);
      return made ?? pending();
    } catch (error) {
      if (error instanceof ProviderError) return pending();
      throw error;
    }
  }

  /** Returns a query that finds by its words alone, whatever the provider. */
  wordsQuery(text: string): EmbeddedQuery {
    return this.#words.embedQuery(text);
  }

  /** @throws {ApiError} `service_unavailable` with what is wrong with the provider */
  async embedQuery({ embedder, remote, calibration }: Active, text: string, limitsId: string): Promise<EmbeddedQuery> {
    try {
      if (text.length > LONG_TEXT_LENGTH) await nextTurn();
      const query = await embedder.embedQuery(text, { limitsId });
      if (remote === undefined || calibration !== undefined || query.lexical.ids.length === 0) return query;
      throw new ApiError("service_unavailable", "What the embedding provider's vectors mean was not measured yet. Try again in a moment.");
    } catch (error) {
      this.#deps.onFailure();
      if (!(error instanceof ProviderError)) throw error;
      // Every client that may search reads this: where the provider is, and what it says, is for the operator.
      const message = `The embedding provider ${PUBLIC_REASON[error.kind]}. The operator's log and GET /v1/settings say more.`;
      throw new ApiError("service_unavailable", message, { cause: error });
    }
  }

  /**
   * Probes the provider, and measures what its cosines mean if that is not known yet.
   *
   * @throws {ProviderError}
   */
  async recover(): Promise<void> {
    const { remote, row } = this.#provider;
    if (remote === undefined) return;
    await remote.probe();
    if (row.measured !== undefined) return;
    const measured = await measuredBy(remote, row.identity);
    await this.#store.commit(NO_PARTITION, (tx) => putRow(tx, measured));
    const stored = await this.#store.read(storedProvider);
    this.#activate(this.#provider, stored);
  }

  /**
   * Tries a provider: it has to answer, and with vectors that can be used.
   *
   * @returns what `put` and `activate` take, or else `release`
   * @throws {ProviderError}
   */
  async prepare(settings: EmbeddingSettings): Promise<Provider> {
    const identity = identityOf(settings);
    const known = identity === this.row.identity ? this.row : { identity };
    if (identity === this.row.identity && this.#provider.builtin !== undefined) return this.activeWith(settings);
    const { remote, builtin } = this.#embeddersOf(settings, known);
    if (remote === undefined) return { settings, remote, builtin, row: known };
    using deadline = new Deadline(this.#deps.clock, TRIAL_MS, this.#closing.signal);
    deadline.signal.addEventListener("abort", () => remote.close());
    try {
      if (this.isClosed) throw closed();
      await remote.probe();
      const row = known.measured === undefined ? await measuredBy(remote, identity) : known;
      if (deadline.signal.aborted) throw closed();
      return { settings, remote, builtin, row };
    } catch (error) {
      remote.close();
      throw deadline.signal.aborted && !this.isClosed ? tooLate(TRIAL_MS) : error;
    }
  }

  /** The active provider with settings that change neither what it is nor how it is reached. */
  activeWith(settings: EmbeddingSettings): Provider {
    return { ...this.#provider, settings };
  }

  /** Makes a candidate the provider that is set, inside the commit of the setting. */
  put(tx: Tx, { row }: Provider): ProviderFacts {
    if (tx.get(provider, PROVIDER_KEY)?.identity !== row.identity) startGeneration(tx, row);
    return putRow(tx, row);
  }

  /** Switches to a candidate, after that commit. */
  async activate(candidate: Provider): Promise<void> {
    const stored = await this.#store.read(storedProvider);
    const before = this.#provider;
    this.#activate(candidate, stored);
    closeUnused(before, candidate);
    if (this.isClosed) closeUnused(candidate);
  }

  /**
   * Takes over what another server has set, or has found out of the provider.
   *
   * @param stored - of the same moment as the settings
   * @returns whether this server is set to the provider that the store says
   */
  follow(settings: EmbeddingSettings, stored: ProviderRow | undefined): boolean {
    if (stored?.identity !== identityOf(settings)) return false;
    const before = this.#provider;
    const known = { settings: before.settings, row: before.row };
    const isReachedAlike = Bun.deepEquals({ ...settings, relevant_cosine: null }, { ...known.settings, relevant_cosine: null });
    const isKnown = isReachedAlike && this.#notStarted === undefined && Bun.deepEquals({ settings, row: stored }, known);
    if (isKnown || this.isClosed) return true;
    const { remote, builtin } = isReachedAlike ? before : this.#embeddersOf(settings, stored);
    const after = { settings, remote, builtin, row: stored };
    this.#activate(after, stored);
    closeUnused(before, after);
    return true;
  }

  /** Returns what a candidate's cosines mean; undefined for a remote provider until it is measured. */
  calibrationOf({ settings, remote, builtin, row: { measured } }: Provider): Calibration | undefined {
    if (builtin !== undefined) return BUILTIN_CALIBRATION;
    if (settings.provider === "words") return WORDS_CALIBRATION;
    if (remote === undefined || measured === undefined) return undefined;
    return calibrationOf({ ...measured, relevantCosine: settings.relevant_cosine ?? measured.relevantCosine });
  }

  embedderOf({ remote, builtin }: Provider): Embedder {
    return remote ?? builtin ?? this.#words;
  }

  /** Closes a candidate that is not activated after all. */
  release(candidate: Provider): void {
    closeUnused(candidate, this.#provider);
  }

  /** Forgets the queries whose vectors are cached. */
  forget(): void {
    const { remote, builtin } = this.#provider;
    remote?.forgetQueries();
    builtin?.forgetQueries();
  }

  /** Ends what waits for a provider. Resolves when the encoder's thread has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#provider.remote?.close();
    await this.#provider.builtin?.close();
  }

  #activate(candidate: Provider, stored: ProviderRow | undefined): void {
    this.#notStarted = undefined;
    this.#provider = { ...candidate, row: stored ?? candidate.row };
    this.#active = this.#activeOf(this.#provider, stored);
  }

  #activeOf(active: Provider, stored: ProviderRow | undefined): Active {
    const { remote, builtin } = active;
    return {
      embedder: this.embedderOf(active),
      remote,
      builtin,
      // No vector is stored for a generation that has not started, since the store knows another one.
      generation: (stored?.generation ?? 0) + (this.#notStarted === undefined ? 0 : 1),
      calibration: this.calibrationOf(active),
    };
  }

  #embeddersOf(settings: EmbeddingSettings, { vectorLength }: ProviderFacts): Pick<Provider, "remote" | "builtin"> {
    const { clock, onEncoderFailure, newEncoder } = this.#deps;
    const isRemote = settings.provider === "openai";
    const isBuiltin = (settings.provider ?? PROVIDER_DEFAULTS.provider) === "builtin";
    return {
      remote: isRemote ? new OpenAiEmbedder(settings, vectorLength, this.#deps) : undefined,
      builtin: isBuiltin ? new BuiltinEmbedder(new EncoderThread(clock, onEncoderFailure, newEncoder)) : undefined,
    };
  }
}

/** Closes what one provider has and another does not use. */
function closeUnused(before: Provider, after?: Provider): void {
  if (before.remote !== after?.remote) before.remote?.close();
  if (before.builtin !== after?.builtin) void before.builtin?.close();
}

export function storedProvider(reader: Reader): ProviderRow | undefined {
  return reader.get(provider, PROVIDER_KEY);
}

async function measuredBy(remote: OpenAiEmbedder, identity: string): Promise<ProviderFacts> {
  const measured = await calibrate((texts, kind) => remote.embed(texts, kind));
  return { identity, measured, ...(remote.vectorLength === undefined ? {} : { vectorLength: remote.vectorLength }) };
}

/** From now on vectors are of another provider. The records of those there are get new ones from `memories/backfill.ts`. */
function startGeneration(tx: Tx, row: ProviderFacts): void {
  const newest = VECTOR_TABLES.flatMap((table) => tx.keys(table, { from: "", to: MAX_KEY, limit: 1, descending: true }))
    .toSorted()
    .at(-1);
  const replaces = newest === undefined ? {} : { replacesUntil: newest };
  tx.put(provider, PROVIDER_KEY, { ...row, generation: generationOf(tx) + 1, ...replaces });
}

/** Stores what is known of the provider, unless another one was set meanwhile or more is known. @returns what is stored now */
function putRow(tx: Tx, row: ProviderFacts): ProviderFacts {
  const stored = tx.get(provider, PROVIDER_KEY);
  if (stored === undefined || stored.identity !== row.identity || row.measured === undefined) return stored ?? row;
  const known = { ...stored, ...row };
  tx.put(provider, PROVIDER_KEY, known);
  return known;
}
