import { expect, test } from "bun:test";
import { remembering, rememberingFor } from "../../../src/lib/remember.ts";

test("what was made once is given again until there is too much to remember", () => {
  const made: string[] = [];
  const upper = remembering(2, (text: string) => {
    made.push(text);
    return text.toUpperCase();
  });
  expect(["a", "b", "a", "b", "c", "a", "c"].map(upper)).toEqual(["A", "B", "A", "B", "C", "A", "C"]);
  expect(made).toEqual(["a", "b", "c", "a"]);
});

test("what was made of an object is given again for that object, and made anew for one that is alike", () => {
  let made = 0;
  const lengthOf = rememberingFor(({ text }: { text: string }) => {
    made++;
    return text.length;
  });
  const one = { text: "abc" };
  expect([lengthOf(one), lengthOf(one), lengthOf({ text: "abc" })]).toEqual([3, 3, 3]);
  expect(made).toBe(2);
});
