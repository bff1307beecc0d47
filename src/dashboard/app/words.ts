/**
 * Numbers of things, and origins of states, in words.
 *
 * @module
 */

import type { StateVersion } from "./api.ts";

/** `1,204`: every number on every screen. */
export const number = (count: number): string => count.toLocaleString("en");

/** `1 memory`, `1,204 memories`. */
export function counted(count: number, plural: string): string {
  const noun = count === 1 ? plural.replace(/ies$/, "y").replace(/s$/, "") : plural;
  return `${number(count)} ${noun}`;
}

/** `rollback to state 3`: what made a state. */
export function sourceOf({ source, restored_from_version: restored }: Pick<StateVersion, "source" | "restored_from_version">): string {
  return restored === undefined ? SOURCES[source] : `rollback to state ${number(restored)}`;
}
const SOURCES = { initial: "initial", update: "update", rollback: "rollback" } as const;
