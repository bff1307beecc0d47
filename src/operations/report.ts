/**
 * What a command tells while it works and when it is done.
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

/** Examples that are shown of one kind of problem. */
export const EXAMPLES_MAX = 5;

/** Called with how much is done, and of how much; an estimate for rows, some of which are checked in several ways. */
export type OnProgress = (done: number, total: number) => void;

/** What an operator's command cannot do, said in the operator's words. */
export class OperationError extends Error {
  override name = "OperationError";
}
