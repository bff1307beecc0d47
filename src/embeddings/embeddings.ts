/**
 * The provider that is set, and which of the stored vectors are its own.
 *
 * Vectors of two providers mean different things and are never compared. Labels rise with every vector made, so a change of
 * provider starts a generation of vectors: labels from `firstLabel` on belong to the provider that is set, smaller ones to a
 * previous one, and their memories wait to be embedded again (`memories/backfill.ts`). `firstLabel` and the provider's name
 * change in one commit.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import type { Resolve } from "../lib/outbound.ts";
import { timeLimit, within } from "../lib/time-limit.ts";
import { AFTER_ALL, numberKey } from "../storage/keys.ts";
import { firstLabelOf, nextLabelOf } from "../storage/memory-records.ts";
import { NO_HOME } from "../lib/ids.ts";
import type { Reader, Tx } from "../storage/access.ts";
import type { Store } from "../storage/store.ts";
import { labels, meta, owed, provider, type ProviderRow } from "../storage/tables.ts";
import { calibrate, calibrationOf, type ProviderCalibration } from "./calibration.ts";
import type { EmbeddedQuery, Embedder, Embedding } from "./embedder.ts";
import { localEmbedder } from "./local/local.ts";
import { OPENAI_BASE_URL, OPENAI_MODEL, OpenAiEmbedder } from "./remote/openai.ts";
import { closed, ProviderError, PUBLIC_REASON, tooLate } from "./remote/provider-error.ts";

/** As in the API; what is left out has its default. */
export interface EmbeddingSettings {
  provider?: string;
  base_url?: string;
  model?: string;
  /** The only secret that the store has in clear: it has to be sent. */
  api_key?: string;
  query_prefix?: string;
  document_prefix?: string;
  relevant_cosine?: number;
}

export const PROVIDER_DEFAULTS = {
  provider: "local",
  base_url: OPENAI_BASE_URL,
  model: OPENAI_MODEL,
  query_prefix: "",
  document_prefix: "",
} as const;

/** A request that stores a memory waits this long for its vector; after that the vector is owed. */
const STORE_WAIT_MS = 2_500;

/** A request that sets a provider waits this long: clients and proxies close a connection that is silent for a minute. */
const TRIAL_MS = 50_000;

const ROW = "current";

export interface Active {
  /** Never changes for one object: another provider, or another setting of it, is another object. */
  readonly embedder: Embedder;
  readonly remote: OpenAiEmbedder | undefined;
  readonly firstLabel: number;
  /** undefined for the built-in provider, and for another one until it is measured. */
  readonly calibration: ProviderCalibration | undefined;
}

export interface EmbeddingsDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly resolve: Resolve;
  /** Called when a search could not be answered, so that the provider is probed until it is back. */
  readonly onFailure: () => void;
}

/** A provider that was tried and found to work, not yet active. */
export interface CandidateProvider {
  readonly settings: EmbeddingSettings;
  readonly remote: OpenAiEmbedder | undefined;
  readonly row: ProviderRow;
}

/** How many memories have a vector of the provider that is set, and how many still wait for one. */
export interface Progress {
  ready: number;
  owed: number;
}

export class Embeddings {
  readonly #store: Store;
  readonly #deps: EmbeddingsDeps;
  readonly #closing = new AbortController();
  #settings: EmbeddingSettings;
  #row: ProviderRow;
  #active: Active;
  /** Set until the generation of the active provider is started: the identity that the store still holds. */
  #notStarted: { readonly stored: string | undefined } | undefined;

  private constructor(store: Store, deps: EmbeddingsDeps, settings: EmbeddingSettings, row: ProviderRow) {
    const stored = store.latest.get(provider, ROW)?.identity;
    this.#store = store;
    this.#deps = deps;
    this.#settings = settings;
    this.#row = row;
    this.#notStarted = stored === row.identity ? undefined : { stored };
    this.#active = this.#activeOf(settings, row, remoteOf(settings, row, deps));
  }

