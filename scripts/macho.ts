/**
 * Mach-O, the format of programs on macOS, as far as a release needs it: signs a file ad hoc, and reads what macOS will check.
 *
 * A signature holds the hash of every page of the file. macOS checks a page when it is first used and ends the process where
 * the hash is wrong; on arm64 it starts nothing that is not signed. An ad-hoc signature names nobody and needs no key.
 *
 * ```
 * superblob      magic u32, length u32, number of blobs u32, then for each its slot and its offset    all big-endian
 * CodeDirectory  head of 88 bytes, the identifier, one SHA-256 a page of 4 KiB, or of 16
 * ```
 *
 * Only thin 64-bit files are known: neither Bun nor zig makes others.
 *
 * @module
 */
import { createHash } from "node:crypto";

const MAGIC = 0xfeedfacf;
const HEADER_BYTES = 32;
const ARM64 = 0x0100000c;
const EXECUTABLE = 2;
const COMMAND = {
  segment: 0x19,
  symbols: 0x02,
  library: 0x0c,
  weakLibrary: 0x80000018,
  ownName: 0x0d,
  signature: 0x1d,
  buildVersion: 0x32,
  exports: 0x80000033,
  dyldInfo: 0x22,
  dyldInfoOnly: 0x80000022,
} as const;
const MACOS = 1;

const SUPERBLOB = 0xfade0cc0;
const CODE_DIRECTORY = 0xfade0c02;
const CODE_DIRECTORY_VERSION = 0x20400;
const CODE_DIRECTORY_BYTES = 88;
/** Of a superblob with one blob. */
const SUPERBLOB_BYTES = 20;
/** Ad hoc, and made by a linker: what Apple's gives, which other tools may replace. */
const FLAGS = 0x20002;
const SHA256 = 2;
const SHA256_BYTES = 32;
const PAGE_SHIFT = 12;
const PAGE_BYTES = 1 << PAGE_SHIFT;
/** Ours, and that of zig's linker for arm64. */
const PAGE_SHIFTS: readonly number[] = [PAGE_SHIFT, 14];
const ALIGNMENT = 16;

interface Segment {
  /** Position of its command. */
  readonly at: number;
  readonly fileOffset: number;
  readonly fileBytes: number;
}

interface Symbol {
  readonly name: string;
  /** 1 and up: of the libraries in their order; others stand for the program itself, or for all that is loaded. */
  readonly library: number;
}

/** Header of a file. */
export interface MachO {
  readonly architecture: "arm64" | "x64";
  readonly isExecutable: boolean;
  /** The oldest macOS that starts it, as in `13.0`; undefined when it is for another system. */
  readonly minimumMacos: string | undefined;
  readonly libraries: readonly string[];
  readonly ownName: string | undefined;
  readonly exported: ReadonlySet<string>;
  /** Symbols that something else has to have. */
  readonly undefinedSymbols: readonly Symbol[];
}

/** @throws {Error} when it is no such file */
export function readMachO(bytes: Buffer): MachO {
  const commands = commandsOf(bytes);
  const [version] = commands.filter(({ kind }) => kind === COMMAND.buildVersion);
  const textOf = ({ at, end }: Command) => textAt(bytes, at + bytes.readUInt32LE(at + 8), end);
  const ofKind = (...kinds: number[]) => commands.filter(({ kind }) => kinds.includes(kind));
  return {
    architecture: bytes.readUInt32LE(4) === ARM64 ? "arm64" : "x64",
    isExecutable: bytes.readUInt32LE(12) === EXECUTABLE,
    minimumMacos:
      version !== undefined && bytes.readUInt32LE(version.at + 8) === MACOS ? versionText(bytes.readUInt32LE(version.at + 12)) : undefined,
    libraries: ofKind(COMMAND.library, COMMAND.weakLibrary).map(textOf),
    ownName: ofKind(COMMAND.ownName).map(textOf)[0],
    exported: exportedNames(bytes, commands),
    undefinedSymbols: undefinedSymbols(bytes, commands),
  };
}

interface Command {
  readonly kind: number;
  readonly at: number;
  readonly end: number;
}

function commandsOf(bytes: Buffer): Command[] {
  if (bytes.length < HEADER_BYTES || bytes.readUInt32LE(0) !== MAGIC) throw new Error("no thin 64-bit Mach-O file");
  const commands: Command[] = [];
  let at = HEADER_BYTES;
  for (let i = 0; i < bytes.readUInt32LE(16); i++) {
    const end = at + bytes.readUInt32LE(at + 4);
    commands.push({ kind: bytes.readUInt32LE(at), at, end });
    at = end;
  }
  return commands;
}

