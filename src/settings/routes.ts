/**
 * Settings: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { ApiError } from "../lib/errors.ts";
import { firstCodePoints } from "../lib/text.ts";
import { changeSettings, getSettings, type SettingsParts } from "./operations.ts";
import { SHOWN_LENGTH } from "./sense.ts";
import { SettingsAnswer, SettingsChanges } from "./schema.ts";
import { EMBEDDING_SETTINGS, SIMPLE_SETTINGS, WEBHOOK_SETTINGS } from "./settings.ts";

const settings = endpointGroup("Settings", "admin");

export function settingsEndpoints(parts: SettingsParts): Endpoint[] {
  return [
    settings.get("/v1/settings", {
      summary: "Get the settings",
      response: SettingsAnswer,
      run: () => getSettings(parts),
    }),
    settings.patch("/v1/settings", {
      summary: "Change the settings",
      description:
        "Takes effect at once, without a restart. A null takes a setting back to the environment's or the default, and so does an empty text. An embedding provider is tried first; one that does not work is refused with the reason. What is said of webhooks holds from the next attempt on. A name that is no setting is refused.",
      body: SettingsChanges,
      response: SettingsAnswer,
      run: ({ sent, caller }) => {
        const { embedding, webhooks, ...values } = sent;
        refuseUnknown("", sent, [...SIMPLE_SETTINGS, "embedding", "webhooks"]);
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
