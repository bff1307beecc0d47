/**
 * Signing in: how a page in a browser gets a key of its own.
 *
 * ```
 * key or link ──POST /v1/sign_in──▶ session key: the same rights, twelve hours, never longer than the key it came from
 * ```
 * A browser keeps the session key alone. It is one of the API keys, so that it is seen and revoked where they are; it ends in the
 * commit that ends the key it came from, and when it signs out. A link's key is good for signing in once, and has no other right.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { HOUR_MS, MINUTE_MS } from "../lib/duration.ts";
import { NO_PARTITION, type KeyId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Log } from "../lib/log.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { numberKey } from "../storage/keys.ts";
import { apiKeys, GRANT_ENDS } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { commitAdmin, commitSecret, type Caller, type Deps } from "../traces/record.ts";
import { addTracedKey, findById, hasEnded, keyJson, keysFrom, MADE_AHEAD_MS, newSecret, removeKey } from "./keys.ts";
import { RATE_LIMITS } from "./tiers.ts";

const { byEnd } = apiKeys.index;
const SESSION_MS = LIMITS.sessionKeyHours * HOUR_MS;
const LINK_MS = LIMITS.linkKeyMinutes * MINUTE_MS;

/** A caller with a key. */
type KeyCaller = Caller & { keyId: KeyId };

/**
 * Makes a session key with the rights of the caller's key. A link's key is used up by it. A key that has as many session keys as it
 * can have loses the oldest.
 *
 * @param name - what is said of the browser
 * @throws {ApiError} `invalid_request` for a session key, which could go on for ever otherwise; `authentication_failed` for a link
 * that another request has used up meanwhile
 */
export function signIn(deps: Deps, caller: KeyCaller, name: string | null): Promise<JsonText> {
  const secret = newSecret();
  return commitSecret(deps, caller, (tx) => {
    const { hash, row } = presented(() => findById(tx, caller.keyId));
    if (hasEnded(row, tx.now)) throw usedUp();
    if (row.kind === "session") {
      throw new ApiError(
        "invalid_request",
        "A session key cannot sign in: use the API key that it came from, or the link that cairn dashboard prints.",
      );
    }
    const { lastUsedAt: _, rolledFrom: __, rolledTo: ___, ...rights } = row;
    const end = tx.now + SESSION_MS;
    const session = { ...rights, kind: "session" as const, name };
    if (row.kind === "link") {
      tx.remove(apiKeys, hash);
      return keyJson(addTracedKey(tx, caller, secret, { ...session, expiresAt: end }), null, secret);
    }
    const excess = keysFrom(tx, row.id, "session").slice(0, 1 - LIMITS.sessionKeysMax);
    for (const oldest of excess) removeKey(tx, caller, oldest, `Its key has signed in ${LIMITS.sessionKeysMax} times since.`);
    const expiresAt = Math.min(end, row.expiresAt ?? Infinity);
    return keyJson(addTracedKey(tx, caller, secret, { ...session, source: row.id, expiresAt }), null, secret);
  });
}

function presented<Found>(find: () => Found): Found {
  try {
    return find();
  } catch (error) {
    if (error instanceof ApiError) throw usedUp();
    throw error;
  }
}

function usedUp(): ApiError {
  return new ApiError("authentication_failed", "The API key is not valid, has expired or was revoked.");
}

/** Ends the session key that a request presented. @throws {ApiError} `invalid_request` for any other key */
export function signOut(deps: Deps, caller: KeyCaller): Promise<JsonText> {
  return commitAdmin(deps, caller, (tx) => {
    const { hash, row } = presented(() => findById(tx, caller.keyId));
    if (row.kind !== "session") {
      throw new ApiError("invalid_request", `API key ${row.id} is not a session key: revoke it with DELETE /v1/api_keys/${row.id}.`);
    }
    removeKey(tx, caller, { hash, row }, "signed out");
    return toJson({ object: "api_key", id: row.id, deleted: true });
  });
}

/** Makes a link's key: good for signing in once, as an admin. @returns it, for the address of the page */
export function createLink(deps: Deps, caller: Caller): Promise<string> {
  const secret = newSecret();
  return deps.store.commit(NO_PARTITION, (tx) => {
    const rights = { scopes: ["admin" as const], tier: "enterprise" as const, ...RATE_LIMITS.enterprise };
    addTracedKey(tx, caller, secret, { kind: "link", name: "sign-in link", ...rights, expiresAt: tx.now + LINK_MS });
    return secret;
  });
}

const KEYS_PER_COMMIT = 200;
const POLL_MS = 60_000;

/** Removes session and link keys, and grants, that have ended. They open nothing any more: this only frees their space. */
export function keyExpiry({ store }: Pick<Deps, "store">, log: Log): Task {
  const name = "key expiry";
  const bad = new BadRows(store, log, name);
  return {
    name,
    async run() {
      const now = await store.read((reader) => reader.now);
      const passed = { from: "", to: numberKey(now + 1) };
      const madeAhead = { from: numberKey(now + MADE_AHEAD_MS + 1), to: GRANT_ENDS };
      const grants = { from: GRANT_ENDS, to: GRANT_ENDS + numberKey(now + 1) };
      const due: string[] = [];
      for (const span of [passed, madeAhead, grants]) {
        if (due.length === KEYS_PER_COMMIT) break;
        due.push(...(await bad.keysOfOthers(byEnd, { ...span, limit: KEYS_PER_COMMIT - due.length })));
      }
      if (due.length === 0) return POLL_MS;
      await bad.removeRowsOf(due, apiKeys, byEnd);
      return due.length === KEYS_PER_COMMIT ? 0 : POLL_MS;
    },
  };
}
