/**
 * Settings: the table of URLs.
 *
 * @module
 */
import { Type, type TSchema } from "@sinclair/typebox";
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { ONE_OF, OneOf, OrNull } from "../http/types.ts";
import type { SettingsRow } from "../storage/tables.ts";
import { changeSettings, describeSettings, getSettings, type SettingsDeps } from "./operations.ts";
import { changeable, changeableGroup, changesIn, GROUPS, membersOf, ofEach, SETTINGS, type SettingName } from "./schema.ts";
import { EffectiveSettings } from "./settings.ts";

const Source = OneOf(["default", "environment", "setting", "probes", "built-in"], { description: "Where the value comes from." });

const REQUEST = { trace_retention_days: 400, region: "eu", webhooks: { timeout: "30s" } };
const NO_EMBEDDERS = { remote: undefined, builtin: undefined };
const EXAMPLE = describeSettings(new EffectiveSettings({}, changesIn(REQUEST) as SettingsRow), NO_EMBEDDERS, {}, { ready: 20, pending: 0 });

const answered = ofEach(answeredAs);
const SettingsAnswer = Type.Object(
  {
    object: Type.Literal("settings"),
    ...membersOf("", answered),
    backups: Type.Object(membersOf("backups", answered), { description: GROUPS.backups }),
    webhooks: Type.Object(membersOf("webhooks", answered), { description: GROUPS.webhooks }),
    embedding: Type.Object(
      {
        ...membersOf("embedding", answered),
        separation: OrNull(
          Type.Number({
            description:
              "Share of the probes that the provider puts on the right side: 0.5 is chance, 1 perfect. It decides how much words count in a score: half at 0.8 or less, a quarter at 0.9 or more.",
          }),
        ),
        vector_length: OrNull(Type.Integer({ description: "How many numbers the provider's vectors have." })),
        state: Type.Object(
          { available: Type.Boolean(), reason: Type.Optional(Type.String({ description: "What is wrong." })) },
          { description: "Whether searches can be answered." },
        ),
        vectors: Type.Object(
          {
            ready: Type.Integer({ description: "Memories and documents that searches find." }),
            pending: Type.Integer({ description: "Memories and documents that wait for a vector." }),
          },
          { description: "Progress after a change of provider, or while it is down." },
        ),
      },
      { description: GROUPS.embedding },
    ),
  },
  { title: "Settings", description: "Every setting with its value, its default and where the value comes from.", examples: [EXAMPLE] },
);

const SettingsChanges = Type.Object(
  {
    ...membersOf("", changeable),
    backups: changeableGroup("backups"),
    webhooks: changeableGroup("webhooks"),
    embedding: changeableGroup("embedding"),
  },
  {
    additionalProperties: false,
    title: "SettingsChanges",
    description: "The settings to change. A null, or an empty text, resets a setting to the environment's value or the default.",
    examples: [REQUEST],
  },
);

/** Limits are those of changes: a cosine that was measured can lie a rounding beyond them. */
function answeredAs(name: SettingName): TSchema {
  const { schema, description, default: fallback, isSecret } = SETTINGS[name];
  if (isSecret === true) return Type.Object({ set: Type.Boolean(), source: Source }, { description });
  const plain = ONE_OF in schema ? schema : Type.Unsafe({ type: schema["type"] as string });
  const value = fallback === null ? OrNull(plain) : plain;
  return Type.Object({ value, default: Type.Optional(value), source: Source }, { description });
}

const settings = endpointGroup({ name: "Settings", description: "What changes while Cairn runs, without a restart." }, "admin");

export function settingsEndpoints(deps: SettingsDeps): Endpoint[] {
  return [
    settings.get("/v1/settings", {
      summary: "Get the settings",
      response: SettingsAnswer,
      run: () => getSettings(deps),
    }),
    settings.patch("/v1/settings", {
      summary: "Change the settings",
      description:
        "Takes effect immediately, without a restart. A null, or an empty text, resets a setting to the environment's value or the default. An embedding provider is tried first; one that does not work is refused with the reason. Settings of webhooks apply from the next attempt on. Unknown settings are refused.",
      body: SettingsChanges,
      response: SettingsAnswer,
      run: ({ sent, caller }) => changeSettings(deps, caller, changesIn(sent)),
    }),
  ];
}
