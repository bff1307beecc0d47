/**
 * The provider that is set, and which of the stored vectors are its own.
 *
 * Vectors of two providers mean different things and are never compared. Labels rise with every vector made, so a change of
 * provider draws a line: labels from `firstLabel` on are of the provider that is set, those below are of a previous one and wait
 * to be embedded again (`memories/backfill.ts`). The line and the provider's name are changed in one commit.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import type { Resolve } from "../lib/outbound.ts";
import { within } from "../lib/time-limit.ts";
import { AFTER_ALL, numberKey } from "../storage/keys.ts";
import { firstLabelOf, nextLabelOf } from "../storage/memory-records.ts";
import type { Reader, Store, Tx } from "../storage/store.ts";
import { labels, meta, owed, provider, type EmbeddingSettings, type ProviderRow } from "../storage/tables.ts";
import { calibrate, calibrationOf, type ProviderCalibration } from "./calibration.ts";
import type { EmbeddedQuery, Embedder, Embedding } from "./embedder.ts";
import { localEmbedder } from "./local/local.ts";
import { OPENAI_BASE_URL, OPENAI_MODEL, openAiEmbedder, type OpenAiEmbedder } from "./remote/openai.ts";
import { closed, ProviderError, SHOWN_TO_ALL, tooLate } from "./remote/provider-error.ts";

export const PROVIDERS = ["local", "openai"] as const;
export const PROVIDER_DEFAULTS = {
  provider: "local",
  base_url: OPENAI_BASE_URL,
  model: OPENAI_MODEL,
  query_prefix: "",
  document_prefix: "",
} as const;

/** A request that stores a memory waits for its vector no longer than this; then the vector is owed. */
const STORE_WAIT_MS = 2_500;

/** A request that sets a provider waits no longer than this: a connection that is silent for a minute is closed. */
const TRIAL_MS = 50_000;

const ROW = "current";

export interface Active {
  /** Never changes for one object: another provider, or another setting of it, is another object. */
  readonly embedder: Embedder;
  readonly remote: OpenAiEmbedder | undefined;
  readonly firstLabel: number;
  /** undefined: the built-in one. */
  readonly calibration: ProviderCalibration | undefined;
}

export interface Means {
  readonly clock: Clock;
  readonly random: () => number;
  readonly resolve: Resolve;
  /** Called when a search could not be answered, so that the provider is probed until it is back. */
  readonly onFailure: () => void;
}

/** A provider that was tried and found to work, not yet in use. */
export interface Prepared {
  readonly settings: EmbeddingSettings;
  readonly remote: OpenAiEmbedder | undefined;
  readonly row: ProviderRow;
}

/** How many memories have a vector of the provider that is set, and how many are to get one. */
export interface Progress {
  ready: number;
  owed: number;
}

export class Embeddings {
  readonly #store: Store;
  readonly #means: Means;
  #settings: EmbeddingSettings;
  #row: ProviderRow;
  #active: Active;
  /** Providers that are being tried. */
  readonly #trials = new Set<OpenAiEmbedder>();
  /** Set while the line before the provider in use is not drawn yet: whose vectors the store takes its own for. */
  #undrawn: { after: string | undefined } | undefined;
  #isClosed = false;

  private constructor(store: Store, means: Means, settings: EmbeddingSettings, row: ProviderRow) {
    const stored = store.get(provider, ROW)?.identity;
    this.#store = store;
    this.#means = means;
    this.#settings = settings;
    this.#row = row;
    this.#undrawn = stored === row.identity ? undefined : { after: stored };
    this.#active = this.#activeOf(settings, row, remoteOf(settings, row, means));
  }

