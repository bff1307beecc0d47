/**
 * Two schema versions that never were, and the ways from each to the next. In the oldest a memory has its `type` as `kind`; in
 * the middle one that is right already, and a webhook still has its `url` as `address`.
 *
 * Run as a program, with a data directory and a place, it starts on an older store and is killed at that place.
 *
 * @module
 */
import { systemClock, type Clock } from "../../src/lib/clock.ts";
import { NO_PARTITION } from "../../src/lib/ids.ts";
import { createLog } from "../../src/lib/log.ts";
import { openService } from "../../src/server/service.ts";
import type { Writable } from "../../src/storage/access.ts";
import { MAX_KEY } from "../../src/storage/keys.ts";
import type { Migration } from "../../src/storage/lmdb/migrate.ts";
import { Store } from "../../src/storage/lmdb/store.ts";
import { memories, meta, SCHEMA_VERSION, webhooks } from "../../src/storage/tables.ts";

type Row = Record<string, unknown>;

const ALL = { from: "", to: MAX_KEY };

const json = (name: string): Writable<Row> => ({
  name,
  indexes: [],
  encode: (row) => JSON.stringify(row),
  decode: (text) => JSON.parse(text) as Row,
});
export const memoryRows = json(memories.name);
export const webhookRows = json(webhooks.name);

const renamed = (row: Row, from: string, to: string): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      if (name === to) throw new Error(`${to} is there already`);
      return [name === from ? to : name, value];
    }),
  );

export const toMiddle: Migration = {
  to: SCHEMA_VERSION - 1,
  says: "the kind of a memory is its type",
  run(tx) {
    for (const { key, row } of tx.rows(memoryRows, ALL)) tx.put(memoryRows, key, renamed(row, "kind", "type"));
  },
};

export const toLatest: Migration = {
  to: SCHEMA_VERSION,
  says: "the address of a webhook is its url",
  run(tx) {
    for (const { key, row } of tx.rows(webhookRows, ALL)) tx.put(webhookRows, key, renamed(row, "address", "url"));
  },
};

export const ROADS: readonly Migration[] = [toMiddle, toLatest];

/** Makes a store of the oldest version of one of this. */
export async function makeOlder(directory: string, clock: Clock): Promise<void> {
  await inStore(directory, clock, (store) =>
    store.commit(NO_PARTITION, (tx) => {
      for (const { key, row } of tx.rows(memoryRows, ALL)) tx.put(memoryRows, key, renamed(row, "type", "kind"));
      for (const { key, row } of tx.rows(webhookRows, ALL)) tx.put(webhookRows, key, renamed(row, "url", "address"));
      tx.put(meta, "schema", String(SCHEMA_VERSION - 2));
    }),
  );
}

/** Looks into a store of any version. */
export async function inStore<Result>(directory: string, clock: Clock, look: (store: Store) => Result): Promise<Awaited<Result>> {
  const store = await Store.open(directory, clock, { older: true });
  try {
    return await look(store);
  } finally {
    await store.close();
  }
}

function killedIn(migration: Migration, when: "before" | "after"): Migration {
  return {
    ...migration,
    run(tx) {
      if (when === "after") migration.run(tx);
      process.kill(process.pid, "SIGKILL");
    },
  };
}

if (import.meta.main) {
  const [directory = "", where] = process.argv.slice(2);
  const log = createLog({ level: "silent", pretty: false, now: () => 0, write: () => undefined });
  const migrations = {
    before: [killedIn(toMiddle, "before"), toLatest],
    first: [killedIn(toMiddle, "after"), toLatest],
    second: [toMiddle, killedIn(toLatest, "after")],
  }[where as "before" | "first" | "second"];
  await openService(directory, systemClock, log, { migrations });
}
