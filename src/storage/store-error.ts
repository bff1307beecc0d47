/**
 * Reason why a store cannot be opened, as a sentence for an operator.
 *
 * @module
 */
export class StoreError extends Error {
  override name = "StoreError";
}
