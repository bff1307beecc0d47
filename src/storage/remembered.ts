/**
 * What was last read or written, by key: rows of a table, and what goes with them.
 *
 * In two generations: when the younger one is full the older is forgotten whole, and what is asked for again moves to the
 * younger. Taking out one old entry at a time would be dear, since a `Map` goes past all that was taken out to find its first.
 *
 * @module
 */
export class Remembered<Value> {
  readonly #most: number;
  readonly #weigh: (value: Value) => number;
  #weight = 0;
  #younger = new Map<string, Value>();
  #older = new Map<string, Value>();

  /** @param most - about so much, as `weigh` has it: without it, so many */
  constructor(most: number, weigh: (value: Value) => number = () => 1) {
    this.#most = most;
    this.#weigh = weigh;
  }

  get(key: string): Value | undefined {
    const younger = this.#younger.get(key);
    if (younger !== undefined) return younger;
    const older = this.#older.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  set(key: string, value: Value): void {
    if (this.#weight >= this.#most / 2) {
      this.#older = this.#younger;
      this.#younger = new Map();
      this.#weight = 0;
    }
    this.#forgetYounger(key);
    this.#weight += this.#weigh(value);
    this.#younger.set(key, value);
  }

  delete(key: string): void {
    this.#forgetYounger(key);
    this.#older.delete(key);
  }

  clear(): void {
    this.#younger = new Map();
    this.#older = new Map();
    this.#weight = 0;
  }

  #forgetYounger(key: string): void {
    const value = this.#younger.get(key);
    if (value === undefined) return;
    this.#younger.delete(key);
    this.#weight -= this.#weigh(value);
  }
}
