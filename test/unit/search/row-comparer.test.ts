import { expect, test } from "bun:test";
import { DIMENSION_MAX, NO_COSINE } from "../../../src/embeddings/embedder.ts";
import { cosineOf, NO_VECTOR_SCALE } from "../../../src/search/encoding.ts";
import { newRowComparer } from "../../../src/search/row-comparer.ts";
import { chance } from "./stored-vectors.ts";

const random = chance(3);
const below = (count: number) => Math.floor(random() * count);
const PIECE_SLOTS = 16_384;
const CHUNK_BYTES = 100_000;

interface Row {
  numbers: Int8Array;
  terms: number;
  scale: number;
}

/** Damaged ones are longer than any vector. */
function anyRow(damaged: boolean): Row {
  return {
    numbers: Int8Array.from({ length: 4 * below((damaged ? 4_000 : DIMENSION_MAX) / 4 + 1) }, () => below(255) - 127),
    terms: below(random() < 0.05 ? 700 : 20),
    scale: random() < 0.01 ? NO_VECTOR_SCALE : 1 + below(65_534),
  };
}

/** Writes rows down as `vector-rows.ts` says. */
function written(rows: readonly Row[]): { pieces: Uint32Array[]; chunks: Uint8Array[] } {
  const pieces = Array.from({ length: Math.ceil(rows.length / PIECE_SLOTS) }, () => new Uint32Array(4 * PIECE_SLOTS));
  const chunks: Uint8Array[] = [];
  let end = CHUNK_BYTES;
  for (const [slot, { numbers, terms, scale }] of rows.entries()) {
    const bytes = numbers.length + 4 * terms;
    if (end + bytes > CHUNK_BYTES) {
      chunks.push(new Uint8Array(new SharedArrayBuffer(CHUNK_BYTES)));
      end = 0;
    }
    chunks.at(-1)!.set(new Uint8Array(numbers.buffer), end);
    const at = [end, numbers.length | ((chunks.length - 1) << 16), terms, scale];
    pieces[Math.floor(slot / PIECE_SLOTS)]!.set(at, (slot % PIECE_SLOTS) * 4);
    end += bytes;
  }
  return { pieces, chunks };
}

/** What comparers read where it is: they do not keep it from being collected. */
const kept: (Uint8Array | Uint32Array)[] = [];

function comparerOf(rows: readonly Row[]) {
  const comparer = newRowComparer();
  const { pieces, chunks } = written(rows);
  kept.push(...pieces, ...chunks);
  for (const piece of pieces) comparer.addPiece(piece);
  for (const chunk of chunks) comparer.addChunk(chunk);
  return { comparer, pieces, chunks };
}

function cosine(query: Int16Array, { numbers, scale }: Row): number {
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum = (sum + numbers[i]! * (query[i] ?? 0)) | 0;
  return cosineOf(sum, scale) + 0;
}

test.each([false, true])("rows of all lengths are compared as a plain loop does it, damaged ones %p", (damaged) => {
  const rows = Array.from({ length: 20_000 }, (_, i) =>
    i % 50 === 0 ? anyRow(damaged) : { ...anyRow(damaged), numbers: new Int8Array(8) },
  );
  const { comparer, pieces } = comparerOf(rows);
  expect(pieces).toHaveLength(2);
  for (const dimension of [0, 17, 384, DIMENSION_MAX]) {
    for (const count of [0, 1, 7, 8, 23, 24, 25, 100, 3_000]) {
      const query = Int16Array.from({ length: dimension }, () => below(65_536) - 32_768);
      const slots = Uint32Array.from({ length: count }, (_, i) => (i % 2 === 0 ? 50 * below(400) : below(rows.length)));
      const found = new Float64Array(count);
      comparer.compare(query, slots, found);
      expect(found).toEqual(Float64Array.from(slots, (slot) => cosine(query, rows[slot]!)));
    }
  }
});

