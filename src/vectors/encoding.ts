/**
 * How a memory's embedding is laid out in the store: the vector as little-endian float32, the terms as uint32, and as
 * uint32 the label, which `putVector` gives.
 *
 * @module
 */
import { DIMENSION, type Embedding } from "../embeddings/embedder.ts";
import { LABEL_BYTES } from "../storage/memory-records.ts";

export const VECTOR_BYTES = DIMENSION * Float32Array.BYTES_PER_ELEMENT;

export function encodeVector({ vector, terms }: Embedding): Uint8Array {
  const bytes = new Uint8Array(VECTOR_BYTES + terms.byteLength + LABEL_BYTES);
  new Float32Array(bytes.buffer, 0, DIMENSION).set(vector);
  new Uint32Array(bytes.buffer, VECTOR_BYTES, terms.length).set(terms);
  return bytes;
}

/** A view of the stored bytes, good as long as they are. */
export function storedVector(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.buffer, bytes.byteOffset, DIMENSION);
}

export function storedTerms(bytes: Uint8Array): Uint32Array {
  const termsBytes = bytes.byteLength - VECTOR_BYTES - LABEL_BYTES;
  return new Uint32Array(bytes.buffer, bytes.byteOffset + VECTOR_BYTES, termsBytes / Uint32Array.BYTES_PER_ELEMENT);
}

export function storedLabel(bytes: Uint8Array): number {
  return new Uint32Array(bytes.buffer, bytes.byteOffset + bytes.byteLength - LABEL_BYTES, 1)[0] as number;
}
