/**
 * Ids: a prefix, an underscore and 12 base62 characters that sort by time.
 *
 * ```
 * sess_0VQk3aB4x1Zq
 *      └──┬──┘└┬─┘└┬┘
 *   Unix ms (7) │  partition (2)
 *       3 that start at random in each millisecond and rise within it
 * ```
 * A partition is a hash of the user, or of the session where there is none: all records of one user can lie together when the
 * store is spread over several machines, and an id alone says where its record is.
 *
 * So an id is its own sort key and its own page cursor. The source never goes back: when the system's clock does, ids
 * continue from the last millisecond until the clock has caught up. That is why the time of an id is never before that of
 * its record, and can be after it: times of records come from the clock.
 *
 * @module
 */
import { fromBase62, toBase62 } from "./base62.ts";
import { chance, type Chance } from "./chance.ts";
import type { Clock } from "./clock.ts";
import { ApiError } from "./errors.ts";

export const ID_PREFIXES = ["sess", "mem", "turn", "trace", "emb", "evt", "whk", "dlv", "key", "bkp", "req", "entry", "ret"] as const;
export type IdPrefix = (typeof ID_PREFIXES)[number];
export type Id<Prefix extends IdPrefix = IdPrefix> = `${Prefix}_${string}`;
export type SessionId = Id<"sess">;
export type MemoryId = Id<"mem">;
export type TurnId = Id<"turn">;
export type TraceId = Id<"trace">;
export type KeyId = Id<"key">;

/** The 12 characters after the prefix: what ids are in keys of the store. */
export type BareId = string & { readonly __bare?: never };

/** Number of characters of an id that are its time. */
const ID_TIME_WIDTH = 7;
export const HOME_WIDTH = 2;
const COUNTER_WIDTH = 3;
const COUNTERS = 62 ** COUNTER_WIDTH;
/** The last millisecond that an id can have, in 2081. */
const TIME_MAX = 62 ** ID_TIME_WIDTH - 1;
export const BARE_ID_LENGTH = ID_TIME_WIDTH + COUNTER_WIDTH + HOME_WIDTH;

/** Two base62 characters: one of 3,844 places for the records of a user. */
export type Partition = string & { readonly __home?: never };

/** The partition of records that belong to no user: keys, webhooks, settings. */
export const NO_PARTITION: Partition = "0".repeat(HOME_WIDTH);

const HOMES = 62 ** HOME_WIDTH;

/** The partition of a user's records; a session without a user has one by chance, and its records follow it. */
export function homeOfUser(userId: string | null): Partition {
  return toBase62(userId === null ? Math.floor(chance() * HOMES) : Bun.hash.xxHash32(userId) % HOMES, HOME_WIDTH);
}

/** The partition that an id names; `NO_PARTITION` for what is no id. */
export function partitionOf(id: string): Partition {
  const end = id.length;
  return end >= HOME_WIDTH && isDigit(id.charCodeAt(end - 1)) && isDigit(id.charCodeAt(end - 2)) ? id.slice(-HOME_WIDTH) : NO_PARTITION;
}

/** Checks whether a character is a digit of base62. */
function isDigit(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
}

/** Source of new ids. One per store; `startAfter` is the newest id that the store knows. */
export class IdSource {
  #lastMs = 0;
  #counter = 0;
  readonly #clock: Clock;
  readonly #random: Chance;

  constructor(clock: Clock, options: { startAfter?: BareId | undefined; random?: Chance } = {}) {
    this.#clock = clock;
    this.#random = options.random ?? chance;
    if (options.startAfter !== undefined) this.continueAfter(options.startAfter);
  }

  /** Gives no id from now on that is not after this one too. */
  continueAfter(id: BareId): void {
    const ms = bareIdTime(id);
    const counter = fromBase62(id.slice(ID_TIME_WIDTH, ID_TIME_WIDTH + COUNTER_WIDTH));
    if (ms < this.#lastMs || (ms === this.#lastMs && counter < this.#counter)) return;
    this.#lastMs = ms;
    this.#counter = counter;
  }

  /** The time of the newest id, in Unix milliseconds. */
  get newestMs(): number {
    return this.#lastMs;
  }

  /**
   * The next id's 12 characters, greater than every one given before.
   *
   * @param now - Unix milliseconds: the time of the record, which is then that of the id too
   * @throws {ApiError} `service_unavailable` after the very last one, which takes a store that was made to hold it
   */
  bare(partition: Partition, now: number = this.#clock.now()): BareId {
    const ms = Math.min(now, TIME_MAX);
    if (ms > this.#lastMs) {
      this.#lastMs = ms;
      // Starting in the lower half leaves at least 119,164 ids for the millisecond.
      this.#counter = Math.floor((this.#random() * COUNTERS) / 2);
    } else if (this.#counter + 1 < COUNTERS) {
      this.#counter++;
    } else {
      if (this.#lastMs === TIME_MAX) throw new ApiError("service_unavailable", "No ids are left: the newest record has the last one.");
      this.#lastMs++;
      this.#counter = 0;
    }
    return toBase62(this.#lastMs, ID_TIME_WIDTH) + toBase62(this.#counter, COUNTER_WIDTH) + partition;
  }

  next<Prefix extends IdPrefix>(prefix: Prefix, partition: Partition): Id<Prefix> {
    return `${prefix}_${this.bare(partition)}`;
  }
}

/** Unix milliseconds at which an id was made, or later ones if the clock was behind those of an id before. */
export function bareIdTime(bare: BareId): number {
  return fromBase62(bare.slice(0, ID_TIME_WIDTH));
}

/** The smallest 12 characters an id of this millisecond can have: a bound for ranges. Times outside the range of ids are clamped. */
export function firstBareIdAt(ms: number): BareId {
  return toBase62(Math.min(Math.max(0, ms), TIME_MAX), ID_TIME_WIDTH) + "0".repeat(COUNTER_WIDTH + HOME_WIDTH);
}

const SHAPES = Object.fromEntries(ID_PREFIXES.map((prefix) => [prefix, new RegExp(`^${prefix}_[0-9A-Za-z]{12}$`)])) as Record<
  IdPrefix,
  RegExp
>;

export function isId<Prefix extends IdPrefix>(prefix: Prefix, text: string): text is Id<Prefix> {
  return SHAPES[prefix].test(text);
}

/** Returns the sentence that nothing has an id. If the id cannot be one of that kind, it says what one looks like, else `why`. */
export function nothingWithId(noun: string, prefix: IdPrefix, id: string, why = ""): string {
  const ending = isId(prefix, id) ? why : `: its id would be ${prefix}_ and ${BARE_ID_LENGTH} letters or digits`;
  return `There is no ${noun} ${id.slice(0, 64)}${ending}.`;
}

export function bare(id: Id): BareId {
  return id.slice(id.indexOf("_") + 1);
}

export function withPrefix<Prefix extends IdPrefix>(prefix: Prefix, id: BareId): Id<Prefix> {
  return `${prefix}_${id}`;
}
