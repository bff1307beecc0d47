/**
 * Rows that were fetched for one request so far, for the rest of it.
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
import { NotFetched } from "../../access.ts";
import type { Change } from "../commit/commit-statements.ts";
import { ReadSet, FetchedRows, RerunReader, firstKeyOf, nameOfSpan, type KnownRows, type SpanAsk, type StoredRow } from "./fetched-rows.ts";

/** A request that takes longer reads again. */
const KEPT_MS = 100;
/** The newest are kept. */
const SNAPSHOTS_MAX = 3;
/** Characters; what was fetched for a search of much is not kept. */
const LENGTH_MAX = 1024 * 1024;

interface KeptSnapshot {
  readonly fetched: FetchedRows;
  readonly until: number;
}

export class RequestReads implements KnownRows {
  #snapshots: KeptSnapshot[] = [];
  #reads: readonly ((reader: Reader) => unknown)[];
  readonly #firsts = new ReadSet();
  #hasEnded = false;

  /** @param reads - what is going to be read */
  constructor(reads: readonly ((reader: Reader) => unknown)[]) {
    this.#reads = reads;
  }

  /** Rows to fetch with the next read: all with the first one, and whether tables are empty with each. */
  takeAhead(): ReadSet {
    if (this.#reads.length === 0) return this.#firsts;
    const fetched = new FetchedRows();
    const reader = new RerunReader(fetched, 0);
    const readSet = new ReadSet();
    for (const read of this.#reads) {
      fetched.begin();
      try {
        read(reader);
      } catch (error) {
        if (!(error instanceof NotFetched)) throw error;
      }
      readSet.add(fetched.missing);
    }
    this.#reads = [];
    for (const [name, ask] of readSet.spans) if (name === nameOfSpan(firstKeyOf(ask.table))) this.#firsts.spans.set(name, ask);
    return readSet;
  }

  /** Fetched rows, the newest first. @param now - on the clock that only counts on */
  snapshotsAt(now: number): FetchedRows[] {
    return this.#hasEnded ? [] : this.#snapshots.filter(({ until }) => now < until).map(({ fetched }) => fetched);
  }

  keep(fetched: FetchedRows, now: number): void {
    if (this.#hasEnded || fetched.length > LENGTH_MAX) return;
    this.#snapshots = [{ fetched, until: now + KEPT_MS }, ...this.#snapshots.slice(0, SNAPSHOTS_MAX - 1)];
  }

  forget(changed: ReadonlyMap<string, ReadonlySet<string>>): void {
    for (const { fetched } of this.#snapshots) fetched.forget(changed);
  }

  end(): void {
    this.#hasEnded = true;
    this.#snapshots = [];
  }

  row(table: string, key: string): StoredRow | null | undefined {
    for (const { fetched } of this.#snapshots) {
      const row = fetched.row(table, key);
      if (row !== undefined) return row;
    }
    return undefined;
  }

  span(name: string, ask: SpanAsk): readonly StoredRow[] | undefined {
    for (const { fetched } of this.#snapshots) {
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

  run<Result>(reads: readonly ((reader: Reader) => unknown)[], callback: () => Result): Result {
    const request = new RequestReads(reads);
    this.#all.add(request);
    const end = () => {
      this.#all.delete(request);
      request.end();
    };
    return this.#storage.run(request, () => {
      try {
        const result = callback();
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

/** Value that the first of several knows. */
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
