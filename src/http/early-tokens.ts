/**
 * Takes tokens from buckets that several servers share while the presented key is still being looked up, since both take a round
 * trip to the database: most requests of a key have the bucket and the rate of the one before.
 *
 * @module
 */
import type { KeyBuckets, Level, Rate } from "../lib/bucket.ts";
import { Cache } from "../lib/cache.ts";

interface Limits extends Rate {
  readonly owner: string;
}

/** A token that was taken for the caller that most likely asks. */
export interface EarlyToken extends Limits {
  readonly level: Promise<Level>;
}

const CACHE_BYTES = 4 * 1024 * 1024;
const ENTRY_BYTES = 500;

export class EarlyTokens {
  readonly #buckets: KeyBuckets;
  /** By the hash of the presented key. */
  readonly #limits = new Cache<Limits>(CACHE_BYTES);

  constructor(buckets: KeyBuckets) {
    this.#buckets = buckets;
  }

  /** Returns nothing for a key whose last request is too long ago. */
  take(presented: string): EarlyToken | undefined {
    const limits = this.#limits.get(hashOf(presented));
    if (limits === undefined) return undefined;
    const level = Promise.resolve(this.#buckets.takeOfKey(limits.owner, limits));
    // A request that is refused without it does not wait for it.
    level.catch(() => undefined);
    return { ...limits, level };
  }

  /** Gives that token if it is of the right bucket; another one otherwise. */
  levelOf(presented: string, owner: string, { perMinute, burst }: Rate, early: EarlyToken | undefined): Level | Promise<Level> {
    if (early?.owner === owner && early.perMinute === perMinute && early.burst === burst) return early.level;
    this.#limits.set(hashOf(presented), { owner, perMinute, burst }, ENTRY_BYTES);
    return this.#buckets.takeOfKey(owner, { perMinute, burst });
  }

  /** To be called for a key that is not valid. */
  forget(presented: string): void {
    this.#limits.delete(hashOf(presented));
  }
}

function hashOf(presented: string): string {
  return Bun.CryptoHasher.hash("sha256", presented, "base64url");
}
