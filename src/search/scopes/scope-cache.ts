/**
 * The sessions and users searched last, each with the slots of its vectors, kept in step with the store.
 *
 * A memory belongs to the same session and user as long as it lives, so only vectors come and go. The store names each one that
 * is put or removed inside the transaction, which may still fail and which no reader sees yet: it counts once readers see it. So
 * a set of a scope always holds exactly what a walk through the index would find.
 *
 * @module
 */
import type { CacheUses } from "../../lib/cache.ts";
import { bare, type BareId } from "../../lib/ids.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { MEMORIES, type Collection, type EmbeddedRow } from "../../storage/collections.ts";
import { MAX_KEY } from "../../storage/keys.ts";
import type { Store } from "../../storage/lmdb/store.ts";
import { generationOf, vectorOf } from "../../storage/memory-records.ts";
import { matches, type Filter, type Posting } from "../../storage/walk.ts";
import { unlessUnreadable } from "../../storage/unreadable.ts";
import { CandidateReader, type Candidate } from "../candidates.ts";
import { storedMemory } from "../encoding.ts";
import type { Query } from "../query.ts";
import { ScopeVectors } from "./scope-vectors.ts";
import { RESIDENT_MAX, RESIDENT_PENDING_MAX, RESIDENT_TERMS_MAX } from "../search-plan.ts";
import { type Shared, SharedVectors } from "./shared-vectors.ts";

export interface ScopeCacheOptions {
  collection: Collection;
  /** Sets with more vectors are not kept, nor are those with more terms. */
  sizeMax: number;
  termsMax: number;
  /** At most this many vectors are looked up in the store at once: 1 ms. A larger set is complete after a few searches. */
  readMax: number;
  /** Bounds all sets together. */
  bytesMax: number;
  /** Number of new or deleted vectors above which all sets are read again when they are next searched. */
  changesMax: number;
}

const DEFAULTS: Omit<ScopeCacheOptions, "bytesMax"> = {
  collection: MEMORIES,
  sizeMax: RESIDENT_MAX,
  termsMax: RESIDENT_TERMS_MAX,
  readMax: 1_000,
  changesMax: 1_000,
};

/** A set without vectors, and the id of a memory whose vector is still to be looked up. */
const ENTRY_BYTES = 1_200;
const UNREAD_BYTES = 64;
/** Memories of a scope that are looked at for those that are not left out. */
const LOOKED_AT_MAX = 20_000;

interface Entry {
  set: ScopeVectors;
  /** Vectors left out of the scope. */
  readonly excluded: Filter;
  /** Bytes of it that count in those of all sets. */
  bytes: number;
  /** Memories whose vectors are still to be looked up; undefined when there are too many to keep them here. */
  unread: BareId[] | undefined;
  /** Number of deleted vectors that were removed from it, if they were in it. */
  removalsApplied: number;
}

interface Scope {
  readonly table: string;
  readonly prefix: string;
  readonly name: string;
  readonly excluded: Filter;
}

const NOTHING: readonly Posting[] = [];

/** The session or the user that a filter is of, or another scope of the collection, perhaps without what is in another index. */
function scopeOf({ scopes }: Collection, filter: Filter): Scope | undefined {
  const [posting, ...excluded] = filter;
  const prefix = posting?.prefixes[0];
  if (posting === undefined || prefix === undefined || posting.prefixes.length !== 1) return undefined;
  if (!scopes.some(({ name }) => name === posting.table) || excluded.some(({ isExcluded }) => isExcluded !== true)) return undefined;
  return { table: posting.table, prefix, name: nameOf(posting.table + prefix, excluded), excluded };
}

function nameOf(scope: string, excluded: Filter): string {
  return excluded.length === 0 ? scope : `${scope} ${JSON.stringify(excluded)}`;
}

export class ScopeCache {
  readonly #store: Store;
  readonly #options: ScopeCacheOptions;
  /** The least recently used one comes first. */
  readonly #entries = new Map<string, Entry>();
  /** Filters of what some of them leave out, by their JSON: by that and its scope a set is found when a row is put again. */
  readonly #excluding = new Map<string, Filter>();
  #bytes = 0;
  #hits = 0;
  #misses = 0;
  #generation = 0;
  #shared: SharedVectors | undefined;
  /** Vectors put or removed by transactions that readers may not see yet, and whether each was put last. */
  readonly #written = new Map<BareId, boolean>();
  /** Vectors that are gone, in the order in which that was seen. */
  #deleted: BareId[] = [];

