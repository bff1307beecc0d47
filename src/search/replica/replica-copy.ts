/**
 * The store of a replica, with the indexes on it, and what of a database is in it.
 *
 * Only what leads to records is: vectors, and rows without their texts. Indexes take a vector for new when its id is greater than all
 * they have seen. A transaction that commits late brings lower ones: in the copy such a vector gets the next free id, and its record
 * remembers the one that it has in the database.
 *
 * @module
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fromBase62, toBase62 } from "../../lib/base62.ts";
import { nextTurn, type Clock } from "../../lib/clock.ts";
import { bare, BARE_ID_LENGTH, NO_PARTITION, withPrefix, type BareId, type Id } from "../../lib/ids.ts";
import { describeError, type Log } from "../../lib/log.ts";
import type { Reader, Tx } from "../../storage/access.ts";
import { DOCUMENTS, MEMORIES, type Collection, type EmbeddedRow } from "../../storage/collections.ts";
import { Store } from "../../storage/lmdb/store.ts";
import { removeVector } from "../../storage/memory-records.ts";
import type { ChangeFeed, FeedPosition } from "../../storage/postgres/follow/change-feed.ts";
import type { RecordStore } from "../../storage/record-store.ts";
import { indexedPart } from "../../storage/metadata-index.ts";
import { meta, provider, PROVIDER_KEY, type MemoryRow } from "../../storage/tables.ts";
import { unlessUnreadable } from "../../storage/unreadable.ts";
import { storedMemory } from "../encoding.ts";
import { VectorIndex, type IndexOptions } from "../vector-index.ts";

/** End of a copy that was closed in order. It is removed before anything is changed in the copy. */
const POSITION_FILE = "position.json";
const MARK = "replica";
/** A copy of another form is made again. */
const FORM = 2;
/** Records that are read at once. */
export const RECORDS_AT_ONCE = 250;

/** A collection that the copy has. Turns are searched among those of somebody, which the database gives. */
export interface CopiedCollection extends Collection {
  readonly name: CopiedName;
}
type CopiedName = "memories" | "documents";
export const COPIED = [MEMORIES, DOCUMENTS] as readonly CopiedCollection[];

export function isCopied(collection: Collection): collection is CopiedCollection {
  return COPIED.includes(collection as CopiedCollection);
}

/** The database that is copied. */
export interface Source extends Pick<RecordStore, "readNewest"> {
  changeFeed(): ChangeFeed;
}

export interface ReplicaOptions {
  readonly source: Source;
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly index?: IndexOptions | undefined;
}

/** A record in the copy. */
export interface CopiedRow extends EmbeddedRow {
  /** The id of its vector in the database, where that is another one here. */
  original?: Id<"emb">;
}

interface ReadRecord {
  readonly record: BareId;
  /** Undefined for one that is gone, or has no vector. */
  readonly row: EmbeddedRow | undefined;
}

/** Files on disk besides the store. */
interface SavedPosition {
  form: number;
  /** The store has it too, unless a crash of the machine took back what was written last. */
  mark: string;
  position: FeedPosition;
  newest: Record<CopiedName, string>;
}

/** The copy cannot be read or written to, or the feed does not reach back to it. */
export class CopyLost extends Error {
  override name = "CopyLost";
}

/** The store of a copy, and the indexes on it. */
export class ReplicaCopy {
  readonly store: Store;
  readonly indexes: Readonly<Record<CopiedName, VectorIndex>>;
  position: FeedPosition;
  readonly #source: Source;
  readonly #directory: string;
  /** No vector has had a greater id. */
  readonly #newest: Record<CopiedName, string>;

  private constructor(
    store: Store,
    { position, newest }: Pick<SavedPosition, "position" | "newest">,
    directory: string,
    options: ReplicaOptions,
  ) {
    const indexOf = (collection: Collection) => new VectorIndex(store, options.log, { ...options.index, collection });
    this.store = store;
    this.indexes = { memories: indexOf(MEMORIES), documents: indexOf(DOCUMENTS) };
    this.position = position;
    this.#newest = newest;
    this.#directory = directory;
    this.#source = options.source;
  }

