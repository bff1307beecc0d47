/**
 * Runs the callback of a commit, as often as that takes: each time with the same time and the same ids.
 *
 * @module
 */
import type { BareId, Partition, IdSource } from "../lib/ids.ts";
import { invariant } from "../lib/invariant.ts";
import type { Reader, Tx } from "./access.ts";
import { areSameWrites, WriteBuffer, type TxContext, type Write } from "./write-buffer.ts";

/** `runsTwice`: whether each callback is run twice, and fails unless it writes the same again, for tests. */
export const checks = { runsTwice: false };

/** A commit that waits for its transaction. */
export interface QueuedCommit {
  readonly partition: Partition;
  readonly run: (tx: Tx) => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
  /** End of the last run of its callback. */
  outcome: { result: unknown } | { thrown: unknown } | undefined;
}

/** A context that gives the same ids once more after each `rewind`, unless they are asked for after a greater one by then. */
export function repeatable(
  { now, elapsed, partition }: Pick<TxContext, "now" | "elapsed" | "partition">,
  source: () => IdSource,
): TxContext & { rewind(): void } {
  const ids: BareId[] = [];
  let next = 0;
  return {
    now,
    elapsed,
    partition,
    id: (idHome, after) => {
      const known = ids[next];
      if (known !== undefined && (after === undefined || known > after)) return ids[next++]!;
      if (after !== undefined) source().continueAfter(after);
      return (ids[next++] = source().bare(idHome, now));
    },
    rewind: () => (next = 0),
  };
}

/**
 * Runs a callback and notes its outcome.
 *
 * @returns its writes, in order; none when it has thrown
 */
export function runCallback(commit: QueuedCommit, stored: Reader, context: TxContext & { rewind(): void }): readonly Write[] {
  let tx = new WriteBuffer(stored, context);
  try {
    commit.outcome = { result: commit.run(tx) };
    if (checks.runsTwice) {
      const { writes } = tx;
      context.rewind();
      commit.outcome = { result: commit.run((tx = new WriteBuffer(stored, context))) };
      invariant(areSameWrites(writes, tx.writes), "a callback that wrote something else when it was run again");
    }
    return tx.writes;
  } catch (thrown) {
    commit.outcome = { thrown };
    return [];
  }
}

/** To be called once the transaction has been committed, also when it had nothing to keep of this commit. */
export function settle({ outcome, resolve, reject }: QueuedCommit): void {
  if (outcome !== undefined && "thrown" in outcome) reject(outcome.thrown);
  else resolve(outcome?.result);
}
