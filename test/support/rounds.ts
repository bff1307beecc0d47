/**
 * How long tests go on that are worth more the longer they run.
 *
 * @module
 */
import { needs, type Part } from "./platform.ts";

/** Returns `few` rounds for the gate, and `many` with `scripts/test --all`, where a test may take half an hour. */
export function longRounds<Rounds>(few: Rounds, many: Rounds): Rounds {
  return process.env["CAIRN_TEST_ALL"] === "1" ? many : few;
}

/** Gives the function that registers a test for `scripts/test --all` alone. Without it none of the parts is asked for, which would install some. */
export function onlyLong(...parts: readonly Part[]): ReturnType<typeof needs> {
  return longRounds<() => ReturnType<typeof needs>>(
    () => () => undefined,
    () => needs(...parts),
  )();
}
