/**
 * The settings that hold now. One made through the API wins over the environment, that over the default; every change takes
 * effect at once.
 *
 * All that was set is one row, written in one commit; the effective settings are kept in memory. Where several servers share a store,
 * every request has them read along with its key, so that it sees what any server has set before it came.
 *
 * @module
 */
import type { EmbeddingSettings } from "../embeddings/provider-settings.ts";
import { toJson } from "../lib/json.ts";
import type { Reader, Tx } from "../storage/access.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { settings, type SettingsRow } from "../storage/tables.ts";
import { webhookPolicy, type WebhookPolicy } from "../webhooks/policy.ts";
import { DEFAULTS, membersOf, SETTING_NAMES, SETTINGS } from "./schema.ts";
import { withoutWrongSettings } from "./stored-settings.ts";
import type { GivenSettings, Setting, SettingChanges, SettingName, SettingValues } from "./schema.ts";

export type Source = "default" | "environment" | "setting";

const ROW = "current";

/** All settings at one moment; never changes. */
export class EffectiveSettings {
  readonly values: SettingValues;
  /** Settings of the embedding provider that are given, through the API or the environment. */
  readonly embedding: EmbeddingSettings;
  readonly webhooks: WebhookPolicy;
  /** Settings made through the API. */
  readonly row: GivenSettings;
  readonly #given: GivenSettings;

