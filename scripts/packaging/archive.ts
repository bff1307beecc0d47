/**
 * Archives whose bytes depend on names, modes and contents alone: no times, no owners, no order of a directory.
 *
 * @module
 */

export interface ArchivedFile {
  /** At most 100 bytes. */
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly executable?: boolean;
  /** True for a directory, whose name ends with a slash. */
  readonly directory?: boolean;
}

const BLOCK_BYTES = 512;
const NAME_BYTES_MAX = 100;

/** Level of compression: 6 is for what is published, 1 for a test. */
export type Level = 1 | 6;

/** A gzipped tar, in the form that every tar reads (ustar). */
export function tarGz(files: readonly ArchivedFile[], level: Level = 6): Uint8Array<ArrayBuffer> {
  return Bun.gzipSync(tar(files), { library: "libdeflate", level });
}

function tar(files: readonly ArchivedFile[]): Buffer<ArrayBuffer> {
  const blocks = files.flatMap((file) => [
    header(file),
    Buffer.from(file.bytes.buffer, file.bytes.byteOffset, file.bytes.byteLength),
    Buffer.alloc((BLOCK_BYTES - (file.bytes.length % BLOCK_BYTES)) % BLOCK_BYTES),
  ]);
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function header({ name, bytes, executable = false, directory = false }: ArchivedFile): Buffer {
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) throw new Error(`the name ${name} is too long for an archive`);
  const head = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, at: number, digits: number) => head.write(value.toString(8).padStart(digits, "0"), at);
  head.write(name, 0);
  octal(executable || directory ? 0o755 : 0o644, 100, 7);
  // Owner, group and time.
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(bytes.length, 124, 11);
  octal(0, 136, 11);
  head.write(directory ? "5" : "0", 156);
  head.write("ustar\x0000", 257);
  // The sum is made as if its own place were blank.
  head.fill(" ", 148, 156);
  octal(
    head.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  head.write("\0 ", 154);
  return head;
}
