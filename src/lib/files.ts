/**
 * Files that are on the disk, whole, and hashed, and the space for them.
 *
 * @module
 */
import { statfsSync } from "node:fs";
import { open } from "node:fs/promises";

const CHUNK_BYTES = 1024 * 1024;

/** Waits until a file, or the names in a directory, are on the disk (fsync). */
export async function flush(path: string): Promise<void> {
  await using handle = await open(path, "r");
  await handle.sync();
}

/** Bytes that this user may still write to the disk that a file or directory is on. */
export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/** Bytes as an operator reads them, rounded up: `12 MB`. */
export function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6).toLocaleString("en")} MB`;
}

export interface Digest {
  bytes: number;
  sha256: string;
}

/** Reads a file in chunks, each into the place of the one before. */
export async function digest(path: string): Promise<Digest> {
  const hasher = new Bun.CryptoHasher("sha256");
  await using handle = await open(path, "r");
  const buffer = new Uint8Array(CHUNK_BYTES);
  let bytes = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES);
    if (bytesRead === 0) return { bytes, sha256: hasher.digest("hex") };
    hasher.update(buffer.subarray(0, bytesRead));
    bytes += bytesRead;
  }
}
