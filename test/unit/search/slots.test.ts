import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { storedHome } from "../../../src/search/encoding.ts";
import { Slots } from "../../../src/search/slots.ts";
import { sourceOf } from "./part-source.ts";
import { idAt, storedBytes } from "./stored-vectors.ts";

const VECTOR = Float32Array.of(1);
const bytesOf = (number: number) => Buffer.from(idAt(number));
const idsIn = (slots: Slots) => Array.from({ length: slots.length }, (_, slot) => (slots.has(slot) ? slots.id(slot) : undefined));

test("ids and memories are found by slot, and slots by either, also after a way through bytes", () => {
  const vectors = fc.uniqueArray(fc.nat(100_000), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(vectors, fc.array(fc.nat(), { maxLength: 20 }), (numbers, removed) => {
      const slots = Slots.empty();
      const ids = numbers.sort((a, b) => a - b).map(idAt);
      // Every third vector was made after its memory.
      const memories = ids.map((id, i) => (i % 3 === 0 ? idAt(200_000 + i) : id));
      for (const [i, id] of ids.entries()) expect(slots.add(id, memories[i]!)).toBe(i);
      const gone = new Set(removed.map((number) => number % ids.length));
      for (const slot of gone) slots.remove(slot);
      const again = Slots.read(sourceOf(slots.parts()), slots.length);
      for (const one of [slots, again]) {
        expect([one.length, one.removed, one.size]).toEqual([ids.length, gone.size, ids.length - gone.size]);
        for (const [slot, id] of ids.entries()) {
          const known = gone.has(slot) ? undefined : slot;
          expect([one.slotOf(id), one.slotOfMemory(memories[slot]!)]).toEqual([known, known]);
          expect([one.id(slot), one.memory(slot)]).toEqual([id, memories[slot]!]);
        }
        expect(one.slotOf(idAt(999_999))).toBeUndefined();
        const homes = memories.map((memory, slot) => (gone.has(slot) ? undefined : storedHome(storedBytes({ vector: VECTOR }, memory))));
        expect(Array.from(one.partitions())).toEqual(homes);
      }
    }),
  );
});

test("the newest of a memory's vectors is its slot", () => {
  const slots = Slots.empty();
  slots.add(idAt(1), idAt(1));
  slots.add(idAt(2), idAt(1));
  expect(slots.slotOfMemory(idAt(1))).toBe(1);
  slots.remove(1);
  expect(slots.slotOfMemory(idAt(1))).toBe(0);
});

test("of slots only those are kept that are stored; when one is stored that has no slot between others they are of another store", () => {
  const of = (...numbers: number[]) => {
    const slots = Slots.empty();
    for (const number of numbers) slots.add(idAt(number), idAt(number));
    return slots;
  };
  const cases: [kept: boolean, left: number[], slots: number[], stored: number[]][] = [
    [true, [1, 2, 3], [1, 2, 3], [1, 2, 3, 4]],
    [true, [2], [1, 2, 3], [2]],
    [true, [], [1, 2, 3], []],
    [true, [1, 3], [1, 2, 3], [1, 3, 5]],
    [false, [1], [1, 3], [1, 2, 3]],
    [false, [], [2, 3], [1, 2, 3]],
  ];
  for (const [kept, left, numbers, stored] of cases) {
    const slots = of(...numbers);
    const isKept = slots.keepOnly(stored.map(bytesOf), (slot) => slots.remove(slot));
    expect(isKept).toBe(kept);
    if (kept) expect(idsIn(slots).filter((id) => id !== undefined)).toEqual(left.map(idAt));
  }
  const gone = of(1, 2);
  gone.remove(0);
  expect(gone.keepOnly([Buffer.from(idAt(1) + idAt(2))], () => undefined)).toBe(false);
});
