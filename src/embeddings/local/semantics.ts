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

const HEADER_BYTES = 24;
const MASK = 0xffff;
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

/** The unit of `#addFour`'s factors: a stem of weight 1 comes to about 24,000, so 180 of them fit into a lane. */
const FACTOR_SCALE = 2 ** 20;
const LARGEST_NIBBLE = 15;

/** A table, read from the bytes of its file. */
export class Semantics {
  readonly rows: number;
  /** The first row that is a word; numbers are before it. */
  readonly wordsFrom: number;
  /** The nearest stems in meaning of row r: places [r × k, r × k + k) of the next two, nearest first. */
  readonly neighboursPerRow: number;
  readonly neighbourRows: Uint16Array;
  /**
   * What each is worth for the stem, 0 where there are no more neighbours, 255 being the stem itself: 0.7 × (cosine - 0.3) / 0.7,
   * so at most 178.
   */
  readonly neighbourWorths: Uint8Array;
  readonly #vocabulary: Uint8Array;
  /** Where each stem begins in the vocabulary, and one past its end: a stem ends one byte before the next begins. */
  readonly #starts: Uint32Array;
  /** Open addressing over the stems: row + 1, or 0 for an empty place; a third of the places are filled. */
  readonly #places = new Uint16Array(65536);
  readonly #irregulars: ReadonlyMap<string, string>;
  readonly #weights: Float64Array;
  readonly #packed: Uint8Array;
  /** A cache of `#unitFactor`, 0 until first asked: it saves 15 % of the time for a memory of 200 characters. */
  readonly #unitFactors: Float64Array;
  /** Scratch of one sum, all zero between two. */
  readonly #pairs = new Float64Array(PACKED_BYTES);

