/**
 * Token buckets that several servers share: a row each, and one statement that takes tokens from it.
 *
 * Requests that come while a statement of their bucket is under way share the next one. A small bucket gives exactly as many tokens as
 * are asked for. From a large one a server that is asked often takes some on stock, at most a hundredth of the bucket, so that a
 * statement serves many requests; what is on stock for longer than a minute is dropped. A bucket without a row is full, so a task removes
 * the rows of those that are full again.
 *
 * @module
 */
import { levelOf, PARTS_PER_TOKEN, type Level, type Rate } from "../../lib/bucket.ts";
import type { Clock } from "../../lib/clock.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/duration.ts";
import type { Task } from "../../tasks/task.ts";
import type { AnswerRow, Statement } from "./connection/database.ts";

/** The largest burst that is counted exactly. */
const EXACT_BURST_MAX = 5_000;
const STOCK_SHARE = 0.01;
/** From this many buckets on, those that are not in use are forgotten: they are in the database. */
const BUCKETS_MAX = 10_000;
const ROWS_LOOKED_AT = 1_000;
const REMOVAL_PAUSE_MS = 60_000;

interface Taking {
  readonly rate: Rate;
  readonly resolve: (level: Level) => void;
  readonly reject: (reason: unknown) => void;
}

interface Bucket {
  waiting: Taking[];
  isUnderWay: boolean;
  /** Tokens on stock, since when, and what the bucket held besides. */
  stock: number;
  stockedAt: number;
  parts: number;
  /** Requests of this second, and of the one before. */
  second: number;
  requests: number;
  requestsBefore: number;
}

