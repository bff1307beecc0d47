import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { semaphoreRefusal } from "../../../src/storage/lmdb/semaphores.ts";
import { compileLibrary } from "../../support/library.ts";
import { onLinux } from "../../support/platform.ts";

const it = onLinux("libraries as on Linux, and semaphores in /proc");

/** The sets of semaphores on this system. */
const sets = () => readFileSync("/proc/sysvipc/sem", "utf8");

it("semaphores that the system allows are no reason, and none is left behind", () => {
  const before = sets();
  expect(semaphoreRefusal("libc.so.6")).toBeUndefined();
  expect(sets()).toBe(before);
});

it("semaphores that a sandbox forbids are a reason that says what to allow", () => {
  const library = compileLibrary(
    "int semget(int key, int count, int flags) { return -1; } int semctl(int id, int number, int what) { return -1; }",
  );
  expect(semaphoreRefusal(library)).toMatch(/^the system does not allow System V semaphores \(semget\), .*ipc-sysv-sem/);
});

test("a system that cannot be asked is let try", () => {
  expect(semaphoreRefusal("libnothing.so")).toBeUndefined();
});
