/**
 * The clock of a start, held against the newest record.
 *
 * @module
 */
import { boundedTime, type Clock } from "../lib/clock.ts";
import { DAY_MS } from "../lib/duration.ts";
import { bareIdTime } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { toIso } from "../lib/time.ts";
import { newestId } from "../storage/newest-id.ts";
import type { RecordStore } from "../storage/record-store.ts";

/** Warns of a clock that is wrong, or was when records were made: their times stay. */
export async function warnOfClock(store: RecordStore, given: Clock, log: Log): Promise<void> {
  // One look: a second one can be a millisecond later.
  const shown = given.now();
  const now = boundedTime(shown);
  if (shown !== now)
    log.warn("the system's clock shows a time outside of 1970 to 2073: the nearest one is used", { clock: toIso(shown), used: toIso(now) });
  const newest = await store.read(newestId);
  if (newest === undefined || bareIdTime(newest) - now <= DAY_MS) return;
  log.warn(
    "the newest record is more than a day ahead of the clock: the clock was wrong then, or is now. Records made ahead of it keep their times, and expire by them",
    { newest: toIso(bareIdTime(newest)), clock: toIso(now) },
  );
}
