import { expect, test } from "bun:test";
import { Remembered } from "../../../src/storage/remembered.ts";

test("of more rows than it may keep those asked for last are there, and what was taken out is not", () => {
  const rows = new Remembered<{ i: number }>(100);
  for (let i = 0; i < 1_000; i++) {
    rows.set(`k${i}`, { i });
    // Asked for again and again, so never forgotten.
    expect(rows.get("k0")).toEqual({ i: 0 });
  }
  const there = Array.from({ length: 1_000 }, (_, i) => i).filter((i) => rows.get(`k${i}`) !== undefined);
  expect(there.length).toBeLessThanOrEqual(101);
  expect(there).toContain(999);
  expect(there).not.toContain(1);
  rows.delete("k999");
  rows.delete("k0");
  expect([rows.get("k999"), rows.get("k0")]).toEqual([undefined, undefined]);
  rows.set("again", { i: 1 });
  rows.clear();
  expect(rows.get("again")).toBeUndefined();
});

test("what weighs more is remembered for less of the others, and what takes another's place weighs in its stead", () => {
  const texts = new Remembered<string>(100, ({ length }) => length);
  for (let i = 0; i < 1_000; i++) texts.set("same", "x".repeat(40));
  texts.set("other", "y");
  expect(texts.get("same")).toHaveLength(40);
  const there = () => Array.from({ length: 1_000 }, (_, i) => texts.get(`k${i}`) ?? "").join("").length;
  for (let i = 0; i < 1_000; i++) texts.set(`k${i}`, "x".repeat(i % 7));
  expect(there()).toBeLessThanOrEqual(112);
  expect(there()).toBeGreaterThanOrEqual(50);
  for (let i = 0; i < 1_000; i++) texts.delete(`k${i}`);
  texts.set("light", "x");
  texts.set("heavy", "x".repeat(49));
  expect([texts.get("light"), there()]).toEqual(["x", 0]);
});
