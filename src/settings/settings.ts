/**
 * What an operator can change while Cairn runs. A setting made through the API wins over the environment, that over the
 * default; every one takes effect at once.
 *
 * All of them are one row, written in one commit; the values in force are kept in memory beside it.
 *
 * @module
 */
import { jsonObject, toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { OPENAI_BASE_URL } from "../embeddings/openai.ts";
import type { Reader, Store, Tx } from "../storage/store.ts";
import { settings, type EmbeddingSettings, type SettingsRow } from "../storage/tables.ts";

export const MEMORIES_ON_EXPIRY = ["keep", "delete"] as const;
export type MemoriesOnExpiry = (typeof MEMORIES_ON_EXPIRY)[number];

/** Simple values, by name. */
export interface Values {
  memories_on_expiry: MemoriesOnExpiry;
  trace_retention_days: number;
  max_body_bytes: number;
}

const DEFAULTS: Values = {
  memories_on_expiry: "keep",
  trace_retention_days: 365,
  max_body_bytes: LIMITS.bodyBytesMax,
};

export type Source = "default" | "environment" | "setting";

/** An empty text, and a null for a number, takes a setting back to the environment's or the default. */
export type EmbeddingChanges = Omit<EmbeddingSettings, "relevant_cosine"> & { relevant_cosine?: number | null };

export interface Changes {
  values?: Partial<Values>;
  embedding?: EmbeddingChanges | undefined;
}

const ROW = "current";

/** All settings as they stand at one moment; never changes. */
export class InForce {
  readonly values: Values;
  /** What is set of the embedding provider, through the API or the environment. */
  readonly embedding: EmbeddingSettings;
  readonly #row: SettingsRow;

  constructor(environment: EmbeddingSettings, row: SettingsRow) {
    this.#row = row;
    this.values = { ...DEFAULTS, ...row.values };
    const { api_key, ...others } = environment;
    const embedding = { ...others, ...row.embedding };
    // A key goes to the server it was given for, and to no other.
    const isForThisServer = api_key !== undefined && originOf(embedding) === originOf(environment);
    this.embedding = isForThisServer ? { api_key, ...embedding } : embedding;
  }

  sourceOf(name: keyof EmbeddingSettings): Source {
    if (this.#row.embedding?.[name] !== undefined) return "setting";
    return this.embedding[name] === undefined ? "default" : "environment";
  }

  /** Each simple value with its default and source. */
  describe(): Record<keyof Values, JsonText> {
    const described = (name: keyof Values): JsonText =>
      jsonObject({
        value: toJson(this.values[name]),
        default: toJson(DEFAULTS[name]),
        source: toJson(this.#row.values[name] === undefined ? "default" : "setting"),
      });
    return {
      memories_on_expiry: described("memories_on_expiry"),
      trace_retention_days: described("trace_retention_days"),
      max_body_bytes: described("max_body_bytes"),
    };
  }
}

export class Settings {
  readonly #store: Store;
  readonly #environment: EmbeddingSettings;
  #lastInTurn: Promise<unknown> = Promise.resolve();
  #inForce: InForce;

  constructor(store: Store, environment: EmbeddingSettings) {
    this.#store = store;
    this.#environment = environment;
    this.#inForce = this.#read(store);
  }

  get inForce(): InForce {
    return this.#inForce;
  }

  /** The simple values in force. */
  get values(): Values {
    return this.#inForce.values;
  }

  /** What would be in force after these changes. */
  with(changes: Changes, reader: Reader = this.#store): InForce {
    return new InForce(this.#environment, changed(this.#environment, rowIn(reader), changes));
  }

  /** Writes changes; `reload` puts them in force once they are committed. */
  put(tx: Tx, changes: Changes): InForce {
    const after = this.with(changes, tx);
    tx.put(settings, ROW, changed(this.#environment, rowIn(tx), changes));
    return after;
  }

  reload(): void {
    this.#inForce = this.#read(this.#store);
  }

  /** Runs one change of the provider after the other, so that each is tried on top of what the one before has set. */
  async inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#lastInTurn.then(work);
    this.#lastInTurn = done.catch(() => undefined);
    return done;
  }

  #read(reader: Reader): InForce {
    return new InForce(this.#environment, rowIn(reader));
  }
}

function rowIn(reader: Reader): SettingsRow {
  return reader.get(settings, ROW) ?? { values: {} };
}

function changed(environment: EmbeddingSettings, before: SettingsRow, { values, embedding }: Changes): SettingsRow {
  const row: SettingsRow = { ...before, values: { ...before.values, ...values } };
  if (embedding === undefined) return row;
  const merged = Object.fromEntries(
    Object.entries({ ...before.embedding, ...embedding }).filter(([, value]) => value !== undefined && value !== "" && value !== null),
  ) as EmbeddingSettings;
  // A key that was given for one server must not be had by naming another one.
  const isMoved = originOf({ ...environment, ...merged }) !== originOf({ ...environment, ...before.embedding });
  if (isMoved && embedding.api_key === undefined) delete merged.api_key;
  return { ...row, embedding: merged };
}

function originOf({ base_url = OPENAI_BASE_URL }: EmbeddingSettings): string | undefined {
  return URL.parse(base_url)?.origin;
}
