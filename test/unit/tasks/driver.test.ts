import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { createLog } from "../../../src/lib/log.ts";
import { Driver } from "../../../src/tasks/driver.ts";
import { Activator } from "../../../src/tasks/task.ts";

let logged: string[] = [];
const log = createLog({ level: "debug", pretty: false, now: () => 0, write: (line) => void logged.push(line) });

beforeEach(() => {
  logged = [];
  jest.useFakeTimers();
});
afterEach(() => void jest.useRealTimers());

/** Moves the timers, one millisecond at a time, and lets what they start go as far as it can without them. */
async function pass(ms: number): Promise<void> {
  for (let i = 0; i < ms; i++) {
    jest.advanceTimersByTime(1);
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** A task that takes what is left of `waits` for its answers, and 1,000,000 after that. */
function counting(name: string, waits: number[] = []) {
  const task = {
    name,
    activator: new Activator(),
    runs: 0,
    run() {
      task.runs++;
      return Promise.resolve(waits.shift() ?? 1_000_000);
    },
  };
  return task;
}

/** A task that waits to be told how its run ends. */
function held(name: string) {
  const task = {
    name,
    activator: new Activator(),
    runs: 0,
    underWay: 0,
    most: 0,
    end: (ms: number): void => void ms,
    async run() {
      task.runs++;
      task.most = Math.max(task.most, ++task.underWay);
      const ms = await new Promise<number>((resolve) => (task.end = resolve));
      task.underWay--;
      return ms;
    },
  };
  return task;
}

test("nothing runs before the start; then each task runs, and again after as long as it says", async () => {
  const often = counting("often", [10, 10, 10]);
  const rarely = counting("rarely", [50]);
  const driver = new Driver([often, rarely], log);
  await pass(100);
  expect([often.runs, rarely.runs]).toEqual([0, 0]);
  driver.start();
  await pass(1);
  expect([often.runs, rarely.runs]).toEqual([1, 1]);
  await pass(9);
  expect([often.runs, rarely.runs]).toEqual([1, 1]);
  await pass(1);
  expect([often.runs, rarely.runs]).toEqual([2, 1]);
  await pass(40);
  expect([often.runs, rarely.runs]).toEqual([4, 2]);
  await driver.stop();
});

test("a task that is woken before the start runs at the start, and not before", async () => {
  const task = counting("task");
  const driver = new Driver([task], log);
  task.activator.wake();
  await pass(100);
  expect(task.runs).toBe(0);
  driver.start();
  await pass(100);
  expect(task.runs).toBe(1);
  await driver.stop();
});

test("a task with more to do goes on at once, with room for others between its pieces", async () => {
  const busy = counting("busy", [0, 0, 0]);
  const driver = new Driver([busy], log);
  driver.start();
  await pass(4);
  expect(busy.runs).toBe(4);
  await pass(100);
  expect(busy.runs).toBe(4);
  await driver.stop();
});

test("a task that is woken runs soon, whatever it was waiting for, and however often it is woken only once", async () => {
  const task = counting("task");
  const other = counting("other");
  const driver = new Driver([task, other], log);
  driver.start();
  await pass(500);
  for (let i = 0; i < 5; i++) task.activator.wake();
  await pass(1);
  expect([task.runs, other.runs]).toEqual([2, 1]);
  await pass(500);
  expect([task.runs, other.runs]).toEqual([2, 1]);
  await driver.stop();
});

test("a task that is woken while it runs does not run twice at once, but once more right after", async () => {
  const task = held("task");
  const driver = new Driver([task], log);
  driver.start();
  await pass(1);
  task.activator.wake();
  task.activator.wake();
  await pass(100);
  expect([task.runs, task.most]).toEqual([1, 1]);
  task.end(1_000_000);
  await settle();
  await pass(1);
  expect([task.runs, task.most]).toEqual([2, 1]);
  task.end(1_000_000);
  await pass(100);
  expect(task.runs).toBe(2);
  await driver.stop();
});

test("a task that fails is logged and tried again after a pause, and the others go on", async () => {
  let attempts = 0;
  const failing = { name: "failing", run: () => (++attempts === 1 ? Promise.reject(new Error("no disk")) : Promise.resolve(1_000_000)) };
  const other = counting("other", [10, 10]);
  const driver = new Driver([failing, other], log);
  driver.start();
  await pass(4_999);
  expect([attempts, other.runs]).toEqual([1, 3]);
  expect(logged).toHaveLength(1);
  expect(JSON.parse(logged[0] ?? "")).toMatchObject({ level: "error", task: "failing", error: expect.stringContaining("no disk") });
  await pass(2);
  expect([attempts, logged.length]).toEqual([2, 1]);
  await driver.stop();
});

test("a stop waits for what is under way, and nothing runs after it, woken or not", async () => {
  const underWay = held("under way");
  const waiting = counting("waiting");
  const driver = new Driver([underWay, waiting], log);
  driver.start();
  await pass(1);
  let stopped = false;
  const stopping = driver.stop().then(() => (stopped = true));
  await pass(100);
  expect([stopped, underWay.runs]).toEqual([false, 1]);
  waiting.activator.wake();
  underWay.activator.wake();
  underWay.end(0);
  await stopping;
  waiting.activator.wake();
  driver.start();
  await pass(100);
  expect([underWay.runs, waiting.runs]).toEqual([1, 1]);
});

test("a task that waits for a time years away, as after a clock that was ahead, looks again within the hour and not at once", async () => {
  const task = counting("waits for years", [1e12, 1e12, 1e12]);
  const driver = new Driver([task], log);
  driver.start();
  await pass(100);
  expect(task.runs).toBe(1);
  for (const runs of [2, 3]) {
    jest.advanceTimersByTime(3_600_000);
    await pass(1);
    expect(task.runs).toBe(runs);
  }
  await driver.stop();
});
