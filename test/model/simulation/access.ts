/**
 * Who may ask: keys, the answers that are kept for those who ask twice, and the settings.
 *
 * @module
 */
import { expect } from "bun:test";
import { SERVERS } from "../../support/stores.ts";
import type { Ids } from "./ids.ts";
import {
  type Caller,
  DAY_MS,
  type Expected,
  type Fields,
  iso,
  isoOrNull,
  type Json,
  type Key,
  merged,
  plain,
  Refusal,
  type Step,
  timeOf,
} from "./wire.ts";

const RATE_LIMITS: Record<string, object> = {
  free: { per_minute: 100, burst: 200 },
  pro: { per_minute: 1_000, burst: 2_000 },
  enterprise: { per_minute: 60_000, burst: 120_000 },
};
const RETENTION_DAYS: Record<string, number> = { free: 7, pro: 90 };
const YEAR_DAYS = 365;

/** Whether the answer to a step has more of a record than the request says. */
const showsUnsent = ({ method, path }: Step) => method === "PATCH" || /\/(state|rollback|fork)$/.test(path);

const RECEIPT = ["object", "id", "session_id", "version", "state_version", "created_at", "updated_at", "ttl_expires_at"];
const OF_MEMORY = ["embedding_id", "vector_available"];

/** What a key that may only write is shown of such a record. */
function receiptOf(record: Json): Json {
  return Object.fromEntries(Object.entries(record).filter(([name]) => [...RECEIPT, ...OF_MEMORY].includes(name)));
}

export class Access {
  readonly #ids: Ids;
  keys: Key[] = [];
  /** Those that were revoked too; the first one is never. */
  readonly allKeys: Key[] = [];
  readonly kept = new Map<string, { request: string; at: number; answer: Expected }>();
  #settings: Fields = {};

  constructor(ids: Ids) {
    this.#ids = ids;
  }