  static async empty(directory: string, position: FeedPosition, options: ReplicaOptions): Promise<ReplicaCopy> {
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const store = await Store.open(directory, options.clock, { durability: "relaxed" });
    return new ReplicaCopy(store, { position, newest: { memories: "", documents: "" } }, directory, options);
  }

  /** The one that was closed last; undefined when that was not in order. */
  static async saved(directory: string, options: ReplicaOptions): Promise<ReplicaCopy | undefined> {
    const path = join(directory, POSITION_FILE);
    let saved: SavedPosition;
    try {
      saved = JSON.parse(readFileSync(path, "utf8")) as SavedPosition;
      rmSync(path);
    } catch {
      return undefined;
    }
    if (saved.form !== FORM) return undefined;
    const store = await Store.open(directory, options.clock, { durability: "relaxed" });
    try {
      if (store.latest.get(meta, MARK) === saved.mark) {
        // Should a crash of the machine bring back the file, the store that was changed since is known by that.
        await store.commit(NO_PARTITION, (tx) => tx.remove(meta, MARK));
        return new ReplicaCopy(store, saved, directory, options);
      }
    } catch (error) {
      await store.close();
      throw error;
    }
    await store.close();
    return undefined;
  }

  get vectors(): number {
    return COPIED.reduce((sum, { vectors }) => sum + this.store.count(vectors), 0);
  }

