/**
 * Tables of the store as a whole: what it knows of itself, and its settings.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { AnyObject } from "../row-types.ts";
import { having, json, text } from "./codecs.ts";
import { CURRENT, table } from "./table.ts";

export const meta = table(
  "meta",
  // The other marks are of a Cairn of before.
  /^(schema|backupNumber|tracesMark|turnsSearched|filled\.[A-Za-z_.]{1,64}|(names|users|documents|contents)Mark)$/,
  Type.String({
    pattern: "^(0|[1-9][0-9]{0,9}|[0-9A-Za-z]{12}|all|from .*)$",
    description: "the text of a whole number below 2^32, an id, or how far an index is filled",
  }),
  text,
);
/** Key of a random number below 2^32 that no other store has: a restored or imported one gets another. */
export const BACKUP_NUMBER = "backupNumber";
/** Key of an id: traces up to it have all their entries, those of later ones may be missing (`lmdb/change-buffer.ts`). */
export const TRACES_WATERMARK = "tracesMark";
/** Key of how far rows of before have been completed by a fill (`fills.ts`): all, or up to a key. */
export const fillMark = (fill: string): string => `filled.${fill}`;
export const ALL_FILLED = "all";
export const FILLED_FROM = "from ";

/** Settings made through the API, by the names in `settings/schema.ts`: `region`, `webhooks.timeout`. */
export type SettingsRow = Readonly<Record<string, string | number | boolean>>;
export const settings = table("settings", CURRENT, AnyObject, having(json<SettingsRow>(), { isGlobal: true }));
