/**
 * Settings on the wire.
 *
 * @module
 */
import { Type, type TSchema } from "@sinclair/typebox";
import { PROVIDERS } from "../embeddings/embeddings.ts";
import { NumberOrNull, OneOf, Text } from "../http/types.ts";
import { MEMORIES_ON_EXPIRY } from "./settings.ts";

/** Seven years. */
const RETENTION_DAYS_MAX = 2557;
const BODY_BYTES_MIN = 1024;
const BODY_BYTES_MAX = 64 * 1024 * 1024;
const TEXT_LENGTH_MAX = 2048;

const Source = OneOf(["default", "environment", "setting", "probes", "built-in"], { description: "Where the value comes from." });
const Described = (value: TSchema, description: string) =>
  Type.Object({ value, default: Type.Optional(value), source: Source }, { description });
const SettingText = (description: string) =>
  Text(0, TEXT_LENGTH_MAX, { description: `${description} Empty: back to the environment's or the default.` });

export const SettingsAnswer = Type.Object(
  {
    object: Type.Literal("settings"),
    memories_on_expiry: Described(OneOf(MEMORIES_ON_EXPIRY), "What becomes of the memories of a session that expires."),
    trace_retention_days: Described(Type.Integer(), "How long traces of enterprise keys are kept."),
    max_body_bytes: Described(Type.Integer(), "Largest body of a request."),
    embedding: Type.Object(
      {
        provider: Described(OneOf(PROVIDERS), "`local` is built in; `openai` is any server that speaks /v1/embeddings."),
        base_url: Described(Type.String(), "Where that server is."),
        model: Described(Type.String(), "Its model."),
        api_key: Type.Object({ set: Type.Boolean(), source: Source }, { description: "Never shown." }),
        query_prefix: Described(Type.String(), "What the model wants to read before a query."),
        document_prefix: Described(Type.String(), "What it wants to read before a memory."),
        relevant_cosine: Described(
          Type.Unsafe<number | null>({ type: "number", nullable: true }),
          "The cosine that is shown as a score of 0.7; null while it is not known, and for the built-in provider.",
        ),
        separation: Type.Unsafe<number | null>({
          type: "number",
          nullable: true,
          description: "Share of the probes that the provider puts on the right side: 0.5 is chance, 1 perfect.",
        }),
        vector_length: Type.Unsafe<number | null>({ type: "integer", nullable: true, description: "Of the provider's own vectors." }),
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
  { title: "Settings", description: "Every setting with its value, its default and where the value comes from." },
);

export const SettingsChanges = Type.Object(
  {
    memories_on_expiry: Type.Optional(
      OneOf(MEMORIES_ON_EXPIRY, { description: "What becomes of the memories of a session that expires." }),
    ),
    trace_retention_days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: RETENTION_DAYS_MAX,
        description: "How long traces of enterprise keys are kept; for traces from now on.",
      }),
    ),
    max_body_bytes: Type.Optional(
      Type.Integer({ minimum: BODY_BYTES_MIN, maximum: BODY_BYTES_MAX, description: "Largest body of a request." }),
    ),
    embedding: Type.Optional(
      Type.Object(
        {
          provider: Type.Optional(OneOf(PROVIDERS, { description: "`local`, or `openai` for any server that speaks /v1/embeddings." })),
          base_url: Type.Optional(
            SettingText("Where that server is, up to and with /v1. A key that was set for another server is not sent to it."),
          ),
          model: Type.Optional(SettingText("Its model.")),
          api_key: Type.Optional(SettingText("Its key; kept, never shown.")),
          query_prefix: Type.Optional(SettingText("What the model wants to read before a query.")),
          document_prefix: Type.Optional(SettingText("What it wants to read before a memory.")),
          relevant_cosine: Type.Optional(NumberOrNull(-1, 1, { description: "Sets by hand what the probes measure; null: back to that." })),
        },
        { description: "Tried before it is set; a change of provider, model or prefix makes all vectors anew in the background." },
      ),
    ),
  },
  { title: "SettingsChanges" },
);
