/**
 * The stored form of a vector, its terms, and whose it is.
 *
 * ```
 * numbers     int8: all of them up to the last that is not zero
 * terms       uint32
 * generation  uint32: which provider made it
 * memory      12 characters
 * scale       uint16: what 1 is in the numbers, in 2^-22ths
 * shape       uint16: WHOLE and how many numbers there are
 * ```
 *
 * The largest of the numbers is 127, whatever it was, which makes a cosine wrong by some 0.0001; and a sum of products is exact in
 * whatever order it is made: brute force and the kernel of rows agree to the last bit. Little-endian, as is every machine that Cairn
 * runs on.
 *
 * Before the encoder there was another form, without `WHOLE`, whose numbers were mostly zero. It is of an earlier generation wherever it
 * is found: known as such, never compared, and replaced when its record is embedded again.
 *
 * @module
 */
import { DIMENSION_MAX, type Embedding, NO_COSINE, NO_VECTOR } from "../embeddings/embedder.ts";
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
/** Half of the least that can be told from zero. */
const ZERO_TO = SCALE_MIN / SCALE_UNIT / 2;
/** Numbers are stored and compared eight at a time. */
const STEP = 8;
const WHOLE = 0x8000;

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

/** Returns the numbers of a query as they are compared, in 32,767ths; what is no number becomes 0. */
export function quantize(vector: Float32Array): Int16Array {
  const numbers = new Int16Array(vector.length);
  for (let i = 0; i < numbers.length; i++) numbers[i] = Math.max(-UNIT, Math.min(UNIT, Math.round(vector[i]! * UNIT)));
  return numbers;
}

