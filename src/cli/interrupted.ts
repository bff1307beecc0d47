/**
 * A command that a signal stops while it writes ends by itself, so that its drafts are removed.
 *
 * Not for commands that hold the thread for long: they would not hear of it.
 *
 * @module
 */
import { constants } from "node:os";

/** With the code that shells have for it: 130 after an interrupt, 143 when terminated. */
export function endWhenInterrupted(): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(128 + constants.signals[signal]));
}
