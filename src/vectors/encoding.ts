/**
 * The stored form of a vector, its terms, and whose it is.
 *
 * ```
 * numbers     int16: those from `HEAD` on, or all of them up to the last that is not zero
 * pairs       uint16 and int16: the place and the number of each other one that is not zero, in the order of places
 * terms       uint32
 * generation  uint32: which provider made it
 * memory      12 characters
 * shape       uint16: how many pairs there are; or `WHOLE` and how many numbers, where all stand there
 * ```
 *
 * A number is stored in 32,767ths (fixed point), which makes a cosine wrong by 0.00001, and a sum of products exact in whatever
 * order it is made: brute force and the kernel of resident sets agree to the last bit. Of the built-in provider's 1536 numbers
 * four fifths are zero, nearly all of them among the words before `HEAD`. So its vectors take some 0.7 KB, and those of other
 * providers 2 bytes a number. Little-endian, as is every machine that Cairn runs on.
 *
 * @module
 */
import { DIMENSION, type Embedding, WORD_PLACES } from "../embeddings/embedder.ts";
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";

/** What 1 is in a stored number. */
export const UNIT = 32_767;
/** Numbers are stored and compared eight at a time. */
const STEP = 8;
export const HEAD = WORD_PLACES - (WORD_PLACES % STEP);
/** With more pairs than this a vector is hardly shorter, and slower to compare, than with all its numbers. */
const PAIRS_MAX = 400;
const WHOLE = 0x8000;

const NUMBER_BYTES = 2;
const PAIR_BYTES = 4;
const TERM_BYTES = 4;
const GENERATION_BYTES = 4;
const TRAILER_BYTES = GENERATION_BYTES + BARE_ID_LENGTH + 2;
/** The squared length of a vector, by which no sum of products of two of them exceeds 2^31. */
const SQUARE_MAX = 1.01 * UNIT * UNIT;
const ID = /^[0-9A-Za-z]{12}$/;

/** The memory a vector is of, and the provider that made it. */
export interface VectorOwner {
  readonly memory: BareId;
  readonly generation: number;
}

/** What makes every number positive, and rounds it. */
const SHIFT = UNIT + 1.5;
const SHIFT_MIN = 1;
const SHIFT_MAX = 2 * UNIT + 1;

/** The numbers of a vector as they are stored and compared; what is no number becomes 0. */
export function quantize(vector: Float32Array): Int16Array {
  const numbers = new Int16Array(vector.length);
  for (let i = 0; i < numbers.length; i++) {
    const number = vector[i]!;
    // Most of the built-in provider's numbers are zero. A square has no sign, which nobody could predict.
    if (!(number * number > 0)) continue;
    // Rounded without a call and without a look at the sign: of a positive number only what lies behind the point is cut off.
    const shifted = number * UNIT + SHIFT;
    numbers[i] = (shifted < SHIFT_MIN ? SHIFT_MIN : shifted > SHIFT_MAX ? SHIFT_MAX : shifted | 0) - (UNIT + 1);
  }
  return numbers;
}

export function encodeVector({ vector, terms }: Embedding, { memory, generation }: VectorOwner): Uint8Array {
  const numbers = quantize(vector);
  let pairs = 0;
  for (let i = 0; i < HEAD; i++) if (numbers[i] !== 0) pairs++;
  const length = STEP * Math.ceil((numbers.findLastIndex((number) => number !== 0) + 1) / STEP) || STEP;
  const sparseBytes = (DIMENSION - HEAD) * NUMBER_BYTES + pairs * PAIR_BYTES;
  const isWhole = pairs > PAIRS_MAX || length * NUMBER_BYTES <= sparseBytes;
  const termsAt = isWhole ? length * NUMBER_BYTES : sparseBytes;
  const bytes = new Uint8Array(termsAt + terms.byteLength + TRAILER_BYTES);
  if (isWhole) {
    new Int16Array(bytes.buffer, 0, length).set(numbers.subarray(0, length));
  } else {
    new Int16Array(bytes.buffer, 0, DIMENSION - HEAD).set(numbers.subarray(HEAD));
    const words = new Int32Array(bytes.buffer, sparseBytes - pairs * PAIR_BYTES, pairs);
    for (let i = 0, at = 0; at < pairs; i++) if (numbers[i] !== 0) words[at++] = (numbers[i]! << 16) | i;
  }
  new Uint32Array(bytes.buffer, termsAt, terms.length).set(terms);
  const trailer = new DataView(bytes.buffer, bytes.byteLength - TRAILER_BYTES);
  trailer.setUint32(0, generation, true);
  for (let i = 0; i < BARE_ID_LENGTH; i++) trailer.setUint8(GENERATION_BYTES + i, memory.charCodeAt(i));
  trailer.setUint16(TRAILER_BYTES - 2, isWhole ? WHOLE + length : pairs, true);
  return bytes;
}

