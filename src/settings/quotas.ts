/**
 * Limits of the store's size and of the versions of a state: `max_store_bytes` and `state_versions_kept`.
 *
 * A change that makes the store larger asks first, a kept answer too (`http/idempotency.ts`); one that makes it smaller, the
 * administration of keys, webhooks and settings, and all that the server does by itself never ask, so that there is always a way back
 * below the limit.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import type { RecordStore } from "../storage/record-store.ts";
import type { Quotas } from "../traces/record.ts";
import type { SettingValues } from "./schema.ts";

const CHECK_MS = 500;
/** Between two checks at least this much is written, unless the time for one has come: a check reads a page of every table. */
const CHECK_BYTES_MIN = 256 * 1024;

/** Reading alone must not fill a store: logs of it leave this much to changes. */
const LEFT_BY_LOGS_SHARE = 0.1;
/** More than is written between two checks. */
const LEFT_BY_LOGS_MIN_BYTES = 1024 * 1024;

type QuotaValues = Pick<
  SettingValues,
  "max_store_bytes" | "state_versions_kept" | "memory_versions_kept" | "max_body_bytes" | "endless_sessions_for_all"
>;

export class StoreQuotas implements Quotas {
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #values: () => QuotaValues;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #checkAtBytesWritten = 0;
  #bytesUsed = 0;

  constructor(store: RecordStore, clock: Clock, values: () => QuotaValues) {
    this.#store = store;
    this.#clock = clock;
    this.#values = values;
  }

  get versionsKept(): number {
    return this.#values().state_versions_kept;
  }

  get memoryVersionsKept(): number {
    return this.#values().memory_versions_kept;
  }

  get areEndlessSessionsForAll(): boolean {
    return this.#values().endless_sessions_for_all;
  }

  /** As much as a body can bring at once. */
  get stateBytesMax(): number {
    return this.#values().max_body_bytes;
  }

  refuseGrowth(bytes = 0): void {
    const { max_store_bytes: max } = this.#values();
    if (max === null || this.#used(max) + bytes < max) return;
    throw new ApiError(
      "service_unavailable",
      `The store has reached its limit of ${max} bytes (setting max_store_bytes). Nothing was changed; reading and deleting still work.`,
    );
  }

  get hasRoomForLogs(): boolean {
    const { max_store_bytes: max } = this.#values();
    return max === null || this.#used(max) < max - Math.max(LEFT_BY_LOGS_MIN_BYTES, max * LEFT_BY_LOGS_SHARE);
  }

  /** As it was at the last check. The nearer it was to the limit, the less may be written until the next one. */
  #used(max: number): number {
    const now = this.#clock.elapsed();
    if (now - this.#checkedAt >= CHECK_MS || this.#store.bytesWritten >= this.#checkAtBytesWritten) {
      this.#checkedAt = now;
      this.#bytesUsed = this.#store.bytesUsed;
      this.#checkAtBytesWritten = this.#store.bytesWritten + Math.max(CHECK_BYTES_MIN, (max - this.#bytesUsed) / 4);
    }
    return this.#bytesUsed;
  }
}
