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
import { HOUR_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, isId, nothingWithId, type KeyId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { hasScope, type Scope } from "../lib/scopes.ts";
import { isoOrNull, toIso } from "../lib/time.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { MAX_KEY } from "../storage/keys.ts";
import { EVERYBODY, isBound, type Owner } from "../storage/owner.ts";
import { pageOf, rowsOfEntries, type Page } from "../storage/page.ts";
import { apiKeys, deletedKeys, kindCode, type ApiKeyRow, type KeyKind } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { commitAdmin, commitSecret, recordAdmin, type Caller, type Deps } from "../traces/record.ts";
import type { LastUses } from "./last-use.ts";
import { hashOf, storedKey, type StoredKey } from "./stored-key.ts";
import { RATE_LIMITS, type RateLimit, type Tier } from "./tiers.ts";

const { byId, byKind, bySource } = apiKeys.index;
const PREFIX = "crn_";
const SECRET_LENGTH = 24;
export const KEY_SHAPE = /^crn_[0-9A-Za-z]{24}$/;
/** Length of the part of a key that traces and lists show. */
export const SHOWN_LENGTH = 8;

export interface NewKey {
  name: string | null;
  scopes: readonly Scope[];
  tier: Tier;
  /** The user and the agent whose records the key sees and changes; everybody's where both are left out. */
  owner?: Owner;
  /** Only an enterprise key has limits of its own. */
  rateLimit?: RateLimit | undefined;
  /** Unix milliseconds. */
  expiresAt?: number | null | undefined;
}

/** Dependencies of the operations on keys. */
export interface KeyDeps extends Deps {
  /** Uses that no row has yet; a command next to a server knows of none. */
  readonly lastUses?: LastUses;
}

/** Caller that asks for a key, and its own rights. */
export type KeyMaker = Caller & { scopes: readonly string[] };

/** The key that a request presented, if there is one of that secret and its time has not passed; that of a link without its scopes. */
export function findKey(reader: Reader, presented: string): ApiKeyRow | undefined {
  if (!KEY_SHAPE.test(presented)) return undefined;
  const row = reader.get(apiKeys, hashOf(presented));
  // A grant is found by its access tokens alone.
  if (row === undefined || row.kind === "oauth" || hasEnded(row, reader.now)) return undefined;
  return row.kind === "link" ? { ...row, scopes: [] } : row;
}

/** Session and link keys last half as long at most: one with a later end was made while the clock was ahead, and ended with that. */
export const MADE_AHEAD_MS = 2 * LIMITS.sessionKeyHours * HOUR_MS;

export function hasEnded({ kind, expiresAt }: ApiKeyRow, now: number): boolean {
  return expiresAt !== null && (expiresAt <= now || ((kind === "session" || kind === "link") && expiresAt > now + MADE_AHEAD_MS));
}

/**
 * Makes a key. The answer is the only place that shows it in full; for a replay of the request it is kept encrypted.
 *
 * @throws {ApiError} `permission_denied` when the caller's key does not have a scope that the new one asks for, `invalid_request`
 * for an admin key that would be bound
 */
export function createKey(deps: Deps, caller: KeyMaker, input: NewKey): Promise<JsonText> {
  refuseMoreScopes(caller, input.scopes);
  refuseBoundAdmin(input);
  const secret = newSecret();
  return commitSecret(deps, caller, (tx) => {
    const row = addNewKey(tx, caller, secret, input);
    return keyJson(row, null, secret);
  });
}

/**
 * Makes a key in the place of another one, which keeps working for a while: as much time as it takes to hand the new one out.
 * All that the key may do is the new one's; what ends with it is only its secret.
 *
 * A key is rolled once. A second roll is refused and names the key that the first one made: its caller has missed that answer.
 *
 * @param force - whether the new key may end, or end sooner, where it is the last admin key
 * @param overlapMs - 0 ends the key before at once; it never ends later than it would have
 * @param expiresAt - Unix milliseconds, for the new key; when none is given it ends with the one before, if that has an end
 * @throws {ApiError} `resource_not_found` for a key that is not there or has ended, `invalid_request` for one that was rolled,
 * `permission_denied` when the caller's key does not have a scope that it has
 */
export function rollKey(
  deps: Deps,
  caller: KeyMaker,
  id: string,
  { overlapMs, expiresAt, force = false }: { overlapMs: number; expiresAt?: number | undefined; force?: boolean | undefined },
): Promise<JsonText> {
  const secret = newSecret();
  return commitSecret(deps, caller, (tx) => {
    const { hash, row: before } = findById(tx, id);
    const { now } = tx;
    if (before.kind !== "key") {
      throw new ApiError("invalid_request", `API key ${id} is a ${before.kind} key, which ends by itself and cannot be rolled.`, {
        param: "key_id",
      });
    }
    if (hasEnded(before, now)) {
      throw new ApiError("resource_not_found", `API key ${id} has ended. Make a new one.`, { param: "key_id" });
    }
    if (before.rolledTo !== undefined) {
      throw new ApiError("invalid_request", `API key ${id} has been rolled already; ${before.rolledTo} came in its place.`, {
        param: "key_id",
      });
    }
    refuseMoreScopes(caller, before.scopes);
    if (!force && expiresAt !== undefined && expiresAt < (before.expiresAt ?? Infinity)) refuseEndOfLastAdmin(tx, before);
    const { lastUsedAt: _, ...kept } = before;
    const row = addKey(tx, secret, { ...kept, expiresAt: expiresAt ?? before.expiresAt, rolledFrom: before.id });
    const endsAt = Math.min(now + overlapMs, before.expiresAt ?? Infinity);
    tx.put(apiKeys, hash, { ...before, expiresAt: endsAt, rolledTo: row.id });
    for (const grant of keysFrom(tx, before.id, "oauth")) tx.put(apiKeys, grant.hash, movedTo(row, grant.row));
    for (const session of keysFrom(tx, before.id, "session")) {
      if ((session.row.expiresAt ?? Infinity) > endsAt) tx.put(apiKeys, session.hash, { ...session.row, expiresAt: endsAt });
    }
    recordAdmin(tx, caller, "api_key.rolled", {
      ...tracedKey(before),
      rolled_to: row.id,
      rolled_to_prefix: row.prefix,
      ends_at: toIso(endsAt),
      expires_at: isoOrNull(row.expiresAt),
    });
    return keyJson(row, null, secret);
  });
}

/** Grant as it continues with another key: until that ends, at the latest. */
function movedTo({ id, expiresAt }: ApiKeyRow, grant: ApiKeyRow): ApiKeyRow {
  const latest = expiresAt ?? Infinity;
  const { oauth } = grant;
  return {
    ...grant,
    source: id,
    expiresAt: Math.min(grant.expiresAt ?? Infinity, latest),
    ...(oauth === undefined ? {} : { oauth: { ...oauth, endsAt: Math.min(oauth.endsAt, latest) } }),
  };
}

function refuseMoreScopes(caller: KeyMaker, scopes: readonly string[]): void {
  const excess = scopes.find((scope) => !hasScope(caller.scopes, scope as Scope));
  if (excess !== undefined) {
    throw new ApiError("permission_denied", `A key cannot make one with more scopes than it has: it lacks ${excess}.`, { param: "scopes" });
  }
}

/** An admin key makes other keys and reads the traces of all, so that a binding would be none. */
function refuseBoundAdmin({ scopes, owner }: NewKey): void {
  if (!scopes.includes("admin") || owner === undefined || !isBound(owner)) return;
  const param = owner.userId === undefined ? "agent_id" : "user_id";
  throw new ApiError("invalid_request", `${param} is for keys without the scope admin: a key that manages all keys cannot be bound.`, {
    param,
  });
}

/** Newest first. @param kind - all kinds unless given */
export function listKeys(
  { store, lastUses }: Pick<KeyDeps, "store" | "lastUses">,
  { kind }: { kind?: KeyKind | undefined },
  page: Page<KeyId>,
): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const [index, from] = kind === undefined ? [byId, ""] : [byKind, kindCode(kind)];
    const to = from + (page.startingAfter === undefined ? MAX_KEY : bare(page.startingAfter));
    const rows = rowsOfEntries(reader, apiKeys, index, { from, to, descending: true }, page.limit + 1);
    return pageOf(
      rows.map(({ row }) => ({ id: row.id, json: keyJson(row, lastUseOf(row, lastUses)) })),
      page.limit,
    );
  });
}

