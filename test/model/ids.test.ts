/** Ids rise, never repeat and tell their time, wherever the clock goes and however often the process starts anew. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { BARE_ID_LENGTH, IdSource, NO_PARTITION, bare, bareIdTime, firstBareIdAt, homeOfUser, isId } from "../../src/lib/ids.ts";
import { FakeClock } from "../support/clock.ts";

const START = Date.parse("2026-05-07T08:00:00.000Z");
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("ids" as const), count: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("later" as const), ms: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("set" as const), ms: fc.integer({ min: -100_000, max: 100_000 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("start" as const) }) },
);
/** What stands for chance, its ends included. */
const chance = fc.oneof(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), fc.constantFrom(0, 1 - Number.EPSILON));

test("ids rise and never repeat, when the clock stands, jumps ahead, goes back or the process starts anew", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), chance, (steps, random) => {
      const clock = new FakeClock();
      let ids = new IdSource(clock, { random: () => random });
      let last = "";
      const home = homeOfUser("ada");
      let highest = 0;
      for (const one of steps) {
        if (one.kind === "later") clock.advance({ ms: one.ms });
        if (one.kind === "set") clock.set(START + one.ms);
        if (one.kind === "start") ids = new IdSource(clock, { random: () => random, startAfter: last === "" ? undefined : last });
        if (one.kind !== "ids") continue;
        for (let i = 0; i < one.count; i++) {
          const id = ids.next("mem", home);
          expect(isId("mem", id)).toBe(true);
          expect(bare(id) > last).toBe(true);
          last = bare(id);
          // The clock's own millisecond, or the last one while the clock is behind it.
          highest = Math.max(highest, clock.now());
          expect(bareIdTime(last)).toBe(highest);
          expect(last >= firstBareIdAt(highest) && last < firstBareIdAt(highest + 1)).toBe(true);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test("when a millisecond has no ids left the next one lends its own", () => {
  const clock = new FakeClock();
  const ids = new IdSource(clock, { startAfter: `${firstBareIdAt(START).slice(0, 7)}zzy99` });
  const given = [ids.bare(NO_PARTITION), ids.bare("zz"), ids.bare(NO_PARTITION)];
  const [now, next] = [firstBareIdAt(START).slice(0, 7), firstBareIdAt(START + 1).slice(0, 7)];
  expect(given).toEqual([`${now}zzz00`, `${next}000zz`, `${next}00100`]);
  expect(given.map((id) => id.length)).toEqual([BARE_ID_LENGTH, BARE_ID_LENGTH, BARE_ID_LENGTH]);
});

test("a clock beyond the last millisecond of ids gives ids of that millisecond, and a wrong one spoils no later id", () => {
  const clock = new FakeClock();
  const ids = new IdSource(clock);
  clock.set(Number.NaN);
  const first = ids.bare(NO_PARTITION);
  clock.set(62 ** 7 + 1_000);
  const given = [ids.bare(NO_PARTITION), ids.bare(NO_PARTITION)];
  expect([first, ...given].toSorted()).toEqual([first, ...given]);
  expect(given.map((id) => bareIdTime(id))).toEqual([62 ** 7 - 1, 62 ** 7 - 1]);
  const last = new IdSource(clock, { startAfter: "zzzzzzzzzyzz" });
  expect(last.bare("zz")).toBe("zzzzzzzzzzzz");
  for (let i = 0; i < 2; i++) expect(() => last.bare("zz")).toThrow("No ids are left");
});

test("the order of ids is the order of their times, as text and as bytes", () => {
  const ms = fc.integer({ min: 0, max: 62 ** 7 - 2 });
  fc.assert(
    fc.property(ms, ms, (a, b) => {
      const [first, second] = [firstBareIdAt(a), firstBareIdAt(b)];
      expect(Math.sign(Buffer.compare(Buffer.from(first), Buffer.from(second)))).toBe(Math.sign(a - b));
      expect([bareIdTime(first), bareIdTime(second)]).toEqual([a, b]);
    }),
    { numRuns: 1_000 },
  );
});
