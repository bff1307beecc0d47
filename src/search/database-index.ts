/**
 * Searches a database.
 *
 * Memories of a session or a user, when they are no more than some thousands, are compared here: which they are is asked of the
 * database, and their vectors, which never change, are in a cache by their ids. Everything else is found by the indexes of the replica,
 * and read from the database before it is given: so nothing is found that is gone or that the filter leaves out. While there is no
 * replica, the newest of all that pass are compared here, in a few searches at a time.
 *
 * @module
 */
import { Cache, type CacheUses } from "../lib/cache.ts";
import { nextTurn } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, type BareId } from "../lib/ids.ts";
import { invariant } from "../lib/invariant.ts";
import { LIMITS } from "../lib/limits.ts";
import { kthLargest } from "../lib/kth-largest.ts";
import { describeError } from "../lib/log.ts";
import type { Reader } from "../storage/access.ts";
import type { Collection, EmbeddedRow } from "../storage/collections.ts";
import { generationOf } from "../storage/memory-records.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { provider, PROVIDER_KEY, type Index } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Filter } from "../storage/walk.ts";
import type { CandidateIndex } from "./candidate-index.ts";
import type { Candidate } from "./candidates.ts";
import { dotStored, storedGeneration, storedTerms } from "./encoding.ts";
import { closenessTo, type Query } from "./query.ts";
import type { Replica } from "./replica/replica.ts";
import { NO_BYTES, NO_STATUS, type IndexBytes, type IndexStatus } from "./index-status.ts";
import { RESIDENT_MAX } from "./search-plan.ts";

/** Vectors that searches have compared: the server has no other copy of them in memory. */
const CACHE_BYTES = 128 * 1024 * 1024;
/** Records that are compared with a query where there is no replica, and how many of them are looked up at once. */
const COMPARED_MAX = 20_000;
const COMPARED_AT_ONCE = 250;
/** Each is a statement that looks at a thousand records at most: where few of them pass, all of those are compared. */
const WALKS_MAX = LIMITS.searchProbesMax / 1_000;
/** Bound of walks where there is a replica: walks that find fewer, as most of what they look at is left out. */
const SPARSE_WALKS_MAX = 2;
/** As many more than are wanted are held: then all but the best are left out. The terms of a long text take some kilobytes. */
const HELD_MORE = 1_000;
/** Number of times that the replica is searched again when some of what it found was changed meanwhile. */
const ATTEMPTS_MAX = 3;
/** At most this many filters are known to be wide. */
const WIDE_FILTERS_MAX = 1_000;

interface Vector {
  readonly record: BareId;
  readonly id: BareId;
  readonly bytes: Uint8Array;
}

export interface DatabaseIndexOptions {
  readonly store: RecordStore;
  readonly replica: Replica;
  readonly collection: Collection;
  /** Indexes whose entries under one key are compared here, when they are few. */
  readonly compared: readonly Index<EmbeddedRow>[];
}

export class DatabaseIndex implements CandidateIndex {
  readonly #store: RecordStore;
  readonly #replica: Replica;
  readonly #collection: Collection;
  readonly #compared: ReadonlySet<string>;
  /** Filters that more passed than are compared, when that was looked at. */
  readonly #wideFilters = new Set<string>();
  readonly #cache = new Cache<Uint8Array>(CACHE_BYTES);

  constructor({ store, replica, collection, compared }: DatabaseIndexOptions) {
    this.#store = store;
    this.#replica = replica;
    this.#collection = collection;
    this.#compared = new Set(compared.map(({ name }) => name));
  }

  get status(): IndexStatus {
    return this.#replica.indexOf(this.#collection)?.status ?? NO_STATUS;
  }

  get bytes(): IndexBytes {
    return this.#replica.indexOf(this.#collection)?.bytes ?? NO_BYTES;
  }

  get cacheUses(): CacheUses {
    return this.#cache.uses;
  }

  /** Forgets the vectors of all records, also of those that are gone. */
  forget(): void {
    this.#cache.clear();
  }

  /** Without the replica, and while its index has failed, records are compared here. */
  problem(): string | undefined {
    return undefined;
  }

  /** The replica follows the database. */
  changed(): void {}

