import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { parseInstant, toIso } from "../../../src/lib/time.ts";

const EIGHT = Date.UTC(2026, 4, 7, 8);

test("an instant with an offset, or without one in UTC, is read to the millisecond", () => {
  const cases: [text: string, ms: number][] = [
    ["2026-05-07T08:00:00.000Z", EIGHT],
    ["2026-05-07T08:00:00Z", EIGHT],
    ["2026-05-07T08:00:00", EIGHT],
    ["2026-05-07T08:00Z", EIGHT],
    ["2026-05-07t08:00:00z", EIGHT],
    ["2026-05-07T10:00:00+02:00", EIGHT],
    ["2026-05-07T10:00:00+0200", EIGHT],
    ["2026-05-07T10:00:00+02", EIGHT],
    ["2026-05-07T02:30:00-05:30", EIGHT],
    ["2026-05-06T20:00:00-12:00", EIGHT],
    ["2026-05-07T08:00:00.5Z", EIGHT + 500],
    ["2026-05-07T08:00:00,123Z", EIGHT + 123],
    ["2026-05-07T08:00:00.123456789Z", EIGHT + 123],
    ["2026-05-07T24:00:00Z", Date.UTC(2026, 4, 8)],
    ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
    ["2000-02-29T00:00:00Z", Date.UTC(2000, 1, 29)],
    ["1969-12-31T23:59:59.999Z", -1],
  ];
  expect(cases.map(([text]) => [text, parseInstant(text)])).toEqual(cases);
});

test("anything else is no instant, days and hours that do not exist included", () => {
  const words = `now 1778140800 1778140800000 2026-05-07 2026-05 08:00:00Z 2026-05-07T08 2026-05-07T08:00:00.Z
    2026-05-07T08:00:00.1234567890Z 2026-05-07T08:00:00+2:00 2026-05-07T08:00:00+02:0 2026-05-07T08:00:00+24:00
    2026-05-07T08:00:00+02:60 2026-05-07T08:00:00UTC 2026-05-07T08:00:00[Europe/Oslo] +002026-05-07T08:00:00Z
    ٢٠٢٦-05-07T08:00:00Z 2026-00-07T08:00:00Z 2026-13-07T08:00:00Z 2026-05-00T08:00:00Z 2026-05-32T08:00:00Z
    2026-04-31T08:00:00Z 2026-02-29T08:00:00Z 1900-02-29T08:00:00Z 2026-05-07T25:00:00Z 2026-05-07T08:60:00Z 2026-05-07T08:00:60Z`;
  const spaced = ["", "2026-05-07 08:00:00Z", "2026-05-07T08:00:00 Z", " 2026-05-07T08:00:00Z", "2026-05-07T08:00:00Z\n"];
  const texts = [...words.split(/\s+/), ...spaced];
  expect(texts.filter((text) => parseInstant(text) !== undefined)).toEqual([]);
});

test("what is written is read back, and the same instant in any offset is the same", () => {
  const ms = fc.integer({ min: Date.UTC(1970), max: Date.UTC(2081) });
  const minutes = fc.integer({ min: -14 * 60, max: 14 * 60 });
  fc.assert(
    fc.property(ms, minutes, (instant, offset) => {
      expect(parseInstant(toIso(instant))).toBe(instant);
      const pad = (number: number) => String(number).padStart(2, "0");
      const sign = offset < 0 ? "-" : "+";
      const local = toIso(instant + offset * 60_000).replace("Z", "");
      expect(parseInstant(`${local}${sign}${pad(Math.floor(Math.abs(offset) / 60))}:${pad(Math.abs(offset) % 60)}`)).toBe(instant);
    }),
  );
});

test.each([Number.NaN, undefined, "noon", {}])("%p, as a damaged row can have it for a time, is shown as the first time", (ms) => {
  expect(toIso(ms as number)).toBe("1970-01-01T00:00:00.000Z");
});