  /**
   * Opens the provider that is set; if it is another one than the vectors in the store are of, they are embedded again. The
   * provider need not be reachable, and the disk need not have room: then the line is drawn later, and until then no search
   * looks at any vector.
   */
  static async open(store: Store, settings: EmbeddingSettings, means: Means): Promise<Embeddings> {
    const identity = identityOf(settings);
    const known = store.get(provider, ROW);
    const embeddings = new Embeddings(store, means, settings, known?.identity === identity ? known : { identity });
    try {
      await embeddings.drawOwedLine();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "service_unavailable") throw error;
    }
    return embeddings;
  }

  /**
   * Draws the line that a start could not draw.
   *
   * @throws {ApiError} `service_unavailable` while the disk takes nothing
   */
  async drawOwedLine(): Promise<void> {
    const undrawn = this.#undrawn;
    if (undrawn === undefined) return;
    const row = this.#row;
    const isDrawn = await this.#store.commit((tx) => {
      // Another provider may have been set meanwhile, with a line of its own, and is about to be used.
      if (tx.get(provider, ROW)?.identity !== undrawn.after) return false;
      drawLine(tx, row);
      return true;
    });
    if (isDrawn && this.#undrawn === undrawn) this.#use(this.#settings, this.#active.remote);
  }

  /** What to embed with now. To be read once per request: it is another object after a change. */
  get active(): Active {
    return this.#active;
  }

  get row(): ProviderRow {
    return this.#row;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Vectors of a provider before count as owed, whether or not they were taken out yet. */
  progress(reader: Reader = this.#store): Progress {
    const all = this.#store.count(labels);
    const line = numberKey(this.#undrawn === undefined ? firstLabelOf(reader) : nextLabelOf(reader) + 1);
    const isMixed = reader.keys(labels, { from: "", to: line, limit: 1 }).length > 0;
    // New ones are few as long as there are old ones: those are taken out first.
    const ready = isMixed ? reader.keys(labels, { from: line, to: AFTER_ALL }).length : all;
    return { ready, owed: this.#store.count(owed) + all - ready };
  }

  /** The vector of a memory about to be stored; undefined when it has to be owed. Never takes longer than 2.5 s. */
  async embedMemory({ embedder, remote }: Active, text: string): Promise<Embedding | undefined> {
    if (remote === undefined) return embedder.embedMemory(text);
    const made = remote.embedMemory(text).catch((error: unknown) => {
      if (error instanceof ProviderError) return undefined;
      throw error;
    });
    return within(this.#means.clock, STORE_WAIT_MS, made);
  }

  /** @throws {ApiError} `service_unavailable` with what is wrong with the provider */
  async embedQuery({ embedder, remote, calibration }: Active, text: string): Promise<EmbeddedQuery> {
    try {
      const query = await embedder.embedQuery(text);
      if (remote === undefined || calibration !== undefined || query.lexical.size === 0) return query;
      throw new ApiError("service_unavailable", "What the embedding provider's vectors mean was not measured yet. Try again in a moment.");
    } catch (error) {
      this.#means.onFailure();
      if (!(error instanceof ProviderError)) throw error;
      // Anybody who may search reads this: where the provider is, and what it says, is for the operator.
      const message = `The embedding provider ${SHOWN_TO_ALL[error.kind]}. The operator's log and GET /v1/settings say more.`;
      throw new ApiError("service_unavailable", message, { cause: error });
    }
  }

  /**
   * Asks the provider whether it is there, and what its cosines mean if that is not known yet.
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
    await this.#store.commit((tx) => putRow(tx, row));
    if (this.#active.remote === remote) this.#use(this.#settings, remote);
  }

  /**
   * Tries a provider: it has to answer, and to answer with what can be used.
   *
   * @returns what `put` and `use` take, or else `discard`
   * @throws {ProviderError}
   */
  async prepare(settings: EmbeddingSettings): Promise<Prepared> {
    const identity = identityOf(settings);
    const known = identity === this.#row.identity ? this.#row : { identity };
    const remote = remoteOf(settings, known, this.#means);
    if (remote === undefined) return { settings, remote, row: known };
    let isLate = false;
    const cancel = this.#means.clock.timer(TRIAL_MS, () => {
      isLate = true;
      remote.close();
    });
    try {
      if (this.#isClosed) throw closed();
      this.#trials.add(remote);
      await remote.probe();
      const row = known.measured === undefined ? await measuredBy(remote, identity) : known;
      if (this.#isClosed || isLate) throw closed();
      return { settings, remote, row };
    } catch (error) {
      remote.close();
      throw isLate ? tooLate(TRIAL_MS) : error;
    } finally {
      cancel();
      this.#trials.delete(remote);
    }
  }

  /** The provider that is in use, with settings that do not concern what it is or how it is reached. */
  inUseWith(settings: EmbeddingSettings): Prepared {
    return { settings, remote: this.#active.remote, row: this.#row };
  }

  /** Writes what makes a prepared provider the one that is set, as part of the commit of the setting. */
  put(tx: Tx, { row }: Prepared): ProviderRow {
    if (tx.get(provider, ROW)?.identity !== row.identity) drawLine(tx, row);
    return putRow(tx, row);
  }

  /** Takes it into use, after that commit. */
  use({ settings, remote }: Prepared): void {
    const before = this.#active.remote;
    this.#use(settings, remote);
    if (before !== remote) before?.close();
    if (this.#isClosed) remote?.close();
  }

  /** Releases a prepared provider that is not used after all. */
  discard({ remote }: Prepared): void {
    if (remote !== this.#active.remote) remote?.close();
  }

  close(): void {
    this.#isClosed = true;
    this.#active.remote?.close();
    for (const remote of this.#trials) remote.close();
  }

  #use(settings: EmbeddingSettings, remote: OpenAiEmbedder | undefined): void {
    const row = this.#store.get(provider, ROW) ?? this.#row;
    this.#undrawn = undefined;
    this.#settings = settings;
    this.#row = row;
    this.#active = this.#activeOf(settings, row, remote);
  }

  #activeOf(settings: EmbeddingSettings, { measured }: ProviderRow, remote: OpenAiEmbedder | undefined): Active {
    return {
      embedder: remote ?? localEmbedder(),
      remote,
      // Of a line that is not drawn yet: above every vector there is. None is stored for it, since the store knows another one.
      firstLabel: this.#undrawn === undefined ? firstLabelOf(this.#store) : nextLabelOf(this.#store) + 1,
      calibration:
        remote === undefined || measured === undefined
          ? undefined
          : calibrationOf({ ...measured, relevantCosine: settings.relevant_cosine ?? measured.relevantCosine }),
    };
  }
}

/** What decides the meaning of a vector. Another key for the same server is no other provider. */
function identityOf(settings: EmbeddingSettings): string {
  if ((settings.provider ?? PROVIDER_DEFAULTS.provider) === "local") return localEmbedder().version;
  const { base_url, model, query_prefix, document_prefix } = { ...PROVIDER_DEFAULTS, ...settings };
  // Without the query: it can hold a key, and decides nothing of what a vector means.
  const { origin, pathname } = new URL(base_url);
  const server = `${origin}${pathname}`.replace(/(?<!\/)\/+$/, "");
  return JSON.stringify(["openai", localEmbedder().version, server, model, query_prefix, document_prefix]);
}

function remoteOf(settings: EmbeddingSettings, { vectorLength }: ProviderRow, means: Means): OpenAiEmbedder | undefined {
  if ((settings.provider ?? PROVIDER_DEFAULTS.provider) === "local") return undefined;
  return openAiEmbedder({
    baseUrl: settings.base_url,
    model: settings.model,
    apiKey: settings.api_key,
    queryPrefix: settings.query_prefix,
    documentPrefix: settings.document_prefix,
    vectorLength,
    ...means,
  });
}

async function measuredBy(remote: OpenAiEmbedder, identity: string): Promise<ProviderRow> {
  const measured = await calibrate((texts, kind) => remote.embed(texts, kind));
  return { identity, measured, ...(remote.vectorLength === undefined ? {} : { vectorLength: remote.vectorLength }) };
}

/**
 * From here on vectors are of another provider. Those that are not are owed: `memories/backfill.ts` finds them by their labels.
 *
 * Every line takes a label for itself. So no two are the same, even if no vector was made between them, and a line says
 * which provider was set when.
 */
function drawLine(tx: Tx, row: ProviderRow): void {
  const line = String(nextLabelOf(tx) + 1);
  tx.put(provider, ROW, row);
  tx.put(meta, "firstLabel", line);
  tx.put(meta, "nextLabel", line);
}

/** Notes what is known of the provider, unless another one was set meanwhile or more is known of it. @returns what is now known */
function putRow(tx: Tx, row: ProviderRow): ProviderRow {
  const stored = tx.get(provider, ROW);
  if (stored !== undefined && (stored.identity !== row.identity || row.measured === undefined)) return stored;
  tx.put(provider, ROW, row);
  return row;
}
