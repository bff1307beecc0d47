/**
 * Writes what a command answers to standard output.
 *
 * A command whose answer cannot be written has failed: on a full disk a new key would be lost unnoticed. `console.log` reports
 * no errors.
 *
 * @module
 */
import { hasCode } from "../lib/errors.ts";
import { systemReason } from "../lib/system-errors.ts";
import type { Finding } from "../operations/report.ts";

// The write fails as well; without a listener the process would end with a stack trace.
process.stdout.on("error", () => undefined);

/** Resolves when the reader has taken the text, so that nothing piles up here. Rejects with the system's error. */
export function writeOut(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** An error that names standard output, since the system names no file. */
export function unwritten(error: unknown): Error {
  return new Error(`Standard output cannot be written: ${systemReason(error)}.`, { cause: error });
}

/** @throws {Error} when it cannot be written; not when the reader has closed the pipe */
export async function print(line: string): Promise<void> {
  try {
    await writeOut(`${line}\n`);
  } catch (error) {
    if (hasReaderLeft(error)) return;
    throw unwritten(error);
  }
}

/**
 * Makes foreign text safe for a terminal: characters that would move the cursor, begin a line or turn the reading direction
 * are shown by their number.
 *
 * @example escaped("a\u001b[2K\nb") // "a\\u001b[2K\\u000ab"
 */
export function escaped(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

export function hasReaderLeft(error: unknown): boolean {
  return hasCode(error, "EPIPE");
}

/** Prints what is wrong with a store. */
export async function printFindings(findings: readonly Finding[]): Promise<void> {
  for (const { what, count, examples } of findings) {
    await print(`${what}: ${count}`);
    for (const example of examples) await print(`  ${escaped(example)}`);
    if (examples.length > 0 && count > examples.length) await print(`  and ${count - examples.length} more`);
  }
}
