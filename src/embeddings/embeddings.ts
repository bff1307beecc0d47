/**
 * The provider that is set, and which of the stored vectors are its own.
 *
 * Vectors of two providers mean different things and are never compared. Labels rise with every vector made, so a change of
 * provider draws a line: labels from `firstLabel` on are of the provider that is set, those below are of one before and wait
 * to be made anew (`memories/backfill.ts`). The line and the provider's name are changed in one commit.
 *
 * @module
 */
import type { Clock, Wait } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { firstLabelOf } from "../storage/memory-records.ts";
import type { Store, Tx } from "../storage/store.ts";
import { meta, provider, type EmbeddingSettings, type ProviderRow } from "../storage/tables.ts";
import { calibrate, calibrationOf, type ProviderCalibration } from "./calibration.ts";
import type { EmbeddedQuery, Embedder, Embedding } from "./embedder.ts";
import { localEmbedder } from "./local.ts";
import { OPENAI_BASE_URL, OPENAI_MODEL, openAiEmbedder, type OpenAiEmbedder } from "./openai.ts";
import { ProviderError } from "./provider-error.ts";

export const PROVIDERS = ["local", "openai"] as const;
export const PROVIDER_DEFAULTS = {
  provider: "local",
  base_url: OPENAI_BASE_URL,
  model: OPENAI_MODEL,
  query_prefix: "",
  document_prefix: "",
} as const;

/** Whoever stores a memory waits for its vector no longer than this; then it is owed. */
const STORE_WAIT_MS = 2_500;

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
  readonly wait: Wait;
  readonly random: () => number;
}

/** A provider that was tried and found to work, not yet in use. */
export interface Prepared {
  readonly settings: EmbeddingSettings;
  readonly remote: OpenAiEmbedder | undefined;
  readonly row: ProviderRow;
}

export class Embeddings {
  readonly #store: Store;
  readonly #means: Means;
  #settings: EmbeddingSettings;
  #row: ProviderRow;
  #active: Active;

  private constructor(store: Store, means: Means, settings: EmbeddingSettings, row: ProviderRow) {
    this.#store = store;
    this.#means = means;
    this.#settings = settings;
    this.#row = row;
    this.#active = this.#activeOf(settings, row, remoteOf(settings, row, means));
  }

  /**
   * Opens the provider that is set; if it is another one than the vectors in the store are of, they are made anew. The
   * provider need not be reachable.
   */
  static async open(store: Store, settings: EmbeddingSettings, means: Means): Promise<Embeddings> {
    const identity = identityOf(settings);
    const known = store.get(provider, ROW);
    const row = known?.identity === identity ? known : { identity };
    if (row !== known) await store.commit((tx) => drawLine(tx, row));
    return new Embeddings(store, means, settings, row);
  }

  /** What to embed with now. To be read once per request: it is another object after a change. */
  get active(): Active {
    return this.#active;
  }

  get row(): ProviderRow {
    return this.#row;
  }

  /** The vector of a memory about to be stored; undefined when it has to be owed. Never takes longer than 2.5 s. */
  async embedMemory({ embedder, remote }: Active, text: string): Promise<Embedding | undefined> {
    if (remote === undefined) return embedder.embedMemory(text);
    const done = new AbortController();
    const late = this.#means.wait(STORE_WAIT_MS, done.signal).then(() => undefined);
    const made = remote.embedMemory(text).catch((error: unknown) => {
      if (error instanceof ProviderError) return undefined;
      throw error;
    });
    try {
      return await Promise.race([made, late]);
    } finally {
      done.abort();
    }
  }

  /** @throws {ApiError} `service_unavailable` with what is wrong with the provider */
  async embedQuery({ embedder, remote, calibration }: Active, text: string): Promise<EmbeddedQuery> {
    try {
      const query = await embedder.embedQuery(text);
      if (remote !== undefined && calibration === undefined && query.lexical.size > 0) {
        throw new ApiError("service_unavailable", "The embedding provider was not yet reached since it was set. Try again in a moment.");
      }
      return query;
    } catch (error) {
      if (error instanceof ProviderError)
        throw new ApiError("service_unavailable", `The embedding provider failed. ${error.message}`, { cause: error });
      throw error;
    }
  }

  /**
   * Asks the provider whether it is there, and what its cosines mean if that is not known yet.
   *
   * @throws {ProviderError}
   */
  async recover(): Promise<void> {
    const { remote } = this.#active;
    if (remote === undefined) return;
    await remote.probe();
    if (this.#row.measured !== undefined) return;
    const row = await measuredBy(remote, this.#row.identity);
    await this.#store.commit((tx) => tx.put(provider, ROW, row));
    if (this.#active.remote === remote) this.#use(this.#settings, row, remote);
  }

  /**
   * Tries a provider: it has to answer, and to answer with what can be used.
   *
   * @throws {ProviderError}
   */
  async prepare(settings: EmbeddingSettings): Promise<Prepared> {
    const identity = identityOf(settings);
    const known = identity === this.#row.identity ? this.#row : { identity };
    const remote = remoteOf(settings, known, this.#means);
    if (remote === undefined) return { settings, remote, row: known };
    try {
      await remote.probe();
      return { settings, remote, row: known.measured === undefined ? await measuredBy(remote, identity) : known };
    } catch (error) {
      remote.close();
      throw error;
    }
  }

  /** Writes what makes a prepared provider the one that is set, as part of the commit of the setting. */
  put(tx: Tx, { row }: Prepared): void {
    if (tx.get(provider, ROW)?.identity === row.identity) tx.put(provider, ROW, row);
    else drawLine(tx, row);
  }

  /** Takes it into use, after that commit. */
  use({ settings, row, remote }: Prepared): void {
    const before = this.#active.remote;
    this.#use(settings, row, remote);
    before?.close();
  }

  close(): void {
    this.#active.remote?.close();
  }

  #use(settings: EmbeddingSettings, row: ProviderRow, remote: OpenAiEmbedder | undefined): void {
    this.#settings = settings;
    this.#row = row;
    this.#active = this.#activeOf(settings, row, remote);
  }

  #activeOf(settings: EmbeddingSettings, { measured }: ProviderRow, remote: OpenAiEmbedder | undefined): Active {
    return {
      embedder: remote ?? localEmbedder(),
      remote,
      firstLabel: firstLabelOf(this.#store),
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
  return JSON.stringify(["openai", localEmbedder().version, base_url, model, query_prefix, document_prefix]);
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

/** From here on vectors are of another provider; all memories are to be looked through for those that are not. */
function drawLine(tx: Tx, row: ProviderRow): void {
  tx.put(provider, ROW, row);
  const next = tx.get(meta, "nextLabel");
  if (next === undefined) return;
  tx.put(meta, "firstLabel", next);
  tx.put(meta, "lookThroughFrom", "0");
}
