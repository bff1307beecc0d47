/**
 * Trying an embedding provider: whether it works, how long it takes, and what score it gives to a pair of texts. Nothing is saved.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { BACKGROUND } from "../embeddings/embeddings.ts";
import { NO_COSINE } from "../embeddings/embedder.ts";
import { ProviderError } from "../embeddings/remote/provider-error.ts";
import { relevance } from "../memories/relevance.ts";
import { triedProvider, type SettingsDeps } from "../settings/operations.ts";
import type { SettingChanges } from "../settings/schema.ts";
import { dotStored, encodeVector, quantize } from "../search/encoding.ts";

const RETRY_AFTER_SECONDS = 5;

/** Owner of the vector that is tried. */
const NOBODY = { memory: "0".repeat(12), generation: 0 };

export interface Pair {
  query: string;
  content: string;
}

/** Tries one provider at a time: each trial asks somebody else's server a hundred times, for most of a minute if it is slow. */
export class Trials {
  readonly #deps: SettingsDeps;
  #isTrying = false;

  constructor(deps: SettingsDeps) {
    this.#deps = deps;
  }

  /** @throws {ApiError} `service_unavailable` while another trial is under way */
  async run(changes: SettingChanges, pair: Pair): Promise<JsonText> {
    if (this.#isTrying) {
      throw new ApiError("service_unavailable", "An embedding provider is being tried. Try again when that has ended.", {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    }
    this.#isTrying = true;
    try {
      return await this.#tried(changes, pair);
    } finally {
      this.#isTrying = false;
    }
  }

  async #tried(changes: SettingChanges, { query, content }: Pair): Promise<JsonText> {
    const { embeddings, clock } = this.#deps;
    const tried = await triedProvider(this.#deps, changes);
    if (!("provider" in tried)) return failed(tried.reason, tried.param);
    const { provider } = tried;
    try {
      const embedder = embeddings.embedderOf(provider);
      const startedAt = clock.elapsed();
      const asked = await embedder.embedQuery(query, BACKGROUND);
      const durationMs = clock.elapsed() - startedAt;
      const stored = await embedder.embedMemory(content, BACKGROUND);
      const cosine = asked.vector.length === 0 ? NO_COSINE : dotStored(quantize(asked.vector), encodeVector(stored, NOBODY));
      return toJson({
        object: "embedding_trial",
        works: true,
        reason: null,
        param: null,
        duration_ms: Math.round(durationMs * 100) / 100,
        vector_length: provider.builtin?.dimension ?? provider.row.vectorLength ?? null,
        separation: provider.row.measured?.separation ?? null,
        score: asked.lexical.ids.length === 0 ? 0 : relevance(asked, cosine, stored.terms, embeddings.calibrationOf(provider)),
      });
    } catch (error) {
      if (error instanceof ProviderError) return failed(error.message, "embedding");
      throw error;
    } finally {
      embeddings.release(provider);
    }
  }
}

function failed(reason: string, param: string): JsonText {
  const unknown = { duration_ms: null, vector_length: null, separation: null, score: null };
  return toJson({ object: "embedding_trial", works: false, reason, param, ...unknown });
}
