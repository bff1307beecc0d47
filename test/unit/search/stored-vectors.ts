/**
 * A store with vectors in it and nothing else of a service, for tests of the index alone; and the exact answer to compare
 * with.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DIMENSION_MAX, type Embedding } from "../../../src/embeddings/embedder.ts";
import { BUILTIN_CALIBRATION, type Calibration } from "../../../src/embeddings/score.ts";
import { bare, NO_PARTITION, withPrefix, type BareId } from "../../../src/lib/ids.ts";
import { MEMORIES } from "../../../src/storage/collections.ts";
import { MAX_KEY, hashKey } from "../../../src/storage/keys.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { generationOf, removeRecord, removeVector } from "../../../src/storage/memory-records.ts";
import { memories, vectors, type MemoryRow } from "../../../src/storage/tables.ts";
import { matches, posting, type Filter } from "../../../src/storage/walk.ts";
import { cosineOf, encodeVector, quantize, storedMemory, storedNumbers, storedVector } from "../../../src/search/encoding.ts";
import { IdTable } from "../../../src/search/id-table.ts";
import type { Neighbour, Query } from "../../../src/search/query.ts";
import type { Shared } from "../../../src/search/scopes/shared-vectors.ts";
import { storeVector } from "../../../src/search/store-vector.ts";
import { VectorRows } from "../../../src/search/vector-rows.ts";
import { FakeClock } from "../../support/clock.ts";
import { madeEmbedder } from "../../support/made-embedder.ts";

export interface Stored {
  memory: BareId;
  vector: Float32Array;
}

/** What filters look at. */
export interface Traits {
  user?: string;
  type?: string;
  tags?: string[];
}

function rowOf({ user = "user", type = "general", tags = [] }: Traits): MemoryRow {
  return {
    sessionId: "sess_000000000000",
    userId: user,
    agentId: "agent",
    content: "",
    type,
    tags,
    metadata: {},
    createdAt: 0,
    embed: false,
  };
}

