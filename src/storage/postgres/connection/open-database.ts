/**
 * Opens the store in the database that an operator has named, on the time of that database: for a server or a command.
 *
 * @module
 */
import { systemClock, type Clock } from "../../../lib/clock.ts";
import type { Durability } from "../../durability.ts";
import { StoreError } from "../../store-error.ts";
import { PostgresStore } from "../postgres-store.ts";
import { DatabaseClock } from "./database-clock.ts";
import { openingProblem } from "./opening-problem.ts";

export interface OpenedDatabase {
  readonly store: PostgresStore;
  /** The time of all servers and commands that have it open. */
  readonly clock: DatabaseClock;
}

/**
 * @param url - one in which `databaseUrlProblem` finds nothing wrong
 * @param own - the clock of this machine
 * @param options - `time`: reads the database's time; a test has its own. `asItIs`: refuses one without a store, or with that of an
 *   older Cairn
 * @throws {StoreError} that says why it cannot be opened
 */
export async function openDatabase(
  url: string,
  own: Clock,
  { time, durability, asItIs }: { time?: (() => Promise<number>) | undefined; durability?: Durability | undefined; asItIs?: boolean } = {},
): Promise<OpenedDatabase> {
  const clock = new DatabaseClock(own, time ?? (() => store.time()));
  const store = await PostgresStore.open(url, clock, systemClock, { durability, asItIs: asItIs === true });
  try {
    await clock.measure();
    return { store, clock };
  } catch (error) {
    await store.close();
    throw new StoreError(openingProblem(error, url), { cause: error });
  }
}
