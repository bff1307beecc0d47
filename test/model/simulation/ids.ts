/**
 * Which ids there were, and what time new records bear.
 *
 * @module
 */
import { expect } from "bun:test";
import type { FakeClock } from "../../support/clock.ts";

export type Prefix = "sess" | "mem" | "turn" | "emb" | "trace" | "key";

export class Ids {
  /** All there ever were. */
  readonly given: Record<Prefix, string[]> = { sess: [], mem: [], turn: [], emb: [], trace: [], key: [] };
  readonly #clock: FakeClock;
  #last = "";
  #lastMs = 0;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  get now(): number {
    return this.#clock.now();
  }

  /** What a new record bears: never before the last one, even when the clock was set back. */
  get moment(): number {
    return Math.max(this.#lastMs, this.now);
  }

  /** An id was made now, of which nothing is seen. */
  made(): void {
    this.#lastMs = this.moment;
  }

  /** The id that the server gave a new record, which has to be greater than all before. Where it gave none, the answers differ anyway. */
  take(prefix: Prefix, id: string | undefined): string {
    if (id === undefined) return "an id";
    expect(id).toMatch(new RegExp(`^${prefix}_[0-9A-Za-z]{12}$`));
    const bare = id.slice(prefix.length + 1);
    expect([bare, bare > this.#last]).toEqual([bare, true]);
    this.#last = bare;
    this.made();
    this.given[prefix].push(id);
    return id;
  }

  /** A process goes on after the newest of the records that it finds. @param createdAt - when each was made */
  restarted(createdAt: readonly string[]): void {
    this.#lastMs = Math.max(...createdAt.map((one) => Date.parse(one)));
  }
}
