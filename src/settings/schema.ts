/**
 * Settings on the wire.
 *
 * @module
 */
import { Type, type TSchema } from "@sinclair/typebox";
import { PROVIDERS } from "../embeddings/embeddings.ts";
import { OneOf, OrNull, Text } from "../http/types.ts";
import { validator } from "../http/validate.ts";
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import type { SettingsRow } from "../storage/tables.ts";
import { SCHEDULE_FORM, TIMEOUT_FORM } from "../webhooks/policy.ts";
import { refuseSenseless } from "./sense.ts";
import { MEMORIES_ON_EXPIRY } from "./settings.ts";

/** Seven years. */
const RETENTION_DAYS_MAX = 2557;
const BODY_BYTES_MIN = 1024;
const BODY_BYTES_MAX = 64 * 1024 * 1024;
const TEXT_LENGTH_MAX = 2048;
const REGION_LENGTH_MAX = 64;
const TIMES_LENGTH_MAX = 256;

const Source = OneOf(["default", "environment", "setting", "probes", "built-in"], { description: "Where the value comes from." });
const Described = (value: TSchema, description: string) =>
  Type.Object({ value, default: Type.Optional(value), source: Source }, { description });
/** A setting that a null, or an empty text, takes back to the environment's or the default. */
const SettingText = (description: string, max: number = TEXT_LENGTH_MAX) => Type.Optional(OrNull(Text(0, max, { description })));
const Setting = <Inner extends TSchema>(inner: Inner) => Type.Optional(OrNull(inner));

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
export const SettingsAnswer = Type.Object(
  {
    object: Type.Literal("settings"),
    memories_on_expiry: Described(OneOf(MEMORIES_ON_EXPIRY), "What becomes of the memories of a session that expires."),
    trace_retention_days: Described(Type.Integer(), "How long traces of enterprise keys are kept."),
    max_body_bytes: Described(Type.Integer(), "Largest body of a request."),
    region: Described(OrNull(Type.String()), "A label for this deployment, shown in /health; null when there is none."),
    state_versions_kept: Described(Type.Integer(), "How many of the newest versions of a session's state are kept, besides version 0."),
    max_store_bytes: Described(
      OrNull(Type.Integer()),
      "What the store may take on disk before sessions, states, turns and memories are refused with 503; null: no limit.",
    ),
    webhooks: Type.Object(
      {
        allow_private: Described(
          Type.Boolean(),
          "Whether webhooks may lead into private networks, and to this machine wherever the server listens. Addresses of cloud metadata services stay refused.",
        ),
        timeout: Described(Type.String(), "How long a receiver has to answer an attempt."),
        retry_schedule: Described(Type.String(), "The waits before each further attempt."),
      },
      { description: "How events are delivered." },
    ),
    embedding: Type.Object(
      {
        provider: Described(OneOf(PROVIDERS), "`local` is built in; `openai` is any server that speaks /v1/embeddings."),
        base_url: Described(Type.String(), "Where that server is."),
        model: Described(Type.String(), "Its model."),
        api_key: Type.Object({ set: Type.Boolean(), source: Source }, { description: "Never shown." }),
        query_prefix: Described(Type.String(), "What the model wants to read before a query."),
        document_prefix: Described(Type.String(), "What it wants to read before a memory."),
        relevant_cosine: Described(
          OrNull(Type.Number()),
          "The cosine that is shown as a score of 0.7; null while it is not known, and for the built-in provider.",
        ),
        separation: OrNull(
          Type.Number({ description: "Share of the probes that the provider puts on the right side: 0.5 is chance, 1 perfect." }),
        ),
        vector_length: OrNull(Type.Integer({ description: "Of the provider's own vectors." })),
        state: Type.Object(
          { available: Type.Boolean(), reason: Type.Optional(Type.String({ description: "What is wrong." })) },
          { description: "Whether searches can be answered." },
        ),
        vectors: Type.Object(
          {
            ready: Type.Integer({ description: "Memories that searches find." }),
            owed: Type.Integer({ description: "Memories that wait for a vector." }),
          },
          { description: "Progress after a change of provider, or while it is down." },
        ),
      },
      { description: "The embedding provider." },
    ),
  },
  { title: "Settings", description: "Every setting with its value, its default and where the value comes from.", examples: [EXAMPLE] },
);

