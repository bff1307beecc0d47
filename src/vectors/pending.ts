/**
 * The labels whose vectors are not in the graph yet, oldest first. A search compares with each of them, so while many wait
 * their vectors are kept at hand: reading one from the store takes three times as long as comparing it.
 *
 * @module
 */
import { DIMENSION } from "../embeddings/embedder.ts";
import type { BareId } from "../lib/ids.ts";
import { dot, type Nearest } from "./exact.ts";

/** Of so many that wait the vectors are kept: 50 MB. Any more are read every time. */
const KEPT_MAX = 50_000_000 / (DIMENSION * Float32Array.BYTES_PER_ELEMENT);

export class Pending {
  /** What is before `#at` has been taken. */
  #labels: number[] = [];
  #at = 0;
  readonly #vectors = new Map<number, Float32Array>();

  get count(): number {
    return this.#labels.length - this.#at;
  }

  /** The labels that wait. */
  labels(): number[] {
    return this.#labels.slice(this.#at);
  }

  push(label: number): void {
    this.#labels.push(label);
  }

  /** Takes the oldest. */
  shift(): number | undefined {
    const label = this.#labels[this.#at];
    if (label === undefined) return undefined;
    this.#at++;
    this.#vectors.delete(label);
    if (this.count === 0) this.replace([]);
    return label;
  }

  /** Has only these wait. */
  replace(labels: number[]): void {
    this.#labels = labels;
    this.#at = 0;
    this.#vectors.clear();
  }

  /**
   * Shows `nearest` what waits.
   *
   * @param read - the vector of a label, if it still has one; a view that need not last
   * @param passing - the memory of a label, if it counts
   */
  scan(
    query: Float32Array,
    nearest: Nearest,
    { read, passing }: { read: (label: number) => Float32Array | undefined; passing: (label: number) => BareId | undefined },
  ): void {
    for (let i = this.#at; i < this.#labels.length; i++) {
      const label = this.#labels[i] as number;
      let vector = this.#vectors.get(label);
      if (vector === undefined) {
        vector = read(label);
        if (vector === undefined) continue;
        if (this.#vectors.size < KEPT_MAX) this.#vectors.set(label, vector.slice());
      }
      const cosine = dot(query, vector);
      // Most are too far away to be worth a look at whose they are.
      const memory = nearest.accepts(cosine) ? passing(label) : undefined;
      if (memory !== undefined) nearest.offer(memory, cosine);
    }
  }
}
