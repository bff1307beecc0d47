/**
 * Reads of several works at the same time in one statement: it costs hardly more than one of them alone.
 *
 * @module
 */
import type { Database } from "./database.ts";
import { fetchStatement } from "./fetch-statement.ts";
import { Asks, type Found } from "./fetched.ts";

interface Waiting {
  readonly asks: Asks;
  readonly resolve: (found: Found) => void;
  readonly reject: (reason: unknown) => void;
}

const STATEMENTS_MAX = 4;
const WORKS_PER_STATEMENT = 64;

export class FetchQueue {
  readonly #database: Database;
  #waiting: Waiting[] = [];
  #statements = 0;

  constructor(database: Database) {
    this.#database = database;
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
      const { statement, foundIn } = fetchStatement(all);
      const found = foundIn(await this.#database.query(statement));
      for (const { resolve } of works) resolve(found);
    } catch (error) {
      for (const { reject } of works) reject(error);
    }
  }
}