function textAt(bytes: Buffer, at: number, end = bytes.length): string {
  const zero = bytes.indexOf(0, at);
  return bytes.toString("utf8", at, zero === -1 ? end : Math.min(zero, end));
}

function versionText(packed: number): string {
  return `${packed >> 16}.${(packed >> 8) & 255}`;
}

function segmentsOf(bytes: Buffer, commands: readonly Command[]): ReadonlyMap<string, Segment> {
  return new Map(
    commands
      .filter(({ kind }) => kind === COMMAND.segment)
      .map(({ at }) => [
        textAt(bytes, at + 8, at + 24),
        { at, fileOffset: Number(bytes.readBigUInt64LE(at + 40)), fileBytes: Number(bytes.readBigUInt64LE(at + 48)) },
      ]),
  );
}

/** The names in the tree of exports: each node has the rest of a name for each child (a trie). */
function exportedNames(bytes: Buffer, commands: readonly Command[]): Set<string> {
  const names = new Set<string>();
  for (const { kind, at } of commands) {
    const from = kind === COMMAND.exports ? at + 8 : kind === COMMAND.dyldInfo || kind === COMMAND.dyldInfoOnly ? at + 40 : undefined;
    const size = from === undefined ? 0 : bytes.readUInt32LE(from + 4);
    if (from === undefined || size === 0) continue;
    const start = bytes.readUInt32LE(from);
    addNames(names, bytes.subarray(start, start + size), 0, "");
  }
  return names;
}

function addNames(names: Set<string>, trie: Buffer, node: number, prefix: string): void {
  const [ownBytes, afterSize] = uleb(trie, node);
  if (ownBytes > 0) names.add(prefix);
  let at = afterSize + ownBytes;
  const children = trie.readUInt8(at++);
  for (let i = 0; i < children; i++) {
    const label = textAt(trie, at);
    const [child, next] = uleb(trie, at + Buffer.byteLength(label) + 1);
    addNames(names, trie, child, prefix + label);
    at = next;
  }
}

/** A number in groups of seven bits, lowest first. @returns it, and where the next thing stands */
function uleb(bytes: Buffer, from: number): [value: number, next: number] {
  let value = 0;
  for (let at = from, factor = 1; ; at++, factor *= 128) {
    const byte = bytes.readUInt8(at);
    value += (byte & 127) * factor;
    if (byte < 128) return [value, at + 1];
  }
}

function undefinedSymbols(bytes: Buffer, commands: readonly Command[]): Symbol[] {
  const table = commands.find(({ kind }) => kind === COMMAND.symbols);
  if (table === undefined) return [];
  const [first, count, names] = [8, 12, 16].map((offset) => bytes.readUInt32LE(table.at + offset)) as [number, number, number];
  return Array.from({ length: count }, (_, i) => first + i * 16).flatMap((at) => {
    const type = bytes.readUInt8(at + 4);
    // External, of no section, and none for a debugger.
    const isUndefined = (type & 0xe0) === 0 && (type & 0x0e) === 0 && (type & 1) === 1;
    return isUndefined ? [{ name: textAt(bytes, names + bytes.readUInt32LE(at)), library: bytes.readUInt16LE(at + 6) >> 8 }] : [];
  });
}

/**
 * Signs a file ad hoc, whether it has a signature or only room for one.
 *
 * @returns the signed file
 * @throws {Error} when there is no room for a signature
 */
export function signAdHoc(unsigned: Buffer, identifier: string): Buffer {
  const commands = commandsOf(unsigned);
  const segments = segmentsOf(unsigned, commands);
  const [signature, linkedit, text] = [
    commands.find(({ kind }) => kind === COMMAND.signature),
    segments.get("__LINKEDIT"),
    segments.get("__TEXT"),
  ];
  if (signature === undefined || linkedit === undefined || text === undefined)
    throw new Error("a Mach-O file with no room for a signature");
  const signedBytes = unsigned.readUInt32LE(signature.at + 8);
  const name = Buffer.from(`${identifier}\0`);
  const pages = Math.ceil(signedBytes / PAGE_BYTES);
  const hashesAt = CODE_DIRECTORY_BYTES + name.length;
  const directoryBytes = hashesAt + pages * SHA256_BYTES;
  const size = Math.ceil((SUPERBLOB_BYTES + directoryBytes) / ALIGNMENT) * ALIGNMENT;

  const signed = Buffer.alloc(signedBytes + size);
  unsigned.copy(signed, 0, 0, signedBytes);
  // The head of the file is part of what is hashed, so these sizes come first.
  const linkeditBytes = signedBytes + size - linkedit.fileOffset;
  const memoryPage = signed.readUInt32LE(4) === ARM64 ? 16384 : 4096;
  signed.writeUInt32LE(size, signature.at + 12);
  signed.writeBigUInt64LE(BigInt(Math.ceil(linkeditBytes / memoryPage) * memoryPage), linkedit.at + 32);
  signed.writeBigUInt64LE(BigInt(linkeditBytes), linkedit.at + 48);

  let at = signedBytes;
  for (const field of [SUPERBLOB, SUPERBLOB_BYTES + directoryBytes, 1, 0, SUPERBLOB_BYTES]) at = signed.writeUInt32BE(field, at);
  const head = [CODE_DIRECTORY, directoryBytes, CODE_DIRECTORY_VERSION, FLAGS, hashesAt, CODE_DIRECTORY_BYTES, 0, pages, signedBytes];
  for (const field of head) at = signed.writeUInt32BE(field, at);
  for (const field of [SHA256_BYTES, SHA256, 0, PAGE_SHIFT]) at = signed.writeUInt8(field, at);
  // Unused fields, and the length in 64 bits, which is for files of 4 GiB and more.
  at += 4 * 4 + 8;
  const isExecutable = signed.readUInt32LE(12) === EXECUTABLE;
  for (const field of [text.fileOffset, text.fileBytes, isExecutable ? 1 : 0]) at = signed.writeBigUInt64BE(BigInt(field), at);
  name.copy(signed, at);
  at += name.length;
  for (let page = 0; page < pages; page++) pageHash(signed, page, signedBytes, PAGE_BYTES).copy(signed, at + page * SHA256_BYTES);
  return signed;
}

