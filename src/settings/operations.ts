/**
 * Reading and changing the settings.
 *
 * Another embedding provider is tried before it is set: it has to answer with vectors that can be used, and what its
 * cosines mean is measured. One that does not work is refused, and the one before stays.
 *
 * @module
 */
import { PROVIDER_DEFAULTS, type Embeddings, type Prepared } from "../embeddings/embeddings.ts";
import { apiKeyProblem, baseUrlProblem } from "../embeddings/openai.ts";
import { ProviderError } from "../embeddings/provider-error.ts";
import { ApiError } from "../lib/errors.ts";
import { jsonObject, toJson, type JsonText } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import { labels, meta, owed, type EmbeddingSettings } from "../storage/tables.ts";
import type { Caller, Records } from "../traces/record.ts";
import type { Settings, Values } from "./settings.ts";

export interface SettingsParts extends Records {
  readonly settings: Settings;
  readonly embeddings: Embeddings;
  readonly log: Log;
  readonly wakeBackfill: () => void;
}

export interface Changes {
  values: Partial<Values>;
  /** An empty text takes a setting back to the environment's or the default. */
  embedding?: EmbeddingSettings | undefined;
}

/** Below this a provider tells related from unrelated hardly better than words do. */
const SEPARATION_MIN = 0.8;

export function getSettings({ settings, embeddings, store }: SettingsParts): JsonText {
  const { remote } = embeddings.active;
  const { measured } = embeddings.row;
  const current = settings.embedding;
  const text = (name: keyof typeof PROVIDER_DEFAULTS) =>
    toJson({ value: current[name] ?? PROVIDER_DEFAULTS[name], default: PROVIDER_DEFAULTS[name], source: settings.sourceOf(name) });
  return jsonObject({
    object: toJson("settings"),
    ...settings.describe(),
    embedding: jsonObject({
      provider: text("provider"),
      base_url: text("base_url"),
      model: text("model"),
      api_key: toJson({ set: current.api_key !== undefined, source: settings.sourceOf("api_key") }),
      query_prefix: text("query_prefix"),
      document_prefix: text("document_prefix"),
      relevant_cosine: toJson(
        remote === undefined
          ? { value: null, source: "built-in" }
          : {
              value: current.relevant_cosine ?? measured?.relevantCosine ?? null,
              source: current.relevant_cosine === undefined ? "probes" : settings.sourceOf("relevant_cosine"),
            },
      ),
      separation: toJson(remote === undefined ? null : (measured?.separation ?? null)),
      vector_length: toJson(remote === undefined ? null : (embeddings.row.vectorLength ?? null)),
      state: toJson(remote?.lastError === undefined ? { available: true } : { available: false, reason: remote.lastError.message }),
      vectors: toJson({
        ready: store.count(labels),
        owed: store.count(owed),
        looking_through: store.get(meta, "lookThroughFrom") !== undefined,
      }),
    }),
  });
}

/** @throws {ApiError} `invalid_request` with the reason, when a provider does not work */
export async function changeSettings(parts: SettingsParts, caller: Caller, changes: Changes): Promise<JsonText> {
  const { settings, embeddings, log } = parts;
  const prepared = changes.embedding === undefined ? undefined : await preparedFor(parts, changes.embedding);
  await settings.change(changes, (tx) => {
    if (prepared !== undefined) embeddings.put(tx, prepared);
  });
  if (prepared !== undefined) {
    embeddings.use(prepared);
    parts.wakeBackfill();
    const separation = prepared.row.measured?.separation;
    log.info("embedding provider set", { provider: prepared.settings.provider ?? PROVIDER_DEFAULTS.provider, separation });
    if (separation !== undefined && separation < SEPARATION_MIN) {
      log.warn("the embedding provider hardly tells what is related from what is not", { separation });
    }
  }
  const answer = getSettings(parts);
  if (caller.keep !== undefined) {
    const { keep } = caller;
    await parts.store.commit((tx) => keep(tx, answer));
  }
  return answer;
}

async function preparedFor({ settings, embeddings }: SettingsParts, changes: EmbeddingSettings): Promise<Prepared> {
  const urlProblem = changes.base_url === undefined || changes.base_url === "" ? undefined : baseUrlProblem(changes.base_url);
  if (urlProblem !== undefined)
    throw new ApiError("invalid_request", `embedding.base_url cannot be used. ${urlProblem}`, { param: "embedding.base_url" });
  const keyProblem = changes.api_key === undefined || changes.api_key === "" ? undefined : apiKeyProblem(changes.api_key);
  if (keyProblem !== undefined)
    throw new ApiError("invalid_request", `embedding.api_key cannot be used. ${keyProblem}`, { param: "embedding.api_key" });
  try {
    return await embeddings.prepare(settings.embeddingWith(changes));
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    throw new ApiError("invalid_request", `The embedding provider does not work, and the one before stays. ${error.message}`, {
      param: error.kind === "unauthorized" ? "embedding.api_key" : "embedding",
      cause: error,
    });
  }
}