export const SettingsChanges = Type.Object(
  {
    memories_on_expiry: Setting(OneOf(MEMORIES_ON_EXPIRY, { description: "What becomes of the memories of a session that expires." })),
    trace_retention_days: Setting(
      Type.Integer({
        minimum: 1,
        maximum: RETENTION_DAYS_MAX,
        description: "How long traces of enterprise keys are kept; for traces from now on.",
      }),
    ),
    max_body_bytes: Setting(Type.Integer({ minimum: BODY_BYTES_MIN, maximum: BODY_BYTES_MAX, description: "Largest body of a request." })),
    region: SettingText("A label for this deployment, shown in /health to everybody; without control characters.", REGION_LENGTH_MAX),
    state_versions_kept: Setting(
      Type.Integer({
        minimum: LIMITS.stateVersionsKeptMin,
        maximum: LIMITS.stateVersionsKeptMax,
        description:
          "How many of the newest versions of a session's state are kept, the current one among them; version 0 is kept besides. Each new version removes up to 8 older ones, so a lower number takes effect as states change.",
      }),
    ),
    max_store_bytes: Setting(
      Type.Integer({
        minimum: LIMITS.maxStoreBytesMin,
        maximum: LIMITS.maxStoreBytesMax,
        description:
          "What the store may take on disk (`cairn_store_used_bytes` in /metrics). Beyond it new sessions, states, turns and memories are answered 503 `service_unavailable`, and so is a PATCH of one that does not make it smaller; deleting, keys, webhooks, settings, expiry and retention go on. It is checked twice a second and after much was written, so a little more can be stored.",
      }),
    ),
    webhooks: Type.Optional(
      Type.Object(
        {
          allow_private: Setting(
            Type.Boolean({
              description:
                "true: webhooks may lead into private networks, and to this machine wherever the server listens; then every holder of an admin key can have the server call what only it can reach. Addresses of cloud metadata services stay refused.",
            }),
          ),
          timeout: SettingText(`How long a receiver has to answer an attempt: ${TIMEOUT_FORM}.`, TIMES_LENGTH_MAX),
          retry_schedule: SettingText(
            `The waits before each further attempt: ${SCHEDULE_FORM}. A wait that has begun stays as it is.`,
            TIMES_LENGTH_MAX,
          ),
        },
        { description: "How events are delivered, from the next attempt on." },
      ),
    ),
    embedding: Type.Optional(
      Type.Object(
        {
          provider: Setting(OneOf(PROVIDERS, { description: "`local`, or `openai` for any server that speaks /v1/embeddings." })),
          base_url: SettingText(
            "Where that server is, up to and with /v1. A key that was set for another server is not sent to it; an address of a cloud metadata service is refused.",
          ),
          model: SettingText("Its model."),
          api_key: SettingText("Its key; kept, never shown."),
          query_prefix: SettingText("What the model wants to read before a query."),
          document_prefix: SettingText("What it wants to read before a memory."),
          relevant_cosine: Setting(
            Type.Number({ minimum: -1, maximum: 1, description: "Sets by hand what the probes measure; null: back to that." }),
          ),
        },
        { description: "Tried before it is set; a change of provider, model or prefix embeds all memories again in the background." },
      ),
    ),
  },
  {
    title: "SettingsChanges",
    description: "What is to be changed. A null takes a setting back to the environment's or the default, and so does an empty text.",
    examples: [{ trace_retention_days: 400, region: "eu", webhooks: { timeout: "30s" } }],
  },
);

const checkChanges = validator(SettingsChanges);

/** What is wrong with settings as the store has them: they obey the same rules as changes, and none of them takes another back. */
export function storedSettingsProblem({ values, embedding, webhooks }: SettingsRow): { param: string; message: string } | undefined {
  const groups = { "": values, "embedding.": embedding, "webhooks.": webhooks };
  for (const [prefix, group] of Object.entries(groups)) {
    const unset = Object.entries(group ?? {}).find(([, value]) => value === null || value === "");
    if (unset !== undefined) return { param: prefix + unset[0], message: `${prefix}${unset[0]} is not set, and must be left out.` };
  }
  try {
    checkChanges({ ...values, embedding, webhooks });
    refuseSenseless({ values, embedding, webhooks });
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { param: error.detail.param ?? "", message: error.message };
  }
}
