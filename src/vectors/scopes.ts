/**
 * The sessions and users that were asked about last, each with its vectors in memory, and in step with the store.
 *
 * A memory stays with its session and its user as long as it lives, so only vectors come and go. New ones are those with new
 * labels, as everywhere. Of those that go the store tells while the transaction runs, which may still fail and which no
 * reader sees yet: such a label is only suspected, until it is gone from the store as readers see it. So a scope always holds
 * exactly what a walk through the index would find.
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import type { BareId } from "../lib/ids.ts";
import { CACHE_BYTES_MAX } from "../lib/limits.ts";
import { AFTER_ALL, numberKey } from "../storage/keys.ts";
import { firstLabelOf, nextLabelOf } from "../storage/memory-records.ts";
import type { Store } from "../storage/store.ts";
import { labels, memories } from "../storage/tables.ts";
import type { Filter } from "../storage/walk.ts";
import { storedLabel } from "./encoding.ts";
import { Scope, ScopeMemory } from "./scope.ts";

const { bySession, byUser } = memories.index;

export interface ScopesOptions {
  /** Scopes with more vectors are not kept: comparing with 2,000 takes 0.5 ms. */
  sizeMax: number;
  /** At most this many vectors are read from the store at once: 1 ms. A larger scope is complete after a few searches. */
  readMax: number;
  /** All scopes together, and the memory that their vectors share. */
  bytesMax: number;
  /** When there are more new or removed vectors to look at than this, all scopes are read again when they are next searched. */
  changesMax: number;
}

const DEFAULTS: ScopesOptions = { sizeMax: 2_000, readMax: 250, bytesMax: CACHE_BYTES_MAX.residentVectors, changesMax: 1_000 };

/** A scope without vectors, and the id of a memory whose vector is still to be read. */
const ENTRY_BYTES = 1_200;
const UNREAD_BYTES = 64;

interface Entry {
  scope: Scope;
  /** What counts of it in the bytes of all scopes. */
  bytes: number;
  /** Memories whose vectors are still to be read; undefined when there are too many to keep them here. */
  unread: BareId[] | undefined;
  /** How many removed labels it has been told of. */
  toldOf: number;
}

export class Scopes {
  readonly #store: Store;
  readonly #options: ScopesOptions;
  readonly #memory = new ScopeMemory();
  /** What an entry holds in place of a scope that is too large. */
  readonly #nothing = new Scope(this.#memory);
  /** The one asked for last comes last. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #nextLabel = 0;
  #firstLabel = 0;
  readonly #suspected = new Set<number>();
  /** Labels that are gone, in the order in which that was seen. */
  #removed: number[] = [];

  constructor(store: Store, options: Partial<ScopesOptions> = {}) {
    this.#store = store;
    this.#options = { ...DEFAULTS, ...options };
    store.onLabelRemoved = (key) => void this.#suspected.add(fromBase62(key));
  }

