/**
 * Settings as the store has them: checked when they are read, since an older Cairn or a damaged disk may have written them.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import type { SettingsRow } from "../storage/tables.ts";
import { settingsValidator } from "./schema.ts";

const checkStored = settingsValidator();

/** Problem of settings as the store has them: they obey the same rules as changes, and none of them takes another back. */
export function storedSettingsProblem(row: SettingsRow): { param: string; message: string } | undefined {
  const unset = Object.entries(row).find(([, value]: [string, unknown]) => value === null || value === "");
  if (unset !== undefined) return { param: unset[0], message: `${unset[0]} is not set, and must be left out.` };
  try {
    checkStored({ ...row });
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { param: error.detail.param ?? "", message: error.message };
  }
}

/** Stored settings without those that are wrong: what the environment says of them, or the default, holds then. */
export function withoutWrongSettings(row: SettingsRow): SettingsRow {
  const { param } = storedSettingsProblem(row) ?? {};
  if (param === undefined) return row;
  if (!Object.hasOwn(row, param)) return {};
  const others = { ...row };
  delete others[param];
  // A key goes to no server but the one it was given for, and that is not known now.
  if (param === "embedding.base_url") delete others["embedding.api_key"];
  return withoutWrongSettings(others);
}
