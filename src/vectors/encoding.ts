/**
 * How a memory's embedding is laid out in the store.
 *
 * ```
 * tail    numbers 1276 to 1535 of the vector, float32
 * head    of the numbers before them those that are not zero, float32
 * places  where those belong, ascending uint16, filled up to a multiple of four bytes; none when the whole head is there
 * terms   uint32
 * count   of the numbers in the head, uint32
 * label   uint32, which `putVector` gives
 * ```
 *
 * Of the 1536 numbers of the built-in provider's vectors four fifths are zero, nearly all of them where its words stand. So a
 * memory takes 1.3 KB and fits into a page of the store, where 6.2 KB need pages side by side. The vector of any other provider
 * is kept in full. A zero has no sign here. Little-endian, as is every machine that Cairn runs on.
 *
 * @module
 */
import { DIMENSION, type Embedding } from "../embeddings/embedder.ts";
import { LABEL_BYTES } from "../storage/memory-records.ts";

/** Where the built-in provider's words end, down to a multiple of four. */
export const HEAD = 1276;
export const TAIL = DIMENSION - HEAD;
/** A head with more numbers than this is kept in full: with their places they are hardly shorter, and slower to compare. */
const SPARSE_MAX = 400;
const NUMBER_BYTES = 4;
const COUNT_BYTES = 4;
const TAIL_BYTES = TAIL * NUMBER_BYTES;

export function encodeVector({ vector, terms }: Embedding): Uint8Array {
  let numbers = 0;
  for (let i = 0; i < HEAD; i++) if (vector[i] !== 0) numbers++;
  const count = numbers > SPARSE_MAX ? HEAD : numbers;
  const termsAt = TAIL_BYTES + headBytes(count);
  const bytes = new Uint8Array(termsAt + terms.byteLength + COUNT_BYTES + LABEL_BYTES);
  const floats = new Float32Array(bytes.buffer, 0, TAIL + count);
  floats.set(vector.subarray(HEAD));
  if (count === HEAD) {
    floats.set(vector.subarray(0, HEAD), TAIL);
  } else {
    const places = new Uint16Array(bytes.buffer, TAIL_BYTES + count * NUMBER_BYTES, count);
    for (let i = 0, at = 0; at < count; i++) {
      if (vector[i] === 0) continue;
      floats[TAIL + at] = vector[i] as number;
      places[at++] = i;
    }
  }
  new Uint32Array(bytes.buffer, termsAt, terms.length).set(terms);
  new Uint32Array(bytes.buffer, termsAt + terms.byteLength, 1)[0] = count;
  return bytes;
}

/** A stored embedding, its parts where they stand: good as long as the bytes are. */
export interface StoredEmbedding {
  readonly label: number;
  readonly tail: Float32Array;
  /** The numbers of the head that are not zero, or all of them. */
  readonly head: Float32Array;
  /** The place of each number in `head`; undefined when all are there. */
  readonly places: Uint16Array | undefined;
  readonly terms: Uint32Array;
}

export function storedEmbedding(bytes: Uint8Array): StoredEmbedding {
  const { buffer, byteOffset } = bytes;
  const count = countOf(bytes);
  const headAt = byteOffset + TAIL_BYTES;
  return {
    label: storedLabel(bytes),
    tail: new Float32Array(buffer, byteOffset, TAIL),
    head: new Float32Array(buffer, headAt, count),
    places: count === HEAD ? undefined : new Uint16Array(buffer, headAt + count * NUMBER_BYTES, count),
    terms: storedTerms(bytes),
  };
}

/** All of the vector's numbers, in an array of their own. */
export function storedVector(bytes: Uint8Array): Float32Array {
  const { head, places, tail } = storedEmbedding(bytes);
  const vector = new Float32Array(DIMENSION);
  vector.set(tail, HEAD);
  if (places === undefined) vector.set(head);
  else for (let i = 0; i < head.length; i++) vector[places[i] as number] = head[i] as number;
  return vector;
}

export function storedTerms(bytes: Uint8Array): Uint32Array {
  const at = TAIL_BYTES + headBytes(countOf(bytes));
  return new Uint32Array(bytes.buffer, bytes.byteOffset + at, (bytes.byteLength - COUNT_BYTES - LABEL_BYTES - at) / NUMBER_BYTES);
}

/** The last of the terms, which stands for all words in order. Of an embedding without terms any number. */
export function storedFingerprint(bytes: Uint8Array): number {
  return wordAt(bytes, bytes.byteLength - LABEL_BYTES - COUNT_BYTES - NUMBER_BYTES);
}

export function storedLabel(bytes: Uint8Array): number {
  return wordAt(bytes, bytes.byteLength - LABEL_BYTES);
}

/** Whether bytes from the store, which may be damaged, are an embedding. */
export function isEmbedding(bytes: Uint8Array): boolean {
  if (bytes.byteLength % NUMBER_BYTES !== 0 || bytes.byteLength < TAIL_BYTES + COUNT_BYTES + LABEL_BYTES) return false;
  const count = countOf(bytes);
  if (count > HEAD || bytes.byteLength < TAIL_BYTES + headBytes(count) + COUNT_BYTES + LABEL_BYTES) return false;
  const { head, places, tail } = storedEmbedding(bytes);
  const isAscending = places?.every((place, i) => place < HEAD && (i === 0 || place > (places[i - 1] as number))) ?? true;
  return isAscending && head.every(Number.isFinite) && tail.every(Number.isFinite);
}

function headBytes(count: number): number {
  return count === HEAD ? HEAD * NUMBER_BYTES : count * NUMBER_BYTES + 4 * Math.ceil(count / 2);
}

function countOf(bytes: Uint8Array): number {
  return wordAt(bytes, bytes.byteLength - LABEL_BYTES - COUNT_BYTES);
}

function wordAt(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24)) >>> 0
  );
}
