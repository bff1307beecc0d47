/**
 * A broken assumption of the code itself: the request fails with a 500 and is logged, and the server continues.
 *
 * @module
 */
export class InvariantError extends Error {
  override name = "InvariantError";
}

export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
