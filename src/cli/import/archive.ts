/**
 * Files of an export: given by name, in a folder, or in the ZIP archive as which it is downloaded, which is read without unpacking it.
 *
 * @module
 */
import { open } from "node:fs/promises";
import { basename } from "node:path";
import { openPromise, type Entry, type ZipFile } from "yauzl";
import { messageOf } from "../../lib/errors.ts";
import { OperationError } from "../../operations/report.ts";
import { filesOf } from "./files.ts";

export interface ExportFile {
  /** Path, and the name in an archive. */
  readonly place: string;
  readonly name: string;
  readonly chunks: AsyncIterable<Uint8Array>;
}

const CHUNK_BYTES = 262_144;
/** Bits of the mode of Unix, in the upper half of the external attributes of an entry. */
const KIND_OF_FILE = 0o170_000;
const LINK = 0o120_000;
/** JSON is compressed some ten times. What claims more is read only where it is small. */
const RATIO_MAX = 100;
const DENSE_BYTES_MAX = 256 * 1_048_576;

/**
 * Finds the files of an export one after another; read each before the next.
 *
 * @param isWanted - whether a file of that name, in a folder or an archive, belongs to it
 * @throws {OperationError} for a path that cannot be read, or an archive that is damaged
 */
export async function* exportFiles(paths: readonly string[], isWanted: (name: string) => boolean): AsyncGenerator<ExportFile> {
  for await (const path of filesOf(paths, (name) => isWanted(name) || name.toLowerCase().endsWith(".zip"))) {
    if (await isArchive(path)) yield* filesOfArchive(path, isWanted);
    else yield { place: path, name: basename(path), chunks: chunksOf(path) };
  }
}

/** Reads a file into the same memory again and again. */
async function* chunksOf(path: string): AsyncGenerator<Uint8Array> {
  await using file = await open(path, "r");
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, null);
    if (bytesRead === 0) return;
    yield chunk.subarray(0, bytesRead);
  }
}

async function isArchive(path: string): Promise<boolean> {
  await using file = await open(path, "r");
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
  return bytesRead === 4 && buffer.toString("latin1") === "PK\u0003\u0004";
}

async function* filesOfArchive(path: string, isWanted: (name: string) => boolean): AsyncGenerator<ExportFile> {
  let archive: ZipFile | undefined;
  try {
    archive = await openPromise(path, { lazyEntries: true, autoClose: false });
    for await (const entry of archive.eachEntry()) {
      const name = basename(entry.fileName);
      if (entry.fileName.endsWith("/") || !isWanted(name)) continue;
      const place = `${path}/${entry.fileName}`;
      refuseOdd(entry, place);
      yield { place, name, chunks: await archive.openReadStreamPromise(entry) };
    }
  } catch (error) {
    if (error instanceof OperationError) throw error;
    throw new OperationError(`${path} is a damaged ZIP archive: ${messageOf(error)}.`, { cause: error });
  } finally {
    archive?.close();
  }
}

function refuseOdd(entry: Entry, place: string): void {
  if (((entry.externalFileAttributes >>> 16) & KIND_OF_FILE) === LINK)
    throw new OperationError(`${place} is a link, which is not followed.`);
  if (entry.isEncrypted()) throw new OperationError(`${place} is encrypted: unpack the archive, and name the file.`);
  const { compressedSize, uncompressedSize } = entry;
  if (uncompressedSize > DENSE_BYTES_MAX && uncompressedSize > RATIO_MAX * compressedSize)
    throw new OperationError(`${place} would grow more than ${RATIO_MAX} times by unpacking: unpack it yourself if that is right.`);
}
