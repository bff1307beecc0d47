/**
 * How many of something, and where a state comes from, in words.
 *
 * @module
 */

/** `1,204`: every number on every screen. */
export const number = (count: number): string => count.toLocaleString("en");

/** `1 memory`, `1,204 memories`. */
export function counted(count: number, plural: string): string {
  const noun = count === 1 ? plural.replace(/ies$/, "y").replace(/s$/, "") : plural;
  return `${number(count)} ${noun}`;
}

export const SOURCES = { initial: "as it began", update: "update", rollback: "rollback" } as const;
