/**
 * Settings in the words of `--help` and of the page on configuration. Pure.
 *
 * @module
 */
import type { Setting } from "./schema.ts";

/** The first sentence of a description, without its full stop. */
export function summaryOf({ description }: Setting): string {
  return description.replace(/\.( .*)?$/, "");
}

/** The default as it is written in a variable, or in words; empty when there is none. */
export function defaultOf({ default: value, defaultText }: Setting): string {
  return defaultText ?? (typeof value === "boolean" ? String(Number(value)) : [value].flat().join());
}
