/**
 * The table of meanings: 19,613 English stems, each with how often it is used, a vector and its nearest neighbours.
 *
 * It was computed from WordNet and a list of everyday associations (`scripts/semantics/`) and travels inside the
 * executable. It is read where it lies: no object per stem, the 4-bit numbers stay packed, and start-up only builds one
 * hash table of row numbers, so it is ready in a few milliseconds and holds little more than the file itself. It knows
 * stems, not texts (`terms.ts`), and sums vectors without knowing what for (`local.ts`).
 *
 * The file, little endian:
 * ```
 * "CSV2" | u32 rows | u32 dimensions | u32 neighbours | u32 vocabulary bytes | u32 irregular bytes
 * vocabulary: stems, sorted, \n between | irregular forms: "went go", \n between
 * u8[rows] rarity q, frequency = 2^(-q/10) | u8[rows * dimensions / 2] two 4-bit numbers a byte, low first, each 8 too high
 * u16[rows * neighbours] neighbours' rows, nearest first, 65535 = none | u8[rows * neighbours] their worth, 255 = 1
 * ```
 *
 * @module
 */
import { readFileSync } from "node:fs";
import tablePath from "./semantics.bin" with { type: "file" };

/** Numbers in a meaning vector. */
export const MEANING_DIMENSION = 256;

const NINE = 57;
const HEADER_BYTES = 24;
const PACKED_BYTES = MEANING_DIMENSION / 2;

/** A word of frequency f weighs 0.002 / (0.002 + f): "user" 0.06, "name" 0.7, "tea" 0.96. */
const RARITY = 0.002;

/** 2^(-q/10) for q = 0 … 9, written out: `Math.pow` may differ in its last bit from one engine to another. */
// prettier-ignore
const TENTH_POWERS = [
  1, 0.9330329915368074, 0.8705505632961241, 0.8122523963562355, 0.757858283255199,
  0.7071067811865476, 0.6597539553864471, 0.6155722066724582, 0.5743491774985174, 0.5358867312681466,
];

/**
 * Sums are kept two to a double: the low 26 bits for one dimension, the bits above for the next. Whole numbers below 2^53
 * are exact, so the sum is the same in any order and on any machine. Measured at 2.1 µs for 20 stems, against 5.2 µs for
 * one dimension at a time.
 */
const LANE = 2 ** 26;
const PAIR = Float64Array.from({ length: 256 }, (_, byte) => (byte & 15) + (byte >> 4) * LANE);
const SQUARES = Uint16Array.from({ length: 256 }, (_, byte) => ((byte & 15) - 8) ** 2 + ((byte >> 4) - 8) ** 2);

/** A unit of `add`'s factors: a stem of weight 1 comes to about 24,000, so 180 of them fit into a lane. */
const FACTOR_SCALE = 2 ** 20;
const LARGEST_NIBBLE = 15;

export interface Semantics {
  readonly rows: number;
  /** The first row that is a word; numbers are before it. */
  readonly wordsFrom: number;
  /** The row of a stem, or -1. */
  row(stem: string): number;
  /** The stem of a row. */
  stem(row: number): string;
  /** `went` → `go`; undefined for what is regular or unknown. */
  irregular(word: string): string | undefined;
  /** How much a stem says, 0 to 1: rare ones more. */
  weight(row: number): number;
  /** The nearest stems in meaning of row r: places [r × k, r × k + k) of the next two, nearest first. */
  readonly neighboursPerRow: number;
  readonly neighbourRows: Uint16Array;
  /**
   * What each is worth for the stem, 0 where there are no more neighbours, 255 being the stem itself: 0.7 × (cosine - 0.3) / 0.7,
   * so at most 178.
   */
  readonly neighbourWorths: Uint8Array;
  /** The sum of unit meaning vectors, each times its factor; rows of -1 are passed over. O(rows). */
  sum(rows: Int32Array, factors: Float64Array, into: Float64Array): void;
}

