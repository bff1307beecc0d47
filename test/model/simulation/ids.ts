/**
 * Which ids there were.
 *
 * @module
 */
import { expect } from "bun:test";
import type { Clock } from "../../../src/lib/clock.ts";

export type Prefix = "sess" | "mem" | "turn" | "emb" | "trace" | "key";

export class Ids {
  /** All there ever were. */
  readonly given: Record<Prefix, string[]> = { sess: [], mem: [], turn: [], emb: [], trace: [], key: [] };
  readonly #clock: Pick<Clock, "now">;
  #last = "";

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  get now(): number {
    return this.#clock.now();
  }

  /** The id that the server gave a new record, which has to be greater than all before. Where it gave none, the answers differ anyway. */
  take(prefix: Prefix, id: string | undefined): string {
    if (id === undefined) return "an id";
    expect(id).toMatch(new RegExp(`^${prefix}_[0-9A-Za-z]{12}$`));
    const bare = id.slice(prefix.length + 1);
    expect([bare, bare > this.#last]).toEqual([bare, true]);
    this.#last = bare;
    this.given[prefix].push(id);
    return id;
  }
}