export function getKey({ store, lastUses }: KeyDeps, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const { row } = findById(reader, id);
    return keyJson(row, lastUseOf(row, lastUses));
  });
}

function lastUseOf(row: ApiKeyRow, lastUses: LastUses | undefined): number | null {
  return lastUses?.pending(row.id) ?? row.lastUsedAt ?? null;
}

/**
 * From the commit on, no request with this key passes.
 *
 * @param options - `force`: also when it is the last admin key
 * @throws {ApiError} `invalid_request` for the last admin key: without one nobody can manage keys, webhooks and settings
 */
export function deleteKey(
  deps: Deps,
  caller: Caller,
  id: string,
  { reason, force = false }: { reason?: string | undefined; force?: boolean | undefined } = {},
): Promise<JsonText> {
  return commitAdmin(deps, caller, (tx) => {
    const { hash, row } = findById(tx, id);
    if (!force) refuseEndOfLastAdmin(tx, row);
    removeKey(tx, caller, { hash, row }, reason ?? null);
    return toJson({ object: "api_key", id: row.id, deleted: true });
  });
}

/** Removes a key, and the session keys and grants that came from it. */
export function removeKey(tx: Tx, caller: Caller, { hash, row }: StoredKey, reason: string | null): void {
  tx.remove(apiKeys, hash);
  // The other kinds are made of chance alone, and nobody can register one again.
  if (row.kind === "key") tx.put(deletedKeys, hash, { deletedAt: tx.now });
  for (const kind of ["session", "oauth"] as const) for (const one of keysFrom(tx, row.id, kind)) tx.remove(apiKeys, one.hash);
  recordAdmin(tx, caller, "api_key.revoked", { ...tracedKey(row), reason });
}