test("a vector that is gone has a cosine of 0, also where no row was ever written; a text without one less than any", () => {
  const comparer = newRowComparer();
  const places = new Uint32Array(4 * PIECE_SLOTS);
  places.set([0, 0, 0, NO_VECTOR_SCALE], 4);
  kept.push(places);
  comparer.addPiece(places);
  comparer.addChunk(new Uint8Array(8));
  const cosines = Float64Array.of(7, 7);
  comparer.compare(new Int16Array(DIMENSION_MAX).fill(1), Uint32Array.of(0, 1), cosines);
  expect(cosines).toEqual(Float64Array.of(0, NO_COSINE));
});

test("what there is no row for is refused", () => {
  const { comparer, pieces, chunks } = comparerOf(Array.from({ length: 100 }, () => anyRow(false)));
  const query = new Int16Array(DIMENSION_MAX);
  const compare = (...slots: number[]) => comparer.compare(query, Uint32Array.from(slots), new Float64Array(slots.length));
  // A slot that is there and has no row is as one that is gone.
  compare(0, 99, 100, PIECE_SLOTS - 1);
  expect(() => compare(0, PIECE_SLOTS)).toThrow(RangeError);
  expect(() => compare(2 ** 32 - 1)).toThrow(RangeError);
  expect(() => comparer.compare(query, Uint32Array.of(1, 2), new Float64Array(1))).toThrow(RangeError);
  const places = pieces[0]!;
  for (const [word, value] of [
    [0, CHUNK_BYTES],
    [0, 2 ** 32 - 4],
    [1, (chunks.length << 16) | 8],
  ] as const) {
    const before = places[word]!;
    places[word] = value;
    expect(() => compare(1, 0)).toThrow(RangeError);
    places[word] = before;
  }
  compare(1, 0);
  expect(() => newRowComparer().compare(query, Uint32Array.of(0), new Float64Array(1))).toThrow(RangeError);
});

test("a row has a term where one but its last is among those asked for, however many these are", () => {
  const rows = Array.from({ length: 2_000 }, () => anyRow(false));
  const { comparer, pieces, chunks } = comparerOf(rows);
  const termsOf = (slot: number) => {
    const [start, place, count] = pieces[0]!.subarray(4 * slot) as unknown as [number, number, number];
    return new Uint32Array(chunks[place >>> 16]!.buffer, start + (place & 0xffff), count);
  };
  // Some fall on the place of another one.
  for (const slot of rows.keys())
    for (const [i] of termsOf(slot).entries()) termsOf(slot)[i] = below(3) === 0 ? below(40) * 4096 + 7 : below(2 ** 32);
  const slots = Uint32Array.from({ length: 3_000 }, () => below(rows.length + 5));
  for (const count of [0, 1, 8, 400]) {
    const ids = Uint32Array.from({ length: count }, (_, i) => (i % 2 === 0 ? below(40) * 4096 + 7 : below(2 ** 32)));
    const found = new Uint8Array(slots.length).fill(9);
    comparer.match(ids, slots, found);
    const hasAny = (slot: number) =>
      slot < rows.length &&
      termsOf(slot)
        .subarray(0, -1)
        .some((term) => ids.includes(term));
    expect(found).toEqual(Uint8Array.from(slots, (slot) => (hasAny(slot) ? 1 : 0)));
  }
  const match = (...some: number[]) => comparer.match(Uint32Array.of(1), Uint32Array.from(some), new Uint8Array(some.length));
  expect(() => match(PIECE_SLOTS)).toThrow(RangeError);
  expect(() => comparer.match(Uint32Array.of(1), Uint32Array.of(1, 2), new Uint8Array(1))).toThrow(RangeError);
  const slot = rows.findIndex(({ terms }) => terms > 1);
  pieces[0]![4 * slot + 2] = CHUNK_BYTES;
  expect(() => match(slot)).toThrow(RangeError);
});
