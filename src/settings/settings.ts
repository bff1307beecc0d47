/**
 * What an operator can change while Cairn runs. A setting made through the API wins over the environment, that over the
 * default; every one takes effect at once.
 *
 * All of them are one row, written in one commit; the values in force are kept in memory beside it. What takes a setting
 * back is the same for all of them: a null, or an empty text.
 *
 * @module
 */
import { jsonObject, toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { OPENAI_BASE_URL } from "../embeddings/remote/openai.ts";
import type { Reader, Store, Tx } from "../storage/store.ts";
import { settings, type EmbeddingSettings, type SettingsRow, type WebhookSettings } from "../storage/tables.ts";
import { policyOf, WEBHOOK_DEFAULTS, type WebhookPolicy } from "../webhooks/policy.ts";

export const MEMORIES_ON_EXPIRY = ["keep", "delete"] as const;
export type MemoriesOnExpiry = (typeof MEMORIES_ON_EXPIRY)[number];

/** Simple values, by name. */
export interface Values {
  memories_on_expiry: MemoriesOnExpiry;
  trace_retention_days: number;
  max_body_bytes: number;
  region: string | null;
  /** Versions of each session, besides the initial one. */
  state_versions_kept: number;
  /** null: no limit. */
  max_store_bytes: number | null;
}

const DEFAULTS: Values = {
  memories_on_expiry: "keep",
  trace_retention_days: 365,
  max_body_bytes: LIMITS.bodyBytesMax,
  region: null,
  state_versions_kept: LIMITS.stateVersionsKeptDefault,
  max_store_bytes: null,
};

/** What the operator's environment says. */
export interface SettingsEnvironment {
  readonly embedding?: EmbeddingSettings;
  readonly region?: string | undefined;
  readonly maxStoreBytes?: number | undefined;
  readonly webhooks?: WebhookSettings;
}

/** Names of the settings, as in the API. */
export const SIMPLE_SETTINGS = Object.keys(DEFAULTS) as (keyof Values)[];
export const WEBHOOK_SETTINGS = Object.keys(WEBHOOK_DEFAULTS) as (keyof WebhookSettings)[];
export const EMBEDDING_SETTINGS = [
  "provider",
  "base_url",
  "model",
  "api_key",
  "query_prefix",
  "document_prefix",
  "relevant_cosine",
] as const;

interface SettingEntry {
  set: unknown;
  value: unknown;
}

export type Source = "default" | "environment" | "setting";

/** Members that can also be taken back. */
type ChangesOf<Group> = { [Name in keyof Group]?: Group[Name] | null | undefined };

export type EmbeddingChanges = ChangesOf<EmbeddingSettings>;

export interface Changes {
  values?: ChangesOf<SettingsRow["values"]>;
  embedding?: EmbeddingChanges | undefined;
  webhooks?: ChangesOf<WebhookSettings> | undefined;
}

const ROW = "current";

/** All settings as they stand at one moment; never changes. */
export class InForce {
  readonly values: Values;
  /** What is set of the embedding provider, through the API or the environment. */
  readonly embedding: EmbeddingSettings;
  readonly webhooks: WebhookPolicy;
  readonly #row: SettingsRow;
  readonly #environment: SettingsEnvironment;

  constructor(environment: SettingsEnvironment, row: SettingsRow) {
    this.#row = row;
    this.#environment = environment;
    this.values = { ...DEFAULTS, ...this.#valuesOutside(), ...row.values };
    const { api_key, ...others } = environment.embedding ?? {};
    const embedding = { ...others, ...row.embedding };
    // A key goes to the server it was given for, and to no other.
    const isForThisServer = api_key !== undefined && originOf(embedding) === originOf(others);
    this.embedding = isForThisServer ? { api_key, ...embedding } : embedding;
    this.webhooks = policyOf(this.#webhookSettings());
  }

  /** The source of a setting of the embedding provider. */
  sourceOf(name: keyof EmbeddingSettings): Source {
    if (this.#row.embedding?.[name] !== undefined) return "setting";
    return this.embedding[name] === undefined ? "default" : "environment";
  }

  /** Each simple value with its default and source. */
  describe(): Record<keyof Values, JsonText> {
    const outside: Partial<Values> = this.#valuesOutside();
    const { values } = this.#row;
    return Object.fromEntries(
      SIMPLE_SETTINGS.map((name) => [name, describedJson(this.values[name], DEFAULTS[name], values[name], outside[name])]),
    ) as Record<keyof Values, JsonText>;
  }

  /** Each setting by its name, a dot behind its group: what was set through the API, and what is in force. */
  entries(): Record<string, SettingEntry> {
    const row = this.#row;
    const entriesOf = <Group extends object>(prefix: string, names: readonly (keyof Group & string)[], set: Group, inForce: Group) =>
      names.map((name): [string, SettingEntry] => [prefix + name, { set: set[name], value: inForce[name] }]);
    return Object.fromEntries([
      ...entriesOf<Partial<Values>>("", SIMPLE_SETTINGS, row.values, this.values),
      ...entriesOf<WebhookSettings>("webhooks.", WEBHOOK_SETTINGS, row.webhooks ?? {}, this.#webhookSettings()),
      ...entriesOf<EmbeddingSettings>("embedding.", EMBEDDING_SETTINGS, row.embedding ?? {}, this.embedding),
    ]);
  }

  describeWebhooks(): JsonText {
    const inForce = this.#webhookSettings();
    const [row, outside] = [this.#row.webhooks, this.#environment.webhooks];
    return jsonObject(
      Object.fromEntries(
        WEBHOOK_SETTINGS.map((name) => [name, describedJson(inForce[name], WEBHOOK_DEFAULTS[name], row?.[name], outside?.[name])]),
      ),
    );
  }

  /** The environment knows the region and the limit of the store alone. */
  #valuesOutside(): Partial<Values> {
    const { region, maxStoreBytes } = this.#environment;
    return { ...(region === undefined ? {} : { region }), ...(maxStoreBytes === undefined ? {} : { max_store_bytes: maxStoreBytes }) };
  }

  #webhookSettings(): Required<WebhookSettings> {
    return { ...WEBHOOK_DEFAULTS, ...this.#environment.webhooks, ...this.#row.webhooks };
  }
}

function describedJson(value: unknown, fallback: unknown, set: unknown, outside: unknown): JsonText {
  const source: Source = set !== undefined ? "setting" : outside !== undefined ? "environment" : "default";
  return toJson({ value, default: fallback, source });
}

export class Settings {
  readonly #store: Store;
  readonly #environment: SettingsEnvironment;
  #lastInTurn: Promise<unknown> = Promise.resolve();
  #inForce: InForce;

  constructor(store: Store, environment: SettingsEnvironment) {
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
    return new InForce(this.#environment, this.#changed(rowIn(reader), changes));
  }

  /** Whether these changes make any setting another than it is. */
  isChangedBy(changes: Changes): boolean {
    const before = rowIn(this.#store);
    return !Bun.deepEquals(stated(before), stated(this.#changed(before, changes)));
  }

  /** Writes changes; `reload` puts them in force once they are committed. */
  put(tx: Tx, changes: Changes): InForce {
    const row = this.#changed(rowIn(tx), changes);
    tx.put(settings, ROW, row);
    return new InForce(this.#environment, row);
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

  #changed(before: SettingsRow, { values = {}, embedding, webhooks }: Changes): SettingsRow {
    return {
      ...before,
      values: changedGroup(before.values, values),
      ...(embedding === undefined ? {} : { embedding: changedEmbedding(this.#environment.embedding ?? {}, before.embedding, embedding) }),
      ...(webhooks === undefined ? {} : { webhooks: changedGroup(before.webhooks, webhooks) }),
    };
  }
}

function rowIn(reader: Reader): SettingsRow {
  return reader.get(settings, ROW) ?? { values: {} };
}

/** A group without settings says as much as none. */
function stated({ values, embedding = {}, webhooks = {} }: SettingsRow): Required<SettingsRow> {
  return { values, embedding, webhooks };
}

/** What is set after some changes: a null or an empty text takes a setting back. */
function changedGroup<Group extends object>(before: Group | undefined, changes: ChangesOf<Group>): Group {
  const merged = Object.entries({ ...before, ...changes });
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined && value !== "" && value !== null)) as Group;
}

function changedEmbedding(
  environment: EmbeddingSettings,
  before: EmbeddingSettings | undefined,
  changes: EmbeddingChanges,
): EmbeddingSettings {
  const after = changedGroup(before, changes);
  // A key that was given for one server must not be had by naming another one.
  const isMoved = originOf({ ...environment, ...after }) !== originOf({ ...environment, ...before });
  if (isMoved && changes.api_key === undefined) delete after.api_key;
  return after;
}

function originOf({ base_url = OPENAI_BASE_URL }: EmbeddingSettings): string | undefined {
  return URL.parse(base_url)?.origin;
}
