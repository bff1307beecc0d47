/**
 * Files of a source, read piece by piece: they may be larger than the memory.
 *
 * @module
 */
import { statSync } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { systemReason } from "../../lib/system-errors.ts";
import { OperationError } from "../../operations/report.ts";
import { LINE_BYTES_MAX } from "../hook/turns.ts";

const CHUNK_BYTES = 262_144;
/** Buffers and texts of lines pile up, since the collector is in no hurry. */
const COLLECTED_EACH_CHUNKS = 64;
const NEWLINE = 10;

export interface Line {
  readonly number: number;
  /** Undefined for one that is longer than may be. */
  readonly bytes: Buffer | undefined;
}

/**
 * Finds the regular files of paths, those in folders by their names. Links in folders are not followed.
 *
 * @throws {OperationError} for a path that cannot be read
 */
export async function* filesOf(paths: readonly string[], isWanted: (name: string) => boolean): AsyncGenerator<string> {
  for (const path of paths) {
    try {
      const found = statSync(path);
      if (found.isFile()) yield path;
      else if (found.isDirectory()) yield* filesBelow(path, isWanted);
      else throw new OperationError(`${path} is neither a file nor a directory.`);
    } catch (error) {
      if (error instanceof OperationError) throw error;
      throw new OperationError(`${path} cannot be read: ${systemReason(error)}.`, { cause: error });
    }
  }
}

async function* filesBelow(directory: string, isWanted: (name: string) => boolean): AsyncGenerator<string> {
  const entries = await readdir(directory, { withFileTypes: true });
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path, isWanted);
    else if (entry.isFile() && isWanted(entry.name)) yield path;
  }
}

/** Reads the lines of a file, without their ends. Copy one before the next is read. */
export async function* linesOf(path: string): AsyncGenerator<Line> {
  await using file = await open(path, "r");
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let number = 1;
  let begun: Buffer[] = [];
  let begunBytes = 0;
  const line = (rest: Buffer): Line => {
    const isTooLong = begunBytes + rest.length > LINE_BYTES_MAX;
    const bytes = isTooLong ? undefined : begun.length === 0 ? rest : Buffer.concat([...begun, rest]);
    [begun, begunBytes] = [[], 0];
    return { number: number++, bytes };
  };
  for (let chunks = 1; ; chunks++) {
    if (chunks % COLLECTED_EACH_CHUNKS === 0) Bun.gc(true);
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, null);
    if (bytesRead === 0) break;
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1 && end < bytesRead; end = chunk.indexOf(NEWLINE, from)) {
      yield line(chunk.subarray(from, end));
      from = end + 1;
    }
    begunBytes += bytesRead - from;
    if (begunBytes > LINE_BYTES_MAX) begun = [];
    else if (from < bytesRead) begun.push(Buffer.from(chunk.subarray(from, bytesRead)));
  }
  if (begunBytes > 0) yield line(Buffer.alloc(0));
}
