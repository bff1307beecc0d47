/**
 * Numbers without repetition, by sorting and not by hashing: ids of terms follow from texts by a public hash, and texts could be made whose
 * ids all meet in one place of a set.
 *
 * @module
 */

/** Returns the numbers ascending, each once. */
export function distinct(numbers: Iterable<number>): Uint32Array {
  return Uint32Array.from(numbers)
    .sort()
    .filter((number, i, sorted) => i === 0 || number !== sorted[i - 1]);
}
