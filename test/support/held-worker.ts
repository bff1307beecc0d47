/**
 * The worker of the vector index, whose graph stays half built until a test has it built on: a test that looks at an index that is being
 * built does not depend on how fast that is.
 *
 * @module
 */
import { SearchIndex } from "../../src/search/search-index.ts";
// oxlint-disable-next-line import/no-unassigned-import -- it listens as soon as it is imported; imported later it misses messages
import "../../src/search/worker.ts";

declare const self: Worker;

/** The graph gets so many points before any message that is text. */
const HELD_AT = 500;

let isHeld = true;
const insert = Object.getOwnPropertyDescriptor(SearchIndex.prototype, "insert")!.value as SearchIndex["insert"];

SearchIndex.prototype.insert = function (this: SearchIndex, reader) {
  return !(isHeld && this.graphEnd >= HELD_AT) && insert.call(this, reader);
};

self.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
  if (typeof data === "string") isHeld = false;
});
