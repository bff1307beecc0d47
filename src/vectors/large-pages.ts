/**
 * Large pages for memory that is read at random, by the add-on that has hnswlib (`scripts/hnswlib/huge-pages.h`).
 *
 * @module
 */
import hnswlib from "hnswlib-node";

const addon = hnswlib as unknown as { PostingScorer: { wantHugePages(memory: Uint8Array): void } };

/** Asks the system for them, before the memory is written to. Nothing depends on whether it gives them. */
export function wantLargePages(memory: Uint8Array): void {
  addon.PostingScorer.wantHugePages(memory);
}
