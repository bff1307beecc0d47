/**
 * Work that takes memory while it waits for other work: only some of it at once, fair between those who ask for it.
 *
 * Owners that wait are served in turn, each the oldest of its own first, so that a long queue of one owner delays no other.
 *
 * @module
 */
export class FairSemaphore {
  readonly #max: number;
  readonly #ofOwnerMax: number;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();
  /** The owner that was served longest ago is first. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor({ max, ofOwnerMax }: { max: number; ofOwnerMax: number }) {
    this.#max = max;
    this.#ofOwnerMax = ofOwnerMax;
  }

  permitOf(owner: string): Permit {
    return new Permit(this, owner);
  }

  /** @returns undefined when there was room at once */
  take(owner: string): Promise<void> | undefined {
    if (this.#hasRoom(owner)) {
      this.#count(owner, 1);
      return undefined;
    }
    return new Promise((resolve) => {
      const queue = this.#waiting.get(owner);
      if (queue === undefined) this.#waiting.set(owner, [resolve]);
      else queue.push(resolve);
    });
  }

  release(owner: string): void {
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

/** One owner's leave to go on: taken once however often it is asked for, until it is released. */
export class Permit {
  readonly #semaphore: FairSemaphore;
  readonly #owner: string;
  #isTaken = false;

  constructor(semaphore: FairSemaphore, owner: string) {
    this.#semaphore = semaphore;
    this.#owner = owner;
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  async take(): Promise<void> {
    if (this.#isTaken) return;
    await this.#semaphore.take(this.#owner);
    this.#isTaken = true;
  }

  /** Changes nothing when it was never taken. */
  release(): void {
    if (this.#isTaken) this.#semaphore.release(this.#owner);
    this.#isTaken = false;
  }
}
