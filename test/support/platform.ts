/**
 * Tests of what other systems do not have, or do not show.
 *
 * @module
 */
import { test } from "bun:test";

/**
 * Gives the function that registers a test on Linux. Elsewhere the test is skipped, and its name says why.
 *
 * @param reason - what only Linux has
 */
export function onLinux(reason: string): (name: string, run: () => void | Promise<unknown>, timeoutMs?: number) => void {
  if (process.platform === "linux") return test;
  return (name, run, timeoutMs) => test.skip(`${name} (on Linux only: ${reason})`, run, timeoutMs);
}
