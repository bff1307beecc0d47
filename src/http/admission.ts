/**
 * Admission of a request: its API key, and a token from the bucket of that key or of the address it came from.
 *
 * @module
 */
import type { KeyBuckets, Level, Rate } from "../lib/bucket.ts";
import type { Clock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { whenThere } from "../lib/when-there.ts";
import type { ApiKeyRow } from "../storage/tables.ts";
import { EarlyTokens, type EarlyToken } from "./early-tokens.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import { originalRequest, pathWithoutQuery } from "./path.ts";
import { parametersOf } from "./query.ts";
import { RateLimiter } from "./rate-limit.ts";

/** Look-ups of API keys that the pipeline needs. */
export interface KeyLookup {
  /** Returns the presented key while it is valid; the token of an application, where the request is one that it is for. */
  find(presented: string, request: Request): ApiKeyRow | undefined | Promise<ApiKeyRow | undefined>;
  /** The same for a request that is going to look again. */
  findTwice(presented: string, request: Request): ApiKeyRow | undefined | Promise<ApiKeyRow | undefined>;
  /** The same while the request is answered. */
  findAgain(presented: string, request: Request): ApiKeyRow | undefined | Promise<ApiKeyRow | undefined>;
  /** Returns the key that a ticket for this path stands for, and uses the ticket up. */
  redeem(ticket: string, path: string): ApiKeyRow | undefined | Promise<ApiKeyRow | undefined>;
  /** Returns what distinguishes the idempotency keys of this API key from those of others, and encrypts secrets in kept answers. */
  ownerOf(key: ApiKeyRow, presented: string): string;
  /** Called for every request of a key. */
  trackUse(key: ApiKeyRow): void;
  /** Returns how long traces of changes by a key are kept. */
  retentionDays(key: ApiKeyRow): number;
  /** Requests without a key share a bucket of this rate per address. */
  readonly anonymousRate: Rate;
}

export class Admission {
  readonly #keys: KeyLookup;
  readonly #limiter: RateLimiter;
  /** Buckets that several servers share; each has its own otherwise. */
  readonly #buckets: KeyBuckets | undefined;
  /** Set where several servers share the buckets of keys. */
  readonly #earlyTokens: EarlyTokens | undefined;

  constructor(keys: KeyLookup, clock: Clock, buckets: KeyBuckets | undefined) {
    this.#keys = keys;
    this.#limiter = new RateLimiter(clock);
    this.#buckets = buckets;
    this.#earlyTokens = buckets && new EarlyTokens(buckets);
  }

  /**
   * Returns the presented key, having taken a token from its bucket; without a key the token is from the address's bucket.
   *
   * @throws {ApiError} `rate_limit_exceeded`, or `authentication_failed` without a valid key
   */
  authenticate(exchange: Exchange, { takesTicket }: Partial<Pick<Endpoint, "takesTicket">> = {}): ApiKeyRow | Promise<ApiKeyRow> {
    const { request } = exchange;
    if (this.#earlyTokens === undefined) {
      // The embedded store gives a key at once: without a closure or a promise that is a twentieth of a GET less.
      const key = this.#keyOf(request);
      if (key !== undefined && !(key instanceof Promise)) {
        exchange.key = key;
        return this.#admitAt(exchange, key, this.#limiter.takeOfKey(limitsIdOf(key), key));
      }
    }
    const presented = this.#earlyTokens === undefined ? null : presentedKey(request.headers);
    const early = presented === null ? undefined : this.#earlyTokens?.take(presented);
    const found = whenThere(this.#keyOf(request), (key) => key ?? (takesTicket === true ? this.#keyOfTicket(request) : undefined));
    return whenThere(found, (key) => this.#admit(exchange, key, presented, early));
  }

  #admit(
    exchange: Exchange,
    key: ApiKeyRow | undefined,
    presented: string | null,
    early: EarlyToken | undefined,
  ): ApiKeyRow | Promise<ApiKeyRow> {
    exchange.key = key;
    if (key === undefined && presented !== null) this.#earlyTokens?.forget(presented);
    return whenThere(this.#levelOf(exchange, key, presented, early), (taken) => this.#admitAt(exchange, key, taken));
  }

  #levelOf(
    exchange: Exchange,
    key: ApiKeyRow | undefined,
    presented: string | null,
    early: EarlyToken | undefined,
  ): Level | Promise<Level> {
    if (key === undefined) return this.levelOfAddress(exchange, 1);
    const owner = limitsIdOf(key);
    if (this.#earlyTokens !== undefined && presented !== null) return this.#earlyTokens.levelOf(presented, owner, key, early);
    return (this.#buckets ?? this.#limiter).takeOfKey(owner, key);
  }

  #admitAt(exchange: Exchange, key: ApiKeyRow | undefined, level: Level): ApiKeyRow {
    const keys = this.#keys;
    const { request } = exchange;
    exchange.level = level;
    if (!level.allowed) throw rateLimited(key ?? keys.anonymousRate, level);
    if (key === undefined) {
      const wasPresented = presentedKey(request.headers) !== null;
      throw notAuthenticated(
        wasPresented ? KEY_NOT_VALID : "An API key is required: in the header X-API-Key, or as Authorization: Bearer.",
      );
    }
    keys.trackUse(key);
    return key;
  }

  #keyOf(request: Request, when: "first" | "again" = "first"): ReturnType<KeyLookup["find"]> {
    const presented = presentedKey(request.headers);
    const keys = this.#keys;
    if (presented === null) return undefined;
    if (when === "again") return keys.findAgain(presented, request);
    return request.method === "POST" ? keys.findTwice(presented, request) : keys.find(presented, request);
  }

  #keyOfTicket({ url, headers, method }: Request): ReturnType<KeyLookup["redeem"]> {
    const ticket = parametersOf(url).get(TICKET);
    if (ticket === null || presentedKey(headers) !== null || method !== "GET") return undefined;
    return this.#keys.redeem(ticket, pathWithoutQuery(url));
  }

  /** @throws {ApiError} `authentication_failed` where the key was revoked meanwhile */
  async refuseUnlessAllowed(request: Request): Promise<void> {
    if ((await this.#keyOf(request, "again")) === undefined) throw notAuthenticated(KEY_NOT_VALID);
  }

  /** Checks whether the key of a request is still valid. */
  isAllowed({ request }: Pick<Exchange, "request">): boolean | Promise<boolean> {
    return whenThere(this.#keyOf(request, "again"), (key) => key !== undefined);
  }

  /** Takes a token from the bucket of the address. @throws {ApiError} `rate_limit_exceeded` */
  admitAddress(exchange: Exchange): void {
    const level = this.levelOfAddress(exchange, 1);
    exchange.level = level;
    if (!level.allowed) throw rateLimited(this.#keys.anonymousRate, level);
  }

  /** Takes a token from the bucket of a key that is named, not presented. @throws {ApiError} `rate_limit_exceeded` */
  async admitNamed(exchange: Exchange, key: ApiKeyRow): Promise<void> {
    exchange.key = key;
    exchange.level = await (this.#buckets ?? this.#limiter).takeOfKey(key.id, key);
    if (!exchange.level.allowed) throw rateLimited(key, exchange.level);
  }

  levelOfAddress({ request, remote }: Exchange, tokens: 0 | 1): Level {
    const address = remote?.requestIP(originalRequest(request))?.address ?? "unknown";
    return this.#limiter.takeOfAddress(address, this.#keys.anonymousRate, tokens);
  }
}

/** A session key shares the limits of the key it came from: signing in again gives nobody more. */
export function limitsIdOf({ id, source = id }: ApiKeyRow): ApiKeyRow["id"] {
  return source;
}

/** The parameter of a query that has a ticket. */
const TICKET = "ticket";
const KEY_NOT_VALID = "The API key is not valid, has expired or was revoked.";

function notAuthenticated(message: string): ApiError {
  return new ApiError("authentication_failed", message);
}

function rateLimited({ perMinute }: Rate, { nextInMs }: Level): ApiError {
  const seconds = Math.max(1, Math.ceil(nextInMs / 1000));
  return new ApiError("rate_limit_exceeded", `Too many requests: ${perMinute} per minute. Try again in ${seconds} s.`, {
    retryAfterSeconds: seconds,
  });
}

export function presentedKey(headers: Headers): string | null {
  const key = headers.get("x-api-key");
  if (key !== null) return key;
  const authorization = headers.get("authorization");
  return authorization !== null && /^bearer /i.test(authorization) ? authorization.slice("bearer ".length).trim() : null;
}
