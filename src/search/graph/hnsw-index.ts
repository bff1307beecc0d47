/**
 * hnswlib, and the only file that knows it: a graph of projections, whose labels are slots and passages.
 *
 * It leads from a vector to near ones and passes by what lies apart, so it is one of two sides: what has the query's words is found by
 * them (`term-index.ts`).
 *
 * A number is a byte (`scripts/hnswlib/bytes.patch`): next to what a projection leaves out, what rounding does to it is nothing.
 *
 * Duties of callers of hnswlib-node 3.0.0, each seen to crash or corrupt otherwise:
 * - numbers from -127 to 127 as an `Int8Array` of the right length;
 * - no filter callback, and never a label given twice;
 * - no two calls at once that change a graph, for nothing is locked (`scripts/hnswlib/memory.patch`);
 * - while `save` runs, no other call but `nearest`, and the object kept alive;
 * - `load` into a fresh object, which is kept alive and not called meanwhile;
 * - the thread that has called it must not end while it runs.
 *
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import hnswlib, { type SpaceName } from "hnswlib-node";
import { PASSAGES_MAX } from "../../embeddings/embedder.ts";
import { project, PROJECTED_DIMENSION } from "./projection.ts";

const LINKS = 12;
/** Breadth of the search for the links of a point. */
const EF_CONSTRUCTION = 80;
const CAPACITY_FIRST = 1024;
const GROWTH = 1.2;

/** In hnswlib's file: the length of what goes before the points, and where in it their number and the size of one stand. */
const HEADER_BYTES = 96;
const HEADER_COUNT = 16;
const HEADER_POINT_BYTES = 24;
/** And where in a point its label and its vector stand. */
const HEADER_LABEL_AT = 32;
const HEADER_VECTOR_AT = 40;

/** Bytes of a point besides that: where its upper links are, its level, its label and the search that saw it last. */
const POINT_OWN_BYTES = 8 + 4 + 8 + 2;
/** Links of upper levels, which one point in `LINKS` has, and one of those in `LINKS` the next. */
const UPPER_LINKS_BYTES = ((LINKS + 1) * 4) / (LINKS - 1);

/** Bytes of a point: its projection, its links and a label. A few have links of upper levels too. */
export const POINT_BYTES = PROJECTED_DIMENSION + (2 * LINKS + 1) * 4 + 8;

function pointBytesIn(file: string): number {
  const descriptor = openSync(file, "r");
  try {
    const header = new DataView(new ArrayBuffer(HEADER_BYTES));
    readSync(descriptor, header, 0, HEADER_BYTES, 0);
    return Number(header.getBigUint64(HEADER_POINT_BYTES, true));
  } finally {
    closeSync(descriptor);
  }
}

/** Unit of a number of a point. Projections are of length 1: hardly any number of theirs is greater than half of that. */
const UNIT = 256;
const NUMBER_MAX = 127;
/** The space of products of bytes, which the types of hnswlib-node do not know. */
const BYTES = "bytes" as SpaceName;

/** Projections as they are in a graph. */
class Points {
  readonly #numbers = new Float64Array(PROJECTED_DIMENSION);
  /** That of the last vector. */
  readonly bytes = new Int8Array(PROJECTED_DIMENSION);

