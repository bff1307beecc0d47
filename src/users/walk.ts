/**
 * Walks over the rows that an erasure looks at, a piece in each commit.
 *
 * @module
 */
import type { Reader, Span } from "../storage/access.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import type { AnyTable, Index } from "../storage/tables.ts";

/** The keys of the next rows of a user or a kind, and the entry behind which the phase continues. */
export function nextEntries(
  reader: Reader,
  index: Index<never>,
  prefix: string,
  after: string,
  limit: number,
): { keys: string[]; last: string | undefined } {
  const entries = reader.keys(index, { from: after === "" ? prefix : successor(after), to: prefix + MAX_KEY, limit });
  return { keys: entries.map((entry) => index.recordOf(entry)), last: entries.length < limit ? undefined : entries.at(-1) };
}

/** The next keys of a table that is walked from end to end. */
export function nextKeys(reader: Reader, table: AnyTable, after: string, limit: number): { keys: string[]; last: string | undefined } {
  const span: Span = { from: after === "" ? "" : successor(after), to: MAX_KEY, limit };
  const keys = reader.keys(table, span);
  return { keys, last: keys.length < limit ? undefined : keys.at(-1) };
}
