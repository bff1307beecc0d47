/**
 * The bytes that LMDB has of a key.
 *
 * @module
 */
/** A key of this length or more is written by the runtime in one call. */
const LONG_KEY_LENGTH = 32;

/**
 * Writes and reads keys for lmdb-js: one byte for each character, whatever it is. The library's own encoder gives the bytes
 * of a damaged key as numbers, lists or symbols, and in the minified executable it fails on any byte above 127.
 */
export const KEY_ENCODER = {
  /** @returns where the key ends; four zeros follow it, because lmdb-js compares four bytes at a time */
  writeKey(key: string | Uint8Array, target: Buffer, start: number): number {
    if (typeof key !== "string") {
      target.set(key, start);
      return start + key.length;
    }
    let end = start;
    if (key.length < LONG_KEY_LENGTH) for (; end < start + key.length; end++) target[end] = key.charCodeAt(end - start);
    else end += target.write(key, start, "latin1");
    // LMDB has no empty key: this one comes before all others.
    if (key.length === 0) target[end++] = 0;
    if (end + 4 > target.length) throw new RangeError(`A key of ${key.length} characters does not fit`);
    target[end] = target[end + 1] = target[end + 2] = target[end + 3] = 0;
    return end;
  },
  readKey: (source: Buffer, start: number, end: number): string => source.toString("latin1", start, end),
  /** With this lmdb-js compares keys as it does those of its own encoder. */
  enableNullTermination: () => undefined,
};
