/**
 * Marks of records that have secrets, while the setting `secrets` is `tag`. Pure.
 *
 * @module
 */
import { SECRET_GROUPS } from "./kinds.ts";
import { kindsIn } from "./screen.ts";

const EVERYTHING = new Set(SECRET_GROUPS);

/**
 * Kinds of secrets that a record is marked with; undefined for none. Only those that it had before, or that the request has, are looked
 * for: most requests have none, and then nothing is.
 *
 * @param sent - kinds in the request
 * @param before - those that the record had
 * @param value - gives all that the record has from clients
 */
export function secretsIn(sent: readonly string[] = [], before: readonly string[] = [], value: () => unknown): string[] | undefined {
  if (sent.length === 0 && before.length === 0) return undefined;
  const present = kindsIn(value(), EVERYTHING);
  const marked = [...new Set([...before, ...sent])].filter((kind) => present.has(kind)).toSorted();
  return marked.length === 0 ? undefined : marked;
}

/** The kinds of two parts of a record together. */
export function secretsOfBoth(one: readonly string[] = [], other: readonly string[] = []): string[] | undefined {
  const both = [...new Set([...one, ...other])].toSorted();
  return both.length === 0 ? undefined : both;
}

/** The member of a row that has the marks, where there are any. */
export function marks(secrets: string[] | undefined): { secrets?: string[] } {
  return secrets === undefined ? {} : { secrets };
}