  of(vector: Float32Array | Int16Array): Int8Array {
    project(vector, this.#numbers);
    for (let i = 0; i < this.bytes.length; i++) {
      // NaN becomes 0.
      this.bytes[i] = Math.max(-NUMBER_MAX, Math.min(NUMBER_MAX, Math.round(UNIT * this.#numbers[i]!)));
    }
    return this.bytes;
  }
}

/** Checks whether a point of a graph is what this vector became. */
export function isPointOf(point: Int8Array, vector: Float32Array): boolean {
  const expected = new Points().of(vector);
  return point.every((number, i) => number === expected[i]);
}

/** Loads hnswlib, which otherwise happens when there is a graph. @throws {Error} when it cannot be loaded */
export function loadHnswlib(): void {
  new hnswlib.HierarchicalNSW(BYTES, 1).initIndex(1);
}

export class HnswIndex {
  readonly #graph: hnswlib.HierarchicalNSW;
  readonly #points = new Points();

  private constructor(graph: hnswlib.HierarchicalNSW) {
    this.#graph = graph;
  }

  static empty(): HnswIndex {
    const graph = new hnswlib.HierarchicalNSW(BYTES, PROJECTED_DIMENSION);
    graph.initIndex({ maxElements: CAPACITY_FIRST, m: LINKS, efConstruction: EF_CONSTRUCTION, randomSeed: 100 });
    return new HnswIndex(graph);
  }

  /**
   * Reads a graph in a thread of its own: a million points take most of a second.
   *
   * @param points - how many there are
   * @throws {Error} when the file is not sound (`scripts/hnswlib/damage.patch`), or has another number of points
   */
  static async load(file: string, points: number): Promise<HnswIndex> {
    if (pointBytesIn(file) !== POINT_BYTES) throw new Error("its points are of another length");
    const graph = new hnswlib.HierarchicalNSW(BYTES, PROJECTED_DIMENSION);
    await graph.readIndex(file);
    if (graph.getCurrentCount() !== points) throw new Error(`it has ${graph.getCurrentCount()} points, not ${points}`);
    return new HnswIndex(graph);
  }

  /** Points, those of removed vectors included. */
  get points(): number {
    return this.#graph.getCurrentCount();
  }

  /** Memory taken. There is space for more points, which takes none before they are there. */
  get bytes(): number {
    return Math.round(this.points * (POINT_BYTES + POINT_OWN_BYTES + UPPER_LINKS_BYTES));
  }

  /** Adds a point for each passage of a slot. Must not be called twice for a slot. */
  add(slot: number, passages: readonly Float32Array[]): void {
    for (const [passage, vector] of passages.entries()) {
      const { points } = this;
      if (points === this.#graph.getMaxElements()) this.#graph.resizeIndex(Math.ceil(Math.max(CAPACITY_FIRST, points * GROWTH)));
      this.#graph.addPoint(given(this.#points.of(vector)), labelOf(slot, passage));
    }
  }

  /** The slot, which must be there, is no longer found. Its points take space until the index is rebuilt. */
  remove(slot: number): void {
    try {
      for (let passage = 0; passage < PASSAGES_MAX; passage++) this.#graph.markDelete(labelOf(slot, passage));
    } catch (error) {
      // hnswlib does not say otherwise which points it has. A memory whose vector was not made yet has a slot and no point.
      if (!(error instanceof Error && error.message.includes("Label not found"))) throw error;
    }
  }

  /**
   * Up to `count` slots of which a vector may be near the query; fewer when there are no more, or when it does not come to all of them.
   * Looks at more where many of the nearest are passages of the same texts.
   */
  nearest(query: Int16Array, count: number): number[] {
    const { points } = this;
    for (let wanted = Math.min(count, points); ; wanted = Math.min(PASSAGES_LOOKED_AT * wanted, points)) {
      if (wanted === 0) return [];
      this.#graph.setEf(wanted);
      const { neighbors } = this.#graph.searchKnn(given(this.#points.of(query)), wanted);
      const slots = Array.from(new Set(neighbors.map(slotOf)));
      if (slots.length >= count || neighbors.length < wanted || wanted === points) return slots.slice(0, count);
    }
  }

  /** @throws {Error} when the disk did not take all of it */
  async save(file: string): Promise<void> {
    const { points } = this;
    await this.#graph.writeIndex(file);
    // hnswlib reports success whatever happens.
    if (!(await isWhole(file, points))) throw new Error("the disk did not take all of the graph");
  }

  /** Gives the memory back now; the garbage collector sees how small the object is, not what hangs on it. No use after this. */
  release(): void {
    this.#graph.initIndex(1);
  }
}

/** Factor by which more points are looked at where those before were of too few slots. */
const PASSAGES_LOOKED_AT = 4;

/** hnswlib's bindings take labels below 2^32: of 67 million slots. */
function labelOf(slot: number, passage: number): number {
  return slot * PASSAGES_MAX + passage;
}

function slotOf(label: number): number {
  return Math.floor(label / PASSAGES_MAX);
}

/** As the types of hnswlib-node want it. */
function given(bytes: Int8Array): number[] {
  return bytes as unknown as number[];
}

/** A point as it is on disk: what became of the vector of a passage. */
export interface GraphPoint {
  readonly slot: number;
  readonly passage: number;
  readonly projection: Int8Array;
}

/** The points in a file that was found whole, one after the other, to be seen and not to be searched. */
export function* pointsIn(file: string): Generator<GraphPoint, void, undefined> {
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
      const projection = new Int8Array(point.buffer.slice(vectorAt, vectorAt + PROJECTED_DIMENSION));
      const label = Number(point.getBigUint64(labelAt, true));
      yield { slot: slotOf(label), passage: label % PASSAGES_MAX, projection };
    }
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Checks whether the file ends where the last point's links do: header, points, then for each point the length of its links and the links.
 */
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
