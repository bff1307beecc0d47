/**
 * Names of keys by how they begin. Pure.
 *
 * @module
 */
/** Keys that begin alike are not told apart: a name is given where all of them have it. */
export function namesByPrefix(keys: readonly { prefix: string; name: string | null }[]): ReadonlyMap<string, string> {
  const names = Map.groupBy(keys, ({ prefix }) => prefix);
  return new Map(
    Array.from(names, ([prefix, alike]): [string, string | null] => {
      const [first = null, ...others] = new Set(alike.map(({ name }) => name));
      return [prefix, others.length === 0 ? first : null];
    }).filter((named): named is [string, string] => named[1] !== null),
  );
}
