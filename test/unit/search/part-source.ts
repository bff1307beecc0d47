/**
 * Parts of a snapshot, to be read again without a file.
 *
 * @module
 */
import type { PartSource } from "../../../src/search/snapshot/snapshot-file.ts";

export function sourceOf(parts: readonly Uint8Array[]): PartSource {
  const bytes = Buffer.concat(parts);
  let at = 0;
  const readInto = (into: Uint8Array) => into.set(bytes.subarray(at, (at += into.byteLength)));
  const take = (length: number) => {
    const part = new Uint8Array(length);
    readInto(part);
    return part;
  };
  return { readInto, take };
}
