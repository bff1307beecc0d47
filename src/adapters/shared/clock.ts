/**
 * The time, for what frameworks expect their stores to give one.
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
    const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
    return `${String(this.#latest).padStart(16, "0")}-${random.toString(36)}`;
  }
}
