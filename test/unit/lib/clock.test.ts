import { expect, test } from "bun:test";
import { nextTurn, systemClock } from "../../../src/lib/clock.ts";
import { roundsDuring } from "../../support/loop.ts";

test("waiting for longer than a timer can does not end at once", async () => {
  const abort = new AbortController();
  const waiting = systemClock.sleep(2 ** 40, abort.signal).then(() => "ended");
  expect(await Promise.race([waiting, systemClock.sleep(5).then(() => "waiting")])).toBe("waiting");
  abort.abort();
  expect(await waiting).toBe("ended");
});

test("waiting takes its time, ends at once when aborted, and does not begin when it already was", async () => {
  const startedAt = systemClock.elapsed();
  await systemClock.sleep(20);
  expect(systemClock.elapsed() - startedAt).toBeGreaterThan(18);
  const abort = new AbortController();
  const waiting = systemClock.sleep(2 ** 30, abort.signal);
  expect(await Promise.race([waiting.then(() => "ended"), systemClock.sleep(1).then(() => "waiting")])).toBe("waiting");
  abort.abort();
  expect(await waiting).toBeUndefined();
  expect(await systemClock.sleep(2 ** 30, abort.signal)).toBeUndefined();
});

test("long works that yield share a few milliseconds of each turn, in the order in which they yield", async () => {
  const steps: string[] = [];
  const work = async (name: number) => {
    for (let step = 0; step < 3; step++) {
      await nextTurn();
      steps.push(`${step}.${name}`);
      const startedAt = systemClock.elapsed();
      while (systemClock.elapsed() - startedAt < 6);
    }
  };
  const names = Array.from({ length: 10 }, (_, name) => name);
  const rounds = await roundsDuring(Promise.all(names.map(work)));
  expect(steps).toEqual([0, 1, 2].flatMap((step) => names.map((name) => `${step}.${name}`)));
  // Without a share all ten would take a step in each.
  expect(rounds).toBeGreaterThanOrEqual(25);
});

test("short works that yield do not wait for each other", async () => {
  const works = Array.from({ length: 20 }, async () => {
    for (let step = 0; step < 3; step++) await nextTurn();
  });
  expect(await roundsDuring(Promise.all(works))).toBeLessThan(60);
});
