/**
 * Remembers what a pure function gave, for the same few arguments that come again and again.
 *
 * @module
 */
/** What was made of an object, as long as somebody holds it. The object must not change. */
export function rememberingFor<Subject extends object, Result>(make: (subject: Subject) => Result): (subject: Subject) => Result {
  const known = new WeakMap<Subject, Result>();
  return (subject) => {
    let result = known.get(subject);
    if (result === undefined) known.set(subject, (result = make(subject)));
    return result;
  };
}

/** @param most - so many results are kept; with one more all are forgotten, which costs less than finding the oldest */
export function remembering<Argument extends string | number, Result>(
  most: number,
  make: (argument: Argument) => Result,
): (argument: Argument) => Result {
  const known = new Map<Argument, Result>();
  return (argument) => {
    let result = known.get(argument);
    if (result === undefined) {
      result = make(argument);
      if (known.size >= most) known.clear();
      known.set(argument, result);
    }
    return result;
  };
}
