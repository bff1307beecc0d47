import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";

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
