/**
 * Health of the database: it can be reached, as the statements so far have shown.
 *
 * @module
 */
import { ApiError } from "../../../lib/errors.ts";
import type { StoreHealth } from "../../record-store.ts";
import { DatabaseError } from "./database.ts";

const PROBLEMS = {
  outage: "The database does not answer.",
  space: "The database has no space left.",
  standby: "The database takes no changes.",
  outdated: "A newer Cairn has migrated the database, so this server only reads it. Start the newer Cairn in its place.",
} as const;

export class DatabaseHealth implements StoreHealth {
  #problem: keyof typeof PROBLEMS | undefined;

  /** To be called with each failure of a statement, and with undefined after one that has succeeded. */
  note(error: DatabaseError | undefined): void {
    // Only another build ends that.
    if (this.#problem === "outdated") return;
    if (error === undefined) this.#problem = undefined;
    else if (error.isOutdated) this.#problem = "outdated";
    else if (error.isOutOfSpace) this.#problem = "space";
    else if (error.isReadOnly) this.#problem = "standby";
    else if (error.kind === "lost" || error.kind === "unsent") this.#problem = "outage";
  }

  /** A database comes back, or another one takes its place. */
  readonly hasPanicked = false;

  isPanic(): boolean {
    return false;
  }

  problem(): string | undefined {
    return this.#problem === undefined ? undefined : PROBLEMS[this.#problem];
  }

  readFailure(error: unknown): ApiError | undefined {
    if (!(error instanceof DatabaseError)) return undefined;
    return new ApiError("service_unavailable", "The database refuses what was asked of it. Nothing was changed.", { cause: error });
  }

  get hasRoomForLogs(): boolean {
    return this.#problem === undefined;
  }
}