/** Reads a table from the bytes of its file. */
export function readSemantics(bytes: Uint8Array): Semantics {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = new TextDecoder("latin1").decode(bytes.subarray(0, 4));
  if (magic !== "CSV2") throw new Error("This is not a table of meanings: it does not begin with CSV2.");
  const header = (index: number) => view.getUint32(4 + 4 * index, true);
  const [rows, dimensions, neighbours, vocabularyBytes, irregularBytes] = [0, 1, 2, 3, 4].map(header) as [
    number,
    number,
    number,
    number,
    number,
  ];
  if (dimensions !== MEANING_DIMENSION) throw new Error(`A table of meanings with ${dimensions} dimensions, not ${MEANING_DIMENSION}.`);

  let at = HEADER_BYTES;
  const take = (length: number) => bytes.subarray(at, (at += length));
  const vocabulary = take(vocabularyBytes);
  const irregularLines = new TextDecoder().decode(take(irregularBytes)).split("\n");
  const rarities = take(rows);
  const packed = take(rows * PACKED_BYTES);
  const neighbourRows = copyUint16(take(2 * rows * neighbours));
  const neighbourWorths = take(rows * neighbours);

  const irregulars = new Map(irregularLines.map((line) => line.split(" ") as [string, string]));
  const starts = lineStarts(vocabulary, rows);
  const index = indexOf(vocabulary, starts);
  const weights = Float64Array.from({ length: 256 }, (_, q) => RARITY / (RARITY + TENTH_POWERS[q % 10]! * 2 ** -Math.floor(q / 10)));
  /** What turns a weight into a factor of `addFour`: 0 until first asked. */
  const unit = new Float64Array(rows);
  const pairs = new Float64Array(PACKED_BYTES);

  function row(stem: string): number {
    for (let place = hashText(stem) & index.mask; ; place = (place + 1) & index.mask) {
      const found = index.places[place]!;
      if (found === 0) return -1;
      if (isLine(vocabulary, starts, found - 1, stem)) return found - 1;
    }
  }

  function unitFactor(row: number): number {
    if (unit[row] === 0) {
      let squares = 0;
      for (let i = row * PACKED_BYTES, end = i + PACKED_BYTES; i < end; i++) squares += SQUARES[packed[i]!]!;
      unit[row] = FACTOR_SCALE / Math.sqrt(squares);
    }
    return unit[row]!;
  }

  function addFour(a: number, b: number, c: number, d: number, fa: number, fb: number, fc: number, fd: number): void {
    for (let i = 0; i < PACKED_BYTES; i++) {
      pairs[i]! += fa * PAIR[packed[a + i]!]! + fb * PAIR[packed[b + i]!]! + fc * PAIR[packed[c + i]!]! + fd * PAIR[packed[d + i]!]!;
    }
  }

  /** Moves the packed sums into `into`, taking off the 8 that every number is too high. */
  function unpack(factors: number, into: Float64Array): void {
    const tooHigh = 8 * factors;
    for (let i = 0; i < PACKED_BYTES; i++) {
      const both = pairs[i]!;
      const high = Math.floor(both / LANE);
      into[2 * i]! += (both - high * LANE - tooHigh) / FACTOR_SCALE;
      into[2 * i + 1]! += (high - tooHigh) / FACTOR_SCALE;
    }
    pairs.fill(0);
  }

  function sum(wanted: Int32Array, factors: Float64Array, into: Float64Array): void {
    const offsets = [0, 0, 0, 0];
    const scaled = [0, 0, 0, 0];
    let filled = 0;
    let held = 0;
    for (let i = 0; i < wanted.length; i++) {
      const row = wanted[i]!;
      if (row >= 0) {
        offsets[filled] = row * PACKED_BYTES;
        scaled[filled] = Math.round(factors[i]! * unitFactor(row));
        filled++;
      }
      if (filled < 4 && (i < wanted.length - 1 || filled === 0)) continue;
      for (; filled < 4; filled++) scaled[filled] = 0;
      const four = scaled[0]! + scaled[1]! + scaled[2]! + scaled[3]!;
      if ((held + four) * LARGEST_NIBBLE >= LANE) {
        unpack(held, into);
        held = 0;
      }
      addFour(offsets[0]!, offsets[1]!, offsets[2]!, offsets[3]!, scaled[0]!, scaled[1]!, scaled[2]!, scaled[3]!);
      held += four;
      filled = 0;
    }
    unpack(held, into);
  }

  let wordsFrom = 0;
  while (wordsFrom < rows && vocabulary[starts[wordsFrom]!]! <= NINE) wordsFrom++;

  return {
    rows,
    wordsFrom,
    row,
    stem: (row) => new TextDecoder().decode(vocabulary.subarray(starts[row], starts[row + 1]! - 1)),
    irregular: (word) => irregulars.get(word),
    weight: (row) => weights[rarities[row]!]!,
    neighboursPerRow: neighbours,
    neighbourRows,
    neighbourWorths,
    sum,
  };
}

let loaded: Semantics | undefined;

/** The table of this program, read when first asked for. */
export function semantics(): Semantics {
  loaded ??= readSemantics(readFileSync(tablePath));
  return loaded;
}

/** FNV-1a with a final mix, 32 bits: where a stem is kept here, and the id of a word the table does not know. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return mix(hash);
}

/** Spreads every bit of a number over all 32 (the finalizer of MurmurHash3). */
export function mix(value: number): number {
  let x = value;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/** The neighbours' rows may begin at an odd byte, where no Uint16Array can lie; copied byte by byte for any endianness. */
function copyUint16(bytes: Uint8Array): Uint16Array {
  const copy = new Uint16Array(bytes.length / 2);
  for (let i = 0; i < copy.length; i++) copy[i] = bytes[2 * i]! | (bytes[2 * i + 1]! << 8);
  return copy;
}

/** Where each line begins, and one past the last: a line ends one byte before the next begins. */
function lineStarts(text: Uint8Array, lines: number): Uint32Array {
  const starts = new Uint32Array(lines + 1);
  let line = 1;
  for (let i = 0; i < text.length; i++) if (text[i] === 10) starts[line++] = i + 1;
  if (line !== lines) throw new Error(`A table of meanings with ${lines} rows and ${line} stems.`);
  starts[lines] = text.length + 1;
  return starts;
}

/** Open addressing over the stems: row + 1, or 0 for an empty place; a third of the places are filled. */
function indexOf(text: Uint8Array, starts: Uint32Array): { places: Uint16Array; mask: number } {
  const places = new Uint16Array(65536);
  const mask = places.length - 1;
  for (let row = 0; row < starts.length - 1; row++) {
    let hash = 0x811c9dc5;
    for (let i = starts[row]!; i < starts[row + 1]! - 1; i++) hash = Math.imul(hash ^ text[i]!, 0x01000193);
    let place = mix(hash) & mask;
    while (places[place] !== 0) place = (place + 1) & mask;
    places[place] = row + 1;
  }
  return { places, mask };
}

/** Whether a line is this text. The stems are ASCII, so a byte is a character. */
function isLine(text: Uint8Array, starts: Uint32Array, line: number, expected: string): boolean {
  const start = starts[line]!;
  if (starts[line + 1]! - 1 - start !== expected.length) return false;
  for (let i = 0; i < expected.length; i++) if (text[start + i] !== expected.charCodeAt(i)) return false;
  return true;
}
