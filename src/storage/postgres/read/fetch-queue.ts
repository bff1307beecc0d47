/**
 * Reads of several callbacks at the same time in one statement: it costs hardly more than one of them alone.
 *
 * @module
 */
import type { AnswerRow, Database } from "../connection/database.ts";
import { Fetch } from "./fetch-statement.ts";
import { ReadSet, type FoundRows } from "./fetched-rows.ts";

interface Waiting {
  readonly readSet: ReadSet;
  readonly lengthMax: number | undefined;
  readonly resolve: (found: FoundRows | undefined) => void;
  readonly reject: (reason: unknown) => void;
}

/** Each text is kept by every connection. */
const TEXTS_MAX = 200;
const STATEMENTS_MAX = 4;
const WORKS_PER_STATEMENT = 64;

export class FetchQueue {
  readonly #database: Database;
  readonly #textsMax: number;
  /** Fetches sent as one statement. */
  readonly #texts = new Set<string>();
  #waiting: Waiting[] = [];
  #statements = 0;

  constructor(database: Database, textsMax = TEXTS_MAX) {
    this.#database = database;
    this.#textsMax = textsMax;
  }

  /** Finds at least what is asked for, all of it from one snapshot that is not before the call. @throws {DatabaseError} */
  find(readSet: ReadSet): Promise<FoundRows> {
    return this.#find(readSet, undefined) as Promise<FoundRows>;
  }

  /** The same; undefined when it is longer than this, in bytes of keys and texts. @throws {DatabaseError} */
  findUpTo(lengthMax: number, readSet: ReadSet): Promise<FoundRows | undefined> {
    return this.#find(readSet, lengthMax);
  }

  #find(readSet: ReadSet, lengthMax: number | undefined): Promise<FoundRows | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ readSet, lengthMax, resolve, reject });
      // Fetches that begin in the same turn share a statement.
      if (this.#waiting.length === 1) queueMicrotask(() => this.#start());
    });
  }

  #start(): void {
    while (this.#statements < STATEMENTS_MAX && this.#waiting.length > 0) {
      this.#statements++;
      void this.#run(this.#waiting.splice(0, this.#together())).finally(() => {
        this.#statements--;
        this.#start();
      });
    }
  }

  /** Number of waiting fetches that the next statement is for: one that may not take long is sent alone. */
  #together(): number {
    const alone = this.#waiting.findIndex(({ lengthMax }) => lengthMax !== undefined);
    return Math.min(WORKS_PER_STATEMENT, alone < 0 ? this.#waiting.length : Math.max(1, alone));
  }

  async #run(waiting: readonly Waiting[]): Promise<void> {
    try {
      const all = new ReadSet();
      for (const { readSet } of waiting) all.add(readSet);
      const fetch = new Fetch(all, waiting[0]?.lengthMax);
      const found = fetch.foundUpToIn(await this.#answersTo(fetch));
      for (const { resolve } of waiting) resolve(found);
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }

  /** From one snapshot, also when it takes several statements. */
  async #answersTo(fetch: Fetch): Promise<readonly AnswerRow[]> {
    const { together } = fetch;
    if (this.#texts.size < this.#textsMax) this.#texts.add(together.text);
    if (this.#texts.has(together.text)) return this.#database.query(together);
    return (await this.#database.transaction(fetch.apart, "snapshot")).flat();
  }
}