  /** The order in which a request is checked; then the step itself, unless its answer is kept. */
  answer(step: Step, caller: Caller, idempotencyKey: string | undefined, given: Json): Expected {
    try {
      const { key } = caller;
      if (!this.keys.includes(key) || this.#hasEnded(key)) throw new Refusal(401, "authentication_failed");
      key.uses.push(this.#ids.now);
      if (!key.scopes.includes(step.scope) && !key.scopes.includes("admin")) throw new Refusal(403, "permission_denied");
      const request = `${step.method} ${step.path} ${JSON.stringify(step.body)}`;
      const kept = this.kept.get(`${key.id} ${idempotencyKey}`);
      if (kept !== undefined && kept.at + DAY_MS > this.#ids.now) {
        if (kept.request !== request) throw new Refusal(400, "invalid_request", "Idempotency-Key");
        return { ...kept.answer, isReplay: true };
      }
      const made = plain(step.answer(caller, given));
      const body = showsUnsent(step) && !key.scopes.some((scope) => scope !== "write") ? receiptOf(made) : made;
      const answer = { status: step.status, body, isReplay: false };
      if (idempotencyKey !== undefined) {
        this.kept.set(`${key.id} ${idempotencyKey}`, { request, at: this.#ids.now, answer });
      }
      return answer;
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      const { status, code, param } = refusal;
      return { status, body: plain({ code, param }), isReplay: false };
    }
  }

  /** When the answer to a request stops being kept, if it is. */
  keptUntil(key: Key, idempotencyKey: string | undefined): number | undefined {
    const kept = this.kept.get(`${key.id} ${idempotencyKey}`);
    return kept === undefined ? undefined : kept.at + DAY_MS;
  }

  /** The task forgets what is older than a day. */
  forgetKept(): void {
    for (const [key, { at }] of this.kept) if (at < this.#ids.now - DAY_MS) this.kept.delete(key);
  }

  /** Something was read with the first key, in a request without an id of its own: it was given one, like any record. */
  read(): void {
    this.allKeys[0]?.uses.push(this.#ids.now);
  }

  #hasEnded({ expiresAt }: Key): boolean {
    return expiresAt !== null && expiresAt <= this.#ids.now;
  }

  addKey(shown: Json, secret: string): Key {
    const { id, scopes, tier, expires_at } = shown;
    const { last_used_at: _, ...kept } = shown;
    const key = { id: this.#ids.take("key", id), secret, scopes, tier, expiresAt: timeOf(expires_at), uses: [], shown: kept };
    this.keys.push(key);
    this.allKeys.push(key);
    return key;
  }

  createKey({ name, scopes, tier = "enterprise", expires_at }: Fields, given: Json): Json {
    const rate_limit = RATE_LIMITS[tier];
    return this.#newKey(given, {
      name: name ?? null,
      scopes: scopes ?? ["read", "write"],
      tier,
      user_id: null,
      agent_id: null,
      rate_limit,
      expires_at,
      rolled_from: null,
    });
  }

  /** Another key in the place of one, which goes on for a while. */
  rollKey(id: string, { overlap_seconds, expires_at }: Fields, given: Json): Json {
    const before = this.#key(id);
    if (this.#hasEnded(before)) throw new Refusal(404, "resource_not_found", "key_id");
    if (before.rolledTo !== undefined) throw new Refusal(400, "invalid_request", "key_id");
    const { name, scopes, tier, user_id, agent_id, rate_limit } = before.shown;
    const expiresAt = expires_at ?? isoOrNull(before.expiresAt);
    const after = this.#newKey(given, { name, scopes, tier, user_id, agent_id, rate_limit, expires_at: expiresAt, rolled_from: id });
    before.expiresAt = Math.min(this.#ids.now + (overlap_seconds ?? 86_400) * 1000, before.expiresAt ?? Infinity);
    before.rolledTo = after.id;
    return after;
  }

  #newKey(given: Json, { expires_at = null, ...fields }: Fields): Json {
    const secret = String(given.key);
    expect(secret).toMatch(/^crn_[0-9A-Za-z]{24}$/);
    const key = this.addKey({ object: "api_key", id: given.id, prefix: secret.slice(0, 8), expires_at, ...fields }, secret);
    key.shown.created_at = iso(this.#ids.now);
    return { ...this.#showKey(key, given), key: key.secret };
  }

  #key(id: string): Key {
    const key = this.keys.find((one) => one.id === id);
    if (key === undefined) throw new Refusal(404, "resource_not_found", "key_id");
    return key;
  }

  getKey(id: string, given: Json): Json {
    return this.#showKey(this.#key(id), given);
  }

  listKeys(given: Json): Json {
    return this.keys.toReversed().map((key, i) => this.#showKey(key, given[i]));
  }

  /** When the clock was set back, an earlier use may be shown as the last one, since it was later. Others than the server asked may know of later ones. */
  #showKey({ shown, uses, expiresAt, rolledTo }: Key, given: Json): Json {
    const last = uses.at(-1);
    const isShown = SERVERS > 1 || (last !== undefined && uses.some((use) => use >= last && iso(use) === given?.last_used_at));
    const last_used_at = isShown ? (given?.last_used_at ?? null) : isoOrNull(last);
    return { ...shown, kind: "key", source: null, expires_at: isoOrNull(expiresAt), last_used_at, rolled_to: rolledTo ?? null };
  }

  deleteKey(id: string): Json {
    const key = this.#key(id);
    this.keys = this.keys.filter((one) => one !== key);
    return { object: "api_key", id, deleted: true };
  }

  /** The other settings are not played with. A null takes one back. */
  changeSettings(body: Fields, given: Json): Json {
    this.#settings = merged(this.#settings, body);
    return this.showSettings(given);
  }

  showSettings(given: Json): Json {
    const shown = (name: string, byDefault: unknown) => {
      const value = this.#settings[name];
      return { [name]: { value: value ?? byDefault, default: byDefault, source: value === undefined ? "default" : "setting" } };
    };
    return { ...given, ...shown("memories_on_expiry", "keep"), ...shown("trace_retention_days", YEAR_DAYS) };
  }

  get areMemoriesDeletedOnExpiry(): boolean {
    return this.#settings["memories_on_expiry"] === "delete";
  }

  /** How long the traces of a caller are kept; those of timers as those of an enterprise key. */
  retentionDays(caller: Caller | undefined): number {
    return RETENTION_DAYS[caller?.key.tier ?? "enterprise"] ?? this.#settings["trace_retention_days"] ?? YEAR_DAYS;
  }
}
