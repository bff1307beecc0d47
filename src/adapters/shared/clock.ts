/**
 * The time, for what frameworks expect their stores to give one, and waits.
 *
 * @module
 */
export class Clock {
  readonly #read: () => number;
  #latest = 0;

  constructor(read: () => number = Date.now) {
    this.#read = read;
  }

  time(): Date {
    return new Date(this.#read());
  }

  /** Returns the time of a change, which is later than that of the previous one. */
  after(previous: Date): Date {
    return new Date(Math.max(this.#read(), previous.getTime() + 1));
  }

  /** Returns a text that sorts behind all that this clock gave before, and differs from those of every other. */
  next(): string {
    this.#latest = Math.max(this.#latest + 1, this.#read() * 1000);
    return `${String(this.#latest).padStart(16, "0")}-${random().toString(36)}`;
  }
}

/** Waits for a time of chance: of several that had to wait for each other one is first then. */
export function pauseUpTo(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, (random() / 2 ** 32) * ms));
}

/** 0 to 2³², that excluded. */
function random(): number {
  const [chance = 0] = crypto.getRandomValues(new Uint32Array(1));
  return chance;
}
