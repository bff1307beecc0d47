/**
 * Health of the store's disk: it takes changes and can be read, as the transactions and reads so far have shown.
 *
 * After a panic LMDB settles no transaction that is under way: they are rejected here.
 *
 * @module
 */
import type { Clock } from "../../../lib/clock.ts";
import { ApiError } from "../../../lib/errors.ts";
import { diskReason, hasFreeSpace, hasSpaceToSpare, isOfLmdb, isPanic, unavailable } from "./disk-errors.ts";

const FREE_SPACE_CHECK_MS = 500;
const NEARLY_FULL = "The disk is nearly full (less than 64 MiB free).";
/** A commit that takes longer holds up all others: readiness fails. */
const STALLED_COMMIT_SECONDS = 5;
const PANIC = "The disk has failed; nothing can be read or written until Cairn is started again.";

export class DiskHealth {
  readonly #directory: string;
  readonly #clock: Clock;
  /** Reads what every store has, as it is now. */
  readonly #read: () => void;
  #spaceCheckedAt = Number.NEGATIVE_INFINITY;
  #hasRoom = true;
  /** Reason why the last commit failed; undefined once one has succeeded that wrote anything. */
  #writeProblem: string | undefined;
  /** Transactions under way, oldest first. */
  readonly #inFlight = new Set<{ startedAt: number; reject: (reason: unknown) => void }>();
  #panic: ApiError | undefined;
  readonly #panicked = Promise.withResolvers<void>();

  constructor(directory: string, clock: Clock, read: () => void) {
    this.#directory = directory;
    this.#clock = clock;
    this.#read = read;
  }

  /** Checks whether LMDB can do nothing more in this process: it has to end. */
  get hasPanicked(): boolean {
    return this.#panic !== undefined;
  }

  isPanic(error: unknown): boolean {
    return isPanic(error);
  }

  /** Resolves when it has. */
  get panicked(): Promise<void> {
    return this.#panicked.promise;
  }

  /** Reason why reads or commits fail at present, as far as that is known; a full disk is looked for. */
  problem(): string | undefined {
    if (this.#panic !== undefined) return PANIC;
    try {
      this.#read();
    } catch (error) {
      const failure = this.readFailure(error);
      return this.hasPanicked ? PANIC : (failure ?? (error as Error)).message;
    }
    const [oldest] = this.#inFlight;
    const seconds = oldest === undefined ? 0 : Math.floor((this.#clock.elapsed() - oldest.startedAt) / 1000);
    if (seconds >= STALLED_COMMIT_SECONDS) return `A change has been waiting for the disk for ${seconds} s.`;
    return this.#isNearlyFull() ? NEARLY_FULL : this.#writeProblem;
  }

  /** The answer when LMDB threw this from a read; undefined when it did not. */
  readFailure(error: unknown): ApiError | undefined {
    if (!isOfLmdb(error)) return undefined;
    this.#panicIf(error);
    return this.#panic ?? new ApiError("service_unavailable", "The store cannot be read.", { cause: error });
  }

  /** @throws {ApiError} `service_unavailable` when a commit would fail for certain */
  assertTakesChanges(): void {
    if (this.#panic !== undefined) throw this.#panic;
    if (this.#isNearlyFull()) throw unavailable(NEARLY_FULL);
  }

  /** Checks whether logs may be written: they stop before the space of changes begins. */
  get hasRoomForLogs(): boolean {
    return this.#panic === undefined && hasSpaceToSpare(this.#directory);
  }

  /**
   * Runs a transaction of LMDB and learns from how it ends.
   *
   * @param transaction - resolves to whether it has written anything: the disk was not asked for one that has not
   * @param isVisibleEarly - whether others see the transaction before its flush, so that one that fails may have been made
   * @throws {ApiError} when the disk refuses it; it says whether nothing was written, or that this is not known
   */
  async watch(transaction: () => Promise<boolean>, isVisibleEarly: boolean): Promise<void> {
    try {
      if (await this.#untilPanic(transaction())) this.#writeProblem = undefined;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      // The reason arrives in a promise of its own, which would end the process if nobody listened.
      const cause: unknown = await Promise.resolve((error as { commitError?: unknown }).commitError).then(
        () => error,
        (reason: unknown) => reason,
      );
      this.#spaceCheckedAt = Number.NEGATIVE_INFINITY;
      const reason = diskReason(cause, this.#directory);
      if (isOfLmdb(cause)) {
        this.#writeProblem = reason;
        this.#lookForPanic();
      }
      if (this.hasPanicked) throw outcomeUnknown(PANIC, cause);
      throw isVisibleEarly ? outcomeUnknown(`${reason} Reading still works.`, cause) : unavailable(reason, cause);
    }
  }

  #untilPanic<Result>(promise: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const transaction = { startedAt: this.#clock.elapsed(), reject };
      this.#inFlight.add(transaction);
      void promise.then(resolve, reject).finally(() => this.#inFlight.delete(transaction));
    });
  }

  /** Only a read tells that LMDB has panicked. */
  #lookForPanic(): void {
    try {
      this.#read();
    } catch (error) {
      this.#panicIf(error);
    }
  }

  #panicIf(error: unknown): void {
    if (this.#panic !== undefined || !isPanic(error)) return;
    this.#panic = new ApiError("service_unavailable", `${PANIC} Nothing was changed.`, { cause: error });
    for (const { reject } of this.#inFlight) reject(outcomeUnknown(PANIC, error));
    this.#panicked.resolve();
  }

  #isNearlyFull(): boolean {
    const now = this.#clock.elapsed();
    if (now - this.#spaceCheckedAt >= FREE_SPACE_CHECK_MS) {
      this.#spaceCheckedAt = now;
      this.#hasRoom = hasFreeSpace(this.#directory);
    }
    return !this.#hasRoom;
  }
}

/** The answer to a change whose commit failed too late to say that nothing of it is there. */
function outcomeUnknown(reason: string, cause: unknown): ApiError {
  const advice = "It is not known whether the change was kept: send it again with the same Idempotency-Key.";
  return new ApiError("service_unavailable", `${reason} ${advice}`, { cause });
}
