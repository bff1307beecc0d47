/**
 * One run of a measurement: a number of requests at once, for some time.
 *
 * @module
 */
import { systemClock } from "../../../lib/clock.ts";
import { cpuMs } from "../process-use.ts";

/** Times in milliseconds. */
export interface Run {
  count: number;
  errors: number;
  perSecond: number;
  p50: number;
  p95: number;
  p99: number;
}

const SAMPLES_MAX = 1 << 20;

/** Collects the latencies of one run. */
export class Stopwatch {
  readonly #latencies = new Float64Array(SAMPLES_MAX);
  readonly #startedAt = systemClock.elapsed();
  readonly #until: number;
  #count = 0;
  #endedAt = 0;
  errors = 0;

  constructor(seconds: number) {
    this.#until = this.#startedAt + seconds * 1000;
  }

  /** Notes one that began then. @returns whether there is time for another */
  lap(beganAt: number): boolean {
    const now = systemClock.elapsed();
    if (this.#count < SAMPLES_MAX) this.#latencies[this.#count] = now - beganAt;
    this.#count++;
    this.#endedAt = now;
    return now < this.#until;
  }

  result(): Run {
    const sorted = this.#latencies.subarray(0, Math.min(this.#count, SAMPLES_MAX)).sort();
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
    return {
      count: this.#count,
      errors: this.errors,
      perSecond: (this.#count * 1000) / (this.#endedAt - this.#startedAt),
      p50: at(0.5),
      p95: at(0.95),
      p99: at(0.99),
    };
  }
}

/** A run and the processor time that the process measured used for it, all its threads together. */
export interface Costed extends Run {
  cpuMsEach: number;
}

/** Runs a measurement with the processor time that a process uses meanwhile. */
export async function costed<AnyRun extends Run>(pids: readonly number[], run: () => Promise<AnyRun>): Promise<AnyRun & Costed> {
  const used = () => pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
  const before = used();
  const result = await run();
  return { ...result, cpuMsEach: (used() - before) / result.count };
}

/** Does `work` as often at once as said, and each again as soon as it is done. */
export async function measure(concurrency: number, seconds: number, work: (index: number) => Promise<void>): Promise<Run> {
  const watch = new Stopwatch(seconds);
  await Promise.all(
    Array.from({ length: concurrency }, async (_, lane) => {
      for (let index = lane, more = true; more; index += concurrency) {
        const beganAt = systemClock.elapsed();
        await work(index);
        more = watch.lap(beganAt);
      }
    }),
  );
  return watch.result();
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] as number) : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}
