/**
 * How long tests go on that are worth more the longer they run.
 *
 * @module
 */

/** Returns `few` rounds for the gate, and `many` with `scripts/test --all`, where a test may take half an hour. */
export function longRounds<Rounds>(few: Rounds, many: Rounds): Rounds {
  return process.env["CAIRN_TEST_ALL"] === "1" ? many : few;
}