  constructor(bytes: Uint8Array) {
    const magic = new TextDecoder("latin1").decode(bytes.subarray(0, 4));
    if (magic !== "CSV2") throw new Error("This is not a table of meanings: it does not begin with CSV2.");
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const header = (index: number) => view.getUint32(4 + 4 * index, true);
    const [rows, dimensions, neighbours] = [header(0), header(1), header(2)];
    if (dimensions !== MEANING_DIMENSION) throw new Error(`A table of meanings with ${dimensions} dimensions, not ${MEANING_DIMENSION}.`);
    let at = HEADER_BYTES;
    const take = (length: number) => bytes.subarray(at, (at += length));

    this.rows = rows;
    this.neighboursPerRow = neighbours;
    this.#vocabulary = take(header(3));
    const irregulars = new TextDecoder().decode(take(header(4))).split("\n");
    this.#irregulars = new Map(irregulars.map((line) => line.split(" ") as [string, string]));
    this.#weights = Float64Array.from(take(rows), (q) => RARITY / (RARITY + TENTH_POWERS[q % 10]! * 2 ** -Math.floor(q / 10)));
    this.#packed = take(rows * PACKED_BYTES);
    // The neighbours' rows may begin at an odd byte, where no Uint16Array can lie.
    this.neighbourRows = new Uint16Array(new Uint8Array(take(2 * rows * neighbours)).buffer);
    this.neighbourWorths = take(rows * neighbours);
    this.#unitFactors = new Float64Array(rows);
    this.#starts = new Uint32Array(rows + 1);
    const stems = new TextDecoder().decode(this.#vocabulary).split("\n");
    if (stems.length !== rows) throw new Error(`A table of meanings with ${rows} rows and ${stems.length} stems.`);
    stems.forEach((stem, row) => {
      this.#starts[row + 1] = this.#starts[row]! + stem.length + 1;
      let place = hashText(stem) & MASK;
      while (this.#places[place] !== 0) place = (place + 1) & MASK;
      this.#places[place] = row + 1;
    });
    this.wordsFrom = stems.findIndex((stem) => /^[a-z]/.test(stem));
  }

  /** The row of a stem, or -1. */
  row(stem: string): number {
    for (let place = hashText(stem) & MASK; ; place = (place + 1) & MASK) {
      const found = this.#places[place]!;
      if (found === 0) return -1;
      if (this.#isStem(found - 1, stem)) return found - 1;
    }
  }

  stem(row: number): string {
    return new TextDecoder().decode(this.#vocabulary.subarray(this.#starts[row], this.#starts[row + 1]! - 1));
  }

  /** `went` → `go`; undefined for what is regular or unknown. */
  irregular(word: string): string | undefined {
    return this.#irregulars.get(word);
  }

  /** How much a stem says, 0 to 1: rare ones more. */
  weight(row: number): number {
    return this.#weights[row]!;
  }

  /** Adds the unit meaning vectors of some rows, each times its factor, to `into`; rows of -1 are passed over. O(rows). */
  sum(rows: Int32Array, factors: Float64Array, into: Float64Array): void {
    const offsets = [0, 0, 0, 0];
    const scaled = [0, 0, 0, 0];
    let filled = 0;
    let held = 0;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (row >= 0) {
        offsets[filled] = row * PACKED_BYTES;
        scaled[filled] = Math.round(factors[i]! * this.#unitFactor(row));
        filled++;
      }
      if (filled < 4 && (i < rows.length - 1 || filled === 0)) continue;
      for (; filled < 4; filled++) scaled[filled] = 0;
      const four = scaled[0]! + scaled[1]! + scaled[2]! + scaled[3]!;
      if ((held + four) * LARGEST_NIBBLE >= LANE) {
        this.#unpack(held, into);
        held = 0;
      }
      this.#addFour(offsets[0]!, offsets[1]!, offsets[2]!, offsets[3]!, scaled[0]!, scaled[1]!, scaled[2]!, scaled[3]!);
      held += four;
      filled = 0;
    }
    this.#unpack(held, into);
  }

  #addFour(a: number, b: number, c: number, d: number, fa: number, fb: number, fc: number, fd: number): void {
    const [pairs, packed] = [this.#pairs, this.#packed];
    for (let i = 0; i < PACKED_BYTES; i++) {
      pairs[i]! += fa * PAIR[packed[a + i]!]! + fb * PAIR[packed[b + i]!]! + fc * PAIR[packed[c + i]!]! + fd * PAIR[packed[d + i]!]!;
    }
  }

  /** Moves the packed sums into `into`, taking off the 8 that every number is too high. */
  #unpack(factors: number, into: Float64Array): void {
    const pairs = this.#pairs;
    const tooHigh = 8 * factors;
    for (let i = 0; i < PACKED_BYTES; i++) {
      const both = pairs[i]!;
      const high = Math.floor(both / LANE);
      into[2 * i]! += (both - high * LANE - tooHigh) / FACTOR_SCALE;
      into[2 * i + 1]! += (high - tooHigh) / FACTOR_SCALE;
    }
    pairs.fill(0);
  }

  /** Turns a weight into a factor of `#addFour`. */
  #unitFactor(row: number): number {
    if (this.#unitFactors[row] === 0) {
      let squares = 0;
      for (let i = row * PACKED_BYTES, end = i + PACKED_BYTES; i < end; i++) squares += SQUARES[this.#packed[i]!]!;
      this.#unitFactors[row] = FACTOR_SCALE / Math.sqrt(squares);
    }
    return this.#unitFactors[row]!;
  }

  /** The stems are ASCII, so a byte is a character. */
  #isStem(row: number, text: string): boolean {
    const start = this.#starts[row]!;
    if (this.#starts[row + 1]! - 1 - start !== text.length) return false;
    for (let i = 0; i < text.length; i++) if (this.#vocabulary[start + i] !== text.charCodeAt(i)) return false;
    return true;
  }
}

let loaded: Semantics | undefined;

/** The table of this program, read when first asked for. */
export function semantics(): Semantics {
  loaded ??= new Semantics(readFileSync(tablePath));
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
