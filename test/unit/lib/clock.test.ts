import { expect, test } from "bun:test";
import { systemClock, wait } from "../../../src/lib/clock.ts";

test("waiting for longer than a timer can does not end at once", async () => {
  const abort = new AbortController();
  const waiting = wait(2 ** 40, abort.signal).then(() => "ended");
  expect(await Promise.race([waiting, wait(5).then(() => "waiting")])).toBe("waiting");
  abort.abort();
  expect(await waiting).toBe("ended");
});

test("waiting takes its time, ends at once when aborted, and does not begin when it already was", async () => {
  const startedAt = systemClock.elapsed();
  await wait(20);
  expect(systemClock.elapsed() - startedAt).toBeGreaterThan(18);
  const abort = new AbortController();
  const waiting = wait(2 ** 30, abort.signal);
  expect(await Promise.race([waiting.then(() => "ended"), wait(1).then(() => "waiting")])).toBe("waiting");
  abort.abort();
  expect(await waiting).toBeUndefined();
  expect(await wait(2 ** 30, abort.signal)).toBeUndefined();
});