export class SharedBuckets {
  readonly #query: (statement: Statement) => Promise<readonly AnswerRow[]>;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(query: (statement: Statement) => Promise<readonly AnswerRow[]>, clock: Clock) {
    this.#query = query;
    this.#clock = clock;
  }

  /** Takes a token from the bucket of a key, which is the owner's. */
  takeOfKey(owner: string, rate: Rate): Promise<Level> {
    const bucket = this.#bucketOf(owner);
    this.#count(bucket);
    if (bucket.stock > 0 && bucket.waiting.length === 0 && this.#isFresh(bucket)) {
      bucket.stock--;
      return Promise.resolve(levelOf(true, bucket.parts + bucket.stock * PARTS_PER_TOKEN, rate));
    }
    return new Promise((resolve, reject) => {
      bucket.waiting.push({ rate, resolve, reject });
      if (!bucket.isUnderWay) void this.#serve(owner, bucket);
    });
  }

  /** Removes the rows of buckets that have been full for a while, some of them a run. */
  removal(): Task {
    let after = "";
    return {
      name: "shared buckets",
      run: async () => {
        const [looked] = await this.#query({ text: REMOVAL, values: [after, ROWS_LOOKED_AT, this.#clock.now() - AHEAD_MS_MAX] });
        after = Number(looked?.["count"]) < ROWS_LOOKED_AT ? "" : String(looked?.["last"]);
        return after === "" ? REMOVAL_PAUSE_MS : 0;
      },
    };
  }

  #bucketOf(owner: string): Bucket {
    let bucket = this.#buckets.get(owner);
    if (bucket === undefined) {
      if (this.#buckets.size >= BUCKETS_MAX)
        for (const [other, { isUnderWay }] of this.#buckets) if (!isUnderWay) this.#buckets.delete(other);
      bucket = { waiting: [], isUnderWay: false, stock: 0, stockedAt: 0, parts: 0, second: 0, requests: 0, requestsBefore: 0 };
      this.#buckets.set(owner, bucket);
    }
    return bucket;
  }

  #count(bucket: Bucket): void {
    const second = Math.floor(this.#clock.elapsed() / SECOND_MS);
    if (second !== bucket.second) {
      bucket.requestsBefore = second === bucket.second + 1 ? bucket.requests : 0;
      bucket.requests = 0;
      bucket.second = second;
    }
    bucket.requests++;
  }

  #isFresh({ stockedAt }: Bucket): boolean {
    return this.#clock.elapsed() - stockedAt < MINUTE_MS;
  }

  async #serve(owner: string, bucket: Bucket): Promise<void> {
    bucket.isUnderWay = true;
    while (bucket.waiting.length > 0) {
      const served = bucket.waiting;
      bucket.waiting = [];
      try {
        await this.#give(owner, bucket, served);
      } catch (error) {
        for (const { reject } of served) reject(error);
      }
    }
    bucket.isUnderWay = false;
  }

  /** In the order in which they came; those for which nothing is left get none. */
  async #give(owner: string, bucket: Bucket, served: readonly Taking[]): Promise<void> {
    // All requests of a key have its present rate, but for the moment in which it changes.
    const { rate } = served.at(-1)!;
    const stock = rate.burst <= EXACT_BURST_MAX ? 0 : Math.floor(Math.min(rate.burst * STOCK_SHARE, bucket.requestsBefore));
    const left = this.#isFresh(bucket) ? bucket.stock : 0;
    bucket.stock = 0;
    const { given, parts } = await this.#takeFrom(owner, rate, Math.max(0, served.length + stock - left));
    const tokens = left + given;
    for (const [i, taking] of served.entries()) {
      taking.resolve(levelOf(i < tokens, parts + Math.max(0, tokens - i - 1) * PARTS_PER_TOKEN, taking.rate));
    }
    Object.assign(bucket, { stock: Math.max(0, tokens - served.length), stockedAt: this.#clock.elapsed(), parts });
  }

  /** @returns how many tokens it gave, and the parts of tokens that are left */
  async #takeFrom(owner: string, { perMinute, burst }: Rate, count: number): Promise<{ given: number; parts: number }> {
    const full = burst * PARTS_PER_TOKEN;
    const values = [owner, full, perMinute, this.#clock.now(), count];
    for (;;) {
      const [row] = await this.#query({ text: TAKING, values });
      if (row !== undefined) return { given: Number(row["given"]), parts: Number(row["parts"]) };
      const text =
        "insert into cairn.buckets (key, parts, at, given, full_at) values ($1, $2::float8, $3::int8, 0, $3::int8) on conflict do nothing";
      await this.#query({ text, values: [owner, full, this.#clock.now()] });
    }
  }
}

/** A time that is further ahead than servers are of each other is that of a clock which was set back since: it counts from now on. */
const AHEAD_MS_MAX = 60_000;
const SINCE = `case when b.at > $4::int8 + ${AHEAD_MS_MAX} then $4::int8 else b.at end`;
/** Present content of the bucket; of several statements at the same time each sees what the one before has left. */
const AT = `greatest(${SINCE}, $4::int8)`;
const HELD = `least($2::float8, b.parts + greatest(0, $4::int8 - (${SINCE})) * $3::float8)`;
const GIVEN = `least($5::float8, floor(${HELD} / ${PARTS_PER_TOKEN}))`;
const TAKING =
  `update cairn.buckets as b set parts = ${HELD} - ${GIVEN} * ${PARTS_PER_TOKEN}, at = ${AT}, given = ${GIVEN},` +
  ` full_at = ${AT} + ceil(($2::float8 - (${HELD} - ${GIVEN} * ${PARTS_PER_TOKEN})) / $3::float8)::int8` +
  " where b.key = $1 returning parts, given";
/** One that is being taken from is left for the next time. */
const REMOVAL =
  "with looked as materialized (select key from cairn.buckets where key > $1 order by key limit $2::int8)," +
  " spare as (select b.key from cairn.buckets as b join looked on looked.key = b.key where b.full_at <= $3::int8 order by b.key for update of b skip locked)," +
  " removed as (delete from cairn.buckets where key in (select key from spare))" +
  " select count(*)::int4 as count, max(key) as last from looked";
