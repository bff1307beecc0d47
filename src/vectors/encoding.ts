/**
 * The stored form of a vector, its terms, and whose it is.
 *
 * ```
 * numbers     int8: those from `HEAD` on but for the last, or all of them up to the last that is not zero
 * pairs       uint16 and int16: the place and the number of each other one that is not zero, in the order of places
 * terms       uint32
 * generation  uint32: which provider made it
 * memory      12 characters
 * scale       uint16: what 1 is in the numbers and pairs, in 2^-22ths
 * shape       uint16: how many pairs there are; or `WHOLE` and how many numbers, where all stand there
 * ```
 *
 * The largest of the numbers is 127, whatever it was, which makes a cosine wrong by some 0.0001; and a sum of products is exact in
 * whatever order it is made: brute force and the kernel of rows agree to the last bit. Of the built-in provider's 1536 numbers four
 * fifths are zero, nearly all of them among the words before `HEAD`; the last is what a memory gives up of its length, and larger than
 * all others. So its vectors take some 0.4 KB, and those of other providers a byte a number. Little-endian, as is every machine that
 * Cairn runs on.
 *
 * @module
 */
import {
  DIMENSION_MAX,
  type EmbeddedQuery,
  type Embedding,
  LENGTH_PLACE,
  NO_COSINE,
  NO_VECTOR,
  WORD_PLACES,
} from "../embeddings/embedder.ts";
import { BARE_ID_LENGTH, HOME_WIDTH, type BareId } from "../lib/ids.ts";

/** What 1 is in a number of a query. */
const UNIT = 32_767;
/** What 1 is in a scale. */
const SCALE_UNIT = 2 ** 22;
/** What 1 is in a sum of products of a query's numbers with a vector's, times its scale. */
export const COSINE_UNIT = UNIT * SCALE_UNIT;
/** With less a sum of products could exceed 2^31. */
const SCALE_MIN = SCALE_UNIT / 2 ** 15;
/** No vector of unit length has as large a one: it says that there is no vector. */
export const NO_VECTOR_SCALE = 0xffff;
const NUMBER_MAX = 127;
const PAIR_NUMBER_MAX = 32_767;
/** Half of the least that can be told from zero. */
const ZERO_TO = SCALE_MIN / SCALE_UNIT / 2;
/** Numbers are stored and compared eight at a time. */
const STEP = 8;
/** The first of the meaning stands before it: the next multiple of `STEP` comes after that. */
export const HEAD = STEP * Math.ceil(WORD_PLACES / STEP);
const WHOLE = 0x8000;

const PAIR_BYTES = 4;
const TERM_BYTES = 4;
const GENERATION_BYTES = 4;
const SHAPE_BYTES = 2;
const SCALE_BYTES = 2;
const TRAILER_BYTES = GENERATION_BYTES + BARE_ID_LENGTH + SCALE_BYTES + SHAPE_BYTES;
/**
 * The squared length that a stored vector may have: no sum of products of two of them exceeds 2^31. It is more than `encodeVector` leaves.
 * Before that looked at it, the numbers that were raised to 1 could make a vector of 1536 numbers up to (1 + sqrt(1536) / 127)^2 long.
 */
const SQUARE_MAX = 1.75;
/** `encodeVector` brings what is longer to unit length; what rounding alone makes of a vector of unit length is not. */
const WRITTEN_SQUARE_MAX = 1.005;
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

/** The numbers of a query as they are compared, in 32,767ths; what is no number becomes 0. */
export function quantize(vector: Float32Array): Int16Array {
  const numbers = new Int16Array(vector.length);
  quantizeInto(numbers, vector, 0);
  return numbers;
}

/** Writes the numbers of some that stand side by side, of which those from `from` on are zero before. */
function quantizeInto(numbers: Int16Array, some: Float32Array, from: number): void {
  for (let i = 0; i < some.length; i++) {
    const number = some[i]!;
    // Most of the built-in provider's numbers are zero. A square has no sign, which nobody could predict.
    if (number * number > 0) numbers[from + i] = quantized(number);
  }
}

