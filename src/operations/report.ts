/**
 * Output of a command while it works and when it is done.
 *
 * @module
 */
/** All problems of a kind. */
export interface Finding {
  what: string;
  count: number;
  /** The first few. */
  examples: string[];
  canBeMended: boolean;
}

/** Collects problems by kind, with the first few examples of each. */
export class Findings {
  readonly #byKind = new Map<string, Finding>();

  add(what: string, examples: readonly string[], { canBeMended = false, count = 1 } = {}): void {
    const finding = this.#byKind.get(what) ?? { what, count: 0, examples: [], canBeMended };
    this.#byKind.set(what, finding);
    finding.count += count;
    finding.examples.push(...examples.slice(0, EXAMPLES_MAX - finding.examples.length));
  }

  get all(): Finding[] {
    return [...this.#byKind.values()];
  }
}

const EXAMPLES_MAX = 5;

/** Called with how much is done, and of how much: an estimate for rows, some of which are checked in several ways. */
export type OnProgress = (done: number, total: number) => void;

/** A command cannot be done, for a reason that an operator understands. */
export class OperationError extends Error {
  override name = "OperationError";
}
