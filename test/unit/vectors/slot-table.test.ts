import { expect, test } from "bun:test";
import { SlotTable } from "../../../src/vectors/slot-table.ts";
import { chance } from "./stored-vectors.ts";

test("slots are found at their places, of whatever number they are, and no others", () => {
  const random = chance(5);
  const table = new SlotTable();
  expect(table.find(0)).toBe(-1);
  for (const count of [0, 1, 511, 512, 513, 5_000, 100, 0]) {
    const slots = new Set<number>();
    while (slots.size < count) slots.add(Math.floor(random() * (slots.size % 2 === 0 ? 2 ** 32 : 4 * count)));
    const given = Uint32Array.from(slots);
    table.fill(given);
    expect(given.map((slot) => table.find(slot))).toEqual(given.map((_, i) => i));
    for (let i = 0; i < 1_000; i++) {
      const other = Math.floor(random() * 2 ** 32);
      if (!slots.has(other)) expect(table.find(other)).toBe(-1);
    }
  }
});
