/**
 * One page of a list, as the wire has it.
 *
 * @module
 */
import type { Id } from "../lib/ids.ts";
import { jsonArray, jsonObject, toJson, type JsonText } from "../lib/json.ts";

export interface Page<AnyId extends string = Id> {
  /** At most this many records. */
  limit: number;
  /** The last id of the page before; its record need not exist any more. */
  startingAfter?: AnyId | undefined;
}

/** The list envelope. `first_id` and `last_id` are null on an empty page. */
export function listOf(records: readonly { id: string; json: JsonText }[], hasMore: boolean): JsonText {
  return jsonObject({
    object: toJson("list"),
    data: jsonArray(records.map((item) => item.json)),
    has_more: toJson(hasMore),
    first_id: toJson(records[0]?.id ?? null),
    last_id: toJson(records.at(-1)?.id ?? null),
  });
}
