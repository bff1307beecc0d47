/**
 * Numbers of requests and changes, and durations of requests, in the last hour and the last day: in rings of memory of a
 * fixed size, which a restart empties.
 *
 * A ring is moved on by the clock that only counts on, and its times are counted back from now, so that a clock that is set makes
 * neither holes nor steps.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { HOUR_MS, MINUTE_MS } from "../lib/duration.ts";

/** Each latency bin is a quarter wider than the one before: the first ends at 0.05 ms, the last at more than a minute. */
const BIN_RATIO = 1.25;
const FIRST_BIN_MS = 0.05;
const BINS = 64;
const BIN_SCALE = 1 / Math.log(BIN_RATIO);

/** Counts of one part of the time. */
export interface HistoryPoint {
  /** Unix milliseconds at which it began. */
  at: number;
  requests: number;
  /** Requests answered with a status of 500 or more. */
  errors: number;
  changes: number;
  /** Milliseconds within which half of the requests were answered, and 99 of a hundred; null where there was none. */
  p50Ms: number | null;
  p99Ms: number | null;
}

class Ring {
  readonly bucketMs: number;
  readonly #count: number;
  readonly #requests: Uint32Array;
  readonly #errors: Uint32Array;
  readonly #changes: Uint32Array;
  readonly #bins: Uint32Array;
  /** Number of the bucket that is being counted; those before the first are empty. */
  #current = 0;

  constructor(bucketMs: number, count: number) {
    this.bucketMs = bucketMs;
    this.#count = count;
    [this.#requests, this.#errors, this.#changes] = [new Uint32Array(count), new Uint32Array(count), new Uint32Array(count)];
    this.#bins = new Uint32Array(count * BINS);
  }

  addRequest(elapsed: number, bin: number, isError: boolean): void {
    const slot = this.#slotAt(elapsed);
    this.#requests[slot]!++;
    if (isError) this.#errors[slot]!++;
    this.#bins[slot * BINS + bin]!++;
  }

  addChanges(elapsed: number, count: number): void {
    this.#changes[this.#slotAt(elapsed)]! += count;
  }

  /** Oldest first; the last one is not complete yet. */
  points(elapsed: number, now: number): HistoryPoint[] {
    this.#slotAt(elapsed);
    const startedAt = now - (elapsed - this.#current * this.bucketMs);
    return Array.from({ length: this.#count }, (_, index) => {
      const back = this.#count - 1 - index;
      const slot = (this.#current - back + this.#count) % this.#count;
      return {
        at: Math.round(startedAt - back * this.bucketMs),
        requests: this.#requests[slot]!,
        errors: this.#errors[slot]!,
        changes: this.#changes[slot]!,
        p50Ms: this.#quantile(slot, 0.5),
        p99Ms: this.#quantile(slot, 0.99),
      };
    });
  }

  #slotAt(elapsed: number): number {
    const bucket = Math.floor(elapsed / this.bucketMs);
    const passed = Math.min(bucket - this.#current, this.#count);
    for (let step = 1; step <= passed; step++) {
      const slot = (bucket - passed + step) % this.#count;
      for (const numbers of [this.#requests, this.#errors, this.#changes]) numbers[slot] = 0;
      this.#bins.fill(0, slot * BINS, (slot + 1) * BINS);
    }
    if (passed > 0) this.#current = bucket;
    return this.#current % this.#count;
  }

  #quantile(slot: number, share: number): number | null {
    const wanted = Math.ceil(this.#requests[slot]! * share);
    if (wanted === 0) return null;
    let seen = 0;
    for (let bin = 0; bin < BINS; bin++) {
      seen += this.#bins[slot * BINS + bin]!;
      if (seen >= wanted) return Math.round(FIRST_BIN_MS * BIN_RATIO ** bin * 100) / 100;
    }
    return null;
  }
}

export type HistorySpan = "1h" | "24h";

export class History {
  readonly #clock: Clock;
  readonly #rings: Record<HistorySpan, Ring> = {
    "1h": new Ring(MINUTE_MS, 60),
    "24h": new Ring(HOUR_MS / 4, 96),
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param elapsed - when it was answered, on the clock that only counts on */
  addRequest(elapsed: number, ms: number, status: number): void {
    const bin = ms <= FIRST_BIN_MS ? 0 : Math.min(BINS - 1, Math.ceil(Math.log(ms / FIRST_BIN_MS) * BIN_SCALE));
    for (const ring of [this.#rings["1h"], this.#rings["24h"]]) ring.addRequest(elapsed, bin, status >= 500);
  }

  addChanges(count: number): void {
    const elapsed = this.#clock.elapsed();
    for (const ring of [this.#rings["1h"], this.#rings["24h"]]) ring.addChanges(elapsed, count);
  }

  of(span: HistorySpan): { bucketSeconds: number; points: HistoryPoint[] } {
    const ring = this.#rings[span];
    return { bucketSeconds: ring.bucketMs / 1000, points: ring.points(this.#clock.elapsed(), this.#clock.now()) };
  }
}
