/**
 * The options of Bun's allocator, mimalloc, which reads them from the environment when the process begins.
 *
 * @module
 */
import { serverEnvironment } from "../config.ts";
import { IS_EXECUTABLE } from "../lib/native.ts";

/**
 * Has a server's process begin once more with those that it wants, unless it has. The process stays the same, with its id, its streams
 * and its directory; on its way to listening it takes some 40 ms longer.
 *
 * By default mimalloc gives free pages to the system ten times a second, also those between blocks in use, and the next requests have
 * the system clear and map them again: three of a change. Every ten seconds it is one or two, and an idle server is as small soon after.
 */
export function setAllocatorOptions(): void {
  // Measured on Linux only.
  const environment = IS_EXECUTABLE && process.platform === "linux" ? serverEnvironment() : undefined;
  if (environment === undefined) return;
  try {
    process.execve?.(process.execPath, [process.argv0, ...process.argv.slice(2)], environment);
  } catch {
    // Without them it is slower, and nothing else.
  }
}
