import { expect, test } from "bun:test";
import { parseDuration } from "../../../src/lib/duration.ts";

test("a duration is a whole number and a unit", () => {
  const texts = ["200ms", "15s", "5m", "2h", "1d", " 1s ", "0s", "-1s", "1.5s", "15", "s", "", "1w", "1 s", "9999999999s"];
  expect(Object.fromEntries(texts.map((text) => [text, parseDuration(text)]))).toEqual({
    "200ms": 200,
    "15s": 15_000,
    "5m": 300_000,
    "2h": 7_200_000,
    "1d": 86_400_000,
    " 1s ": 1_000,
    "0s": undefined,
    "-1s": undefined,
    "1.5s": undefined,
    "15": undefined,
    s: undefined,
    "": undefined,
    "1w": undefined,
    "1 s": undefined,
    "9999999999s": undefined,
  });
});
