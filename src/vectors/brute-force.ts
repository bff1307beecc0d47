/**
 * The exact answer: compare the query with each vector in the store. For small sets it is faster than any index, and every
 * index is measured against it.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { generationOf, vectorOf } from "../storage/memory-records.ts";
import type { Reader } from "../storage/access.ts";
import { storedFingerprint, storedGeneration, storedNumbers, UNIT } from "./encoding.ts";
import { byNearness, type Neighbour, type Query, TopK } from "./top-k.ts";

/** The cosine of a query and a stored vector. The sum is one of integers, so its order does not matter. */
export function dotStored(query: Int16Array, bytes: Uint8Array): number {
  const { numbers, place, pairs } = storedNumbers(bytes);
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum = (sum + Math.imul(query[place + i]!, numbers[i]!)) | 0;
  for (let i = 0; i < pairs.length; i++) sum = (sum + Math.imul(query[pairs[i]! & 0xffff]!, pairs[i]! >> 16)) | 0;
  return sum / (UNIT * UNIT);
}

/**
 * Compares memories one by one: keeps the `limit` nearest, and with them as many of those whose words are the query's, however
 * far. A memory without a vector, or with one of another provider, is passed over.
 */
export class Scan {
  readonly #reader: Reader;
  readonly #query: Query;
  readonly #generation: number;
  readonly #nearest: TopK<Neighbour>;
  readonly #same: TopK<Neighbour>;

  constructor(reader: Reader, query: Query) {
    this.#reader = reader;
    this.#query = query;
    this.#generation = generationOf(reader);
    this.#nearest = new TopK(query.limit, byNearness);
    this.#same = new TopK(query.limit, byNearness);
  }

  /** Must not be called twice for a memory. @param known - id of a vector it has or had, which spares reading its row */
  compare(memory: BareId, known?: BareId): void {
    const { vector, fingerprint } = this.#query;
    const knownBytes = known === undefined ? undefined : this.#reader.vectorBytes(known);
    const found = known !== undefined && knownBytes !== undefined ? { id: known, bytes: knownBytes } : vectorOf(this.#reader, memory);
    if (found === undefined || storedGeneration(found.bytes) !== this.#generation) return;
    const { id, bytes } = found;
    const cosine = dotStored(vector, bytes);
    if (this.#nearest.accepts(cosine)) this.#nearest.offer({ memory, id, cosine });
    if (fingerprint !== 0 && storedFingerprint(bytes) === fingerprint) this.#same.offer({ memory, id, cosine });
  }

  found(): Neighbour[] {
    return unique([...this.#nearest.best(), ...this.#same.best()]);
  }
}

/** The first hit of each memory. */
export function unique(neighbours: readonly Neighbour[]): Neighbour[] {
  const known = new Set<BareId>();
  return neighbours.filter(({ memory }) => !known.has(memory) && known.add(memory));
}
