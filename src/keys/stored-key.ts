/**
 * Finds the row of an API key by its id: rows are stored under the hash of the key, which is what a request presents.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import type { Reader } from "../storage/access.ts";
import { MAX_KEY } from "../storage/keys.ts";
import { apiKeys, type ApiKeyRow } from "../storage/tables.ts";

/** A key and the SHA-256 that it is stored under. */
export interface StoredKey {
  hash: string;
  row: ApiKeyRow;
}

export function storedKey(reader: Reader, id: BareId): StoredKey | undefined {
  const { byId } = apiKeys.index;
  const [entry] = reader.keys(byId, { from: id, to: id + MAX_KEY, limit: 1 });
  const hash = entry && byId.recordOf(entry);
  const row = hash && reader.get(apiKeys, hash);
  return hash && row ? { hash, row } : undefined;
}

/** Hash that stands for a secret in the store and in memory. Hashes are compared, so that no comparison of secrets can be timed. */
export function hashOf(secret: string): string {
  return Bun.CryptoHasher.hash("sha256", secret, "hex");
}
