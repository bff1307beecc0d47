/**
 * Reads of several works at the same time in one statement: it costs hardly more than one of them alone.
 *
 * @module
 */
import type { AnswerRow, Database } from "./database.ts";
import { Fetch } from "./fetch-statement.ts";
import { Asks, type Found } from "./fetched.ts";

interface Waiting {
  readonly asks: Asks;
  readonly resolve: (found: Found) => void;
  readonly reject: (reason: unknown) => void;
}

/** Each text is kept by every connection. */
const TEXTS_MAX = 200;
const STATEMENTS_MAX = 4;
const WORKS_PER_STATEMENT = 64;

export class FetchQueue {
  readonly #database: Database;
  readonly #textsMax: number;
  /** Those that were sent as one statement. */
  readonly #texts = new Set<string>();
  #waiting: Waiting[] = [];
  #statements = 0;

  constructor(database: Database, textsMax = TEXTS_MAX) {
    this.#database = database;
    this.#textsMax = textsMax;
  }

  /** Finds at least what is asked for, all of it at one moment that is not before the call. @throws {DatabaseError} */
  find(asks: Asks): Promise<Found> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asks, resolve, reject });
      // Those that begin in the same turn share a statement.
      if (this.#waiting.length === 1) queueMicrotask(() => this.#start());
    });
  }

  #start(): void {
    while (this.#statements < STATEMENTS_MAX && this.#waiting.length > 0) {
      this.#statements++;
      void this.#run(this.#waiting.splice(0, WORKS_PER_STATEMENT)).finally(() => {
        this.#statements--;
        this.#start();
      });
    }
  }

  async #run(works: readonly Waiting[]): Promise<void> {
    try {
      const all = new Asks();
      for (const { asks } of works) all.add(asks);
      const fetch = new Fetch(all);
      const found = fetch.foundIn(await this.#answersTo(fetch));
      for (const { resolve } of works) resolve(found);
    } catch (error) {
      for (const { reject } of works) reject(error);
    }
  }

  /** At one moment, also when it takes several statements. */
  async #answersTo(fetch: Fetch): Promise<readonly AnswerRow[]> {
    const { together } = fetch;
    if (this.#texts.size < this.#textsMax) this.#texts.add(together.text);
    if (this.#texts.has(together.text)) return this.#database.query(together);
    return (await this.#database.transaction(fetch.apart, "snapshot")).flat();
  }
}
