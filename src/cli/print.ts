/**
 * What a command answers, on standard output.
 *
 * A command whose answer is not written has failed: on a full disk the key it has made would be lost, and nobody the wiser.
 * `console.log` does not tell.
 *
 * @module
 */
import { messageOf } from "../lib/errors.ts";

// Whoever writes is told of it too; without this the process would end with a trace.
process.stdout.on("error", () => undefined);

/**
 * Waits until whoever reads has taken it, so that nothing piles up here.
 *
 * @throws the system's error, of which `hasReaderLeft` knows one
 */
export function writeOut(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** @throws {Error} when it cannot be written; not when whoever reads has seen enough */
export async function print(line: string): Promise<void> {
  try {
    await writeOut(`${line}\n`);
  } catch (error) {
    if (hasReaderLeft(error)) return;
    throw new Error(`Standard output cannot be written: ${messageOf(error)}.`, { cause: error });
  }
}

export function hasReaderLeft(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
