/**
 * The encoder's thread, which ends where a text tells it to: a test cannot have native code crash.
 *
 * @module
 */
// oxlint-disable-next-line import/no-unassigned-import -- it listens as soon as it is imported; imported later it misses messages
import "../../src/embeddings/builtin/encoder-worker.ts";

declare const self: Worker;

/** In a text: ends the thread that gets it. */
export const ENDS_THREAD = "ends-the-thread";

self.addEventListener("message", ({ data }: MessageEvent<{ text?: string }>) => {
  if (data.text?.includes(ENDS_THREAD) === true) process.exit(1);
});
