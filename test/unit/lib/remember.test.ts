import { expect, test } from "bun:test";
import { remembering } from "../../../src/lib/remember.ts";

test("what was made once is given again until there is too much to remember", () => {
  const made: string[] = [];
  const upper = remembering(2, (text: string) => {
    made.push(text);
    return text.toUpperCase();
  });
  expect(["a", "b", "a", "b", "c", "a", "c"].map(upper)).toEqual(["A", "B", "A", "B", "C", "A", "C"]);
  expect(made).toEqual(["a", "b", "c", "a"]);
});
