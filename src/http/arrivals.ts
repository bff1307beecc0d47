/**
 * Request bodies, from when they begin to arrive until their request is answered: how much memory they share, and how long
 * each may take to arrive.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { SECOND_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Task } from "../tasks/task.ts";
import { ByteBudget } from "./byte-budget.ts";

const CHECK_MS = SECOND_MS;
const RETRY_AFTER_SECONDS = 1;

export class Arrivals {
  readonly clock: Clock;
  readonly budget = new ByteBudget(LIMITS.arrivingBytesMax);
  /** Bodies that are arriving. */
  readonly open = new Set<Arrival>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** @param owner - whose share of the memory the body takes */
  begin(owner: string): Arrival {
    return new Arrival(owner, this);
  }

  /** Refuses late bodies. There is one timer for all, since one for each would cost more than the rest of a small body. */
  deadlines(): Task {
    return {
      name: "deadlines of request bodies",
      run: () => {
        const now = this.clock.elapsed();
        for (const arrival of this.open) arrival.refuseIfLate(now);
        return Promise.resolve(CHECK_MS);
      },
    };
  }
}

export class Arrival {
  readonly #owner: string;
  readonly #all: Arrivals;
  #bytes = 0;
  #deadline = 0;
  #refuse: (reason: ApiError) => void = () => undefined;

  constructor(owner: string, all: Arrivals) {
    this.#owner = owner;
    this.#all = all;
  }

  /** Takes memory for this many bytes in all. @throws {ApiError} `service_unavailable` when other bodies take it */
  reserve(bytes: number): void {
    const more = bytes - this.#bytes;
    if (!this.#all.budget.hasRoom(this.#owner, more, this.#bytes)) {
      throw new ApiError(
        "service_unavailable",
        "Too many bytes of request bodies are under way, of this API key or of all together. Nothing was changed. Send fewer at once, or try again.",
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
    this.#all.budget.add(this.#owner, more);
    this.#bytes = bytes;
  }

  /** Gives back memory that turned out not to be needed. */
  shrink(bytes: number): void {
    if (bytes >= this.#bytes) return;
    this.#all.budget.add(this.#owner, bytes - this.#bytes);
    this.#bytes = bytes;
  }

  /**
   * Resolves with what `reading` does.
   *
   * @param lengthMax - bytes that the body can have: as many as it declares, or as are allowed
   * @throws {ApiError} `request_timeout` when that takes too long
   */
  inTime<Result>(reading: Promise<Result>, lengthMax: number): Promise<Result> {
    const seconds = Math.max(LIMITS.bodySecondsMax, lengthMax / LIMITS.bodyBytesPerSecondMin);
    this.#deadline = this.#all.clock.elapsed() + seconds * SECOND_MS;
    this.#all.open.add(this);
    return new Promise<Result>((resolve, reject) => {
      this.#refuse = reject;
      reading.then(resolve, reject);
    });
  }

  /** Changes nothing for a body that has arrived. */
  refuseIfLate(now: number): void {
    if (now < this.#deadline) return;
    this.#all.open.delete(this);
    this.#refuse(
      new ApiError(
        "request_timeout",
        `The body took too long to arrive: it has ${LIMITS.bodySecondsMax} s, and a long one as long as ${LIMITS.bodyBytesPerSecondMin / 1024} KiB a second take.`,
        { closesConnection: true },
      ),
    );
  }

  /** Called when the request is over, however it ended. */
  end(): void {
    this.#all.open.delete(this);
    if (this.#bytes > 0) this.#all.budget.add(this.#owner, -this.#bytes);
    this.#bytes = 0;
  }
}
