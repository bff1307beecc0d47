/**
 * Conduct of a server while it has no connection to its database, and before it answers what it has read on a new one.
 *
 * A primary that came back shows what no standby has, until it has committed something more: so after a connection was lost or opened
 * a row is committed before anything is answered that was only read.
 *
 * @module
 */
import type { Clock } from "../../../lib/clock.ts";
import { ApiError } from "../../../lib/errors.ts";
import type { DatabaseHealth } from "./database-health.ts";
import { DatabaseError } from "./database.ts";

/** A database that fails over is back by then. */
const OUTAGE_MS_MAX = 20_000;
const OUTAGE_PAUSE_MS = 100;

export class Outages {
  readonly #clock: Clock;
  readonly #health: DatabaseHealth;
  readonly #commitRow: () => Promise<unknown>;
  /** Number of connections opened or lost, … */
  #changes = 1;
  /** … and how often that was when the last barrier began. */
  #changesPassed = 0;
  #barrierUnderWay: Promise<void> | undefined;
  /** Since when there is no connection. */
  #lostAt: number | undefined;

  /** @param commitRow - commits something, whatever it is */
  constructor(clock: Clock, health: DatabaseHealth, commitRow: () => Promise<unknown>) {
    this.#clock = clock;
    this.#health = health;
    this.#commitRow = commitRow;
  }

  /** To be called when a connection was opened or lost. */
  note(): void {
    this.#changes++;
  }

  get changes(): number {
    return this.#changes;
  }

  /**
   * Checks whether no connection was opened or lost since there were that many changes of them, and the barrier was passed after the last.
   */
  isPassed(changes: number): boolean {
    return this.#changesPassed === changes && this.#changes === changes;
  }

  /** To be passed before what was only read is answered, by the server that has read it. */
  async barrier(): Promise<void> {
    while (this.#changesPassed !== this.#changes) {
      this.#barrierUnderWay ??= this.#passBarrier().finally(() => (this.#barrierUnderWay = undefined));
      await this.#barrierUnderWay;
    }
  }

  async #passBarrier(): Promise<void> {
    const changes = this.#changes;
    await this.again(this.#commitRow);
    this.#changesPassed = changes;
    this.#lostAt = undefined;
  }

  /**
   * Does what changes nothing, or what a caller knows not to have been done, again while there is no connection.
   *
   * @param waits - from when on it waits for as long as a database takes to fail over: from the beginning of the outage, or from now on
   */
  async again<Result>(
    callback: () => Promise<Result>,
    waits: "from the outage on" | "from now on" = "from the outage on",
  ): Promise<Result> {
    const startedAt = this.#clock.elapsed();
    for (let tries = 1; ; tries++) {
      try {
        const result = await callback();
        // A standby answers, too, whatever only reads.
        if (this.#changesPassed === this.#changes) {
          this.#health.note(undefined);
          this.#lostAt = undefined;
        }
        return result;
      } catch (error) {
        if (!(error instanceof DatabaseError)) throw error;
        this.#health.note(error);
        if (error.isOutOfSpace) throw unavailable("The database has no space left.", error);
        if (error.isOutdated) throw unavailable(this.#health.problem() ?? "", error);
        if (error.kind !== "lost" && error.kind !== "unsent") throw error;
        this.#lostAt ??= this.#clock.elapsed();
        // The first try may only have found that the connections lead nowhere.
        if (tries > 1 && this.#clock.elapsed() - (waits === "from now on" ? startedAt : this.#lostAt) >= OUTAGE_MS_MAX)
          throw unavailable(error.isReadOnly ? "The database takes no changes." : "The database does not answer.", error);
        await this.#clock.sleep(OUTAGE_PAUSE_MS);
      }
    }
  }
}

function unavailable(reason: string, cause: DatabaseError): ApiError {
  return new ApiError("service_unavailable", `${reason} Nothing was changed.`, { cause });
}
