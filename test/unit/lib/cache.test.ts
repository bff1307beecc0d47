import { expect, test } from "bun:test";
import { Cache, parsedBytes, textBytes } from "../../../src/lib/cache.ts";
import { CACHE_BYTES_MAX } from "../../../src/lib/limits.ts";

/** What an entry counts besides its value. */
const ENTRY = 150;
/** A cache for about so many entries of 100 bytes. */
const cacheOf = (entries: number) => new Cache<string>(entries * (100 + ENTRY));
const cached = (cache: Cache<string>, count: number) =>
  Array.from({ length: count }, (_, i) => i).filter((i) => cache.get(`k${i}`) !== undefined);

test("of more entries than fit, those that were read last are there, and a deleted one is not", () => {
  const cache = cacheOf(100);
  for (let i = 0; i < 1_000; i++) {
    cache.set(`k${i}`, `value ${i}`, 100);
    // Read again and again, so never evicted.
    expect(cache.get("k0")).toBe("value 0");
  }
  const there = cached(cache, 1_000);
  expect(there.length).toBeLessThanOrEqual(100);
  expect(there.length).toBeGreaterThanOrEqual(48);
  expect(there).toContain(999);
  expect(there).not.toContain(1);
  cache.delete("k999");
  cache.delete("k0");
  expect([cache.get("k999"), cache.get("k0")]).toEqual([undefined, undefined]);
  cache.set("again", "value", 1);
  cache.clear();
  expect(cache.get("again")).toBeUndefined();
});

test("large entries leave room for fewer, a replaced one counts once, and one that would evict most others is not cached", () => {
  const cache = cacheOf(100);
  for (let i = 0; i < 1_000; i++) cache.set("same", "value", 1_000);
  cache.set("k1", "other", 100);
  expect([cache.get("same"), cache.get("k1")]).toEqual(["value", "other"]);
  for (let i = 0; i < 1_000; i++) cache.set(`k${i}`, "large", 1_000);
  expect(cached(cache, 1_000).length).toBeLessThanOrEqual(25);
  cache.set("k999", "larger than a sixteenth of all", 2_000);
  expect(cache.get("k999")).toBeUndefined();
});

test("what a value grows by counts, and is refused where it is too much or the entry is gone", () => {
  const cache = cacheOf(100);
  cache.set("k0", "value", 100);
  expect([cache.grow("k0", 1_000), cache.grow("k0", 1_000), cache.grow("other", 1)]).toEqual([true, false, false]);
  for (let i = 1; i < 20; i++) {
    cache.set(`k${i}`, "value", 100);
    cache.grow(`k${i}`, 1_000);
  }
  expect(cached(cache, 20).length).toBeLessThanOrEqual(20);
  expect(cached(cache, 20)).toContain(19);
  expect(cached(cache, 20)).not.toContain(1);
});

test("a text weighs one byte a character, or two where one of them is beyond Latin-1", () => {
  const of = (text: string) => textBytes(JSON.parse(JSON.stringify(text)));
  for (const [text, bytes] of [
    ["x".repeat(1_000), 1_000],
    ["é".repeat(1_000), 1_000],
    ["—".repeat(1_000), 2_000],
  ] as const) {
    expect(of(text)).toBeGreaterThanOrEqual(bytes);
    expect(of(text)).toBeLessThan(bytes + 50);
  }
  const pieces = ["x".repeat(500), "—".repeat(500)];
  expect(textBytes(`${pieces[0]}${pieces[1]}`)).toBeGreaterThanOrEqual(2_000);
});

test("a record weighs by what is in it, members and elements more than their characters", () => {
  const weigh = (record: object) => parsedBytes(JSON.stringify(record), record);
  const plain = weigh({ content: "x".repeat(800), metadata: {} });
  const nested = weigh({ metadata: { a: Array.from({ length: 200 }, () => []) } });
  const named = weigh({ metadata: Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`name${i}`, 1])) });
  expect(plain).toBeLessThan(2_000);
  // Measured with Bun 1.4: 17,000 and some 15,000 bytes.
  expect(nested).toBeGreaterThan(17_000);
  expect(named).toBeGreaterThan(15_000);
});

test("all caches together may keep 63 MB, which leaves 17 of the 80 for what is counted by entries and for the heap", () => {
  expect(Object.values(CACHE_BYTES_MAX).reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(63 * 1024 * 1024);
});
