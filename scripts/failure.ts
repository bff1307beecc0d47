/**
 * How a script ends when it cannot do its work.
 *
 * @module
 */

/** A failure whose message is all the reader needs; a stack would only hide it. */
export class Failure extends Error {}

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
