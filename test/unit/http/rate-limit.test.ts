import { expect, test } from "bun:test";
import { RateLimiter } from "../../../src/http/rate-limit.ts";
import { FakeClock } from "../../support/clock.ts";

const RATE = { perMinute: 60, burst: 3 };

test("every address has a bucket of its own, and none is shared with a key", () => {
  const limiter = new RateLimiter(new FakeClock());
  const remaining = [
    limiter.takeOfAddress("10.0.0.1", RATE, 1),
    limiter.takeOfAddress("10.0.0.1", RATE, 1),
    limiter.takeOfAddress("10.0.0.2", RATE, 1),
    limiter.takeOfKey("10.0.0.1", RATE),
    limiter.takeOfAddress("10.0.0.1", RATE, 0),
    limiter.takeOfAddress("10.0.0.3", RATE, 0),
  ].map((level) => level.remaining);
  expect(remaining).toEqual([2, 1, 2, 2, 1, 3]);
});

test("a flood of addresses never gives a key its tokens back", () => {
  const limiter = new RateLimiter(new FakeClock());
  for (let i = 0; i < 3; i++) limiter.takeOfKey("key", RATE);
  for (let i = 0; i < 25_000; i++) limiter.takeOfAddress(`address ${i}`, RATE, 1);
  expect(limiter.takeOfKey("key", RATE)).toMatchObject({ allowed: false, remaining: 0 });
});

test("of more addresses than are kept, those that came last are still counted", () => {
  const limiter = new RateLimiter(new FakeClock());
  for (let i = 0; i < 25_000; i++) limiter.takeOfAddress(`address ${i}`, RATE, 1);
  expect(limiter.takeOfAddress("address 24999", RATE, 0).remaining).toBe(2);
});

test("addresses that were idle until their buckets were full are forgotten before any other", () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock);
  for (let i = 0; i < 3_000; i++) limiter.takeOfAddress(`idle ${i}`, RATE, 1);
  clock.advance({ seconds: 2 });
  limiter.takeOfAddress("busy", RATE, 1);
  clock.advance({ seconds: 1 });
  limiter.takeOfAddress("busy", RATE, 1);
  limiter.takeOfAddress("busy", RATE, 1);
  for (let i = 0; i < 7_500; i++) limiter.takeOfAddress(`new ${i}`, RATE, 1);
  expect(limiter.takeOfAddress("busy", RATE, 0).remaining).toBe(1);
});

test("a key keeps its bucket however many keys there are, until that is full again", () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock);
  limiter.takeOfKey("idle", RATE);
  clock.advance({ seconds: 2 });
  for (let i = 0; i < 3; i++) limiter.takeOfKey("busy", RATE);
  for (let i = 0; i < 25_000; i++) limiter.takeOfKey(`key ${i}`, RATE);
  expect(limiter.takeOfKey("busy", RATE)).toMatchObject({ allowed: false, remaining: 0 });
  expect(limiter.takeOfKey("key 0", RATE)).toMatchObject({ remaining: 1 });
  expect(limiter.takeOfKey("idle", RATE)).toMatchObject({ remaining: 2 });
});
