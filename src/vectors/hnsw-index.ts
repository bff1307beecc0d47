/**
 * hnswlib, and the only file that knows it: a graph of vectors, each a point with a number of its own, its label.
 *
 * The last place of every vector is left out, that is zero. The built-in provider keeps there what a memory gives up of its
 * length; a query has nothing there, so for the two it makes no difference. Among memories it made short ones neighbours
 * whatever they say, and the way to a memory was lost: of the ten nearest of 10,000 texts 80 % were found, now 98 %. For
 * other providers it is one number of 1536, and an exact cosine needs the vector in the store.
 *
 * What hnswlib-node 3.0.0 needs from its caller, each seen to crash or corrupt otherwise:
 * - nothing but finite numbers in a vector (anything else ends the process, NaN poisons the graph);
 * - no filter callback, and never a label given twice;
 * - while `save` runs, no other call but `nearest`, and the object kept alive;
 * - `load` only from a file that was checked byte for byte before, into a fresh object.
 *
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import hnswlib from "hnswlib-node";
import { DIMENSION, LENGTH_PLACE } from "../embeddings/embedder.ts";
import type { BareId } from "../lib/ids.ts";
import { UNIT } from "./encoding.ts";
import type { Hit } from "./top-k.ts";

/** Links per point and how widely to look for them: a point takes 0.7 ms so, and twice as wide twice as long. */
const LINKS = 16;
const EF_CONSTRUCTION = 100;
/** How widely to look at least when searching: of 100,000 texts 96 of 100 nearest are found so, with 128 it is 71. */
const EF_SEARCH_MIN = 1024;
const CAPACITY_FIRST = 1024;
const GROWTH = 1.2;

/** In hnswlib's file: the length of what goes before the points, and where in it their number and the size of one stand. */
const HEADER_BYTES = 96;
const HEADER_COUNT = 16;
const HEADER_POINT_BYTES = 24;
/** And where in a point its label and its vector stand. */
const HEADER_LABEL_AT = 32;
const HEADER_VECTOR_AT = 40;

/** Whether a point of a graph is what this vector became. */
export function isPointOf(point: Float32Array, vector: Int16Array): boolean {
  return point[LENGTH_PLACE] === 0 && vector.every((number, i) => i === LENGTH_PLACE || Math.fround(number / UNIT) === point[i]);
}

/** Loads hnswlib, which otherwise happens when there is a graph. @throws {Error} when it cannot be loaded */
export function loadHnswlib(): void {
  new hnswlib.HierarchicalNSW("ip", DIMENSION).initIndex(1);
}

export class HnswIndex {
  #opened: hnswlib.HierarchicalNSW | undefined;
  /** By label, which count from 0: the vector's id; undefined for a removed point. */
  readonly #ids: (BareId | undefined)[];
  readonly #labels: Map<BareId, number>;
  /** hnswlib takes plain arrays only; filling the same one again is 25 times faster than making one. Its last place stays 0. */
  readonly #scratch: number[] = Array.from({ length: DIMENSION }, () => 0);

  private constructor(graph: hnswlib.HierarchicalNSW | undefined, ids: (BareId | undefined)[]) {
    this.#opened = graph;
    this.#ids = ids;
    this.#labels = new Map(ids.flatMap((id, label) => (id === undefined ? [] : [[id, label] as const])));
  }

  static empty(): HnswIndex {
    return new HnswIndex(undefined, []);
  }

