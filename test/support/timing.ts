/**
 * How long something takes beside something else, on a machine that may be busy.
 *
 * @module
 */

/** The shortest of several runs, in milliseconds: what disturbs a run only makes it longer. */
export function shortest(work: () => unknown, runs = 5): number {
  return Math.min(...Array.from({ length: runs }, () => timeOf(work)));
}

/**
 * How many times as long `work` takes as `yardstick`, by the shortest run of each. They take turns, and are run again until
 * the ratio is below `bound`, up to 20 times: only what is slow by itself stays above it.
 *
 * @param floorMs - what takes less than this counts as this: below it, it does not matter
 */
export function ratioOf(
  work: () => unknown,
  yardstick: () => unknown,
  { bound, floorMs = 0 }: { bound: number; floorMs?: number },
): number {
  let [worked, measured] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let run = 0; run < 20 && !(run > 1 && worked / Math.max(measured, floorMs) < bound); run++) {
    measured = Math.min(measured, timeOf(yardstick));
    worked = Math.min(worked, timeOf(work));
  }
  return worked / Math.max(measured, floorMs);
}

function timeOf(work: () => unknown): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}
