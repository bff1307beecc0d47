/**
 * Searches a database: which records pass is asked of it, and their vectors are compared here, all of them.
 *
 * A vector never changes, so those that were compared before are in a cache by their ids. Of more records than can be compared the
 * newest are.
 *
 * @module
 */
import { Cache, type CacheUses } from "../lib/cache.ts";
import { nextTurn } from "../lib/clock.ts";
import { bare, type BareId } from "../lib/ids.ts";
import { kthLargest } from "../lib/kth-largest.ts";
import type { Reader } from "../storage/access.ts";
import type { Collection } from "../storage/collections.ts";
import { generationOf } from "../storage/memory-records.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Filter } from "../storage/walk.ts";
import type { CandidateIndex } from "./candidate-index.ts";
import type { Candidate } from "./candidates.ts";
import { dotStored, storedGeneration, storedTerms } from "./encoding.ts";
import type { IndexStatus } from "./indexer.ts";
import type { ScoredQuery } from "./query.ts";

/** Vectors that searches have compared: the server has no other copy of them in memory. */
const CACHE_BYTES = 128 * 1024 * 1024;
/** Records that are compared with a query, and how many of them are looked up at once. */
const COMPARED_MAX = 20_000;
const COMPARED_AT_ONCE = 250;

interface Vector {
  readonly record: BareId;
  readonly id: BareId;
  readonly bytes: Uint8Array;
}

export class DatabaseIndex implements CandidateIndex {
  /** Nothing is taken in that could be behind. */
  readonly status: IndexStatus = { indexed: 0, pending: 0, removed: 0, unsaved: 0 };
  readonly #store: RecordStore;
  readonly #collection: Collection;
  readonly #cache = new Cache<Uint8Array>(CACHE_BYTES);

  constructor(store: RecordStore, collection: Collection) {
    this.#store = store;
    this.#collection = collection;
  }

  get cacheUses(): CacheUses {
    return this.#cache.uses;
  }

  problem(): string | undefined {
    return undefined;
  }

  changed(): void {}

  async nearest(query: ScoredQuery, filter: Filter): Promise<Candidate[]> {
    const found: Candidate[] = [];
    let before: BareId | undefined;
    for (let compared = 0; compared < COMPARED_MAX;) {
      const { ids, next } = await this.#store.walk(this.#collection.records, filter, { before }, COMPARED_AT_ONCE);
      compared += ids.length;
      for (const { record, id, bytes } of await this.#vectorsOf(ids))
        found.push({ memory: record, id, cosine: dotStored(query.vector, bytes), terms: storedTerms(bytes).slice() });
      if (next === undefined) break;
      before = next;
      await nextTurn();
    }
    return best(query, found);
  }

  /** The vectors of the present generation that these records have. */
  async #vectorsOf(records: readonly BareId[]): Promise<Vector[]> {
    if (records.length === 0) return [];
    return this.#store.read((reader) => {
      const generation = generationOf(reader);
      const places = this.#placesOf(reader, records);
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

  /** Which vectors they have: most were made with their records, and have their ids, so these are fetched with the records. */
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

/** Those of the best scores; all of them when they are few. */
function best({ limit, score }: ScoredQuery, found: readonly Candidate[]): Candidate[] {
  if (found.length <= limit) return [...found];
  const scores = Float64Array.from(found, ({ cosine, terms }) => score(cosine, terms));
  const bar = kthLargest(scores, limit);
  return found.filter((_, i) => scores[i]! >= bar);
}
