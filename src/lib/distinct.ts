/**
 * Numbers without repetition, by sorting and not by hashing: ids of terms follow from texts by a public hash, and texts could be made whose
 * ids all meet in one place of a set.
 *
 * @module
 */

/** Returns the numbers ascending, each once. */
export function distinct(numbers: Iterable<number>): Uint32Array {
  const sorted = Uint32Array.from(numbers).sort();
  let count = 0;
  for (let i = 0; i < sorted.length; i++) if (i === 0 || sorted[i] !== sorted[i - 1]) sorted[count++] = sorted[i]!;
  return sorted.slice(0, count);
}
