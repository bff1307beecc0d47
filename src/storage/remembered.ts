/**
 * Rows of a table that were read last, by key.
 *
 * In two generations: when the younger one is full the older is forgotten whole, and a row that is asked for again moves to the
 * younger. Taking out one old row at a time would be dear, since a `Map` goes past all that was taken out to find its first.
 *
 * @module
 */
export class Remembered {
  readonly #most: number;
  #younger = new Map<string, unknown>();
  #older = new Map<string, unknown>();

  /** @param most - so many rows, about */
  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): unknown {
    const row = this.#younger.get(key);
    if (row !== undefined) return row;
    const older = this.#older.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  set(key: string, row: unknown): void {
    if (this.#younger.size >= this.#most / 2) {
      this.#older = this.#younger;
      this.#younger = new Map();
    }
    this.#younger.set(key, row);
  }

  delete(key: string): void {
    this.#younger.delete(key);
    this.#older.delete(key);
  }

  clear(): void {
    this.#younger = new Map();
    this.#older = new Map();
  }
}
