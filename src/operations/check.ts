/**
 * Kinds of checks of a store, and of problems that they find.
 *
 * A check looks at one key at a time, in order, and remembers nothing but the one before, so that a store of any size can be checked.
 * It reads one snapshot, and can be run again. A problem is repaired in a commit, which looks at its key again first.
 *
 * @module
 */
import type { Reader, Tx } from "../storage/access.ts";
import { MAX_KEY } from "../storage/keys.ts";
import type { WholeRow, WholeStore } from "../storage/record-store.ts";
import type { AnyTable, Index } from "../storage/tables.ts";
import { RECORDS, stored } from "./records.ts";

export interface Fault {
  /** The kind of problem. */
  what: string;
  /** The record or entry that has it. */
  example: string;
  /** Puts it right, as it was just found; absent when the records do not say what would be right. */
  fix?: ((tx: Tx) => void) | undefined;
  /** True if that is right whatever is there by then. */
  isAlwaysRight?: true;
}

export interface Problem extends Pick<Fault, "what" | "example"> {
  /** The record it was found at. */
  record?: { table: AnyTable; key: string } | undefined;
  repair?: ((tx: Tx) => void) | undefined;
}

/** Yields what is wrong with some rows, and how many they are. */
export type Check = (snapshot: WholeStore) => AsyncGenerator<{ problems: readonly Problem[]; rows: number }>;

/** A key with its row, whose text is empty for indexes and others whose keys say all. */
export interface Looked extends WholeRow {
  /** The row before it, where a snapshot is looked at. */
  readonly before?: WholeRow | undefined;
}
export type KeyCheck = (reader: Reader, row: Looked) => Iterable<Fault>;

export function everyKey(table: AnyTable, check: KeyCheck): Check {
  const isRecord = RECORDS.some(({ name }) => name === table.name);
  const problemOf = (key: string, { what, example, fix, isAlwaysRight }: Fault): Problem => {
    const repair = (tx: Tx) => {
      const now = isRecord ? tx.get(stored(table), key) : "";
      if (now === undefined) return;
      for (const again of check(tx, { key, text: now })) if (again.what === what) again.fix?.(tx);
    };
    return { what, example, record: isRecord ? { table, key } : undefined, repair: isAlwaysRight === true ? fix : fix && repair };
  };
  return async function* (snapshot) {
    let last: WholeRow | undefined;
    for await (const batch of isRecord ? snapshot.rowBatches(table) : snapshot.keyBatches(table)) {
      const rows = batch.map((row) => (typeof row === "string" ? { key: row, text: "" } : row));
      const looked = rows.map((row, i): Looked => ({ ...row, before: i === 0 ? last : rows[i - 1] }));
      const faults = await snapshot.readEach(looked, (reader, row) => Array.from(check(reader, row)));
      yield { problems: looked.flatMap(({ key }, i) => faults[i]!.map((fault) => problemOf(key, fault))), rows: rows.length };
      last = rows.at(-1);
    }
  };
}

/** Entries that are columns of their rows are checked with the rows. */
export function everyEntry(index: Index, check: KeyCheck): Check {
  const every = everyKey(index, check);
  return async function* (snapshot) {
    if (index.hasMany || !snapshot.hasIndexColumns) yield* every(snapshot);
  };
}

/** Each is a trip to a database, after which a check begins again. */
const KEYS_PER_READ = 10_000;

/** The keys of a table that begin with a prefix, in order. @param onKeys - called with some of them before they are given */
export function* keysOf(
  reader: Reader,
  table: AnyTable,
  prefix: string,
  onKeys: (keys: readonly string[]) => void = () => undefined,
): Generator<string, void, undefined> {
  const to = prefix + MAX_KEY;
  for (let from = prefix; ;) {
    const keys = reader.keys(table, { from, to, limit: KEYS_PER_READ });
    onKeys(keys);
    yield* keys;
    if (keys.length < KEYS_PER_READ) return;
    // No key has a character before it.
    from = `${keys.at(-1)} `;
  }
}