/** Rounded without a call and without a look at the sign: of a positive number only what lies behind the point is cut off. */
function quantized(number: number): number {
  const shifted = number * UNIT + SHIFT;
  return (shifted < SHIFT_MIN ? SHIFT_MIN : shifted > SHIFT_MAX ? SHIFT_MAX : shifted | 0) - (UNIT + 1);
}

/** The numbers of the query that was compared last, which are compared synchronously: an array of its own for each is too much memory. */
const compared = new Int16Array(DIMENSION_MAX);
let comparedQuery: EmbeddedQuery | undefined;

/** What `quantize` gives for the vector of a query: valid until this is asked for another one. */
export function comparedNumbers(query: EmbeddedQuery): Int16Array {
  if (comparedQuery === query) return compared;
  compared.fill(0);
  const { parts } = query;
  if (parts === undefined) quantizeInto(compared, query.vector, 0);
  else {
    const { places, numbers, rest, restFrom } = parts;
    for (let i = 0; i < places.length; i++) if (numbers[i] !== 0) compared[places[i]!] = quantized(numbers[i]!);
    quantizeInto(compared, rest, restFrom);
  }
  comparedQuery = query;
  return compared;
}

/** What this returns is always an embedding to `isEmbedding`, whatever numbers a provider gives. */
export function encodeVector({ vector: given, terms }: Embedding, { memory, generation }: VectorOwner): Uint8Array {
  const vector = ofUnitLength(given);
  let pairs = isZero(vector[LENGTH_PLACE]!) ? 0 : 1;
  for (let i = 0; i < HEAD; i++) if (!isZero(vector[i]!)) pairs++;
  const length = STEP * Math.ceil((vector.findLastIndex((number) => !isZero(number)) + 1) / STEP) || STEP;
  const sparseBytes = DIMENSION_MAX - HEAD + pairs * PAIR_BYTES;
  const isWhole = length <= sparseBytes;
  const [from, to] = isWhole ? [0, length] : [HEAD, LENGTH_PLACE];
  const scale = vector.length === 0 ? NO_VECTOR_SCALE : scaleOf(vector, from, to);
  const termsAt = isWhole ? length : sparseBytes;
  const bytes = new Uint8Array(termsAt + terms.byteLength + TRAILER_BYTES);
  const numbers = new Int8Array(bytes.buffer, 0, isWhole ? length : DIMENSION_MAX - HEAD);
  for (let i = from; i < to; i++) numbers[i - from] = Math.max(-NUMBER_MAX, Math.min(NUMBER_MAX, scaled(vector[i]!, scale)));
  if (!isWhole) {
    const words = new Int32Array(bytes.buffer, sparseBytes - pairs * PAIR_BYTES, pairs);
    for (let i = 0, at = 0; at < pairs; i = i === HEAD - 1 ? LENGTH_PLACE : i + 1) {
      if (!isZero(vector[i]!)) words[at++] = (scaled(vector[i]!, scale) << 16) | i;
    }
  }
  new Uint32Array(bytes.buffer, termsAt, terms.length).set(terms);
  const trailer = new DataView(bytes.buffer, bytes.byteLength - TRAILER_BYTES);
  trailer.setUint32(0, generation, true);
  for (let i = 0; i < BARE_ID_LENGTH; i++) trailer.setUint8(GENERATION_BYTES + i, memory.charCodeAt(i));
  trailer.setUint16(TRAILER_BYTES - SHAPE_BYTES, isWhole ? WHOLE + length : pairs, true);
  trailer.setUint16(TRAILER_BYTES - SHAPE_BYTES - SCALE_BYTES, shortened(scale, squareOf(storedNumbers(bytes))), true);
  return bytes;
}

