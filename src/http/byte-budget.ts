/**
 * Memory that callers share: request bodies that are being handled, answers that are being sent.
 *
 * An owner (an API key) may hold at most as much as is free (the dynamic threshold of shared buffers in switches): the first
 * gets half of the budget, the next half of the rest, and there is always space for one that holds nothing. The only
 * reservation is never refused, so that the largest body that the settings allow can be sent.
 *
 * @module
 */
export class ByteBudget {
  readonly #bytesMax: number;
  readonly #byOwner = new Map<string, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  isHolding(owner: string): boolean {
    return this.#byOwner.has(owner);
  }

  /** Checks whether an owner can reserve more bytes. @param held - bytes of the reservation that would grow */
  hasRoom(owner: string, bytes: number, held = 0): boolean {
    return this.#bytes === held || (this.#byOwner.get(owner) ?? 0) + bytes <= this.#bytesMax - this.#bytes - bytes;
  }

  /** Adds to what an owner holds, or with a negative number takes from it. */
  add(owner: string, bytes: number): void {
    this.#bytes += bytes;
    const held = (this.#byOwner.get(owner) ?? 0) + bytes;
    if (held === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, held);
  }
}
