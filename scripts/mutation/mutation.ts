/**
 * A mutation: one small fault in the code, and the tests that should notice it. Pure.
 *
 * @module
 */
import { Failure } from "../failure.ts";

export interface Mutation {
  /** What no longer holds with it. */
  readonly breaks: string;
  readonly file: string;
  /** Text that is in the file exactly once. */
  readonly find: string;
  readonly replace: string;
  /** Test files, of which at least one must fail. */
  readonly tests: readonly string[];
}

/**
 * The source with the fault in it.
 *
 * @throws {Failure} unless the text is there exactly once: then the mutation has to follow what has become of the code
 */
export function mutate(source: string, { file, find, replace }: Mutation): string {
  const found = source.split(find).length - 1;
  if (found !== 1) throw new Failure(`${file} has this ${found} times instead of once, so the mutation does not apply:\n${find}`);
  if (find === replace) throw new Failure(`${file}: a mutation that changes nothing:\n${find}`);
  return source.replace(find, () => replace);
}