export class StoredVectors implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), "cairn-vectors-"));
  readonly clock = new FakeClock();
  store!: Store;
  /** What is stored, oldest first. */
  stored: Stored[] = [];

  async open(): Promise<this> {
    this.store = await Store.open(this.directory, this.clock);
    return this;
  }

  /** One memory for each vector, in one commit. */
  add(vectors: readonly Float32Array[], traitsOf?: (index: number) => Traits): Promise<Stored[]> {
    return this.addEmbeddings(
      vectors.map((vector) => ({ vector, terms: new Uint32Array(0) })),
      traitsOf,
    );
  }

  async addEmbeddings(embeddings: readonly Embedding[], traitsOf: (index: number) => Traits = () => ({})): Promise<Stored[]> {
    const added = await this.store.commit(NO_PARTITION, (tx) =>
      embeddings.map((embedded, index) => {
        const memory = tx.bareId();
        const embedding = storeVector(tx, MEMORIES, memory, generationOf(tx), embedded, withPrefix("emb", memory));
        tx.add(memories, memory, { ...rowOf(traitsOf(index)), embed: true, embedding });
        return { memory, vector: embedded.vector };
      }),
    );
    this.stored.push(...added);
    return added;
  }

  /** Memories that have no vector: they are in the indexes, and no search finds them. */
  async addWithout(count: number, traitsOf: (index: number) => Traits): Promise<void> {
    await this.store.commit(NO_PARTITION, (tx) => {
      for (let index = 0; index < count; index++) tx.add(memories, tx.bareId(), rowOf(traitsOf(index)));
    });
  }

  async remove(removed: readonly Stored[]): Promise<void> {
    await this.store.commit(NO_PARTITION, (tx) => {
      for (const { memory } of removed) removeRecord(tx, MEMORIES, memory);
    });
    const gone = new Set(removed);
    this.stored = this.stored.filter((one) => !gone.has(one));
  }

  /** Another vector for the same memory, as a changed content gets. */
  async replace(one: Stored, vector: Float32Array): Promise<void> {
    await this.store.commit(NO_PARTITION, (tx) => {
      const row = tx.get(memories, one.memory);
      if (row?.embedding === undefined) throw new Error(`${one.memory} has no vector`);
      removeVector(tx, MEMORIES, row);
      const embedding = storeVector(tx, MEMORIES, one.memory, generationOf(tx), { vector, terms: new Uint32Array(0) });
      tx.put(memories, one.memory, { ...row, embedding });
    });
    one.vector = vector;
  }

  /** Other traits for the same memory and vector. */
  async change({ memory }: Stored, traits: Traits): Promise<void> {
    await this.store.commit(NO_PARTITION, (tx) => {
      const row = tx.get(memories, memory)!;
      const { userId, type, tags } = rowOf(traits);
      tx.put(memories, memory, { ...row, userId, type, tags });
    });
  }

  /** The id of a memory's vector. */
  idOf({ memory }: Stored): BareId {
    return bare(this.store.latest.get(memories, memory)!.embedding!.id);
  }

  /** Brute force: the nearest among those that pass, best first, the newer first of equals. */
  exact(query: Float32Array, filter: Filter, limit: number): BareId[] {
    return this.stored
      .filter(({ memory }) => matches(this.store.latest, filter, memory))
      .map(({ memory, vector }) => ({ memory, cosine: dot(query, vector) }))
      .sort((a, b) => b.cosine - a.cosine || (a.memory < b.memory ? 1 : -1))
      .slice(0, limit)
      .map(({ memory }) => memory);
  }

  /** What the worker would tell of what is stored. */
  get shared(): Shared {
    const { latest } = this.store;
    const ids = latest.keys(vectors, { from: "", to: MAX_KEY });
    return sharedOf(ids.map((id) => ({ id, bytes: latest.vectorBytes(vectors, id)!.slice() })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** What the store has of an embedding. */
export function storedBytes(
  { vector, terms = new Uint32Array(0) }: Partial<Embedding> & Pick<Embedding, "vector">,
  memory = "000000000000",
): Uint8Array {
  return encodeVector({ vector, terms }, { memory, generation: 0 });
}

/** What the worker would tell of some vectors, whose ids rise. */
export function sharedOf(stored: readonly { id: BareId; bytes: Uint8Array }[], index = "index"): Shared {
  const [ids, rows] = [new IdTable(), new VectorRows(undefined, 2 ** 21)];
  for (const [slot, { id, bytes }] of stored.entries()) {
    ids.put(slot, id, storedMemory(bytes));
    rows.add(bytes);
  }
  return { index, generation: 0, ids: ids.buffers, rows: rows.shared };
}

/** The twelve characters of an id, in the order of numbers. */
export const idAt = (number: number): BareId => String(number).padStart(12, "0");

const NO_WORDS = { weights: new Float64Array(0), ids: new Uint32Array(0), fingerprint: 0 };
/** By cosine alone. */
const BY_COSINE: Calibration = { kind: "measured", lexicalShare: 0, cosineOfUnrelated: -1, cosineOfSame: 1, relevant: 0.5 };

export function queryFor(vector: Float32Array, limit: number): Query {
  return { vector: quantize(vector), limit, enough: limit, words: NO_WORDS, calibration: BY_COSINE };
}

/** A query as a search makes it, with a made-up vector. */
export function queryOf(text: string, limit: number): Query {
  const { vector, lexical } = madeEmbedder.embedQuery(text);
  return { vector: quantize(vector), limit, enough: limit, words: lexical, calibration: BUILTIN_CALIBRATION };
}

/** Best first, of equal ones the newer memory first. */
export function byNearness(a: Neighbour, b: Neighbour): number {
  return b.cosine - a.cosine || (a.memory < b.memory ? 1 : -1);
}

/** What steps come to when nothing happens in between. */
export function finished<Result>(steps: Generator<unknown, Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

export function storedVectors(): Promise<StoredVectors> {
  return new StoredVectors().open();
}

export const ofUser = (user: string) => posting(memories.index.byUser, hashKey(user));
export const ofType = (type: string) => posting(memories.index.byType, hashKey(type));
export const withAnyTag = (...tags: string[]) => posting(memories.index.byTag, ...tags.map(hashKey));

/** The numbers of a vector as they are stored, in integers, and their scale: decoded once, since a test compares a vector many times. */
const decoded = new WeakMap<Float32Array, { numbers: Int16Array; scale: number }>();

function decodedOf(vector: Float32Array): { numbers: Int16Array; scale: number } {
  let known = decoded.get(vector);
  if (known === undefined) {
    const bytes = storedBytes({ vector });
    const { scale } = storedNumbers(bytes);
    const one = cosineOf(1, scale) * 32_767;
    known = { numbers: Int16Array.from(storedVector(bytes), (number) => Math.round(number / one)), scale };
    decoded.set(vector, known);
  }
  return known;
}

const quantized = new WeakMap<Float32Array, Int16Array>();

/** The cosine of a query and a vector as it is stored, of all its numbers one by one. */
export function dot(query: Float32Array, vector: Float32Array): number {
  const left = quantized.get(query) ?? quantize(query);
  quantized.set(query, left);
  const { numbers: right, scale } = decodedOf(vector);
  let sum = 0;
  for (let i = 0; i < left.length && i < right.length; i++) sum += left[i]! * right[i]!;
  return cosineOf(sum, scale);
}

/** Chance that a seed repeats: Mulberry32. */
export function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A vector of unit length in any direction, or in that of `centre` with so much of any other added. */
export function unitVector(random: () => number, centre?: Float32Array, spread = 1, dimension = DIMENSION_MAX): Float32Array {
  const vector = new Float32Array(dimension);
  let squares = 0;
  for (let i = 0; i < dimension; i++) {
    // Uniform in a cube: with 1536 dimensions nothing tells it from a ball. Length 1 on average.
    const noise = (random() - 0.5) * Math.sqrt(12 / dimension);
    const value = centre === undefined ? noise : centre[i]! + spread * noise;
    vector[i] = value;
    squares += value * value;
  }
  const length = Math.sqrt(squares);
  for (let i = 0; i < dimension; i++) vector[i]! /= length;
  return vector;
}
