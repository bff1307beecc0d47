/**
 * How a memory's embedding is laid out in the store: the vector as little-endian float32, then the terms as uint32.
 *
 * @module
 */
import { DIMENSION, type Embedding } from "../embeddings/embedder.ts";

const VECTOR_BYTES = DIMENSION * Float32Array.BYTES_PER_ELEMENT;

export function encodeVector({ vector, terms }: Embedding): Uint8Array {
  const bytes = new Uint8Array(VECTOR_BYTES + terms.byteLength);
  new Float32Array(bytes.buffer, 0, DIMENSION).set(vector);
  new Uint32Array(bytes.buffer, VECTOR_BYTES).set(terms);
  return bytes;
}

/** A view of the stored bytes, good as long as they are. */
export function storedVector(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.buffer, bytes.byteOffset, DIMENSION);
}

export function storedTerms(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset + VECTOR_BYTES, (bytes.byteLength - VECTOR_BYTES) / Uint32Array.BYTES_PER_ELEMENT);
}