  constructor(environment: GivenSettings, row: SettingsRow) {
    const { "embedding.api_key": apiKey, ...others } = environment;
    // A key goes to the server it was given for, and to no other.
    const isForThisServer = apiKey !== undefined && originOf({ ...others, ...row }) === originOf(others);
    this.row = withoutFormerNames(row);
    this.#given = withoutFormerNames({ ...(isForThisServer ? environment : others), ...row });
    this.values = { ...DEFAULTS, ...this.#given };
    this.embedding = membersOf("embedding", this.#given);
    const { "webhooks.allow_private": allowPrivate, "webhooks.timeout": timeout, "webhooks.retry_schedule": schedule } = this.values;
    this.webhooks = webhookPolicy(allowPrivate, timeout, schedule);
  }

  sourceOf(name: SettingName): Source {
    if (this.row[name] !== undefined) return "setting";
    return this.#given[name] === undefined ? "default" : "environment";
  }

  /** A setting as the API shows it. */
  describe(name: SettingName): object {
    const source = this.sourceOf(name);
    if (SETTINGS[name].isSecret === true) return { set: source !== "default", source };
    return { value: this.values[name], default: SETTINGS[name].default, source };
  }

  /**
   * The settings that were set, taken back or given another value after `before`, as a trace shows them.
   *
   * @example
   * after.changesSince(before);
   * // { "trace_retention_days": { from: 365, to: 400 }, "embedding.api_key": { from: { set: false }, to: { set: true } } }
   */
  changesSince(before: EffectiveSettings): Record<string, { from: unknown; to: unknown }> {
    const changed = SETTING_NAMES.filter((name) => this.row[name] !== before.row[name] || this.#given[name] !== before.#given[name]);
    return Object.fromEntries(changed.map((name) => [name, { from: before.#traced(name), to: this.#traced(name) }]));
  }

  /** The provider's defaults are null here. */
  #traced(name: SettingName): unknown {
    const value = name.startsWith("embedding.") ? this.#given[name] : this.values[name];
    return SETTINGS[name].isSecret === true ? { set: value !== undefined } : redacted(name, value ?? null);
  }
}

/** Settings with `local`, as the built-in provider was called before it became another, under the name that it has. */
function withoutFormerNames(given: GivenSettings): GivenSettings {
  return given["embedding.provider"] === "local" ? { ...given, "embedding.provider": "builtin" } : given;
}

/** Stored settings as an export without secrets has them. */
export function withoutSecrets(row: SettingsRow): SettingsRow {
  const shown = Object.entries(row).filter(([name]) => settingOf(name)?.isSecret !== true);
  return Object.fromEntries(shown.map(([name, value]) => [name, redacted(name, value)]));
}

function redacted<Value>(name: string, value: Value): Value | string {
  const redact = settingOf(name)?.redact;
  return redact === undefined || typeof value !== "string" ? value : redact(value);
}

/** A store can hold settings of another version. */
function settingOf(name: string): Setting | undefined {
  return Object.hasOwn(SETTINGS, name) ? SETTINGS[name as SettingName] : undefined;
}

export class Settings {
  readonly #store: RecordStore;
  readonly #environment: GivenSettings;
  #lastSerialized: Promise<unknown> = Promise.resolve();
  #effective: EffectiveSettings;
  /** Reads so far, and which of them the effective settings are of: an earlier one, which ends later, may know less. */
  #reads = 0;
  #readOfEffective = 0;
  /** The row of the effective settings as it is stored. */
  #stored: string;

  private constructor(store: RecordStore, environment: GivenSettings, row: SettingsRow) {
    this.#store = store;
    this.#environment = environment;
    this.#stored = toJson(row);
    this.#effective = new EffectiveSettings(environment, withoutWrongSettings(row));
  }

  static async open(store: RecordStore, environment: GivenSettings): Promise<Settings> {
    return new Settings(store, environment, await store.read(rowIn));
  }

  get effective(): EffectiveSettings {
    return this.#effective;
  }

  get values(): SettingValues {
    return this.#effective.values;
  }

  /** The effective settings after these changes. @param before - the stored settings that they are changes of */
  with(changes: SettingChanges, before: SettingsRow = this.#effective.row): EffectiveSettings {
    return new EffectiveSettings(this.#environment, this.#changed(before, changes));
  }

  /** Writes changes; `reload` makes them effective once they are committed. */
  put(tx: Tx, changes: SettingChanges): EffectiveSettings {
    const after = this.with(changes, storedSettings(tx));
    tx.put(settings, ROW, after.row);
    return after;
  }

  async reload(): Promise<void> {
    await this.readAlong(() => undefined);
  }

  /** Runs a read of the store, and makes effective what is set at that moment, whichever server has set it. */
  async readAlong<Result>(work: (reader: Reader) => Result): Promise<Result> {
    const read = ++this.#reads;
    const { result, row } = await this.#store.read((reader) => {
      reader.ahead(settings, [ROW]);
      return { result: work(reader), row: rowIn(reader) };
    });
    if (read > this.#readOfEffective) {
      this.#readOfEffective = read;
      const stored = toJson(row);
      if (stored !== this.#stored) this.#effective = this.with({}, withoutWrongSettings(row));
      this.#stored = stored;
    }
    return result;
  }

  /** A mutex: runs changes of the provider one after the other, so that each is tried on top of what the previous one has set. */
  async serialize<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#lastSerialized.then(work);
    this.#lastSerialized = done.catch(() => undefined);
    return done;
  }

  #changed(before: SettingsRow, changes: SettingChanges): SettingsRow {
    const merged = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null && value !== "");
    const after = Object.fromEntries(merged) as GivenSettings;
    // A key that was given for one server must not be had by naming another one.
    const isMoved = originOf({ ...this.#environment, ...after }) !== originOf({ ...this.#environment, ...before });
    if (isMoved && changes["embedding.api_key"] === undefined) delete after["embedding.api_key"];
    return after;
  }
}

/** Settings made through the API, as far as this version knows them. */
export function storedSettings(reader: Reader): SettingsRow {
  return withoutWrongSettings(rowIn(reader));
}

function rowIn(reader: Reader): SettingsRow {
  return reader.get(settings, ROW) ?? {};
}

function originOf({ "embedding.base_url": url = DEFAULTS["embedding.base_url"] }: GivenSettings): string | undefined {
  return URL.parse(url)?.origin;
}
