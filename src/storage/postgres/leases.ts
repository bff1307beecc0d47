/**
 * Leases as rows of the database.
 *
 * ```
 * cairn.leases (key, row, rev, until)      name, its holder, which of its terms, and when it ends
 * ```
 * A commit under a lease reads its row like any other, so the transaction checks its revision, which only changes with the holder, and
 * keeps the row from being taken over until it has ended. Renewing changes nothing but the end. A server takes a lease over when the
 * time is past its end, and makes no change that is later than the end of its own: so the next holder gives later ids.
 *
 * @module
 */
import { chance } from "../../lib/chance.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Task } from "../../tasks/task.ts";
import { LeaseLost, type Lease, type Leases } from "../leases.ts";
import { DatabaseError, type Database, type Statement } from "./connection/database.ts";
import { LEASES } from "./schema.ts";

/** Duration of a lease: with the time until somebody looks it is 15 s at most from the end of a holder to the beginning of the next. */
const LEASE_MS = 14_000;
const RENEWAL_MS = 5_000;
/** Interval at which a server tries to acquire a lease that another holds, and at which a holder polls for work of other servers. */
const LOOK_MS = 1_000;
/** The holder stops that much before the end: the clocks of two servers are hardly further apart. */
const MARGIN_MS = 2_000;

interface HeldLease extends Lease {
  /** Content of its row, as long as nobody else has taken it. */
  readonly term: string;
  /** Times at which this server stops, on the monotonic clock, and at which others may begin. */
  readonly end: { elapsed: number; time: number };
  lose(): void;
}

export interface LeaseOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** 14 seconds unless given. */
  readonly leaseMs?: number | undefined;
  /** The time of the next change, which can be a little later than that of the clock. */
  readonly timeOfChanges: () => number;
  /** Called with a lease that was got, so that commits need not fetch its row. */
  readonly onTaken: (name: string, term: string, rev: number) => void;
}

export class PostgresLeases implements Leases {
  readonly lookMs = LOOK_MS;
  /** Renews what this server holds and takes what nobody does. */
  readonly task: Task;
  /** Content of the rows that this server holds. */
  readonly #holder: string;
  readonly #tokens = new Set<string>();
  readonly #options: LeaseOptions;
  readonly #held = new Map<string, HeldLease>();
  /** Number of the names that have rows. */
  #rowsThere = 0;
  #hasFailed = false;
  #isReleased = false;

  constructor(holder: string, options: LeaseOptions) {
    this.#holder = holder;
    this.#options = options;
    this.task = { name: "leases", run: () => this.#run() };
  }

  join(name: string): void {
    this.#tokens.add(name);
  }

  find(name: string): Lease | undefined {
    const lease = this.#held.get(name);
    return lease === undefined || lease.signal.aborted ? undefined : lease;
  }

  /** The names of the leases that this server holds. */
  get held(): string[] {
    return Array.from(this.#tokens).filter((name) => this.find(name) !== undefined);
  }

  /** Leases that this server holds: 1 or 0, by name. */
  get states(): Record<string, number> {
    return Object.fromEntries(Array.from(this.#tokens, (name) => [name, this.find(name) === undefined ? 0 : 1]));
  }

  /** Gives back every lease, so that others can have them at once, and takes none any more. Without the database they end by themselves. */
  async release(): Promise<void> {
    this.#isReleased = true;
    const terms = Array.from(this.#held.values(), ({ term }) => term);
    for (const lease of this.#held.values()) lease.lose();
    this.#held.clear();
    // The next holder begins after the last change of this one.
    const text = "update cairn.leases set until = least(until, $1::int8) where row = any($2::text[])";
    try {
      await this.#options.database.query({ text, values: [this.#options.timeOfChanges() + 1, terms] });
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      this.#options.log.warn("could not release leases", { error: messageOf(error) });
    }
  }

  async #run(): Promise<number> {
    if (this.#isReleased) return RENEWAL_MS;
    try {
      const nextMs = await this.#renewAndTake();
      this.#hasFailed = false;
      return nextMs;
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      if (!this.#hasFailed) this.#options.log.warn("could not renew leases", { error: messageOf(error) });
      this.#hasFailed = true;
      return LOOK_MS;
    }
  }

  /** @returns milliseconds until it has to be done again */
  async #renewAndTake(): Promise<number> {
    const { database, clock, leaseMs = LEASE_MS, onTaken } = this.#options;
    const names = Array.from(this.#tokens);
    const now = clock.now();
    const end = { elapsed: clock.elapsed() + leaseMs - MARGIN_MS, time: now + leaseMs };
    const held = Array.from(this.#held.values(), ({ term }) => term);
    const rev = 1 + Math.floor(chance() * 2 ** 52);
    const term = `${this.#holder} ${rev}`;
    const answers = await database.transaction([
      ...(this.#rowsThere === names.length ? [] : [insertion(names)]),
      {
        text: "update cairn.leases set until = $1::int8 where row = any($2::text[]) returning key",
        values: [end.time, held],
      },
      {
        text:
          "with free as (select key from cairn.leases where key = any($1::text[]) and until <= $2::int8 order by key for update skip locked)" +
          " update cairn.leases as l set row = $3, rev = $4::int8, until = $5::int8 from free where l.key = free.key returning l.key",
        values: [names, now, term, rev, end.time],
      },
    ]);
    this.#rowsThere = names.length;
    const [renewed = [], taken = []] = answers.slice(-2);
    const kept = new Set(renewed.map(({ key }) => key));
    for (const [name, lease] of this.#held) {
      if (kept.has(name) && !lease.signal.aborted) Object.assign(lease.end, end);
      else this.#lose(name, lease);
    }
    for (const { key } of taken) {
      onTaken(String(key), term, rev);
      this.#take(String(key), term, { ...end });
    }
    return this.#held.size === this.#tokens.size ? RENEWAL_MS : LOOK_MS;
  }

  #take(name: string, term: string, end: HeldLease["end"]): void {
    const { clock } = this.#options;
    const lost = new AbortController();
    let cancel = () => undefined as void;
    const lease: HeldLease = {
      term,
      end,
      signal: lost.signal,
      check: (reader) => {
        if (reader.get(LEASES, name) !== term || reader.now >= end.time) throw new LeaseLost(name);
      },
      lose: () => {
        cancel();
        lost.abort();
      },
    };
    const watch = () => {
      const leftMs = end.elapsed - clock.elapsed();
      if (leftMs <= 0) this.#lose(name, lease);
      else cancel = clock.timer(leftMs, watch);
    };
    this.#held.set(name, lease);
    watch();
  }

  #lose(name: string, lease: HeldLease): void {
    lease.lose();
    if (this.#held.get(name) === lease) this.#held.delete(name);
  }
}

function insertion(names: readonly string[]): Statement {
  const text =
    "insert into cairn.leases (key, row, rev, until) select name, '', 1, 0 from unnest($1::text[]) as q(name) order by name on conflict do nothing";
  return { text, values: [names] };
}