/** A vector that is longer, or has numbers that are none, becomes one of unit length. */
function ofUnitLength(vector: Float32Array): Float32Array {
  if (squareLength(vector) <= WRITTEN_SQUARE_MAX) return vector;
  const finite = vector.map((number) => (Number.isFinite(number) ? number : 0));
  const length = Math.sqrt(squareLength(finite));
  return length > 1 ? finite.map((number) => number / length) : finite;
}

/**
 * The scale by which a vector is no longer than it may be. Small numbers are raised to 1, and a long text of rare words has hundreds of
 * them. By a smaller scale all numbers stay what they are, and the vector has the same direction.
 */
function shortened(scale: number, square: number): number {
  return square * (scale / SCALE_UNIT) ** 2 <= WRITTEN_SQUARE_MAX ? scale : Math.floor(SCALE_UNIT / Math.sqrt(square));
}

function squareOf({ numbers, pairs }: StoredNumbers): number {
  let square = 0;
  for (const number of numbers) square += number * number;
  for (const pair of pairs) square += (pair >> 16) * (pair >> 16);
  return square;
}

/** Whether a number is stored as zero, or is none. Any other stays one, so that what comes of it is stored alike. */
function isZero(number: number): boolean {
  return !(number * number >= ZERO_TO * ZERO_TO);
}

/** By which the largest of the numbers from one place to before another becomes 127: that of what comes of it is the same. */
function scaleOf(vector: Float32Array, from: number, to: number): number {
  let most = 0;
  for (let i = from; i < to; i++) most = Math.max(most, Math.abs(vector[i]!) || 0);
  return Math.max(SCALE_MIN, Math.round((most * SCALE_UNIT) / NUMBER_MAX));
}

function scaled(number: number, scale: number): number {
  if (isZero(number)) return 0;
  const size = Math.min(PAIR_NUMBER_MAX, Math.max(1, Math.round((Math.abs(number) * SCALE_UNIT) / scale)));
  return number < 0 ? -size : size;
}

/** The numbers of a stored vector, where they are stored: valid as long as the bytes are. */
export interface StoredNumbers {
  /** Numbers side by side, and the place of the first. */
  readonly numbers: Int8Array;
  readonly place: number;
  /** Each pair with its place in the lower half and its number in the upper one. */
  readonly pairs: Int32Array;
  readonly scale: number;
}

/** @throws {RangeError} when the bytes are too few for what they say */
export function storedNumbers(bytes: Uint8Array): StoredNumbers {
  const { buffer, byteOffset } = bytes;
  const shape = shapeOf(bytes);
  const scale = scaleIn(bytes);
  if (shape >= WHOLE) return { numbers: new Int8Array(buffer, byteOffset, shape - WHOLE), place: 0, pairs: NO_PAIRS, scale };
  const length = DIMENSION_MAX - HEAD;
  return {
    numbers: new Int8Array(buffer, byteOffset, length),
    place: HEAD,
    pairs: new Int32Array(buffer, byteOffset + length, shape),
    scale,
  };
}

const NO_PAIRS = new Int32Array(0);

/** The cosine of a query and a stored vector. The sum is one of integers, so its order does not matter. */
export function dotStored(query: Int16Array, bytes: Uint8Array): number {
  const { numbers, place, pairs, scale } = storedNumbers(bytes);
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum = (sum + Math.imul(query[place + i]!, numbers[i]!)) | 0;
  for (let i = 0; i < pairs.length; i++) sum = (sum + Math.imul(query[pairs[i]! & 0xffff]!, pairs[i]! >> 16)) | 0;
  return cosineOf(sum, scale);
}

/** The cosine by a sum of products of a query's numbers with those of a vector of this scale; `NO_COSINE` where there is no vector. */
export function cosineOf(sum: number, scale: number): number {
  return scale === NO_VECTOR_SCALE ? NO_COSINE : (sum * scale) / COSINE_UNIT;
}

