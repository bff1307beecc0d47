/**
 * The key of a server for programs of its owner on the same machine, such as `cairn mcp`.
 *
 * It is made with each start and is no record of the store: its bearers learn it from a file that only the owner can read
 * (`cli/announcement.ts`). It reads and writes, and administrates nothing. A change that is sent again after another process has
 * taken the directory over comes with another such key, so idempotency keys belong to all of them together.
 *
 * @module
 */
import { randomBase62 } from "../lib/base62.ts";
import type { ApiKeyRow } from "../storage/tables.ts";
import { hashOf } from "./stored-key.ts";
import { RATE_LIMITS } from "./tiers.ts";

/** Tells it from other keys, so that those take no longer to find. */
const PREFIX = "crl_";
const SECRET_LENGTH = 24;
const ID = "key_local0000000";

export interface LocalKey {
  readonly secret: string;
  readonly row: ApiKeyRow;
}

export function makeLocalKey(now: number): LocalKey {
  const row = {
    id: ID,
    kind: "key",
    name: "programs on this machine",
    prefix: "local",
    scopes: ["read", "write"],
    tier: "enterprise",
    ...RATE_LIMITS.enterprise,
    createdAt: now,
    expiresAt: null,
  } satisfies ApiKeyRow;
  return { secret: PREFIX + randomBase62(SECRET_LENGTH), row };
}

/** Checks whether a presented key is of this kind, so that there is no other in the store. */
export function isLocalSecret(presented: string): boolean {
  return presented.startsWith(PREFIX);
}

/** Returns the row of the key if that is the one presented. */
export function findLocalKey(local: LocalKey | undefined, presented: string): ApiKeyRow | undefined {
  return local !== undefined && hashOf(presented) === hashOf(local.secret) ? local.row : undefined;
}
