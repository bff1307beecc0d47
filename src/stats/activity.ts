/**
 * Charts of what happened: requests with their latencies, changes, memories and searches, in parts of the last hour, day and week.
 *
 * A request or a commit adds to counts in memory, of the minute that it is in. Once a minute, and at a stop, a task adds these to the rows
 * of the three spans, so that a crash forgets a minute at most, and servers that share a store add to the same rows. There are about 250
 * rows, however long it runs: those that no span shows any more are removed with the same commit. Times are those of the clock: one that is
 * set leaves a gap, or adds to parts of before.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { MINUTE_MS } from "../lib/duration.ts";
import type { Log } from "../lib/log.ts";
import type { Tx } from "../storage/access.ts";
import { BadRows, passingOver } from "../storage/bad-rows.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { ACTIVITY_SPANS, activity, activityKey, type ActivityRow, type ActivitySpan } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { actionOf } from "../traces/events.ts";
import { latencyBin, LATENCY_BINS, quantileMs } from "./latency-bins.ts";
import { HISTORY_SPANS } from "./spans.ts";

const NAME = "activity";
/** Minutes that wait while the store refuses them; the oldest are forgotten. */
const MINUTES_WAITING_MAX = 120;
const ROWS_REMOVED_PER_COMMIT = 100;

/** Counts of one part of the time. */
export interface ActivityPoint extends Omit<ActivityRow, "bins"> {
  /** Unix milliseconds at which it began. */
  at: number;
  /** Milliseconds within which half of the requests were answered, and 99 of a hundred; null where there was none. */
  p50Ms: number | null;
  p99Ms: number | null;
}

interface Counts extends Omit<ActivityRow, "bins"> {
  bins: Uint32Array;
}

const noCounts = (): Counts => ({ requests: 0, errors: 0, changes: 0, memories: 0, searches: 0, bins: new Uint32Array(LATENCY_BINS) });

function addTo(sum: Counts, { bins, ...counts }: Counts | ActivityRow): Counts {
  for (const name of Object.keys(counts) as (keyof typeof counts)[]) sum[name] += counts[name];
  for (const [bin, count] of bins.entries()) if (bin < LATENCY_BINS) sum.bins[bin]! += count;
  return sum;
}

function rowOf({ bins, ...counts }: Counts): ActivityRow {
  return { ...counts, bins: Array.from(bins.subarray(0, bins.findLastIndex((count) => count > 0) + 1)) };
}

/** Counts by the minute in which they began. */
type Minutes = Map<number, Counts>;

export class Activity {
  readonly name = NAME;
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #bad: BadRows;
  /** Since the last writing began, … */
  #pending: Minutes = new Map();
  /** … and what that has yet to write. */
  #writing: Minutes = new Map();

  constructor(store: RecordStore, clock: Clock, log: Log) {
    this.#store = store;
    this.#clock = clock;
    this.#bad = new BadRows(store, log, NAME);
  }

  addRequest(ms: number, status: number): void {
    const counts = this.#current();
    counts.requests++;
    if (status >= 500) counts.errors++;
    counts.bins[latencyBin(ms)]!++;
  }

  /** @param traces - keys of those that a commit has left */
  addChanges(traces: readonly string[]): void {
    if (traces.length === 0) return;
    const counts = this.#current();
    counts.changes += traces.length;
    for (const key of traces) if (actionOf(key) === "memory.created") counts.memories++;
  }

  addSearch(): void {
    this.#current().searches++;
  }

  /** Points of a span, oldest first; the last one is still being counted. Of other servers it lacks the last minute. */
  async of(span: ActivitySpan): Promise<{ bucketSeconds: number; points: ActivityPoint[] }> {
    const { partMs, parts } = ACTIVITY_SPANS[span];
    const last = Math.floor(this.#clock.now() / partMs) * partMs;
    const times = Array.from({ length: parts }, (_, index) => last - (parts - 1 - index) * partMs);
    const sums = new Map(times.map((at) => [activityKey(span, at), noCounts()]));
    const keys = [...sums.keys()];
    const rows = await this.#store.read((reader) => {
      const there = reader.keys(activity, { from: keys[0]!, to: successor(keys.at(-1)!) });
      reader.ahead(activity, there);
      return passingOver((isolate) => {
        const found: [string, ActivityRow][] = [];
        for (const key of there) isolate(key, () => found.push([key, reader.get(activity, key)!]));
        return found;
      });
    });
    const seen = [...this.#writing, ...this.#pending].map(([minute, counts]) => [activityKey(span, minute), counts] as const);
    for (const [key, counts] of [...rows, ...seen]) {
      const sum = sums.get(key);
      if (sum !== undefined) addTo(sum, counts);
    }
    const points = times.map((at) => {
      const { bins, ...counts } = rowOf(sums.get(activityKey(span, at))!);
      return { at, ...counts, p50Ms: quantileMs(bins, 0.5), p99Ms: quantileMs(bins, 0.99) };
    });
    return { bucketSeconds: partMs / 1000, points };
  }

  task(): Task {
    return {
      name: NAME,
      run: async () => {
        await this.writeAll();
        return MINUTE_MS;
      },
    };
  }

  /** Also for a stop, when no request comes any more and the task has ended. */
  async writeAll(): Promise<void> {
    for (const [minute, counts] of this.#pending) this.#writing.set(minute, addTo(this.#writing.get(minute) ?? noCounts(), counts));
    this.#pending = new Map();
    const minutes = [...this.#writing.keys()].toSorted((a, b) => b - a);
    for (const minute of minutes.slice(MINUTES_WAITING_MAX)) this.#writing.delete(minute);
    if (minutes.length === 0) return;
    const added = byRow(this.#writing);
    await this.#bad.commit((tx, isolate) => {
      tx.ahead(activity, added.keys());
      for (const [key, counts] of added) isolate(key, () => putSum(tx, key, counts));
      for (const span of HISTORY_SPANS) removeOld(tx, span);
    });
    this.#writing = new Map();
  }

  #current(): Counts {
    const minute = Math.floor(this.#clock.now() / MINUTE_MS) * MINUTE_MS;
    let counts = this.#pending.get(minute);
    if (counts === undefined) this.#pending.set(minute, (counts = noCounts()));
    return counts;
  }
}

/** Sums of minutes, by the rows of all spans that they belong to. */
function byRow(minutes: Minutes): Map<string, Counts> {
  const sums = new Map<string, Counts>();
  for (const [minute, counts] of minutes) {
    for (const span of HISTORY_SPANS) {
      const key = activityKey(span, minute);
      sums.set(key, addTo(sums.get(key) ?? noCounts(), counts));
    }
  }
  return sums;
}

function putSum(tx: Tx, key: string, counts: Counts): void {
  const row = tx.get(activity, key);
  const sum = addTo(addTo(noCounts(), counts), row ?? noCounts());
  tx.put(activity, key, rowOf(sum));
}

/** Removes the parts before a span begins, and those that a clock that was ahead has left beyond a part from now. */
function removeOld(tx: Tx, span: ActivitySpan): void {
  const { code, partMs, parts } = ACTIVITY_SPANS[span];
  const oldest = activityKey(span, Math.max(0, tx.now - parts * partMs));
  const beyond = successor(activityKey(span, tx.now + partMs));
  for (const { from, to } of [
    { from: code, to: oldest },
    { from: beyond, to: code + MAX_KEY },
  ])
    for (const key of tx.keys(activity, { from, to, limit: ROWS_REMOVED_PER_COMMIT })) tx.remove(activity, key);
}
