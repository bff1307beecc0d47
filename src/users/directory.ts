/**
 * Keeps the table of users what sessions, memories and documents name: each notes its user (`storage/user-names.ts`), and this task takes
 * away those of whom nothing is left, and adds those whose sessions or memories are of a Cairn without that table. Documents do not say a
 * name: whose documents are of a Cairn that did not note it comes into the table with their next change.
 *
 * @module
 */
import { NO_PARTITION } from "../lib/ids.ts";
import { eachFetched, type Reader, type Tx } from "../storage/access.ts";
import { readable } from "../storage/bad-rows.ts";
import type { Fill } from "../storage/fills.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { memories, sessions, users } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { documentsOf } from "./presence.ts";
import { foundBy, newestOf, nextNewest, USERS } from "./users.ts";

const USERS_PER_COMMIT = 200;
/** A million users are looked at in half a day. */
const PAUSE_MS = 10_000;

/** Notes the users of a store of before, ahead of the first request. */
export const USERS_FILL: Fill = {
  name: "users",
  tables: [sessions, memories],
  slice(tx, from) {
    const { next, ...found } = differences(tx, from);
    settle(tx, found);
    return { rows: found.missing.length, next };
  },
};

export function userDirectory(store: RecordStore): Task {
  let after = "";
  return {
    name: "users",
    async run() {
      after = (await settleSome(store, after)) ?? "";
      return PAUSE_MS;
    },
  };
}

/** Adds and removes what has to be among the next users. @returns where to continue; undefined at the end */
async function settleSome(store: RecordStore, after: string): Promise<string | undefined> {
  const { next, ...found } = await store.read((reader) => differences(reader, after));
  if (found.missing.length > 0 || found.left.length > 0) await store.commit(NO_PARTITION, (tx) => settle(tx, found));
  return next;
}

interface Differences {
  missing: string[];
  left: string[];
}

function settle(tx: Tx, { missing, left }: Differences): void {
  eachFetched(missing, (hash) => {
    const found = tx.has(users, hash) ? undefined : readable(() => foundBy(tx, USERS, newestOf(tx, USERS, hash)));
    if (found !== undefined) tx.put(users, hash, { userId: found.name, seenAt: found.seenAt });
  });
  eachFetched(left, (hash) => {
    if (isUnnamed(tx, hash)) tx.remove(users, hash);
  });
}

/** Users who are named and not in the table, and those who are in it and not named, in the order of their keys. */
function differences(reader: Reader, after: string): Differences & { next: string | undefined } {
  const named = nextNewest(reader, USERS, after, USERS_PER_COMMIT).map(({ hash }) => hash);
  const noted = reader.keys(users, { from: after, to: MAX_KEY, limit: USERS_PER_COMMIT });
  // A name behind the end of either may be in it all the same.
  const ends = [named, noted].flatMap((hashes) => (hashes.length < USERS_PER_COMMIT ? [] : [hashes.at(-1)!]));
  const end = ends.toSorted()[0] ?? MAX_KEY;
  const [isNamed, isNoted] = [new Set(named), new Set(noted)];
  const unnamed = noted.filter((hash) => hash <= end && !isNamed.has(hash));
  reader.ahead(users, unnamed);
  return {
    missing: named.filter((hash) => hash <= end && !isNoted.has(hash)),
    left: eachFetched(unnamed, (hash) => (isUnnamed(reader, hash) ? [hash] : [])).flat(),
    next: ends.length === 0 ? undefined : successor(end),
  };
}

/** Checks whether a user who is noted has no session, no memory and no document any more. */
export function isUnnamed(reader: Reader, hash: string): boolean {
  const { session, memory } = newestOf(reader, USERS, hash);
  if (session !== undefined || memory !== undefined) return false;
  const row = readable(() => reader.get(users, hash));
  return row === undefined || documentsOf(reader, row.userId) === 0;
}
