/**
 * What was fetched for one request so far, for the rest of it.
 *
 * A request reads several times: its key, whether it was answered before, its session. Each of these reads may be of any moment since
 * the request came, so one that finds all it needs in what was fetched for an earlier one is answered from that; it never mixes two
 * moments. What is going to be read, as far as the request's address says, is fetched with the first of them. After a while, and
 * when this server has changed a row, it is fetched again.
 *
 * @module
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Reader } from "../../access.ts";
import { Unread } from "../../access.ts";
import type { Change } from "../commit/commit-statements.ts";
import { Asks, Fetched, FetchedReader, firstKeyOf, nameOfSpan, type KnownRows, type SpanAsk, type StoredRow } from "./fetched.ts";

/** A request that takes longer reads again. */
const KEPT_MS = 100;
/** The newest are kept. */
const MOMENTS_MAX = 3;
/** Characters; what was fetched for a search of much is not kept. */
const LENGTH_MAX = 1024 * 1024;

interface KeptMoment {
  readonly fetched: Fetched;
  readonly until: number;
}

export class RequestReads implements KnownRows {
  #moments: KeptMoment[] = [];
  #reads: readonly ((reader: Reader) => unknown)[];
  readonly #firsts = new Asks();
  #hasEnded = false;

  /** @param reads - what is going to be read */
  constructor(reads: readonly ((reader: Reader) => unknown)[]) {
    this.#reads = reads;
  }

  /** What is to be fetched with the next read: all with the first one, and whether tables are empty with each. */
  takeAhead(): Asks {
    if (this.#reads.length === 0) return this.#firsts;
    const fetched = new Fetched();
    const reader = new FetchedReader(fetched, 0);
    const asks = new Asks();
    for (const read of this.#reads) {
      fetched.begin();
      try {
        read(reader);
      } catch (error) {
        if (!(error instanceof Unread)) throw error;
      }
      asks.add(fetched.missing);
    }
    this.#reads = [];
    for (const [name, ask] of asks.spans) if (name === nameOfSpan(firstKeyOf(ask.table))) this.#firsts.spans.set(name, ask);
    return asks;
  }

  /** What was fetched, the newest first. @param now - on the clock that only counts on */
  momentsAt(now: number): Fetched[] {
    return this.#hasEnded ? [] : this.#moments.filter(({ until }) => now < until).map(({ fetched }) => fetched);
  }

  keep(fetched: Fetched, now: number): void {
    if (this.#hasEnded || fetched.length > LENGTH_MAX) return;
    this.#moments = [{ fetched, until: now + KEPT_MS }, ...this.#moments.slice(0, MOMENTS_MAX - 1)];
  }

  forget(changed: ReadonlyMap<string, ReadonlySet<string>>): void {
    for (const { fetched } of this.#moments) fetched.forget(changed);
  }

  end(): void {
    this.#hasEnded = true;
    this.#moments = [];
  }

  row(table: string, key: string): StoredRow | null | undefined {
    for (const { fetched } of this.#moments) {
      const row = fetched.row(table, key);
      if (row !== undefined) return row;
    }
    return undefined;
  }

  span(name: string, ask: SpanAsk): readonly StoredRow[] | undefined {
    for (const { fetched } of this.#moments) {
      const rows = fetched.span(name, ask);
      if (rows !== undefined) return rows;
    }
    return undefined;
  }
}

/** The reads of all requests that are being answered. */
export class RequestsUnderWay {
  readonly #storage = new AsyncLocalStorage<RequestReads>();
  readonly #all = new Set<RequestReads>();

  /** The reads of the request that this is called for. */
  get current(): RequestReads | undefined {
    return this.#storage.getStore();
  }

  run<Result>(reads: readonly ((reader: Reader) => unknown)[], work: () => Result): Result {
    const request = new RequestReads(reads);
    this.#all.add(request);
    const end = () => {
      this.#all.delete(request);
      request.end();
    };
    return this.#storage.run(request, () => {
      try {
        const result = work();
        if (!(result instanceof Promise)) end();
        return result instanceof Promise ? (result.finally(end) as Result) : result;
      } catch (error) {
        end();
        throw error;
      }
    });
  }

  forget(changes: readonly Change[]): void {
    if (this.#all.size === 0) return;
    const changed = new Map<string, Set<string>>();
    for (const { table, key } of changes) {
      const keys = changed.get(table);
      if (keys === undefined) changed.set(table, new Set([key]));
      else keys.add(key);
    }
    for (const request of this.#all) request.forget(changed);
  }
}

/** What the first of several knows. */
export function knownToAny(all: readonly KnownRows[]): KnownRows {
  return {
    row(table, key) {
      for (const known of all) {
        const row = known.row(table, key);
        if (row !== undefined) return row;
      }
      return undefined;
    },
    span(name, ask) {
      for (const known of all) {
        const rows = known.span(name, ask);
        if (rows !== undefined) return rows;
      }
      return undefined;
    },
  };
}
