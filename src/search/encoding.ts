/**
 * The stored form of a vector, its terms, and whose it is.
 *
 * ```
 * numbers     int8: all of them up to the last that is not zero; or all of each of several vectors
 * terms       uint32
 * generation  uint32: which provider made it
 * memory      12 characters
 * scale       uint16: what 1 is in the numbers, in 2^-22ths
 * shape       uint16: WHOLE and how many numbers there are, a multiple of 8, and one more where they are those of several vectors
 * ```
 *
 * A text that was cut into passages has a vector for each, all in one row, so that it has all of them or none. Its cosine with a query is
 * that of the nearest.
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
import { DIMENSION_MAX, type Embedding, NO_COSINE, NO_VECTOR, PASSAGE_DIMENSION, PASSAGES_MAX } from "../embeddings/embedder.ts";
import { BARE_ID_LENGTH, HOME_WIDTH, type BareId } from "../lib/ids.ts";

/** Unit of a number of a query. */
const UNIT = 32_767;
/** Unit of a scale. */
const SCALE_UNIT = 2 ** 22;
/** Unit of a sum of products of a query's numbers with a vector's, times its scale. */
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
/** In a shape: the numbers are those of several vectors. */
const SEVERAL = 1;

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
/** `encodeVector` gives what is longer a scale that brings it to unit length; what rounding alone makes of such a vector is not. */
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

/** Encodes a vector: the result always passes `isEmbedding`, whatever numbers a provider gives. */
export function encodeVector({ vector: given, passages = 1, terms }: Embedding, { memory, generation }: VectorOwner): Uint8Array {
  const vector = finite(given);
  const used = vector.findLastIndex((number) => !isZero(number)) + 1;
  const length = passages > 1 ? vector.length : STEP * Math.ceil(used / STEP) || STEP;
  const scale = vector.length === 0 ? NO_VECTOR_SCALE : scaleOf(vector);
  const bytes = new Uint8Array(length + terms.byteLength + TRAILER_BYTES);
  const numbers = new Int8Array(bytes.buffer, 0, length);
  for (let i = 0; i < Math.min(length, vector.length); i++) numbers[i] = scaled(vector[i]!, scale);
  new Uint32Array(bytes.buffer, length, terms.length).set(terms);
  const trailer = new DataView(bytes.buffer, bytes.byteLength - TRAILER_BYTES);
  trailer.setUint32(0, generation, true);
  for (let i = 0; i < BARE_ID_LENGTH; i++) trailer.setUint8(GENERATION_BYTES + i, memory.charCodeAt(i));
  trailer.setUint16(TRAILER_BYTES - SHAPE_BYTES, WHOLE + length + (passages > 1 ? SEVERAL : 0), true);
  trailer.setUint16(TRAILER_BYTES - SHAPE_BYTES - SCALE_BYTES, shortened(scale, longest(numbers, passages)), true);
  return bytes;
}

/** Puts 0 in place of what is no number. */
function finite(vector: Float32Array): Float32Array {
  return Number.isFinite(squareLength(vector)) ? vector : vector.map((number) => (Number.isFinite(number) ? number : 0));
}

/**
 * The scale by which a vector is no longer than it may be. Small numbers are raised to 1, and there may be hundreds of them. By a
 * smaller scale all numbers stay what they are, and the vector has the same direction.
 */
function shortened(scale: number, square: number): number {
  return square * (scale / SCALE_UNIT) ** 2 <= WRITTEN_SQUARE_MAX ? scale : Math.floor(SCALE_UNIT / Math.sqrt(square));
}

/** Checks whether a number is stored as zero, or is none. Any other stays one, so that what comes of it is stored alike. */
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

/** The numbers of several vectors that stand side by side, those of each. */
function parts<Numbers extends Float32Array | Int8Array>(numbers: Numbers, count: number): Numbers[] {
  const length = numbers.length / count;
  return Array.from({ length: count }, (_, i) => numbers.subarray(i * length, (i + 1) * length) as Numbers);
}

/** The square of the length of the longest. */
function longest(numbers: Float32Array | Int8Array, count: number): number {
  return Math.max(...parts(numbers, count).map(squareLength));
}

/** The numbers of a stored vector, where they are stored, valid as long as the bytes are; none of one in the form of before. */
export interface StoredNumbers {
  readonly numbers: Int8Array;
  /** Number of vectors that they are of, each as long as the others. */
  readonly passages: number;
  readonly scale: number;
}

/** @throws {RangeError} when the bytes are too few for what they say */
export function storedNumbers(bytes: Uint8Array): StoredNumbers {
  const length = numberCount(bytes);
  const scale = length === 0 ? NO_VECTOR_SCALE : scaleIn(bytes);
  return { numbers: new Int8Array(bytes.buffer, bytes.byteOffset, length), passages: passageCount(bytes), scale };
}

