/**
 * Reading and changing the settings.
 *
 * Another embedding provider is tried before it is set: it has to answer with vectors that can be used, and what its
 * cosines mean is measured. One that does not work is refused, and the previous one stays.
 *
 * @module
 */
import type { Embeddings, Progress, Provider } from "../embeddings/embeddings.ts";
import type { BuiltinEmbedder } from "../embeddings/builtin/builtin.ts";
import type { OpenAiEmbedder } from "../embeddings/remote/openai.ts";
import { ProviderError } from "../embeddings/remote/provider-error.ts";
import { ApiError } from "../lib/errors.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import type { ProviderRow } from "../storage/tables.ts";
import type { Activator } from "../tasks/task.ts";
import { commitAdmin, recordAdmin, type Caller, type Deps } from "../traces/record.ts";
import { membersOf, ofEach, type SettingChanges } from "./schema.ts";
import { storedSettings, type EffectiveSettings, type Settings } from "./settings.ts";

export interface SettingsDeps extends Deps {
  readonly settings: Settings;
  readonly embeddings: Embeddings;
  readonly log: Log;
  readonly backfill: Activator;
  /** None on a database. */
  readonly scheduledBackups: { readonly copyProblem: string | undefined } | undefined;
}

/** Below this a provider tells related from unrelated hardly better than words do. */
const SEPARATION_MIN = 0.8;

export async function getSettings({ settings, embeddings }: SettingsDeps): Promise<JsonText> {
  return toJson(describeSettings(settings.effective, embeddings.active, embeddings.row, await embeddings.progress()));
}

/** @throws {ApiError} `invalid_request` with the reason, when a provider does not work */
export async function changeSettings(deps: SettingsDeps, caller: Caller, changes: SettingChanges): Promise<JsonText> {
  const { settings, embeddings, scheduledBackups } = deps;
  for (const param of ["backups.schedule", "backups.copy_to"] as const) {
    const problem = (changes[param] ?? "") === "" ? undefined : backupProblem(param, scheduledBackups);
    if (problem !== undefined) throw new ApiError("invalid_request", problem, { param });
  }
  if (Object.keys(settings.with(changes).changesSince(settings.with({}))).length === 0) return getSettings(deps);
  if (Object.keys(membersOf("embedding", changes)).length === 0) return commitChanges(deps, caller, changes, undefined);
  return settings.serialize(async () => {
    const prepared = await preparedFor(deps, changes);
    try {
      return await commitChanges(deps, caller, changes, prepared);
    } catch (error) {
      embeddings.release(prepared);
      throw error;
    }
  });
}

async function commitChanges(
  deps: SettingsDeps,
  caller: Caller,
  changes: SettingChanges,
  prepared: Provider | undefined,
): Promise<JsonText> {
  const { settings, embeddings, log } = deps;
  const counts = await embeddings.counts();
  const answer = await commitAdmin(deps, caller, (tx) => {
    const before = settings.with({}, storedSettings(tx));
    const after = settings.put(tx, changes);
    const changed = after.changesSince(before);
    if (Object.keys(changed).length > 0) recordAdmin(tx, caller, "settings.updated", { changes: changed });
    const row = prepared === undefined ? embeddings.row : embeddings.put(tx, prepared);
    return toJson(describeSettings(after, prepared ?? embeddings.active, row, embeddings.progressIn(tx, counts)));
  });
  const wasPrivateAllowed = settings.effective.webhooks.allowPrivate;
  await settings.reload();
  log.info("settings changed", { actor: caller.actor, names: Object.keys(changes).join(" ") });
  if (settings.effective.webhooks.allowPrivate && !wasPrivateAllowed) log.warn("webhooks may now lead into private networks");
  if (prepared === undefined) return answer;
  await embeddings.activate(prepared);
  deps.backfill.wake();
  const { "embedding.provider": provider, "embedding.model": model } = settings.values;
  const separation = embeddings.row.measured?.separation;
  log.info("embedding provider set", { provider, ...(prepared.remote === undefined ? {} : { model, separation }) });
  if (separation !== undefined && separation < SEPARATION_MIN) {
    log.warn("the embedding provider barely tells related texts from unrelated ones", { separation });
  }
  return answer;
}

