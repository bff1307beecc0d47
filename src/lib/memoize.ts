/**
 * Caches the results of pure functions, and what is loaded once.
 *
 * @module
 */
import { copyOf } from "./text.ts";

/** Caches one result for each object, for as long as the object is alive. The object must not change. */
export function memoizeWeak<Subject extends object, Result>(make: (subject: Subject) => Result): (subject: Subject) => Result {
  const known = new WeakMap<Subject, Result>();
  return (subject) => {
    let result = known.get(subject);
    if (result === undefined) known.set(subject, (result = make(subject)));
    return result;
  };
}

/** Longer texts are not cached: with results as short, a function's cache takes 2 MB at most. */
const TEXT_LENGTH_MAX = 512;
const RESULTS_MAX = 1_000;

interface Memoized<Argument, Result> {
  (argument: Argument): Result;
  /** Forgets all arguments and results. */
  clear(): void;
}

/** Caches a thousand results. One more evicts all, which costs less than finding the oldest. */
export function memoize<Argument extends string | number, Result>(make: (argument: Argument) => Result): Memoized<Argument, Result> {
  const known = new Map<Argument, Result>();
  const cached = (argument: Argument) => {
    let result = known.get(argument);
    if (result === undefined) {
      result = make(argument);
      if (typeof argument === "string" && argument.length > TEXT_LENGTH_MAX) return result;
      if (known.size >= RESULTS_MAX) known.clear();
      // A text is often a slice of a request, all of which it would keep in memory.
      known.set((typeof argument === "string" ? copyOf(argument) : argument) as Argument, result);
    }
    return result;
  };
  return Object.assign(cached, { clear: () => known.clear() });
}

/** Returns what loads on its first call, and gives the same to all calls; a failure is not cached. */
export function loadOnce<Loaded>(load: () => Promise<Loaded>): () => Promise<Loaded> {
  let loading: Promise<Loaded> | undefined;
  return async () => {
    try {
      return await (loading ??= load());
    } catch (error) {
      loading = undefined;
      throw error;
    }
  };
}