/**
 * The session keys or the grants that came from a key, oldest first; no key has more than `LIMITS.sessionKeysMax` and
 * `LIMITS.oauthGrantsMax`. One that cannot be read opens nothing, and is left out.
 */
export function keysFrom(reader: Reader, source: KeyId, kind: "session" | "oauth"): StoredKey[] {
  const from = bare(source);
  const entries = reader.keys(bySource, { from, to: from + MAX_KEY });
  reader.ahead(
    apiKeys,
    entries.map((entry) => bySource.recordOf(entry)),
  );
  return entries.flatMap((entry) => {
    const hash = bySource.recordOf(entry);
    const row = unlessUnreadable(() => reader.get(apiKeys, hash));
    return row?.kind === kind ? [{ hash, row }] : [];
  });
}

const ADMIN_KEYS_AHEAD = 100;

/**
 * A key that is made with an end counts until then; one that was rolled is on its way out and does not.
 *
 * @throws {ApiError} `invalid_request` when a key is a usable admin key, and no other is
 */
function refuseEndOfLastAdmin(reader: Reader, row: ApiKeyRow): void {
  const isUsableAdmin = (key: ApiKeyRow) =>
    key.kind === "key" && hasScope(key.scopes, "admin") && !hasEnded(key, reader.now) && key.rolledTo === undefined;
  if (!isUsableAdmin(row)) return;
  // Both ends of the list: most often the first key ever made, or one of the latest, is an admin key too.
  for (const descending of [false, true]) {
    const span = { from: kindCode("key"), to: kindCode("key") + MAX_KEY, limit: LIMITS.adminKeysSearchedMax / 2, descending };
    const entries = reader.keys(byKind, span);
    // The first is most often one.
    reader.ahead(
      apiKeys,
      entries.slice(0, ADMIN_KEYS_AHEAD).map((entry) => byKind.recordOf(entry)),
    );
    for (const entry of entries) {
      const key = unlessUnreadable(() => reader.get(apiKeys, byKind.recordOf(entry)));
      if (key !== undefined && key.id !== row.id && isUsableAdmin(key)) return;
    }
  }
  throw new ApiError(
    "invalid_request",
    `API key ${row.id} is the last admin key that works: without one nobody can manage keys, webhooks and settings. Make another one first, or send force=true.`,
    { param: "force" },
  );
}

