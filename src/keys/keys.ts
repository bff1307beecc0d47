/**
 * API keys: who may call, what, and how often.
 *
 * A key is `crn_` and 24 base62 characters. It is shown once, when it is made; the store holds its SHA-256 and first 8
 * characters. A presented key is looked up by its hash in the store on every request, so that one revoked here or by
 * another process is refused at once, and no comparison of secrets can be timed.
 *
 * @module
 */
import { randomBase62 } from "../lib/base62.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, bareIdTime, isId, withPrefix, type KeyId } from "../lib/ids.ts";
import { jsonObject, toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { listOf, type Page } from "../storage/page.ts";
import type { Reader, Tx } from "../storage/store.ts";
import { apiKeys, apiKeysById, type ApiKeyRow } from "../storage/tables.ts";
import type { Caller, Records } from "../traces/record.ts";
import { RATE_LIMITS, type RateLimit, type Tier } from "./tiers.ts";

export const SCOPES = ["read", "write", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

const PREFIX = "crn_";
const SECRET_LENGTH = 24;
export const KEY_SHAPE = /^crn_[0-9A-Za-z]{24}$/;
/** How much of a key stands in traces and lists. */
const SHOWN_LENGTH = 8;

export interface NewKey {
  name: string | null;
  scopes: readonly Scope[];
  tier: Tier;
  /** Only an enterprise key has limits of its own. */
  rateLimit?: RateLimit | undefined;
  /** Unix milliseconds. */
  expiresAt?: number | null | undefined;
}

/** The key that a request presented, if there is one of that secret and its time has not passed. */
export function findKey(reader: Reader, now: number, presented: string): ApiKeyRow | undefined {
  if (!KEY_SHAPE.test(presented)) return undefined;
  const row = reader.get(apiKeys, hashOf(presented));
  return row === undefined || (row.expiresAt !== null && row.expiresAt <= now) ? undefined : row;
}

/** `admin` implies the others. */
export function hasScope(scopes: readonly string[], scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes("admin");
}

/**
 * Makes a key. The answer is the only place where it stands in full: a replay of the request answers without it.
 *
 * @throws {ApiError} `permission_denied` when the caller's key does not have a scope that the new one asks for
 */
export function createKey(records: Records, caller: Caller & { scopes: readonly string[] }, input: NewKey): Promise<JsonText> {
  const excess = input.scopes.find((scope) => !hasScope(caller.scopes, scope));
  if (excess !== undefined) {
    throw new ApiError("permission_denied", `A key cannot make one with more scopes than it has: it lacks ${excess}.`, { param: "scopes" });
  }
  const secret = PREFIX + randomBase62(SECRET_LENGTH);
  return records.store.commit((tx) => {
    const row = putKey(tx, records, secret, input);
    caller.keep?.(tx, keyJson(row));
    return keyJson(row, secret);
  });
}

/** Makes the first key, with all scopes, when there is none. @returns it, to be shown once */
export async function createFirstKey(records: Records): Promise<string | undefined> {
  // Without a commit where there is nothing to do, so that a start needs no space on the disk.
  if (hasKeys(records.store)) return undefined;
  const secret = PREFIX + randomBase62(SECRET_LENGTH);
  return records.store.commit((tx) => {
    if (hasKeys(tx)) return undefined;
    putKey(tx, records, secret, { name: "first key", scopes: ["admin"], tier: "enterprise" });
    return secret;
  });
}

function hasKeys(reader: Reader): boolean {
  return reader.keys(apiKeysById, { from: "", to: AFTER_ALL, limit: 1 }).length > 0;
}

/** Registers a key that the operator chose, with all scopes, unless it is there already. */
export async function registerKey(records: Records, secret: string): Promise<void> {
  if (records.store.get(apiKeys, hashOf(secret)) !== undefined) return;
  await records.store.commit((tx) => {
    if (tx.get(apiKeys, hashOf(secret)) === undefined) {
      putKey(tx, records, secret, { name: "from the environment", scopes: ["admin"], tier: "enterprise" });
    }
  });
}

/** Newest first. */
export function listKeys({ store }: Records, page: Page<KeyId>): JsonText {
  const rows = store.rows(apiKeysById, {
    from: "",
    to: page.startingAfter === undefined ? AFTER_ALL : bare(page.startingAfter),
    limit: page.limit + 1,
    descending: true,
  });
  const items = rows.slice(0, page.limit).flatMap(({ key, row: hash }) => {
    const row = store.get(apiKeys, hash);
    return row === undefined ? [] : [{ id: withPrefix("key", key), json: keyJson(row) }];
  });
  return listOf(items, rows.length > page.limit);
}

export function getKey({ store }: Records, id: string): JsonText {
  return keyJson(findById(store, id).row);
}

/** From the commit on, no request with this key passes. */
export function deleteKey(records: Records, caller: Caller, id: string): Promise<JsonText> {
  return records.store.commit((tx) => {
    const { hash, row } = findById(tx, id);
    tx.remove(apiKeys, hash);
    tx.remove(apiKeysById, bare(row.id as KeyId));
    const answer = jsonObject({ object: toJson("api_key"), id: toJson(row.id), deleted: toJson(true) });
    caller.keep?.(tx, answer);
    return answer;
  });
}

function findById(reader: Reader, id: string): { hash: string; row: ApiKeyRow } {
  const hash = isId("key", id) ? reader.get(apiKeysById, bare(id)) : undefined;
  const row = hash === undefined ? undefined : reader.get(apiKeys, hash);
  if (hash === undefined || row === undefined)
    throw new ApiError("resource_not_found", `There is no API key ${id.slice(0, 64)}.`, { param: "key_id" });
  return { hash, row };
}

function putKey(tx: Tx, records: Records, secret: string, input: NewKey): ApiKeyRow {
  const id = records.ids.next("key");
  const { perMinute, burst } = (input.tier === "enterprise" ? input.rateLimit : undefined) ?? RATE_LIMITS[input.tier];
  const row: ApiKeyRow = {
    id,
    name: input.name,
    prefix: secret.slice(0, SHOWN_LENGTH),
    scopes: [...new Set(input.scopes)],
    tier: input.tier,
    perMinute,
    burst,
    createdAt: bareIdTime(bare(id)),
    expiresAt: input.expiresAt ?? null,
  };
  tx.put(apiKeys, hashOf(secret), row);
  tx.put(apiKeysById, bare(id), hashOf(secret));
  return row;
}

function keyJson(row: ApiKeyRow, secret?: string): JsonText {
  return jsonObject({
    object: toJson("api_key"),
    id: toJson(row.id),
    name: toJson(row.name),
    prefix: toJson(row.prefix),
    key: secret === undefined ? undefined : toJson(secret),
    scopes: toJson(row.scopes),
    tier: toJson(row.tier),
    rate_limit: toJson({ per_minute: row.perMinute, burst: row.burst }),
    created_at: toJson(toIso(row.createdAt)),
    expires_at: toJson(row.expiresAt === null ? null : toIso(row.expiresAt)),
  });
}

function hashOf(secret: string): string {
  return Bun.CryptoHasher.hash("sha256", secret, "hex");
}
