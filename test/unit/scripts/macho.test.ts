import { expect, test } from "bun:test";
import { readMachO, signAdHoc, signatureProblems } from "../../../scripts/macho.ts";

const PAGE_BYTES = 4096;
const COMMANDS_AT = 32;
const CODE_PAGES = 3;
/** Where the signature begins: in the midst of a page, after some bytes of the last segment. */
const SIGNED_BYTES = CODE_PAGES * PAGE_BYTES + 160;

function command(kind: number, fields: readonly (number | bigint | string)[]): Buffer {
  const body = fields.map((field) => {
    if (typeof field === "string") return Buffer.from(field.padEnd(16, "\0"));
    const bytes = Buffer.alloc(typeof field === "number" ? 4 : 8);
    if (typeof field === "number") bytes.writeUInt32LE(field);
    else bytes.writeBigUInt64LE(field);
    return bytes;
  });
  const length = 8 + body.reduce((sum, { length }) => sum + length, 0);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(kind, 0);
  head.writeUInt32LE(length, 4);
  return Buffer.concat([head, ...body]);
}

const segment = (name: string, offset: number, size: number) =>
  command(0x19, [name, 0n, BigInt(size), BigInt(offset), BigInt(size), 7, 7, 0, 0]);

/** A program for arm64 with two pages of code, one symbol of libSystem, one of whatever loads it, and one that it exports. */
function program(): Buffer {
  const names = Buffer.from("\0_fsync\0_napi_create_object\0");
  const trie = Buffer.from([0, 1, ...Buffer.from("_main\0"), 9, 2, 0, 0, 0]);
  const tables = CODE_PAGES * PAGE_BYTES;
  const symbolsAt = tables + 32;
  const commands = [
    segment("__TEXT", 0, 2 * PAGE_BYTES),
    segment("__LINKEDIT", tables, SIGNED_BYTES - tables),
    command(0x32, [1, 13 << 16, 26 << 16, 0]),
    command(0x0c, [24, 0, 0, 0, "/usr/lib/libSystem.B.dylib".padEnd(32, "\0")]),
    command(0x02, [symbolsAt, 2, symbolsAt + 32, names.length]),
    command(0x80000033, [tables, trie.length]),
    command(0x1d, [SIGNED_BYTES, 0]),
  ];
  const bytes = Buffer.alloc(SIGNED_BYTES);
  for (let i = PAGE_BYTES; i < tables; i++) bytes[i] = (i * 7) % 251;
  for (const [at, value] of [0xfeedfacf, 0x0100000c, 0, 2, commands.length].entries()) bytes.writeUInt32LE(value, at * 4);
  Buffer.concat(commands).copy(bytes, COMMANDS_AT);
  trie.copy(bytes, tables);
  for (const [i, [name, library]] of [[1, 1] as const, [8, 254] as const].entries()) {
    bytes.writeUInt32LE(name, symbolsAt + i * 16);
    bytes.writeUInt8(1, symbolsAt + i * 16 + 4);
    bytes.writeUInt16LE(library << 8, symbolsAt + i * 16 + 6);
  }
  names.copy(bytes, symbolsAt + 32);
  return bytes;
}

test("a file says what it is for, what it needs and what it has", () => {
  expect(readMachO(program())).toEqual({
    architecture: "arm64",
    isExecutable: true,
    minimumMacos: "13.0",
    libraries: ["/usr/lib/libSystem.B.dylib"],
    ownName: undefined,
    exported: new Set(["_main"]),
    undefinedSymbols: [
      { name: "_fsync", library: 1 },
      { name: "_napi_create_object", library: 254 },
    ],
  });
  expect(() => readMachO(Buffer.from("#!/bin/sh"))).toThrow("no thin 64-bit Mach-O file");
});

test("a signed file has the right hash of every page, and signing it again changes nothing", () => {
  const signed = signAdHoc(program(), "cairn");
  expect(signatureProblems(signed)).toEqual([]);
  expect(signAdHoc(signed, "cairn").equals(signed)).toBe(true);
  expect(signed.includes("cairn\0")).toBe(true);
  expect({ ...readMachO(signed) }).toEqual({ ...readMachO(program()) });
});

test("one changed byte anywhere in what is signed is found, and so is a byte more or less", () => {
  const signed = signAdHoc(program(), "cairn");
  for (const at of [COMMANDS_AT + 8, PAGE_BYTES, 2 * PAGE_BYTES - 1, SIGNED_BYTES - 1]) {
    const changed = Buffer.from(signed);
    changed[at]! ^= 1;
    expect([at, signatureProblems(changed)]).toEqual([at, [expect.stringMatching(/^1 pages have another hash, the first is page \d$/)]]);
  }
  expect(signatureProblems(Buffer.concat([signed, Buffer.alloc(1)]))).not.toEqual([]);
  expect(signatureProblems(signed.subarray(0, -16))).not.toEqual([]);
});

test("a file that is not signed, or whose signature is of another file, is found", () => {
  const unsigned = program();
  expect(signatureProblems(Buffer.concat([unsigned, Buffer.alloc(64)]))).not.toEqual([]);
  const signed = signAdHoc(unsigned, "cairn");
  const longer = Buffer.concat([signed.subarray(0, SIGNED_BYTES), Buffer.alloc(PAGE_BYTES), signed.subarray(SIGNED_BYTES)]);
  expect(signatureProblems(longer)).not.toEqual([]);
});
