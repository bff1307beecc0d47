import { expect, test } from "bun:test";
import { retryAfterMs } from "../../../src/lib/retry-after.ts";

const NOW = Date.parse("2026-05-07T08:00:00.000Z");
const MAX = 43_200_000;

for (const [header, ms] of [
  [undefined, undefined],
  [null, undefined],
  ["120", 120_000],
  [" 3 ", 3_000],
  ["1.5", 1_500],
  ["0", 0],
  ["999999999999", MAX],
  ["9".repeat(400), MAX],
  ["Thu, 07 May 2026 08:00:30 GMT", 30_000],
  ["Thu, 07 May 2026 07:00:00 GMT", 0],
  ["Thu, 07 May 2099 07:00:00 GMT", MAX],
  ["soon", undefined],
  ["-5", undefined],
  ["", undefined],
] as const) {
  test(`Retry-After ${JSON.stringify(header)?.slice(0, 40)} asks for ${ms} ms`, () => {
    expect(retryAfterMs(header, NOW, MAX)).toBe(ms);
  });
}
