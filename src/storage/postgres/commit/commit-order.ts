/**
 * Puts the traces of transactions that are under way at the same time into the order of their ids.
 *
 * A transaction that has begun earlier can end later, and has the lower ids. So what one has written waits for all those that
 * began before it.
 *
 * @module
 */
import type { BareId } from "../../../lib/ids.ts";

const idOf = (trace: string): BareId => trace.slice(1);

export class CommitOrder {
  /** By an id that is lower than all of its own; they rise, so the first one is the lowest. */
  readonly #underWay = new Set<BareId>();
  #waiting: string[] = [];

  /** @param fence - an id drawn before those of the transaction */
  begin(fence: BareId): void {
    this.#underWay.add(fence);
  }

  /**
   * @param traces - the keys of those that were committed
   * @returns the traces of whose like no lower one can come any more, in order
   */
  end(fence: BareId, traces: readonly string[]): string[] {
    this.#underWay.delete(fence);
    this.#waiting.push(...traces);
    const [lowest] = this.#underWay;
    const isDue = (trace: string) => lowest === undefined || idOf(trace) < lowest;
    const due = this.#waiting.filter(isDue);
    if (due.length > 0) this.#waiting = this.#waiting.filter((trace) => !isDue(trace));
    return due.sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
  }
}
