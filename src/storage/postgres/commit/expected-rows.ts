/**
 * Rows that a transaction locks and fetches before its callbacks run.
 *
 * @module
 */
import type { Connection, Statement } from "../connection/database.ts";
import { Fetch } from "../read/fetch-statement.ts";
import { type FetchedRows, ReadSet } from "../read/fetched-rows.ts";
import { union, type Locks } from "./commit-locks.ts";

/** Rows that commits will read and lock, most likely. */
export interface Expected {
  readonly read: ReadSet;
  readonly locks: Locks;
}

/** Fetches in a transaction, of which each statement sees what others have committed by then. @param first - done before */
export async function load(
  readSet: ReadSet,
  fetched: FetchedRows,
  connection: Connection,
  first: readonly Statement[] = [],
): Promise<void> {
  const fetch = new Fetch(readSet);
  const statements = fetch.apart;
  const answers = (await connection.send([...first, ...statements])).slice(first.length);
  fetched.take(readSet, fetch.foundIn(answers.flat()), statements.length);
}

export function unionOf(one: Expected, other: Expected): Expected {
  const read = new ReadSet();
  for (const { read: readSet } of [one, other]) read.add(readSet);
  return { read, locks: union(one.locks, other.locks) };
}
