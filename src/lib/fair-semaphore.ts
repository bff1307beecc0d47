/**
 * A semaphore that is fair between owners: one has its share of the permits at most, and owners that wait are served in
 * turn, so that a long queue of one delays no other.
 *
 * @module
 */

/** One owner's permit, taken once however often it is asked for. */
export interface Permit extends Disposable {
  readonly isTaken: boolean;
  take(): Promise<void>;
}

export class FairSemaphore {
  readonly #max: number;
  readonly #ofOwnerMax: number;
  readonly #onPermit: () => void;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();
  /** Queues of owners, with the owner that was served longest ago first. */
  readonly #waiting = new Map<string, (() => void)[]>();

  /** @param onPermit - called for each permit, before it is taken */
  constructor({ max, ofOwnerMax, onPermit = () => undefined }: { max: number; ofOwnerMax: number; onPermit?: () => void }) {
    this.#onPermit = onPermit;
    this.#max = max;
    this.#ofOwnerMax = ofOwnerMax;
  }

  permitOf(owner: string): Permit {
    this.#onPermit();
    const permit = {
      isTaken: false,
      take: async () => {
        if (permit.isTaken) return;
        if (this.#hasRoom(owner)) this.#count(owner, 1);
        else await this.#turnOf(owner);
        permit.isTaken = true;
      },
      [Symbol.dispose]: () => {
        if (permit.isTaken) this.#release(owner);
        permit.isTaken = false;
      },
    };
    return permit;
  }

  #turnOf(owner: string): Promise<void> {
    return new Promise((resolve) => {
      const queue = this.#waiting.get(owner);
      if (queue === undefined) this.#waiting.set(owner, [resolve]);
      else queue.push(resolve);
    });
  }

  #release(owner: string): void {
    this.#count(owner, -1);
    for (const [next, queue] of this.#waiting) {
      if (!this.#hasRoom(next)) continue;
      const resume = queue.shift();
      this.#waiting.delete(next);
      if (queue.length > 0) this.#waiting.set(next, queue);
      this.#count(next, 1);
      resume?.();
      return;
    }
  }

  #hasRoom(owner: string): boolean {
    return this.#taken < this.#max && (this.#takenBy.get(owner) ?? 0) < this.#ofOwnerMax;
  }

  #count(owner: string, more: 1 | -1): void {
    this.#taken += more;
    const taken = (this.#takenBy.get(owner) ?? 0) + more;
    if (taken === 0) this.#takenBy.delete(owner);
    else this.#takenBy.set(owner, taken);
  }
}
