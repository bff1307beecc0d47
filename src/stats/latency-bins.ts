/**
 * Durations of requests in bins, of which each is a quarter wider than the one before: the first ends at 0.05 ms, the last at more than
 * a minute.
 *
 * @module
 */
const BIN_RATIO = 1.25;
const FIRST_BIN_MS = 0.05;
const BIN_SCALE = 1 / Math.log(BIN_RATIO);
export const LATENCY_BINS = 64;

export function latencyBin(ms: number): number {
  return ms <= FIRST_BIN_MS ? 0 : Math.min(LATENCY_BINS - 1, Math.ceil(Math.log(ms / FIRST_BIN_MS) * BIN_SCALE));
}

/** @returns milliseconds within which this share of the requests was answered; null where there was none */
export function quantileMs(bins: readonly number[], share: number): number | null {
  const wanted = Math.ceil(bins.reduce((sum, count) => sum + count, 0) * share);
  if (wanted === 0) return null;
  let seen = 0;
  const bin = bins.findIndex((count) => (seen += count) >= wanted);
  return Math.round(FIRST_BIN_MS * BIN_RATIO ** bin * 100) / 100;
}
