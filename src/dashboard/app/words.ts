/**
 * How many of something, in words.
 *
 * @module
 */

/** `1 memory`, `1,204 memories`. */
export function counted(count: number, plural: string): string {
  const noun = count === 1 ? plural.replace(/ies$/, "y").replace(/s$/, "") : plural;
  return `${count.toLocaleString("en")} ${noun}`;
}
