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

/** Of a kind of problem, however many there are. */
export const EXAMPLES_MAX = 5;

/** Is told how much is done, and of how much; for rows about so many, because some are looked at in several ways. */
export type OnProgress = (done: number, total: number) => void;

/** What an operator's command cannot do, said in the operator's words. */
export class OperationError extends Error {
  override name = "OperationError";
}