/** A stored vector, of which `encodeVector` makes the same numbers again. Of one stored whole the zeros at its end are left out. */
export function storedVector(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const { numbers, place, pairs, scale } = storedNumbers(bytes);
  if (scale === NO_VECTOR_SCALE) return NO_VECTOR;
  const unit = scale / SCALE_UNIT;
  const vector = new Float32Array(place === 0 ? numbers.length : DIMENSION_MAX);
  for (let i = 0; i < numbers.length; i++) vector[place + i] = numbers[i]! * unit;
  for (const pair of pairs) vector[pair & 0xffff] = (pair >> 16) * unit;
  return vector;
}

/** Whether it says words alone. */
export function hasNoVector(bytes: Uint8Array): boolean {
  return scaleIn(bytes) === NO_VECTOR_SCALE;
}

export function storedTerms(bytes: Uint8Array): Uint32Array {
  const at = termsAt(bytes);
  return new Uint32Array(bytes.buffer, bytes.byteOffset + at, (bytes.byteLength - TRAILER_BYTES - at) / TERM_BYTES);
}

export function storedGeneration(bytes: Uint8Array): number {
  const at = bytes.byteLength - TRAILER_BYTES;
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}

export function storedMemory(bytes: Uint8Array): BareId {
  const end = bytes.byteLength - SCALE_BYTES - SHAPE_BYTES;
  return Buffer.from(bytes.buffer, bytes.byteOffset, end).toString("latin1", Math.max(0, end - BARE_ID_LENGTH));
}

/** A number for the home of that memory. */
export function storedHome(bytes: Uint8Array): number {
  const end = bytes.byteLength - SCALE_BYTES - SHAPE_BYTES;
  return (bytes[end - HOME_WIDTH]! << 8) | bytes[end - 1]!;
}

/** Whether bytes from the store, which may be damaged, are an embedding. */
export function isEmbedding(bytes: Uint8Array): boolean {
  if (bytes.byteLength < TRAILER_BYTES) return false;
  const shape = shapeOf(bytes);
  if (shape >= WHOLE && ((shape - WHOLE) % STEP !== 0 || shape === WHOLE || shape - WHOLE > DIMENSION_MAX)) return false;
  const termBytes = bytes.byteLength - TRAILER_BYTES - termsAt(bytes);
  if (termBytes < 0 || termBytes % TERM_BYTES !== 0) return false;
  const stored = storedNumbers(bytes);
  const { pairs, scale } = stored;
  if (scale < SCALE_MIN) return false;
  const isAscending = pairs.every((pair, i) => isPairPlace(pair & 0xffff) && (i === 0 || (pair & 0xffff) > (pairs[i - 1]! & 0xffff)));
  return isAscending && squareOf(stored) * (scale / SCALE_UNIT) ** 2 <= SQUARE_MAX && ID.test(storedMemory(bytes));
}

function isPairPlace(place: number): boolean {
  return place < HEAD || place === LENGTH_PLACE;
}

/** Whether a vector can be compared with others: it is of unit length, or shorter. */
export function isComparable(vector: Float32Array): boolean {
  return vector.length <= DIMENSION_MAX && squareLength(vector) <= SQUARE_MAX;
}

function squareLength(vector: Float32Array): number {
  let square = 0;
  for (const number of vector) square += number * number;
  return square;
}

function termsAt(bytes: Uint8Array): number {
  const shape = shapeOf(bytes);
  return shape >= WHOLE ? shape - WHOLE : DIMENSION_MAX - HEAD + shape * PAIR_BYTES;
}

function shapeOf(bytes: Uint8Array): number {
  return bytes[bytes.byteLength - 2]! | (bytes[bytes.byteLength - 1]! << 8);
}

function scaleIn(bytes: Uint8Array): number {
  const at = bytes.byteLength - SCALE_BYTES - SHAPE_BYTES;
  return bytes[at]! | (bytes[at + 1]! << 8);
}
