/**
 * Time of an event that is recorded later: `occurred_at` of sessions and turns.
 *
 * @module
 */
import { DAY_MS } from "./duration.ts";
import { ApiError } from "./errors.ts";
import { toIso } from "./time.ts";

/** Clocks of callers may be wrong, and their days end earlier or later. */
const AHEAD_MS_MAX = DAY_MS;

/**
 * @param at - what was sent
 * @param param - its name, for the error
 * @throws {ApiError} `invalid_request` for a time that is more than a day ahead
 */
export function refuseFuture(at: number | undefined, now: number, param: string): void {
  if (at === undefined || at <= now + AHEAD_MS_MAX) return;
  throw new ApiError("invalid_request", `${param} must be at most a day in the future; got ${toIso(at)}, and it is ${toIso(now)}.`, {
    param,
  });
}