/** What this returns is always an embedding to `isEmbedding`, whatever numbers a provider gives. */
export function encodeVector({ vector: given, terms }: Embedding, { memory, generation }: VectorOwner): Uint8Array {
  const vector = ofUnitLength(given);
  const length = STEP * Math.ceil((vector.findLastIndex((number) => !isZero(number)) + 1) / STEP) || STEP;
  const scale = vector.length === 0 ? NO_VECTOR_SCALE : scaleOf(vector);
  const bytes = new Uint8Array(length + terms.byteLength + TRAILER_BYTES);
  const numbers = new Int8Array(bytes.buffer, 0, length);
  for (let i = 0; i < Math.min(length, vector.length); i++) numbers[i] = scaled(vector[i]!, scale);
  new Uint32Array(bytes.buffer, length, terms.length).set(terms);
  const trailer = new DataView(bytes.buffer, bytes.byteLength - TRAILER_BYTES);
  trailer.setUint32(0, generation, true);
  for (let i = 0; i < BARE_ID_LENGTH; i++) trailer.setUint8(GENERATION_BYTES + i, memory.charCodeAt(i));
  trailer.setUint16(TRAILER_BYTES - SHAPE_BYTES, WHOLE + length, true);
  trailer.setUint16(TRAILER_BYTES - SHAPE_BYTES - SCALE_BYTES, shortened(scale, squareLength(numbers)), true);
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
 * The scale by which a vector is no longer than it may be. Small numbers are raised to 1, and there may be hundreds of them. By a
 * smaller scale all numbers stay what they are, and the vector has the same direction.
 */
function shortened(scale: number, square: number): number {
  return square * (scale / SCALE_UNIT) ** 2 <= WRITTEN_SQUARE_MAX ? scale : Math.floor(SCALE_UNIT / Math.sqrt(square));
}

/** Whether a number is stored as zero, or is none. Any other stays one, so that what comes of it is stored alike. */
function isZero(number: number): boolean {
  return !(number * number >= ZERO_TO * ZERO_TO);
}

/** By which the largest of the numbers becomes 127: that of what comes of it is the same. */
function scaleOf(vector: Float32Array): number {
  let most = 0;
  for (const number of vector) most = Math.max(most, Math.abs(number) || 0);
  return Math.max(SCALE_MIN, Math.round((most * SCALE_UNIT) / NUMBER_MAX));
}

function scaled(number: number, scale: number): number {
  if (isZero(number)) return 0;
  const size = Math.min(NUMBER_MAX, Math.max(1, Math.round((Math.abs(number) * SCALE_UNIT) / scale)));
  return number < 0 ? -size : size;
}

/** The numbers of a stored vector, where they are stored, valid as long as the bytes are; none of one in the form of before. */
export interface StoredNumbers {
  readonly numbers: Int8Array;
  readonly scale: number;
}

/** @throws {RangeError} when the bytes are too few for what they say */
export function storedNumbers(bytes: Uint8Array): StoredNumbers {
  const length = numberCount(bytes);
  return { numbers: new Int8Array(bytes.buffer, bytes.byteOffset, length), scale: length === 0 ? NO_VECTOR_SCALE : scaleIn(bytes) };
}

/** The cosine of a query and a stored vector. The sum is one of integers, so its order does not matter. */
export function dotStored(query: Int16Array, bytes: Uint8Array): number {
  const { numbers, scale } = storedNumbers(bytes);
  const length = Math.min(numbers.length, query.length);
  let sum = 0;
  for (let i = 0; i < length; i++) sum = (sum + Math.imul(query[i]!, numbers[i]!)) | 0;
  return cosineOf(sum, scale);
}

/** The cosine by a sum of products of a query's numbers with those of a vector of this scale; `NO_COSINE` where there is no vector. */
export function cosineOf(sum: number, scale: number): number {
  return scale === NO_VECTOR_SCALE ? NO_COSINE : (sum * scale) / COSINE_UNIT;
}

/** A stored vector without the zeros at its end, of which `encodeVector` makes the same numbers again. */
export function storedVector(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const { numbers, scale } = storedNumbers(bytes);
  return scale === NO_VECTOR_SCALE ? NO_VECTOR : Float32Array.from(numbers, (number) => number * (scale / SCALE_UNIT));
}

/** Whether it says words alone. */
export function hasNoVector(bytes: Uint8Array): boolean {
  return scaleIn(bytes) === NO_VECTOR_SCALE;
}

/** Whether it is in the form of before. */
export function isOfOldForm(bytes: Uint8Array): boolean {
  return shapeOf(bytes) < WHOLE;
}

/** The terms of a stored vector, where they are stored; none of one in the form of before. */
export function storedTerms(bytes: Uint8Array): Uint32Array {
  if (isOfOldForm(bytes)) return new Uint32Array(0);
  const at = numberCount(bytes);
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

/** A number for the partition of that memory. */
export function storedHome(bytes: Uint8Array): number {
  const end = bytes.byteLength - SCALE_BYTES - SHAPE_BYTES;
  return (bytes[end - HOME_WIDTH]! << 8) | bytes[end - 1]!;
}

/** Whether bytes from the store, which may be damaged, are an embedding. Of the form of before no more is known than whose it is. */
export function isEmbedding(bytes: Uint8Array): boolean {
  if (bytes.byteLength < TRAILER_BYTES || !ID.test(storedMemory(bytes)) || scaleIn(bytes) < SCALE_MIN) return false;
  if (isOfOldForm(bytes)) return bytes.byteLength >= TRAILER_BYTES + OLD_BYTES_MIN && bytes.byteLength % TERM_BYTES === 0;
  const length = numberCount(bytes);
  if (length % STEP !== 0 || length === 0 || length > DIMENSION_MAX) return false;
  const termBytes = bytes.byteLength - TRAILER_BYTES - length;
  if (termBytes < 0 || termBytes % TERM_BYTES !== 0) return false;
  return squareLength(storedNumbers(bytes).numbers) * (scaleIn(bytes) / SCALE_UNIT) ** 2 <= SQUARE_MAX;
}

/** Its numbers of meaning. */
const OLD_BYTES_MIN = 256;

/** Whether a vector can be compared with others: it is of unit length, or shorter. */
export function isComparable(vector: Float32Array): boolean {
  return vector.length <= DIMENSION_MAX && squareLength(vector) <= SQUARE_MAX;
}

function squareLength(vector: Float32Array | Int8Array): number {
  let square = 0;
  for (const number of vector) square += number * number;
  return square;
}

function numberCount(bytes: Uint8Array): number {
  return Math.max(0, shapeOf(bytes) - WHOLE);
}

function shapeOf(bytes: Uint8Array): number {
  return bytes[bytes.byteLength - 2]! | (bytes[bytes.byteLength - 1]! << 8);
}

function scaleIn(bytes: Uint8Array): number {
  const at = bytes.byteLength - SCALE_BYTES - SHAPE_BYTES;
  return bytes[at]! | (bytes[at + 1]! << 8);
}
