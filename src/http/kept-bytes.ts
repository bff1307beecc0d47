/**
 * Budget of bytes that an API key may have kept by answers that are larger than what they changed.
 *
 * An answer that is kept for an Idempotency-Key is most often smaller than the change it tells of, which has its own limits: the rate,
 * and the size of the store. But a request of a few bytes can have a large session answered, and with a fresh Idempotency-Key each time
 * that fills the disk for a day. So what an answer takes beyond its change counts against a budget that fills up again over 24 hours.
 *
 * It is in memory, of each server by itself: a restart fills it.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { HOUR_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";

const REFILL_MS = LIMITS.idempotencyHours * HOUR_MS;
/** From this many on, full budgets are forgotten: their keys get the same from a new one. */
const BUDGETS_MAX = 1_000;

interface Budget {
  left: number;
  /** Time at which `left` was right. */
  at: number;
}

export class KeptBytes {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #budgets = new Map<string, Budget>();

  /** @param max - the usual limit unless a test has its own */
  constructor(clock: Clock, max: number = LIMITS.keptAnswerBytesMax) {
    this.#clock = clock;
    this.#max = max;
  }

  /**
   * @param key - id of the API key
   * @throws {ApiError} `rate_limit_exceeded` when there is not that much left
   */
  take(key: string, bytes: number): void {
    const budget = this.#budgetOf(key);
    if (bytes > budget.left) {
      const seconds = Math.ceil(((Math.min(bytes, this.#max) - budget.left) * REFILL_MS) / this.#max / 1000);
      throw new ApiError(
        "rate_limit_exceeded",
        `This API key has used up the ${Math.round(this.#max / 1024 / 1024)} MiB that it can have kept in ${LIMITS.idempotencyHours} hours of answers that are larger than what they changed. ` +
          `Nothing was changed. Send what can be repeated without an Idempotency-Key, or try again in ${seconds} s.`,
        { param: "Idempotency-Key", retryAfterSeconds: seconds },
      );
    }
    budget.left -= bytes;
  }

  giveBack(key: string, bytes: number): void {
    const budget = this.#budgetOf(key);
    budget.left = Math.min(this.#max, budget.left + bytes);
  }

  #budgetOf(key: string): Budget {
    const now = this.#clock.elapsed();
    let budget = this.#budgets.get(key);
    if (budget === undefined) {
      if (this.#budgets.size >= BUDGETS_MAX) this.#forgetFull(now);
      this.#budgets.set(key, (budget = { left: this.#max, at: now }));
    }
    budget.left = this.#leftAt(budget, now);
    budget.at = now;
    return budget;
  }

  #forgetFull(now: number): void {
    for (const [key, budget] of this.#budgets) if (this.#leftAt(budget, now) >= this.#max) this.#budgets.delete(key);
  }

  #leftAt({ left, at }: Budget, now: number): number {
    return Math.min(this.#max, left + ((now - at) / REFILL_MS) * this.#max);
  }
}