  /**
   * Opens the provider that is set; if the vectors in the store are of another one, they are embedded again. The provider need
   * not be reachable, and the disk need not have room: then the generation starts later, and until then no search looks at any
   * vector.
   */
  static async open(store: Store, settings: EmbeddingSettings, deps: EmbeddingsDeps): Promise<Embeddings> {
    const identity = identityOf(settings);
    const known = store.latest.get(provider, ROW);
    const embeddings = new Embeddings(store, deps, settings, known?.identity === identity ? known : { identity });
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
    const row = this.#row;
    const isStarted = await this.#store.commit(NO_HOME, (tx) => {
      // Another provider may have been set meanwhile, with a generation of its own, and is about to be activated.
      if (tx.get(provider, ROW)?.identity !== notStarted.stored) return false;
      startGeneration(tx, row);
      return true;
    });
    if (isStarted && this.#notStarted === notStarted) this.#activate(this.#settings, this.#active.remote);
  }

  /** The provider to embed with now. Read it once per request: it is another object after a change. */
  get active(): Active {
    return this.#active;
  }

  get row(): ProviderRow {
    return this.#row;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Vectors of a previous provider count as owed, whether or not they were removed yet. */
  progress(reader: Reader = this.#store.latest): Progress {
    const all = this.#store.count(labels);
    const first = numberKey(this.#firstLabel(reader));
    const isMixed = reader.keys(labels, { from: "", to: first, limit: 1 }).length > 0;
    // New ones are few as long as there are old ones, which are removed first.
    const ready = isMixed ? reader.keys(labels, { from: first, to: AFTER_ALL }).length : all;
    return { ready, owed: this.#store.count(owed) + all - ready };
  }

  /** Returns the vector of a memory about to be stored, or undefined if it has to be owed. Never takes longer than 2.5 s. */
  async embedMemory({ embedder, remote }: Active, text: string): Promise<Embedding | undefined> {
    if (remote === undefined) return embedder.embedMemory(text);
    try {
      return await within(this.#deps.clock, STORE_WAIT_MS, remote.embedMemory(text));
    } catch (error) {
      if (error instanceof ProviderError) return undefined;
      throw error;
    }
  }

  /** @throws {ApiError} `service_unavailable` with what is wrong with the provider */
  async embedQuery({ embedder, remote, calibration }: Active, text: string): Promise<EmbeddedQuery> {
    try {
      const query = await embedder.embedQuery(text);
      if (remote === undefined || calibration !== undefined || query.lexical.size === 0) return query;
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
    const { remote } = this.#active;
    const { identity, measured } = this.#row;
    if (remote === undefined) return;
    await remote.probe();
    if (measured !== undefined) return;
    const row = await measuredBy(remote, identity);
    await this.#store.commit(NO_HOME, (tx) => putRow(tx, row));
    if (this.#active.remote === remote) this.#activate(this.#settings, remote);
  }

  /**
   * Tries a provider: it has to answer, and with vectors that can be used.
   *
   * @returns what `put` and `activate` take, or else `release`
   * @throws {ProviderError}
   */
  async prepare(settings: EmbeddingSettings): Promise<CandidateProvider> {
    const identity = identityOf(settings);
    const known = identity === this.#row.identity ? this.#row : { identity };
    const remote = remoteOf(settings, known, this.#deps);
    if (remote === undefined) return { settings, remote, row: known };
    const limit = timeLimit(this.#deps.clock, TRIAL_MS, this.#closing.signal);
    limit.signal.addEventListener("abort", () => remote.close());
    try {
      if (this.isClosed) throw closed();
      await remote.probe();
      const row = known.measured === undefined ? await measuredBy(remote, identity) : known;
      if (limit.signal.aborted) throw closed();
      return { settings, remote, row };
    } catch (error) {
      remote.close();
      throw limit.signal.aborted && !this.isClosed ? tooLate(TRIAL_MS) : error;
    } finally {
      limit.end();
    }
  }

  /** The active provider with settings that change neither what it is nor how it is reached. */
  activeWith(settings: EmbeddingSettings): CandidateProvider {
    return { settings, remote: this.#active.remote, row: this.#row };
  }

  /** Makes a candidate the provider that is set, inside the commit of the setting. */
  put(tx: Tx, { row }: CandidateProvider): ProviderRow {
    if (tx.get(provider, ROW)?.identity !== row.identity) startGeneration(tx, row);
    return putRow(tx, row);
  }

  /** Switches to a candidate, after that commit. */
  activate({ settings, remote }: CandidateProvider): void {
    const before = this.#active.remote;
    this.#activate(settings, remote);
    if (before !== remote) before?.close();
    if (this.isClosed) remote?.close();
  }

  /** Closes a candidate that is not activated after all. */
  release({ remote }: CandidateProvider): void {
    if (remote !== this.#active.remote) remote?.close();
  }

  close(): void {
    this.#closing.abort();
    this.#active.remote?.close();
  }

  #activate(settings: EmbeddingSettings, remote: OpenAiEmbedder | undefined): void {
    const row = this.#store.latest.get(provider, ROW) ?? this.#row;
    this.#notStarted = undefined;
    this.#settings = settings;
    this.#row = row;
    this.#active = this.#activeOf(settings, row, remote);
  }

  #activeOf(settings: EmbeddingSettings, { measured }: ProviderRow, remote: OpenAiEmbedder | undefined): Active {
    return {
      embedder: remote ?? localEmbedder,
      remote,
      firstLabel: this.#firstLabel(this.#store.latest),
      calibration:
        remote === undefined || measured === undefined
          ? undefined
          : calibrationOf({ ...measured, relevantCosine: settings.relevant_cosine ?? measured.relevantCosine }),
    };
  }

  /** Until the generation is started this is above every label: the store takes new vectors for the previous provider's. */
  #firstLabel(reader: Reader): number {
    return this.#notStarted === undefined ? firstLabelOf(reader) : nextLabelOf(reader) + 1;
  }
}

/** Names what decides the meaning of a vector. Another key for the same server is no other provider. */
function identityOf(settings: EmbeddingSettings): string {
  if ((settings.provider ?? PROVIDER_DEFAULTS.provider) === "local") return localEmbedder.version;
  const { base_url, model, query_prefix, document_prefix } = { ...PROVIDER_DEFAULTS, ...settings };
  // Without the query string: it can hold a key, and has no part in what a vector means.
  const { origin, pathname } = new URL(base_url);
  const server = `${origin}${pathname}`.replace(/(?<!\/)\/+$/, "");
  return JSON.stringify(["openai", localEmbedder.version, server, model, query_prefix, document_prefix]);
}

function remoteOf(settings: EmbeddingSettings, { vectorLength }: ProviderRow, deps: EmbeddingsDeps): OpenAiEmbedder | undefined {
  if ((settings.provider ?? PROVIDER_DEFAULTS.provider) === "local") return undefined;
  return new OpenAiEmbedder({
    baseUrl: settings.base_url,
    model: settings.model,
    apiKey: settings.api_key,
    queryPrefix: settings.query_prefix,
    documentPrefix: settings.document_prefix,
    vectorLength,
    ...deps,
  });
}

async function measuredBy(remote: OpenAiEmbedder, identity: string): Promise<ProviderRow> {
  const measured = await calibrate((texts, kind) => remote.embed(texts, kind));
  return { identity, measured, ...(remote.vectorLength === undefined ? {} : { vectorLength: remote.vectorLength }) };
}

/**
 * From here on vectors are of another provider; `memories/backfill.ts` finds the previous ones by their smaller labels.
 *
 * A generation takes a label for itself. So no two begin at the same one, even if no vector was made between them.
 */
function startGeneration(tx: Tx, row: ProviderRow): void {
  const first = String(nextLabelOf(tx) + 1);
  tx.put(provider, ROW, row);
  tx.put(meta, "firstLabel", first);
  tx.put(meta, "nextLabel", first);
}

/** Stores what is known of the provider, unless another one was set meanwhile or more is known. @returns what is stored now */
function putRow(tx: Tx, row: ProviderRow): ProviderRow {
  const stored = tx.get(provider, ROW);
  if (stored !== undefined && (stored.identity !== row.identity || row.measured === undefined)) return stored;
  tx.put(provider, ROW, row);
  return row;
}