/** Tries the provider that the settings with some changes name. @returns it, to be released, or why it does not work */
export async function triedProvider(
  { settings, embeddings }: SettingsDeps,
  changes: SettingChanges,
): Promise<{ provider: Provider } | { reason: string; param: string; cause: ProviderError }> {
  try {
    return { provider: await embeddings.prepare(settings.with(changes).embedding) };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (embeddings.isClosed) throw new ApiError("service_unavailable", "Cairn is being stopped. Nothing was changed.", { cause: error });
    return { reason: error.message, param: paramOf(error), cause: error };
  }
}

async function preparedFor(deps: SettingsDeps, changes: SettingChanges): Promise<Provider> {
  const { settings, embeddings } = deps;
  const { embedding } = settings.with(changes);
  // A provider that is down has a meaning of its cosines, too.
  if (Object.keys(membersOf("embedding", changes)).every((name) => name === "relevant_cosine")) return embeddings.activeWith(embedding);
  const tried = await triedProvider(deps, changes);
  if ("provider" in tried) return tried.provider;
  throw new ApiError("invalid_request", `The embedding provider does not work, and the previous one stays. ${tried.reason}`, {
    param: tried.param,
    cause: tried.cause,
  });
}

/** The setting that is most likely wrong. */
function paramOf({ kind, message, facts }: ProviderError): string {
  if (kind === "unauthorized") return "embedding.api_key";
  if (kind === "unreachable" || kind === "timeout" || kind === "forbidden") return "embedding.base_url";
  if (kind === "bad_answer" && message.includes("embedding.dimensions")) return "embedding.dimensions";
  return kind === "rejected" && facts.status !== undefined && /model/i.test(message) ? "embedding.model" : "embedding";
}

/** Key of what is known of a provider: what it embeds with. */
interface Embedders {
  readonly remote: Pick<OpenAiEmbedder, "openCircuit"> | undefined;
  readonly builtin: Pick<BuiltinEmbedder, "dimension" | "failure"> | undefined;
}

/** The settings as the API shows them, with what is known of the embedding provider. */
/** Returns why a setting of backups has no effect on this server; undefined where it has one. */
function backupProblem(name: "backups.schedule" | "backups.copy_to", own: SettingsDeps["scheduledBackups"]): string | undefined {
  if (own === undefined)
    return "The records of this server are in PostgreSQL, which has backups of its own: schedule pg_dump, or use its point-in-time recovery.";
  return name === "backups.copy_to" && own.copyProblem !== undefined ? `No copy can be made: ${own.copyProblem}.` : undefined;
}

export function describeSettings(
  effective: EffectiveSettings,
  { remote, builtin }: Embedders,
  { measured, vectorLength }: Pick<ProviderRow, "measured" | "vectorLength">,
  vectors: Progress,
): object {
  const described = ofEach((name) => effective.describe(name));
  return {
    object: "settings",
    ...membersOf("", described),
    backups: membersOf("backups", described),
    webhooks: membersOf("webhooks", described),
    embedding: {
      ...membersOf("embedding", described),
      relevant_cosine: relevantCosine(effective, remote !== undefined, measured?.relevantCosine ?? null),
      separation: remote === undefined ? null : (measured?.separation ?? null),
      vector_length: builtin?.dimension ?? (remote === undefined ? null : (vectorLength ?? null)),
      state: stateOf({ remote, builtin }, measured),
      vectors,
    },
  };
}

function relevantCosine(effective: EffectiveSettings, isRemote: boolean, probed: number | null): object {
  if (!isRemote) return { value: null, default: null, source: "built-in" };
  const { relevant_cosine: set } = effective.embedding;
  return { value: set ?? probed, default: probed, source: set === undefined ? "probes" : effective.sourceOf("embedding.relevant_cosine") };
}

/** Checks whether a search can be answered. */
function stateOf({ remote, builtin }: Embedders, measured: ProviderRow["measured"]): { available: boolean; reason?: string } {
  if (builtin?.failure !== undefined) return { available: false, reason: builtin.failure.message };
  if (remote === undefined) return { available: true };
  if (remote.openCircuit !== undefined) return { available: false, reason: remote.openCircuit.error.message };
  return measured === undefined ? { available: false, reason: "It was not reached yet since it was set." } : { available: true };
}