/** The numbers of a stored vector, where they are stored: valid as long as the bytes are. */
export interface StoredNumbers {
  /** Numbers side by side, and the place of the first. */
  readonly numbers: Int16Array;
  readonly place: number;
  /** Each pair with its place in the lower half and its number in the upper one. */
  readonly pairs: Int32Array;
}

/** @throws {RangeError} when the bytes are too few for what they say */
export function storedNumbers(bytes: Uint8Array): StoredNumbers {
  const { buffer, byteOffset } = bytes;
  const shape = shapeOf(bytes);
  if (shape >= WHOLE) return { numbers: new Int16Array(buffer, byteOffset, shape - WHOLE), place: 0, pairs: NO_PAIRS };
  const length = DIMENSION - HEAD;
  return {
    numbers: new Int16Array(buffer, byteOffset, length),
    place: HEAD,
    pairs: new Int32Array(buffer, byteOffset + length * NUMBER_BYTES, shape),
  };
}

const NO_PAIRS = new Int32Array(0);

/** The cosine of a query and a stored vector. The sum is one of integers, so its order does not matter. */
export function dotStored(query: Int16Array, bytes: Uint8Array): number {
  const { numbers, place, pairs } = storedNumbers(bytes);
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum = (sum + Math.imul(query[place + i]!, numbers[i]!)) | 0;
  for (let i = 0; i < pairs.length; i++) sum = (sum + Math.imul(query[pairs[i]! & 0xffff]!, pairs[i]! >> 16)) | 0;
  return sum / (UNIT * UNIT);
}

/** All numbers of a stored vector, in an array of their own. */
export function allNumbers(bytes: Uint8Array): Int16Array {
  const { numbers, place, pairs } = storedNumbers(bytes);
  const all = new Int16Array(DIMENSION);
  all.set(numbers, place);
  for (const pair of pairs) all[pair & 0xffff] = pair >> 16;
  return all;
}

/** A stored vector as it is exported: `quantize` gives its stored numbers again. */
export function storedVector(bytes: Uint8Array): Float32Array {
  return Float32Array.from(allNumbers(bytes), (number) => number / UNIT);
}

export function storedTerms(bytes: Uint8Array): Uint32Array {
  const at = termsAt(bytes);
  return new Uint32Array(bytes.buffer, bytes.byteOffset + at, (bytes.byteLength - TRAILER_BYTES - at) / TERM_BYTES);
}

/** The last of the terms, which stands for all words in order. For an embedding without terms it is any number. */
export function storedFingerprint(bytes: Uint8Array): number {
  return wordAt(bytes, bytes.byteLength - TRAILER_BYTES - TERM_BYTES);
}

export function storedGeneration(bytes: Uint8Array): number {
  return wordAt(bytes, bytes.byteLength - TRAILER_BYTES);
}

export function storedMemory(bytes: Uint8Array): BareId {
  const end = bytes.byteLength - 2;
  return Buffer.from(bytes.buffer, bytes.byteOffset, end).toString("latin1", Math.max(0, end - BARE_ID_LENGTH));
}

/** Whether bytes from the store, which may be damaged, are an embedding. */
export function isEmbedding(bytes: Uint8Array): boolean {
  if (bytes.byteLength < TRAILER_BYTES) return false;
  const shape = shapeOf(bytes);
  if (shape >= WHOLE && ((shape - WHOLE) % STEP !== 0 || shape === WHOLE || shape - WHOLE > DIMENSION)) return false;
  const termBytes = bytes.byteLength - TRAILER_BYTES - termsAt(bytes);
  if (termBytes < 0 || termBytes % TERM_BYTES !== 0) return false;
  const { numbers, pairs } = storedNumbers(bytes);
  const isAscending = pairs.every((pair, i) => (pair & 0xffff) < HEAD && (i === 0 || (pair & 0xffff) > (pairs[i - 1]! & 0xffff)));
  let square = 0;
  for (const number of numbers) square += number * number;
  for (const pair of pairs) square += (pair >> 16) * (pair >> 16);
  return isAscending && square <= SQUARE_MAX && ID.test(storedMemory(bytes));
}

/** Whether a vector can be compared with others: it is of unit length, or shorter. */
export function isComparable(vector: Float32Array): boolean {
  return vector.length === DIMENSION && vector.reduce((square, value) => square + value * value, 0) <= SQUARE_MAX / UNIT / UNIT;
}

function termsAt(bytes: Uint8Array): number {
  const shape = shapeOf(bytes);
  return shape >= WHOLE ? (shape - WHOLE) * NUMBER_BYTES : (DIMENSION - HEAD) * NUMBER_BYTES + shape * PAIR_BYTES;
}

function shapeOf(bytes: Uint8Array): number {
  return bytes[bytes.byteLength - 2]! | (bytes[bytes.byteLength - 1]! << 8);
}

function wordAt(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}