/** @throws {ApiError} `resource_not_found` */
export function findById(reader: Reader, id: string): StoredKey {
  const found = isId("key", id) ? storedKey(reader, bare(id)) : undefined;
  if (found === undefined) throw new ApiError("resource_not_found", nothingWithId("API key", "key", id), { param: "key_id" });
  return found;
}

/** Makes a key that a caller names, with its trace. */
export function addNewKey(tx: Tx, caller: Caller, secret: string, input: NewKey): ApiKeyRow {
  const { perMinute, burst } = (input.tier === "enterprise" ? input.rateLimit : undefined) ?? RATE_LIMITS[input.tier];
  return addTracedKey(tx, caller, secret, {
    kind: "key",
    name: input.name,
    scopes: [...new Set(input.scopes)],
    tier: input.tier,
    ...boundTo(input.owner),
    perMinute,
    burst,
    expiresAt: input.expiresAt ?? null,
  });
}

/** Adds a key and records that it was created. @param input - what does not follow from the secret and the moment */
export function addTracedKey(tx: Tx, caller: Caller, secret: string, input: KeyInput): ApiKeyRow {
  return addTracedGrant(tx, caller, hashOf(secret), secret.slice(0, SHOWN_LENGTH), input);
}

/** The same for one that is stored under another hash than that of a key. */
export function addTracedGrant(tx: Tx, caller: Caller, hash: string, prefix: string, input: KeyInput): ApiKeyRow {
  const row = addRow(tx, hash, prefix, input);
  const { perMinute, burst, expiresAt, source = null } = row;
  recordAdmin(tx, caller, "api_key.created", {
    ...tracedKey(row),
    source,
    rate_limit: { per_minute: perMinute, burst },
    expires_at: isoOrNull(expiresAt),
  });
  return row;
}

function boundTo({ userId, agentId }: Owner = EVERYBODY): Pick<ApiKeyRow, "userId" | "agentId"> {
  return { ...(userId === undefined ? {} : { userId }), ...(agentId === undefined ? {} : { agentId }) };
}

/** Key as traces show it: nothing that would let anybody use it. */
function tracedKey({ id, kind, prefix, name, scopes, tier, userId, agentId }: ApiKeyRow): Record<string, unknown> {
  return { key_id: id, kind, prefix, name, scopes, tier, user_id: userId, agent_id: agentId };
}

type KeyInput = Omit<ApiKeyRow, "id" | "prefix" | "createdAt">;

function addKey(tx: Tx, secret: string, input: KeyInput): ApiKeyRow {
  return addRow(tx, hashOf(secret), secret.slice(0, SHOWN_LENGTH), input);
}

function addRow(tx: Tx, hash: string, prefix: string, input: KeyInput): ApiKeyRow {
  const row: ApiKeyRow = { ...input, id: tx.id("key"), prefix, createdAt: tx.now };
  tx.add(apiKeys, hash, row);
  return row;
}

export function keyJson(row: ApiKeyRow, lastUsedAt: number | null, secret?: string): JsonText {
  return toJson({
    object: "api_key",
    id: row.id,
    kind: row.kind,
    name: row.name,
    prefix: row.prefix,
    key: secret,
    scopes: row.scopes,
    tier: row.tier,
    user_id: row.userId ?? null,
    agent_id: row.agentId ?? null,
    rate_limit: { per_minute: row.perMinute, burst: row.burst },
    created_at: toIso(row.createdAt),
    expires_at: isoOrNull(row.expiresAt),
    last_used_at: isoOrNull(lastUsedAt),
    rolled_from: row.rolledFrom ?? null,
    rolled_to: row.rolledTo ?? null,
    source: row.source ?? null,
    client_id: row.oauth?.clientId,
  });
}

export function newSecret(): string {
  return PREFIX + randomBase62(SECRET_LENGTH);
}
