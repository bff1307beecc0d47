/**
 * Values that exist at once or later.
 *
 * A promise costs as much as the rest of a small answer, so what the embedded store gives at once is used at once.
 *
 * @module
 */

/** Continues with a value, now if it is there and when it comes otherwise. */
export function whenThere<Value, Result>(
  value: Value | Promise<Value>,
  next: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(next) : next(value);
}
