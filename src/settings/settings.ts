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

const ROW = "current";

export class Settings {
  readonly #store: Store;
  readonly #environment: EmbeddingSettings;
  #row: SettingsRow;
  /** The values in force. */
  values: Values;

  constructor(store: Store, environment: EmbeddingSettings) {
    this.#store = store;
    this.#environment = environment;
    this.#row = readRow(store);
    this.values = valuesOf(this.#row);
  }

  /** What is set of the embedding provider, through the API or the environment. */
  get embedding(): EmbeddingSettings {
    return { ...this.#environment, ...this.#row.embedding };
  }

  /** What it would be with these changes. An empty text takes a setting back. */
  embeddingWith(changes: EmbeddingSettings): EmbeddingSettings {
    return { ...this.#environment, ...merged(this.#row.embedding, changes) };
  }

  sourceOf(name: keyof EmbeddingSettings): Source {
    if (this.#row.embedding?.[name] !== undefined) return "setting";
    return this.#environment[name] === undefined ? "default" : "environment";
  }

  /** Writes changes; `besides` writes what belongs to them in the same commit. */
  async change(changes: { values?: Partial<Values>; embedding?: EmbeddingSettings | undefined }, besides: (tx: Tx) => void): Promise<void> {
    this.#row = await this.#store.commit((tx) => {
      const before = readRow(tx);
      const embedding = changes.embedding === undefined ? before.embedding : merged(before.embedding, changes.embedding);
      const row: SettingsRow = { values: { ...before.values, ...changes.values }, ...(embedding === undefined ? {} : { embedding }) };
      tx.put(settings, ROW, row);
      besides(tx);
      return row;
    });
    this.values = valuesOf(this.#row);
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

function valuesOf(row: SettingsRow): Values {
  return { ...DEFAULTS, ...row.values };
}

function readRow(reader: Reader): SettingsRow {
  return reader.get(settings, ROW) ?? { values: {} };
}

function merged(before: EmbeddingSettings | undefined, changes: EmbeddingSettings): EmbeddingSettings {
  return Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined && value !== ""));
}
