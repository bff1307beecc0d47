/**
 * Settings: the table of URLs.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpoint, type Endpoint } from "../http/endpoint.ts";
import { changeSettings, getSettings, type SettingsParts } from "./operations.ts";
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
        "Takes effect at once, without a restart. A null takes a setting back to the environment's or the default, and so does an empty text. An embedding provider is tried first; one that does not work is refused with the reason. What is said of webhooks holds from the next attempt on.",
      query: Type.Object({}),
      body: SettingsChanges,
      response: SettingsAnswer,
      errors: [],
      example: { request: { trace_retention_days: 400, region: "eu", webhooks: { timeout: "30s" } }, response: EXAMPLE },
      run: ({ body: { embedding, webhooks, ...values }, caller }) =>
        changeSettings(parts, caller, {
          values: pick(values, SIMPLE_SETTINGS),
          embedding: embedding && pick(embedding, EMBEDDING_SETTINGS),
          webhooks: webhooks && pick(webhooks, WEBHOOK_SETTINGS),
        }),
    }),
  ];
}

/** These members alone, as far as they are there: what else a caller sends is ignored. */
function pick<From extends object, Name extends keyof From>(from: From, names: readonly Name[]): Pick<From, Name> {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]]))) as Pick<From, Name>;
}