  async nearest(query: Query, filter: Filter, mayHoldMuch: boolean): Promise<Candidate[] | undefined> {
    const name = JSON.stringify(filter);
    if (filter.some(({ table }) => this.#compared.has(table)) && !this.#wideFilters.has(name)) {
      const hasReplica = this.#replica.indexOf(this.#collection) !== undefined;
      if (!hasReplica) return this.#withoutReplica(query, filter, mayHoldMuch);
      const { found, isAll } = await this.#compareNewest(query, filter, RESIDENT_MAX, WALKS_MAX, SPARSE_WALKS_MAX);
      if (isAll) return found;
      if (this.#wideFilters.size === WIDE_FILTERS_MAX) this.#wideFilters.clear();
      this.#wideFilters.add(name);
    }
    return (await this.#fromReplica(query, filter)) ?? this.#withoutReplica(query, filter, mayHoldMuch);
  }

  /** Compares thousands only where it may hold much. */
  async #withoutReplica(query: Query, filter: Filter, mayHoldMuch: boolean): Promise<Candidate[] | undefined> {
    const walksMax = mayHoldMuch ? WALKS_MAX : 1;
    const { found, isAll } = await this.#compareNewest(query, filter, COMPARED_MAX, walksMax);
    return isAll || mayHoldMuch ? found : undefined;
  }

  /** @returns undefined when it cannot say at present */
  async #fromReplica(query: Query, filter: Filter): Promise<Candidate[] | undefined> {
    for (let attempt = 1; ; attempt++) {
      const index = await this.#replica.followed(this.#collection);
      if (index === undefined) return undefined;
      let found: Candidate[];
      try {
        found = await index.nearest(query, filter);
      } catch (error) {
        // It has failed; or the copy is closed to be made again, or has to be.
        if (!(error instanceof ApiError)) this.#replica.lose(index, describeError(error));
        return undefined;
      }
      const present = await this.#present(found, filter);
      if (present.length === found.length) return present;
      if (attempt === ATTEMPTS_MAX) return this.#replica.indexOf(this.#collection) === index ? present : undefined;
    }
  }

  /** Candidates that are unchanged in the database: they pass the filter and have the vector that was compared. */
  async #present(found: readonly Candidate[], filter: Filter): Promise<Candidate[]> {
    const { records } = this.#collection;
    const originals = found.map(({ memory, id }) => this.#replica.originalId(this.#collection, memory, id));
    return this.#store.read((reader) => {
      const generation = generationOf(reader);
      reader.ahead(
        records,
        found.map(({ memory }) => memory),
      );
      return found.flatMap(({ memory, cosine, terms }, i) => {
        const id = originals[i];
        const row = unlessUnreadable(() => reader.get(records, memory));
        if (id === undefined || row?.embedding === undefined || bare(row.embedding.id) !== id) return [];
        return row.embedding.generation === generation && this.#passes(filter, memory, row) ? [{ memory, id, cosine, terms }] : [];
      });
    });
  }

  #passes(filter: Filter, record: BareId, row: EmbeddedRow): boolean {
    return filter.every(({ table, prefixes, isExcluded = false }) => {
      const index = this.#collection.records.indexes.find(({ name }) => name === table);
      invariant(index !== undefined, `${table} is no index of what is searched`);
      const entries = index.entriesOf(record, row);
      return prefixes.some((prefix) => entries.includes(prefix + record)) !== isExcluded;
    });
  }

  /** Compares the newest that pass. */
  async #compareNewest(
    query: Query,
    filter: Filter,
    max: number,
    walksMax: number,
    sparseMax = Infinity,
  ): Promise<{ found: Candidate[]; isAll: boolean }> {
    let found: Candidate[] = [];
    let before: BareId | undefined;
    for (let compared = 0, walks = 0, sparse = 0; compared < max && walks < walksMax && sparse < sparseMax; walks++) {
      const { ids, next } = await this.#store.walk(this.#collection.records, filter, { before }, COMPARED_AT_ONCE);
      compared += ids.length;
      if (ids.length < COMPARED_AT_ONCE) sparse++;
      for (const { record, id, bytes } of await this.#vectorsOf(ids))
        found.push({ memory: record, id, cosine: dotStored(query.vector, bytes), terms: storedTerms(bytes).slice() });
      if (found.length > query.limit + HELD_MORE) found = best(query, found);
      if (next === undefined) return { found: best(query, found), isAll: true };
      before = next;
      await nextTurn();
    }
    return { found: best(query, found), isAll: false };
  }

  /** The vectors of the present generation that these records have. */
  async #vectorsOf(records: readonly BareId[]): Promise<Vector[]> {
    if (records.length === 0) return [];
    return this.#store.read((reader) => {
      reader.ahead(provider, [PROVIDER_KEY]);
      const places = this.#placesOf(reader, records);
      const generation = generationOf(reader);
      this.#fetchAhead(
        reader,
        places.map(({ id }) => id),
      );
      return places.flatMap(({ record, id }) => {
        const bytes = this.#bytesOf(reader, id);
        return bytes === undefined || storedGeneration(bytes) !== generation ? [] : [{ record, id, bytes }];
      });
    });
  }

  /** Vectors that they have: most were made with their records, and have their ids, so these are fetched with the records. */
  #placesOf(reader: Reader, records: readonly BareId[]): { record: BareId; id: BareId }[] {
    reader.ahead(this.#collection.records, records);
    this.#fetchAhead(reader, records);
    return records.flatMap((record) => {
      const embedding = unlessUnreadable(() => reader.get(this.#collection.records, record)?.embedding);
      return embedding === undefined ? [] : [{ record, id: bare(embedding.id) }];
    });
  }

  #fetchAhead(reader: Reader, ids: readonly BareId[]): void {
    reader.ahead(
      this.#collection.vectors,
      ids.filter((id) => this.#cache.peek(id) === undefined),
    );
  }

  #bytesOf(reader: Reader, id: BareId): Uint8Array | undefined {
    const cached = this.#cache.get(id);
    if (cached !== undefined) return cached;
    const bytes = reader.vectorBytes(this.#collection.vectors, id)?.slice();
    if (bytes !== undefined) this.#cache.set(id, bytes, bytes.byteLength);
    return bytes;
  }
}

/**
 * Candidates of the best scores, of equal ones the first; all of them when they are few.
 *
 * @param found - the newest first
 */
function best(query: Query, found: readonly Candidate[]): Candidate[] {
  const { limit } = query;
  if (found.length <= limit) return [...found];
  const scores = Float64Array.from(found, ({ cosine, terms }) => closenessTo(query, cosine, terms));
  const threshold = kthLargest(scores, limit);
  let tied = limit - scores.reduce((sum, one) => sum + (one > threshold ? 1 : 0), 0);
  return found.filter((_, i) => scores[i]! > threshold || (scores[i] === threshold && tied-- > 0));
}
