/**
 * Settings: the table of URLs.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpoint, type Endpoint } from "../http/endpoint.ts";
import { ApiError } from "../lib/errors.ts";
import { firstCodePoints } from "../lib/text.ts";
import { changeSettings, getSettings, type SettingsParts } from "./operations.ts";
import { SHOWN_LENGTH } from "./sense.ts";
import { SettingsAnswer, SettingsChanges } from "./schema.ts";
import { EMBEDDING_SETTINGS, SIMPLE_SETTINGS, WEBHOOK_SETTINGS } from "./settings.ts";

const described = (value: unknown, fallback: unknown = value) => ({
  value,
  default: fallback,
  source: value === fallback ? "default" : "setting",
});
const EXAMPLE = {
  object: "settings",
  memories_on_expiry: described("keep"),
  trace_retention_days: described(400, 365),
  max_body_bytes: described(1_048_576),
  region: described("eu", null),
  state_versions_kept: described(1_000),
  max_store_bytes: described(null),
  webhooks: {
    allow_private: described(false),
    timeout: described("30s", "15s"),
    retry_schedule: described("5s,5m,30m,2h,5h,10h,10h"),
  },
  embedding: {
    provider: described("local"),
    base_url: described("https://api.openai.com/v1"),
    model: described("text-embedding-3-small"),
    api_key: { set: false, source: "default" },
    query_prefix: described(""),
    document_prefix: described(""),
    relevant_cosine: { value: null, default: null, source: "built-in" },
    separation: null,
    vector_length: null,
    state: { available: true },
    vectors: { ready: 20, owed: 0 },
  },
};
const path = "/v1/settings";
const tag = "Settings";

export function settingsEndpoints(parts: SettingsParts): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path,
      tag,
      scope: "admin",
      status: 200,
      summary: "Get the settings",
      query: Type.Object({}),
      body: null,
      response: SettingsAnswer,
      errors: [],
      example: { response: EXAMPLE },
      run: () => getSettings(parts),
    }),
    endpoint({
      method: "PATCH",
      path,
      tag,
      scope: "admin",
      status: 200,
      summary: "Change the settings",
      description:
        "Takes effect at once, without a restart. A null takes a setting back to the environment's or the default, and so does an empty text. An embedding provider is tried first; one that does not work is refused with the reason. What is said of webhooks holds from the next attempt on. A name that is no setting is refused.",
      query: Type.Object({}),
      body: SettingsChanges,
      response: SettingsAnswer,
      errors: [],
      example: { request: { trace_retention_days: 400, region: "eu", webhooks: { timeout: "30s" } }, response: EXAMPLE },
      run: ({ body, caller }) => {
        const { embedding, webhooks, ...values } = body;
        refuseUnknown("", body, [...SIMPLE_SETTINGS, "embedding", "webhooks"]);
        refuseUnknown("embedding.", embedding, EMBEDDING_SETTINGS);
        refuseUnknown("webhooks.", webhooks, WEBHOOK_SETTINGS);
        return changeSettings(parts, caller, { values, embedding, webhooks });
      },
    }),
  ];
}

/** A misspelt setting must not seem to be set. @throws {ApiError} `invalid_request` naming it */
function refuseUnknown(group: string, settings: object = {}, known: readonly string[]): void {
  const unknown = Object.keys(settings).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const param = firstCodePoints(group + unknown, SHOWN_LENGTH);
  throw new ApiError("invalid_request", `${param} is not a setting; known are ${known.map((name) => group + name).join(", ")}.`, { param });
}
