/**
 * Memory that callers share: request bodies that are being handled, answers that are being sent.
 *
 * An owner (an API key) may hold at most as much as it leaves to all others (the dynamic threshold of shared buffers in
 * switches): one alone gets half of the budget, the next one half of the rest, and however many hold what they can, there is
 * room for one that holds nothing. A reservation is never refused while it is the only one, so that the largest body that
 * the settings allow can be sent.
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

  /** Whether an owner can reserve more bytes; `held` are those of the reservation that would grow. */
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
