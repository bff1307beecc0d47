/**
 * Reading and changing the settings.
 *
 * Another embedding provider is tried before it is set: it has to answer with vectors that can be used, and what its
 * cosines mean is measured. One that does not work is refused, and the one before stays.
 *
 * @module
 */
import { PROVIDER_DEFAULTS, type Embeddings, type CandidateProvider } from "../embeddings/embeddings.ts";
import type { OpenAiEmbedder } from "../embeddings/remote/openai.ts";
import { ProviderError } from "../embeddings/remote/provider-error.ts";
import { ApiError } from "../lib/errors.ts";
import { jsonObject, toJson, type JsonText } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import type { Reader } from "../storage/store.ts";
import type { ProviderRow } from "../storage/tables.ts";
import type { Activator } from "../tasks/task.ts";
import { commitFor, recordAdmin, type Caller, type Records } from "../traces/record.ts";
import { changedSettings } from "./changes.ts";
import { refuseSenseless } from "./sense.ts";
import type { Changes, EmbeddingChanges, InForce, Settings, Source } from "./settings.ts";

export interface SettingsParts extends Records {
  readonly settings: Settings;
  readonly embeddings: Embeddings;
  readonly log: Log;
  readonly backfill: Activator;
}

/** Below this a provider tells related from unrelated hardly better than words do. */
const SEPARATION_MIN = 0.8;

export function getSettings({ settings, embeddings, store }: SettingsParts): JsonText {
  return settingsJson(store, embeddings, settings.inForce, embeddings.active.remote, embeddings.row);
}

/** @throws {ApiError} `invalid_request` with the reason, when a value makes no sense or a provider does not work */
export async function changeSettings(parts: SettingsParts, caller: Caller, changes: Changes): Promise<JsonText> {
  const { settings, embeddings } = parts;
  refuseSenseless(changes);
  const { embedding } = changes;
  if (!settings.isChangedBy(changes)) return getSettings(parts);
  if (embedding === undefined) return commitChanges(parts, caller, changes, undefined);
  return settings.inTurn(async () => {
    const prepared = await preparedFor(parts, embedding);
    try {
      return await commitChanges(parts, caller, changes, prepared);
    } catch (error) {
      embeddings.release(prepared);
      throw error;
    }
  });
}

async function commitChanges(
  parts: SettingsParts,
  caller: Caller,
  changes: Changes,
  prepared: CandidateProvider | undefined,
): Promise<JsonText> {
  const { settings, embeddings, log } = parts;
  const answer = await commitFor(parts, caller, (tx) => {
    const before = settings.with({}, tx);
    const inForce = settings.put(tx, changes);
    const changed = changedSettings(before, inForce);
    if (Object.keys(changed).length > 0) recordAdmin(tx, parts, caller, "settings.updated", { changes: changed });
    const row = prepared === undefined ? embeddings.row : embeddings.put(tx, prepared);
    return settingsJson(tx, embeddings, inForce, prepared === undefined ? embeddings.active.remote : prepared.remote, row);
  });
  const wasPrivateAllowed = settings.inForce.webhooks.allowPrivate;
  settings.reload();
  const of = (group: "embedding" | "webhooks") => Object.keys(changes[group] ?? {}).map((name) => `${group}.${name}`);
  const names = [...Object.keys(changes.values ?? {}), ...of("embedding"), ...of("webhooks")];
  log.info("settings changed", { actor: caller.actor, names: names.join(" ") });
  if (settings.inForce.webhooks.allowPrivate && !wasPrivateAllowed) log.warn("webhooks may lead into private networks from now on");
  if (prepared === undefined) return answer;
  embeddings.activate(prepared);
  parts.backfill.wake();
  const { provider, model } = { ...PROVIDER_DEFAULTS, ...prepared.settings };
  const separation = embeddings.row.measured?.separation;
  log.info("embedding provider set", { provider, ...(prepared.remote === undefined ? {} : { model, separation }) });
  if (separation !== undefined && separation < SEPARATION_MIN) {
    log.warn("the embedding provider hardly tells what is related from what is not", { separation });
  }
  return answer;
}

async function preparedFor({ settings, embeddings }: SettingsParts, changes: EmbeddingChanges): Promise<CandidateProvider> {
  const { embedding } = settings.with({ embedding: changes });
  // What its cosines mean can be said of a provider that is down, too.
  if (Object.keys(changes).every((name) => name === "relevant_cosine")) return embeddings.activeWith(embedding);
  try {
    return await embeddings.prepare(embedding);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (embeddings.isClosed) throw new ApiError("service_unavailable", "Cairn is being stopped. Nothing was changed.", { cause: error });
    throw new ApiError("invalid_request", `The embedding provider does not work, and the one before stays. ${error.message}`, {
      param: paramOf(error),
      cause: error,
    });
  }
}

/** The setting that is most likely wrong. */
function paramOf({ kind, message, facts }: ProviderError): string {
  if (kind === "unauthorized") return "embedding.api_key";
  if (kind === "unreachable" || kind === "timeout" || kind === "forbidden") return "embedding.base_url";
  return kind === "rejected" && facts.status !== undefined && /model/i.test(message) ? "embedding.model" : "embedding";
}

function settingsJson(
  reader: Reader,
  embeddings: Embeddings,
  inForce: InForce,
  remote: OpenAiEmbedder | undefined,
  { measured, vectorLength }: ProviderRow,
): JsonText {
  const { embedding } = inForce;
  const text = (name: keyof typeof PROVIDER_DEFAULTS) =>
    toJson({ value: embedding[name] ?? PROVIDER_DEFAULTS[name], default: PROVIDER_DEFAULTS[name], source: inForce.sourceOf(name) });
  return jsonObject({
    object: toJson("settings"),
    ...inForce.describe(),
    webhooks: inForce.describeWebhooks(),
    embedding: jsonObject({
      provider: text("provider"),
      base_url: text("base_url"),
      model: text("model"),
      api_key: toJson({ set: embedding.api_key !== undefined, source: inForce.sourceOf("api_key") }),
      query_prefix: text("query_prefix"),
      document_prefix: text("document_prefix"),
      relevant_cosine: toJson(relevantCosine(inForce, remote, measured)),
      separation: toJson(remote === undefined ? null : (measured?.separation ?? null)),
      vector_length: toJson(remote === undefined ? null : (vectorLength ?? null)),
      state: toJson(stateOf(remote, measured)),
      vectors: toJson(embeddings.progress(reader)),
    }),
  });
}

interface DescribedCosine {
  value: number | null;
  default: number | null;
  source: Source | "probes" | "built-in";
}

function relevantCosine(inForce: InForce, remote: OpenAiEmbedder | undefined, measured: ProviderRow["measured"]): DescribedCosine {
  if (remote === undefined) return { value: null, default: null, source: "built-in" };
  const probed = measured?.relevantCosine ?? null;
  const set = inForce.embedding.relevant_cosine;
  return { value: set ?? probed, default: probed, source: set === undefined ? "probes" : inForce.sourceOf("relevant_cosine") };
}

/** Whether a search can be answered. */
function stateOf(remote: OpenAiEmbedder | undefined, measured: ProviderRow["measured"]): { available: boolean; reason?: string } {
  if (remote === undefined) return { available: true };
  if (remote.openCircuit !== undefined) return { available: false, reason: remote.openCircuit.error.message };
  return measured === undefined ? { available: false, reason: "It was not reached yet since it was set." } : { available: true };
}
