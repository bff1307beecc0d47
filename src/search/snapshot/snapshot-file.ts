/**
 * The files of a snapshot: written part by part, and read again straight to where each part belongs.
 *
 * The checksum is xxHash3 of those of all parts, 64 bits. It is there for what a disk or a crash does to a file, not for those
 * who may write to the directory and could change the manifest too; SHA-256 would take as long as all else that a start does with a large
 * index (a gigabyte: 2 s instead of 0.06).
 *
 * @module
 */
import { closeSync, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { nextTurn } from "../../lib/clock.ts";

/** The graph is read in parts of this length to see whether it is whole, and other work of the thread is let through after 64 of them. */
const PART_BYTES = 1024 * 1024;
const PARTS_PER_TURN = 64;

export interface Checksum {
  bytes: number;
  xxh3: string;
}

/** Source that parts are read from, one after the other. */
export interface PartSource {
  /** Reads the next part to where it belongs. @throws {RangeError} when there is less */
  readInto(into: Uint8Array): void;
  /** Reads the next part into memory of its own. @throws {RangeError} when there is less */
  take(bytes: number): Uint8Array<ArrayBuffer>;
}

class Checksums {
  readonly #parts: bigint[] = [];
  #bytes = 0;

  add(part: Uint8Array): void {
    this.#parts.push(Bun.hash.xxHash3(part));
    this.#bytes += part.byteLength;
  }

  get all(): Checksum {
    // Not one as the seed of the next: of a seed Bun takes half.
    const xxh3 = Bun.hash.xxHash3(BigUint64Array.from(this.#parts)).toString(16).padStart(16, "0");
    return { bytes: this.#bytes, xxh3 };
  }
}

export function isSame(a: Checksum, b: Checksum): boolean {
  return a.bytes === b.bytes && a.xxh3 === b.xxh3;
}

/** Writes a file all at once: parts may be views of what changes later. @returns the checksum of what is to be read by the same parts */
export function writeParts(path: string, parts: readonly Uint8Array[]): Checksum {
  const checksums = new Checksums();
  const file = openSync(path, "w", 0o600);
  try {
    for (const part of parts) {
      for (let at = 0; at < part.byteLength;) at += writeSync(file, part, at);
      checksums.add(part);
    }
  } finally {
    closeSync(file);
  }
  return checksums.all;
}

/** Reads a file by the parts that it was written of. */
export class PartReader implements PartSource, Disposable {
  readonly #file: number;
  readonly #checksums = new Checksums();
  #left: number;

  constructor(path: string) {
    this.#file = openSync(path, "r");
    this.#left = fstatSync(this.#file).size;
  }

  /** Bytes that are not read yet. */
  get left(): number {
    return this.#left;
  }

  get checksum(): Checksum {
    return this.#checksums.all;
  }

  readInto(into: Uint8Array): void {
    this.#assertLeft(into.byteLength);
    for (let at = 0; at < into.byteLength;) {
      const read = readSync(this.#file, into, at, into.byteLength - at, null);
      if (read === 0) throw new RangeError("the file became shorter while it was read");
      at += read;
    }
    this.#left -= into.byteLength;
    this.#checksums.add(into);
  }

  take(bytes: number): Uint8Array<ArrayBuffer> {
    // A length may be damaged: memory is taken for what is there only.
    this.#assertLeft(bytes);
    const part = new Uint8Array(bytes);
    this.readInto(part);
    return part;
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }

  #assertLeft(bytes: number): void {
    if (bytes > this.#left) throw new RangeError(`of ${bytes} bytes the file has ${this.#left}`);
  }
}

/** The checksum of a file that something else writes and reads. @param signal - that it will not be needed */
export async function checksumOf(path: string, signal?: AbortSignal): Promise<Checksum> {
  using file = new PartReader(path);
  const part = new Uint8Array(PART_BYTES);
  for (let parts = 1; file.left > 0; parts++) {
    file.readInto(part.subarray(0, file.left));
    if (parts % PARTS_PER_TURN !== 0) continue;
    await nextTurn();
    signal?.throwIfAborted();
  }
  return file.checksum;
}