function pageHash(bytes: Buffer, page: number, limit: number, pageBytes: number): Buffer {
  return createHash("sha256")
    .update(bytes.subarray(page * pageBytes, Math.min((page + 1) * pageBytes, limit)))
    .digest();
}

/** Problems that macOS would find in a file's signature, as it checks it: every page is hashed again. */
export function signatureProblems(bytes: Buffer): string[] {
  const commands = commandsOf(bytes);
  const command = commands.find(({ kind }) => kind === COMMAND.signature);
  if (command === undefined) return ["it is not signed"];
  const [at, size] = [bytes.readUInt32LE(command.at + 8), bytes.readUInt32LE(command.at + 12)];
  const linkedit = segmentsOf(bytes, commands).get("__LINKEDIT");
  const problems: string[] = [];
  if (at + size !== bytes.length) problems.push(`the file has ${bytes.length} bytes, its signature ends at ${at + size}`);
  if (linkedit === undefined || linkedit.fileOffset + linkedit.fileBytes !== bytes.length)
    problems.push("the segment __LINKEDIT does not end with the file");
  if (at % ALIGNMENT !== 0) problems.push(`the signature begins at ${at}, which is no multiple of ${ALIGNMENT}`);
  if (at + SUPERBLOB_BYTES > bytes.length || bytes.readUInt32BE(at) !== SUPERBLOB)
    return [...problems, "there is no signature where it should be"];
  if (bytes.readUInt32BE(at + 4) > size) problems.push("the signature is longer than its room");
  const blobs = Array.from({ length: bytes.readUInt32BE(at + 8) }, (_, i) => at + bytes.readUInt32BE(at + 16 + i * 8));
  const directories = blobs.filter((blob) => bytes.readUInt32BE(blob) === CODE_DIRECTORY);
  if (directories.length === 0) problems.push("the signature has no hashes");
  return [...problems, ...directories.flatMap((blob) => directoryProblems(bytes, blob, at))];
}

function directoryProblems(bytes: Buffer, blob: number, signatureAt: number): string[] {
  const [hashesAt, , , pages, limit] = [16, 20, 24, 28, 32].map((offset) => bytes.readUInt32BE(blob + offset)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const [hashBytes, hashType, , pageShift] = [36, 37, 38, 39].map((offset) => bytes.readUInt8(blob + offset));
  if (hashBytes !== SHA256_BYTES || hashType !== SHA256 || !PAGE_SHIFTS.includes(pageShift ?? 0))
    return ["its hashes are not SHA-256 of pages of 4 or 16 KiB"];
  const pageBytes = 1 << (pageShift ?? 0);
  const problems: string[] = [];
  if (limit !== signatureAt) problems.push(`the signature covers ${limit} bytes of ${signatureAt}`);
  if (pages !== Math.ceil(limit / pageBytes)) problems.push(`it has ${pages} hashes for ${Math.ceil(limit / pageBytes)} pages`);
  const wrong = Array.from({ length: pages }, (_, page) => page).filter((page) => {
    const start = blob + hashesAt + page * SHA256_BYTES;
    return !pageHash(bytes, page, limit, pageBytes).equals(bytes.subarray(start, start + SHA256_BYTES));
  });
  if (wrong.length > 0) problems.push(`${wrong.length} pages have another hash, the first is page ${wrong[0]}`);
  return problems;
}
