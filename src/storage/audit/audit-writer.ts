/**
 * The chains that a process writes: one for each transaction that it has under way at the same time.
 *
 * @module
 */
import { AuditChain, type AuditStart } from "./chain.ts";

export class AuditWriter {
  readonly #free: AuditChain[] = [];
  /** For the next chain: only the first names those of before. */
  #start: AuditStart;

  constructor(start: AuditStart) {
    this.#start = start;
  }

  get key(): AuditStart["key"] {
    return this.#start.key;
  }

  /** A chain for a transaction, which nobody else extends until it is given back. */
  take(now: number): AuditChain {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const start = this.#start;
    this.#start = { ...start, previous: [], closing: [] };
    return new AuditChain(start, now);
  }

  /** Gives a chain back once its transaction has ended. */
  give(chain: AuditChain, outcome: "committed" | "rolled back" | "unknown"): void {
    if (outcome === "unknown") {
      this.#start = chain.successor;
      return;
    }
    if (outcome === "committed") chain.commit();
    else chain.rollback();
    this.#free.push(chain);
  }

  get hasUnsigned(): boolean {
    return this.#free.some((chain) => chain.isUnsigned);
  }

  /** Takes a chain that no transaction has, and whose last traces are not signed. */
  takeUnsigned(): AuditChain | undefined {
    const at = this.#free.findIndex((chain) => chain.isUnsigned);
    return at === -1 ? undefined : this.#free.splice(at, 1)[0];
  }
}