  constructor(store: Store, options: Partial<ScopeCacheOptions> = {}) {
    this.#store = store;
    const { collection = DEFAULTS.collection } = options;
    const bytesMax = CACHE_BYTES_MAX[collection.name === "memories" ? "residentVectors" : "residentDocumentVectors"];
    this.#options = { ...DEFAULTS, bytesMax, ...options };
    store.onVectors(this.#options.collection.vectors, (id, isPut) => void this.#written.set(id, isPut));
  }

  /** Latest message of the worker. */
  get shared(): SharedVectors | undefined {
    return this.#shared;
  }

  /** Present vectors of the worker. */
  use(shared: Shared): void {
    if (shared.index !== this.#shared?.index) this.#clear();
    this.#shared = new SharedVectors(shared);
  }

  /**
   * The candidates of a set of a scope; undefined where there is none, as `for` says.
   *
   * @param pendingMax - at most this many vectors that have no row yet are read from the store
   */
  nearest(query: Query, filter: Filter, pendingMax = RESIDENT_PENDING_MAX): Candidate[] | undefined {
    const set = this.for(filter);
    if (set === undefined || set.pending > pendingMax) return undefined;
    const { collection, termsMax } = this.#options;
    return set.nearest(query, this.#usable, new CandidateReader(this.#store.latest, collection, query), termsMax);
  }

  /**
   * The set of exactly the vectors that pass; undefined for filters other than a session or a user, for large sets, and while
   * one is not read to its end.
   */
  for(filter: Filter): ScopeVectors | undefined {
    const scope = scopeOf(this.#options.collection, filter);
    if (scope === undefined) return undefined;
    this.#catchUp();
    const known = this.#entries.get(scope.name);
    if (known?.unread?.length === 0) this.#hits++;
    else if (known?.unread === undefined) this.#misses++;
    const entry = known ?? this.#open(scope);
    // Deleted and set again to be the last.
    this.#entries.delete(scope.name);
    this.#entries.set(scope.name, entry);
    for (; entry.removalsApplied < this.#deleted.length; entry.removalsApplied++) {
      entry.set.remove(this.#deleted[entry.removalsApplied]!, this.#usable);
    }
    this.#read(entry);
    entry.set.settle(this.#usable);
    this.#bound(entry);
    this.#evict();
    return entry.unread?.length === 0 && this.#entries.get(scope.name) === entry ? entry.set : undefined;
  }

  /** Checks whether the set is there, but for vectors that `for` will read when it is called again. */
  isReading(filter: Filter): boolean {
    const scope = scopeOf(this.#options.collection, filter);
    const unread = scope === undefined ? undefined : this.#entries.get(scope.name)?.unread;
    return unread !== undefined && unread.length > 0;
  }

  /** Numbers of searches of a session or a user that found its set complete, and that found none. */
  get uses(): CacheUses {
    return { hits: this.#hits, misses: this.#misses };
  }

  /** To be called after commits that wrote vectors: without searches their ids would be kept for good. */
  collect(): void {
    if (this.#written.size > this.#options.changesMax) this.#catchUp();
  }

  /** Rows of another generation are of vectors that compare with nothing. */
  get #usable(): SharedVectors | undefined {
    return this.#shared?.generation === this.#generation ? this.#shared : undefined;
  }

  #open({ table, prefix, excluded }: Scope): Entry {
    const most = excluded.length === 0 ? this.#options.sizeMax : LOOKED_AT_MAX;
    const keys = this.#store.latest.keys({ name: table }, { from: prefix, to: prefix + MAX_KEY, limit: most + 1 });
    const unread = keys.length > most ? undefined : keys.map((key) => key.slice(prefix.length));
    if (excluded.length > 0) this.#excluding.set(JSON.stringify(excluded), excluded);
    return { set: new ScopeVectors(), excluded, bytes: 0, unread, removalsApplied: this.#deleted.length };
  }

  #read({ set, excluded, unread }: Entry): void {
    if (unread === undefined || unread.length === 0) return;
    const { collection, readMax } = this.#options;
    const reader = this.#store.latest;
    for (const memory of unread.splice(-readMax)) {
      if (!matches(reader, excluded, memory)) continue;
      const id = reader.has(collection.vectors, memory) ? memory : vectorOf(reader, collection, memory)?.id;
      if (id !== undefined) set.add(id, this.#usable);
    }
  }

  /** Keeps of a set that has become too large only that it is. */
  #bound(entry: Entry): void {
    const { sizeMax, termsMax } = this.#options;
    if (entry.set.size > sizeMax || entry.set.terms > termsMax) Object.assign(entry, { set: new ScopeVectors(), unread: undefined });
    const bytes = ENTRY_BYTES + entry.set.bytes + UNREAD_BYTES * (entry.unread?.length ?? 0);
    this.#bytes += bytes - entry.bytes;
    entry.bytes = bytes;
  }

  /** Finds what has changed in the store since the last look. */
  #catchUp(): void {
    const reader = this.#store.latest;
    const { vectors } = this.#options.collection;
    const added: BareId[] = [];
    for (const [id, isPut] of this.#written) {
      if (reader.has(vectors, id) !== isPut) continue;
      this.#written.delete(id);
      if (isPut) added.push(id);
      else this.#deleted.push(id);
    }
    const { changesMax } = this.#options;
    const generation = generationOf(reader);
    if (generation !== this.#generation || added.length > changesMax || this.#deleted.length > changesMax) this.#clear();
    this.#generation = generation;
    if (this.#entries.size > 0) for (const id of added) this.#addToAll(id);
  }

  #addToAll(id: BareId): void {
    const { records, vectors, scopes } = this.#options.collection;
    const bytes = this.#store.latest.vectorBytes(vectors, id);
    const memory = bytes === undefined ? "" : storedMemory(bytes);
    const row = this.#store.latest.get(records, memory);
    if (bytes === undefined || row === undefined) return;
    for (const entry of this.#setsOf(scopes, memory, row)) {
      if (entry.unread === undefined || entry.unread.includes(memory) || entry.set.has(id, this.#usable)) continue;
      if (!matches(this.#store.latest, entry.excluded, memory)) continue;
      entry.set.add(id, this.#usable);
      this.#bound(entry);
    }
  }

  *#setsOf(scopes: Collection["scopes"], memory: BareId, row: EmbeddedRow): Generator<Entry, void> {
    for (const index of scopes) {
      for (const key of index.entriesOf(memory, row)) {
        const scope = index.name + key.slice(0, -memory.length);
        for (const excluded of [NOTHING, ...this.#excluding.values()]) {
          const entry = this.#entries.get(nameOf(scope, excluded));
          if (entry !== undefined) yield entry;
        }
      }
    }
  }

  /** The row of a memory was put again, and readers see it: a set may leave it out from now on, or no longer. */
  updated(memory: BareId): void {
    if (this.#excluding.size === 0) return;
    const { collection } = this.#options;
    const reader = this.#store.latest;
    const row = unlessUnreadable(() => reader.get(collection.records, memory));
    if (row?.embedding === undefined) return;
    const id = bare(row.embedding.id);
    for (const entry of this.#setsOf(collection.scopes, memory, row)) {
      if (entry.excluded.length === 0 || entry.unread === undefined || entry.unread.includes(memory)) continue;
      const isIn = entry.set.has(id, this.#usable);
      const passes = matches(reader, entry.excluded, memory) && reader.has(collection.vectors, id);
      if (isIn && !passes) entry.set.remove(id, this.#usable);
      if (!isIn && passes) entry.set.add(id, this.#usable);
      this.#bound(entry);
    }
  }

  /** Evicts the least recently used; a set that is too large to be kept is at least known to be. */
  #evict(): void {
    for (const [name, entry] of this.#entries) {
      if (this.#bytes <= this.#options.bytesMax) return;
      this.#entries.delete(name);
      this.#bytes -= entry.bytes;
    }
  }

  #clear(): void {
    this.#entries.clear();
    this.#excluding.clear();
    this.#bytes = 0;
    this.#deleted = [];
  }
}
