/**
 * Tests of what other systems do not have, or do not show.
 *
 * @module
 */
import { test } from "bun:test";

/**
 * Registers a test on Linux. Elsewhere it is skipped, and its name says why.
 *
 * @param reason - what only Linux has
 */
export function onLinux(reason: string, name: string, run: () => void | Promise<unknown>, timeoutMs?: number): void {
  if (process.platform === "linux") test(name, run, timeoutMs);
  else test.skip(`${name} (on Linux only: ${reason})`, run, timeoutMs);
}
