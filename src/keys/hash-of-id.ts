/**
 * Finds the row of an API key by its id: rows are stored under the hash of the key, which is what a request presents.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import type { Reader } from "../storage/access.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { apiKeys } from "../storage/tables.ts";

/** SHA-256 of the key that has an id. */
export function hashOfId(reader: Reader, id: BareId): string | undefined {
  const [entry] = reader.keys(apiKeys.index.byId, { from: id, to: id + AFTER_ALL, limit: 1 });
  return entry === undefined ? undefined : apiKeys.index.byId.recordOf(entry);
}