/** The cosine of a query and a stored vector: that of the nearest passage. The sum is one of integers, so its order does not matter. */
export function dotStored(query: Int16Array, bytes: Uint8Array): number {
  return nearestPassage(query, bytes).cosine;
}

/** Returns which passage of a text is nearest to a query, from 0 on, of equal ones the first; and the cosine of that. */
export function nearestPassage(query: Int16Array, bytes: Uint8Array): { passage: number; cosine: number } {
  const { numbers, passages, scale } = storedNumbers(bytes);
  const step = numbers.length / passages;
  const length = Math.min(step, query.length);
  let nearest = { passage: 0, sum: Number.NEGATIVE_INFINITY };
  for (let passage = 0; passage < passages; passage++) {
    const from = passage * step;
    let sum = 0;
    for (let i = 0; i < length; i++) sum = (sum + Math.imul(query[i]!, numbers[from + i]!)) | 0;
    if (sum > nearest.sum) nearest = { passage, sum };
  }
  return { passage: nearest.passage, cosine: cosineOf(nearest.sum, scale) };
}

/** The cosine by a sum of products of a query's numbers with those of a vector of this scale; `NO_COSINE` where there is no vector. */
export function cosineOf(sum: number, scale: number): number {
  return scale === NO_VECTOR_SCALE ? NO_COSINE : (sum * scale) / COSINE_UNIT;
}

/** A stored vector without the zeros at its end, or those of all passages, of which `encodeVector` makes the same numbers again. */
export function storedVector(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const { numbers, scale } = storedNumbers(bytes);
  return scale === NO_VECTOR_SCALE ? NO_VECTOR : Float32Array.from(numbers, (number) => number * (scale / SCALE_UNIT));
}

/** The vector of each passage. */
export function storedPassages(bytes: Uint8Array): Float32Array[] {
  return parts(storedVector(bytes), passageCount(bytes));
}

/** Checks whether it says words alone. */
export function hasNoVector(bytes: Uint8Array): boolean {
  return scaleIn(bytes) === NO_VECTOR_SCALE;
}

/** Checks whether it is in the form of before. */
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

/** Checks whether bytes from the store, which may be damaged, are an embedding. Of the form of before no more is known than whose it is. */
export function isEmbedding(bytes: Uint8Array): boolean {
  if (bytes.byteLength < TRAILER_BYTES || !ID.test(storedMemory(bytes)) || scaleIn(bytes) < SCALE_MIN) return false;
  if (isOfOldForm(bytes)) return bytes.byteLength >= TRAILER_BYTES + OLD_BYTES_MIN && bytes.byteLength % TERM_BYTES === 0;
  const length = numberCount(bytes);
  const passages = passageCount(bytes);
  const areSeveral = (shapeOf(bytes) & SEVERAL) !== 0;
  if (areSeveral ? passages === 1 || passages > PASSAGES_MAX || length !== passages * PASSAGE_DIMENSION : length > DIMENSION_MAX)
    return false;
  if (length % STEP !== 0 || length === 0) return false;
  const termBytes = bytes.byteLength - TRAILER_BYTES - length;
  if (termBytes < 0 || termBytes % TERM_BYTES !== 0) return false;
  return longest(storedNumbers(bytes).numbers, passages) * (scaleIn(bytes) / SCALE_UNIT) ** 2 <= SQUARE_MAX;
}

/** Its numbers of meaning. */
const OLD_BYTES_MIN = 256;

/** Checks whether a vector can be compared with others, or those of all passages: they are of unit length, or shorter. */
export function isComparable(vector: Float32Array, passages = 1): boolean {
  if (passages === 1) return vector.length <= DIMENSION_MAX && squareLength(vector) <= SQUARE_MAX;
  const areAll = passages > 1 && passages <= PASSAGES_MAX && vector.length === passages * PASSAGE_DIMENSION;
  return areAll && longest(vector, passages) <= SQUARE_MAX;
}

function squareLength(vector: Float32Array | Int8Array): number {
  let square = 0;
  for (const number of vector) square += number * number;
  return square;
}

function numberCount(bytes: Uint8Array): number {
  return Math.max(0, (shapeOf(bytes) & ~SEVERAL) - WHOLE);
}

/** Number of its vectors as it says; 1 of one that has none. */
export function passageCount(bytes: Uint8Array): number {
  const areSeveral = !isOfOldForm(bytes) && (shapeOf(bytes) & SEVERAL) !== 0;
  return areSeveral ? Math.max(1, Math.floor(numberCount(bytes) / PASSAGE_DIMENSION)) : 1;
}

function shapeOf(bytes: Uint8Array): number {
  return bytes[bytes.byteLength - 2]! | (bytes[bytes.byteLength - 1]! << 8);
}

function scaleIn(bytes: Uint8Array): number {
  const at = bytes.byteLength - SCALE_BYTES - SHAPE_BYTES;
  return bytes[at]! | (bytes[at + 1]! << 8);
}
