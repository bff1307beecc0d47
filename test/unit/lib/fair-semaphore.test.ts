import { expect, test } from "bun:test";
import { FairSemaphore } from "../../../src/lib/fair-semaphore.ts";

const settle = () => new Promise((resolve) => setImmediate(resolve));

test("an owner has its share at most, the others what is left, and whoever waits is served in turn", async () => {
  const semaphore = new FairSemaphore({ max: 3, ofOwnerMax: 2 });
  const served: string[] = [];
  const permits = new Map<string, ReturnType<typeof semaphore.permitOf>>();
  const ask = (name: string) => {
    const permit = semaphore.permitOf(name.charAt(0));
    permits.set(name, permit);
    void permit.take().then(() => served.push(name));
  };
  for (const name of ["a1", "a2", "a3", "a4", "b1", "c1", "b2"]) ask(name);
  await settle();
  expect(served.splice(0)).toEqual(["a1", "a2", "b1"]);
  for (const [done, next] of [
    // Those of `a` are served only once others that have waited as long are.
    ["a1", "a3"],
    ["a2", "c1"],
    ["a3", "b2"],
    ["b1", "a4"],
  ] as const) {
    permits.get(done)?.[Symbol.dispose]();
    await settle();
    expect({ done, served: served.splice(0) }).toEqual({ done, served: [next] });
  }
});

test("a permit is taken once however often it is asked for, and can be released without having been taken", async () => {
  const semaphore = new FairSemaphore({ max: 1, ofOwnerMax: 1 });
  semaphore.permitOf("a")[Symbol.dispose]();
  const first = semaphore.permitOf("a");
  await first.take();
  await first.take();
  let isServed = false;
  const second = semaphore.permitOf("a");
  const waiting = second.take().then(() => (isServed = true));
  await settle();
  expect(isServed).toBe(false);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  await waiting;
  const third = semaphore.permitOf("b").take();
  second[Symbol.dispose]();
  await third;
  expect(isServed).toBe(true);
});