  /** Made when it is first wanted: hnswlib is loaded then, and most stores never have a graph. */
  get #graph(): hnswlib.HierarchicalNSW {
    if (this.#opened !== undefined) return this.#opened;
    const graph = new hnswlib.HierarchicalNSW("ip", DIMENSION);
    graph.initIndex({ maxElements: CAPACITY_FIRST, m: LINKS, efConstruction: EF_CONSTRUCTION, randomSeed: 100 });
    return (this.#opened = graph);
  }

  /**
   * @param ids - of the points by label, as `ids` gave them when the file was saved
   * @throws {Error} when the file is of a length that cannot be, or of another number of points
   */
  static load(file: string, ids: (BareId | undefined)[]): HnswIndex {
    const graph = new hnswlib.HierarchicalNSW("ip", DIMENSION);
    graph.readIndexSync(file);
    if (graph.getCurrentCount() !== ids.length) throw new Error(`it has ${graph.getCurrentCount()} points, and ${ids.length} ids`);
    return new HnswIndex(graph, ids);
  }

  /** Vectors, removed ones not included. */
  get size(): number {
    return this.#labels.size;
  }

  /** Points of removed vectors, which still take room. */
  get removed(): number {
    return this.#ids.length - this.size;
  }

  /** The vectors' ids by label; undefined for removed ones. */
  get ids(): readonly (BareId | undefined)[] {
    return this.#ids;
  }

  has(id: BareId): boolean {
    return this.#labels.has(id);
  }

  /** Must not be called twice for a vector. */
  add(id: BareId, vector: Int16Array): void {
    const label = this.#ids.length;
    if (label === this.#graph.getMaxElements()) this.#graph.resizeIndex(Math.ceil(Math.max(CAPACITY_FIRST, label * GROWTH)));
    this.#graph.addPoint(this.#numbers(vector), label);
    this.#ids.push(id);
    this.#labels.set(id, label);
  }

  /** The vector is no longer found; the memory of its point is freed when the graph is rebuilt. @returns whether it was there */
  remove(id: BareId): boolean {
    const label = this.#labels.get(id);
    if (label === undefined) return false;
    this.#graph.markDelete(label);
    this.#labels.delete(id);
    this.#ids[label] = undefined;
    return true;
  }

  /**
   * Up to `count` vectors near the query, nearest first; fewer when there are no more, and among many equal ones when it does
   * not come to all of them. When more than `count` are equally near, those on its way come, not the newest. Their cosines
   * lack the product of the last places.
   */
  nearest(query: Int16Array, count: number): Hit[] {
    const wanted = Math.min(count, this.#ids.length);
    if (wanted === 0) return [];
    this.#graph.setEf(Math.max(EF_SEARCH_MIN, wanted));
    const { neighbors, distances } = this.#graph.searchKnn(this.#numbers(query), wanted);
    return neighbors.map((label, i) => ({ id: this.#ids[label]!, cosine: 1 - distances[i]! }));
  }

  /** @throws {Error} when the disk did not take all of it */
  async save(file: string): Promise<void> {
    await this.#graph.writeIndex(file);
    // hnswlib reports success whatever happens.
    if (!(await isWhole(file, this.#ids.length))) throw new Error("the disk did not take all of the graph");
  }

  /** Gives the memory back now; the garbage collector sees how small the object is, not what hangs on it. No use after this. */
  release(): void {
    this.#opened?.initIndex(1);
  }

  #numbers(vector: Int16Array): number[] {
    for (let i = 0; i < LENGTH_PLACE; i++) this.#scratch[i] = vector[i]! / UNIT;
    return this.#scratch;
  }
}

/** The points in a file that was found whole, one after the other, to be seen and not to be searched. */
export function* pointsIn(file: string): Generator<{ label: number; vector: Float32Array }, void, undefined> {
  const descriptor = openSync(file, "r");
  try {
    const header = new DataView(new ArrayBuffer(HEADER_BYTES));
    readSync(descriptor, header, 0, HEADER_BYTES, 0);
    const [count, size, labelAt, vectorAt] = [HEADER_COUNT, HEADER_POINT_BYTES, HEADER_LABEL_AT, HEADER_VECTOR_AT].map((at) =>
      Number(header.getBigUint64(at, true)),
    ) as [number, number, number, number];
    const point = new DataView(new ArrayBuffer(size));
    for (let i = 0; i < count; i++) {
      readSync(descriptor, point, 0, size, HEADER_BYTES + i * size);
      // A copy, because where it stands need not be a multiple of four.
      const vector = new Float32Array(point.buffer.slice(vectorAt, vectorAt + DIMENSION * Float32Array.BYTES_PER_ELEMENT));
      yield { label: Number(point.getBigUint64(labelAt, true)), vector };
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Whether the file ends where the last point's links do: header, points, then for each point the length of its links and the links. */
async function isWhole(file: string, count: number): Promise<boolean> {
  const header = new DataView(await Bun.file(file).slice(0, HEADER_BYTES).arrayBuffer());
  if (header.byteLength < HEADER_BYTES || header.getBigUint64(HEADER_COUNT, true) !== BigInt(count)) return false;
  const linksAt = HEADER_BYTES + count * Number(header.getBigUint64(HEADER_POINT_BYTES, true));
  const links = new DataView(await Bun.file(file).slice(linksAt).arrayBuffer());
  let at = 0;
  for (let i = 0; i < count; i++) {
    if (at + 4 > links.byteLength) return false;
    at += 4 + links.getUint32(at, true);
  }
  return at === links.byteLength;
}