  /** Takes the provider, which decides which vectors are compared. */
  async takeProvider(): Promise<void> {
    const row = await this.#source.readNewest((reader) => reader.get(provider, PROVIDER_KEY));
    await this.#commit((tx) => {
      if (row === undefined) return tx.remove(provider, PROVIDER_KEY);
      // Up to which id vectors are to be replaced says nothing here, where some have other ids.
      const { identity, generation } = row;
      tx.put(provider, PROVIDER_KEY, { identity, generation });
    });
  }

  /** Takes vectors as they are in the database now, with their records. */
  async load(collection: CopiedCollection, ids: readonly BareId[]): Promise<void> {
    const { records, vectors } = collection;
    const found = await this.#source.readNewest((reader) => {
      reader.ahead(vectors, ids);
      // Most have the ids of their records.
      reader.ahead(records, ids);
      const bytes = new Map(ids.flatMap((id) => bytesOf(reader, collection, id)));
      const owners = Array.from(bytes.values(), storedMemory);
      reader.ahead(records, owners);
      return { bytes, rows: owners.map((record) => ({ record, row: unlessUnreadable(() => reader.get(records, record)) })) };
    });
    await this.#put(collection, found.rows, found.bytes);
  }

  /** Takes records as they are in the database now. */
  async take(collection: CopiedCollection, records: readonly BareId[]): Promise<void> {
    for (let i = 0; i < records.length; i += RECORDS_AT_ONCE) {
      const { rows, bytes } = await this.#read(collection, records.slice(i, i + RECORDS_AT_ONCE));
      await this.#put(collection, rows, bytes);
      await nextTurn();
    }
    this.indexes[collection.name].changed();
  }

  /** Reads records, and those vectors of them that are not in the copy. */
  async #read(collection: CopiedCollection, some: readonly BareId[]): Promise<{ rows: ReadRecord[]; bytes: Map<BareId, Uint8Array> }> {
    const { records, vectors } = collection;
    const known = new Map(some.map((record) => [record, this.#original(collection, record)]));
    return this.#source.readNewest((reader) => {
      reader.ahead(records, some);
      // New ones have, most of them, vectors with their own ids.
      reader.ahead(
        vectors,
        some.filter((record) => known.get(record) === undefined),
      );
      const rows = some.map((record) => ({ record, row: unlessUnreadable(() => reader.get(records, record)) }));
      const missing = rows.flatMap(({ record, row }) => {
        const id = row?.embedding?.id;
        return id === undefined || id === known.get(record) ? [] : [bare(id)];
      });
      reader.ahead(vectors, missing);
      return { rows, bytes: new Map(missing.flatMap((id) => bytesOf(reader, collection, id))) };
    });
  }

  #original({ records }: Collection, record: BareId): Id<"emb"> | undefined {
    try {
      return originalOf(this.store.latest.get(records, record));
    } catch (error) {
      throw new CopyLost(describeError(error));
    }
  }

  async #put(collection: CopiedCollection, read: readonly ReadRecord[], bytes: ReadonlyMap<BareId, Uint8Array>): Promise<void> {
    const inOrder = read.toSorted((a, b) => ((a.row?.embedding?.id ?? "") < (b.row?.embedding?.id ?? "") ? -1 : 1));
    const { name } = collection;
    const before = this.#newest[name];
    this.#newest[name] = await this.#commit((tx) => {
      let newest = before;
      for (const { record, row } of inOrder) newest = putRecord(tx, collection, record, row, bytes, newest);
      return newest;
    });
  }

  async #commit<Result>(work: (tx: Tx) => Result): Promise<Result> {
    try {
      return await this.store.commit(NO_PARTITION, work);
    } catch (error) {
      throw new CopyLost(describeError(error));
    }
  }

  /** Closes it, to be opened again. */
  async close(): Promise<void> {
    const mark = crypto.randomUUID();
    await this.#commit((tx) => tx.put(meta, MARK, mark));
    await this.#closeParts();
    const saved: SavedPosition = { form: FORM, mark, position: { ...this.position, connections: -1 }, newest: this.#newest };
    writeFileSync(join(this.#directory, POSITION_FILE), JSON.stringify(saved), { mode: 0o600 });
  }

  /** Closes it for good. */
  async abandon(): Promise<void> {
    await this.#closeParts();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #closeParts(): Promise<void> {
    for (const index of Object.values(this.indexes)) await index.close();
    await this.store.close();
  }
}

function bytesOf(reader: Reader, { vectors }: Collection, id: BareId): [BareId, Uint8Array][] {
  const bytes = reader.vectorBytes(vectors, id);
  return bytes === undefined ? [] : [[id, bytes.slice()]];
}

/** @param newest - the greatest id that a vector has had @returns the same with this one */
function putRecord(
  tx: Tx,
  collection: Collection,
  record: BareId,
  row: EmbeddedRow | undefined,
  bytes: ReadonlyMap<BareId, Uint8Array>,
  newest: string,
): string {
  const { records, vectors } = collection;
  const known: CopiedRow | undefined = tx.get(records, record);
  const original = row?.embedding?.id;
  if (row !== undefined && original !== undefined && known?.embedding !== undefined && originalOf(known) === original) {
    tx.put(records, record, copied(row, known.embedding.id));
    return newest;
  }
  const vector = original === undefined ? undefined : bytes.get(bare(original));
  if (known !== undefined) removeVector(tx, collection, known);
  if (row === undefined || original === undefined || vector === undefined) {
    if (known !== undefined) tx.remove(records, record);
    return newest;
  }
  const id = bare(original) > newest ? bare(original) : idAfter(newest);
  tx.putVector(vectors, id, vector);
  if (known === undefined) tx.add(records, record, copied(row, withPrefix("emb", id)));
  else tx.put(records, record, copied(row, withPrefix("emb", id)));
  return id;
}

/** Part of a record in the copy. @param id - of its vector there */
function copied(row: EmbeddedRow, id: Id<"emb">): CopiedRow {
  const { embedding } = row;
  if (embedding === undefined) return row;
  const texts = "content" in row ? { content: "", metadata: indexedPart((row as MemoryRow).metadata) } : {};
  const original = embedding.id === id ? {} : { original: embedding.id };
  return { ...row, ...texts, ...original, embedding: { ...embedding, id } };
}

function originalOf(row: CopiedRow | undefined): Id<"emb"> | undefined {
  return row?.original ?? row?.embedding?.id;
}

/** Digits of an id that one number of this language holds. */
const TAIL_LENGTH = 5;

/** The next id there can be. */
function idAfter(id: BareId): BareId {
  const [head, tail] = [id.slice(0, -TAIL_LENGTH), fromBase62(id.slice(-TAIL_LENGTH)) + 1];
  if (tail < 62 ** TAIL_LENGTH) return head + toBase62(tail, TAIL_LENGTH);
  return toBase62(fromBase62(head) + 1, BARE_ID_LENGTH - TAIL_LENGTH) + "0".repeat(TAIL_LENGTH);
}
