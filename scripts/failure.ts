/**
 * End of a script that cannot do its work.
 *
 * @module
 */

import { parseArgs, type ParseArgsConfig } from "node:util";

/** A failure whose message is all the reader needs; a stack would only hide it. */
export class Failure extends Error {}

/**
 * Arguments of a script.
 *
 * @throws {Failure} naming the flag that is not known, or lacks its value
 */
export function readArguments<Known extends ParseArgsConfig>(known: Known): ReturnType<typeof parseArgs<Known>> {
  try {
    return parseArgs(known);
  } catch (error) {
    throw new Failure(error instanceof Error ? error.message : String(error));
  }
}

/** Runs a script. A `Failure` ends it with its message and exit code 1; other errors keep their stack. */
export async function runScript(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}