  /** What is kept of exactly the vectors that pass; undefined for other filters than a session or a user, and for large ones. */
  for(filter: Filter): Scope | undefined {
    const [posting] = filter;
    const prefix = posting?.prefixes[0];
    if (filter.length !== 1 || posting === undefined || prefix === undefined || posting.prefixes.length !== 1) return undefined;
    if (posting.table !== bySession.name && posting.table !== byUser.name) return undefined;
    this.#catchUp();
    const name = posting.table + prefix;
    const entry = this.#entries.get(name) ?? this.#open(posting.table, prefix);
    // Deleted and set again to be the last.
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    for (; entry.toldOf < this.#removed.length; entry.toldOf++) entry.scope.remove(this.#removed[entry.toldOf] as number);
    this.#read(entry);
    if (entry.scope.gone > entry.scope.size) this.#drop(name, entry);
    this.#makeRoom();
    return entry.unread?.length === 0 && this.#entries.get(name) === entry ? entry.scope : undefined;
  }

  /** To be called now and then when nobody asks: else what has been removed would be remembered for good. */
  tidy(): void {
    if (this.#suspected.size > this.#options.changesMax) this.#catchUp();
  }

  #open(table: string, prefix: string): Entry {
    const { sizeMax } = this.#options;
    const keys = this.#store.latest.keys({ name: table }, { from: prefix, to: prefix + AFTER_ALL, limit: sizeMax + 1 });
    const unread = keys.length > sizeMax ? undefined : keys.map((key) => key.slice(prefix.length));
    const entry = { scope: unread === undefined ? this.#nothing : new Scope(this.#memory), bytes: 0, unread, toldOf: this.#removed.length };
    this.#weigh(entry);
    return entry;
  }

  #read(entry: Entry): void {
    if (entry.unread === undefined || entry.unread.length === 0) return;
    for (const memory of entry.unread.splice(-this.#options.readMax)) this.#add(entry, memory);
    this.#weigh(entry);
  }

  #add(entry: Entry, memory: BareId): void {
    const bytes = this.#store.latest.vectorBytes(memory);
    if (bytes === undefined || storedLabel(bytes) < this.#firstLabel) return;
    entry.scope.add(memory, bytes);
    this.#weigh(entry);
  }

  #weigh(entry: Entry): void {
    const bytes = ENTRY_BYTES + entry.scope.bytes + UNREAD_BYTES * (entry.unread?.length ?? 0);
    this.#bytes += bytes - entry.bytes;
    entry.bytes = bytes;
  }

  /** Finds what has changed in the store since the last look. */
  #catchUp(): void {
    for (const label of this.#suspected) {
      if (this.#store.latest.has(labels, numberKey(label))) continue;
      this.#suspected.delete(label);
      this.#removed.push(label);
    }
    const nextLabel = nextLabelOf(this.#store.latest);
    const firstLabel = firstLabelOf(this.#store.latest);
    const { changesMax } = this.#options;
    if (firstLabel !== this.#firstLabel || nextLabel - this.#nextLabel > changesMax || this.#removed.length > changesMax) this.#clear();
    else if (this.#entries.size > 0 && nextLabel > this.#nextLabel) this.#addSince(this.#nextLabel);
    this.#nextLabel = nextLabel;
    this.#firstLabel = firstLabel;
  }

  #addSince(label: number): void {
    for (const { row: memory } of this.#store.latest.rows(labels, { from: numberKey(label), to: AFTER_ALL })) {
      const row = this.#store.latest.get(memories, memory);
      if (row === undefined) continue;
      for (const { name, key } of [bySession, byUser].flatMap((index) =>
        index.entriesOf(memory, row).map((key) => ({ name: index.name, key })),
      )) {
        const entry = this.#entries.get(name + key.slice(0, -memory.length));
        if (entry?.unread === undefined) continue;
        this.#add(entry, memory);
        if (entry.scope.size > this.#options.sizeMax) this.#enlarge(entry);
      }
    }
  }

  /** It has become too large. */
  #enlarge(entry: Entry): void {
    entry.scope.release();
    Object.assign(entry, { scope: this.#nothing, unread: undefined });
    this.#weigh(entry);
  }

  /** Those that were not asked for longest go first; what is too large to be kept is at least known to be. */
  #makeRoom(): void {
    const { bytesMax } = this.#options;
    // Pieces of sizes that are no longer asked for.
    if (this.#memory.bytes > bytesMax) return this.#clear();
    for (const [name, entry] of this.#entries) {
      if (this.#bytes <= bytesMax) return;
      this.#drop(name, entry);
    }
  }

  #drop(name: string, entry: Entry): void {
    this.#entries.delete(name);
    this.#bytes -= entry.bytes;
    entry.scope.release();
  }

  #clear(): void {
    this.#entries.clear();
    this.#memory.reset();
    this.#bytes = 0;
    this.#removed = [];
  }
}
