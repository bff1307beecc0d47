import { expect, test } from "bun:test";
import { loadOnce, memoize, memoizeWeak } from "../../../src/lib/memoize.ts";

test("a result is cached until there are a thousand others, that of a long text never", () => {
  const made: string[] = [];
  const upper = memoize((text: string) => {
    made.push(text);
    return text.toUpperCase();
  });
  expect(["a", "b", "a", "b"].map(upper)).toEqual(["A", "B", "A", "B"]);
  expect(made.splice(0)).toEqual(["a", "b"]);
  for (let i = 0; i < 999; i++) upper(`other ${i}`);
  made.length = 0;
  expect(["a", "a"].map(upper)).toEqual(["A", "A"]);
  expect(made.splice(0)).toEqual(["a"]);
  const long = "x".repeat(600);
  expect([upper(long), upper(long)]).toEqual(["X".repeat(600), "X".repeat(600)]);
  expect(made).toEqual([long, long]);
});

test("the result for an object is cached for that object, not for one that is alike", () => {
  let made = 0;
  const lengthOf = memoizeWeak(({ text }: { text: string }) => {
    made++;
    return text.length;
  });
  const one = { text: "abc" };
  expect([lengthOf(one), lengthOf(one), lengthOf({ text: "abc" })]).toEqual([3, 3, 3]);
  expect(made).toBe(2);
});

test("what is loaded once is loaded again only after a failure", async () => {
  const outcomes = [new Error("no"), "yes", "again"];
  const load = loadOnce(() => {
    const next = outcomes.shift();
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
  });
  await expect(load()).rejects.toThrow("no");
  expect(await Promise.all([load(), load()])).toEqual(["yes", "yes"]);
  expect(await load()).toBe("yes");
});
