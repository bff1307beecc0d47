/**
 * A broken assumption of our own: the request that met it fails with a 500 and is logged, the server continues.
 *
 * @module
 */
export class InvariantError extends Error {
  override name = "InvariantError";
}

export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
