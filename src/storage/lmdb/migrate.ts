/**
 * Migration of the store of an older Cairn to one that this Cairn reads.
 *
 * A migration is one transaction that writes the version it leads to as well, so a process that dies at any moment leaves the
 * store before it or after it. `operations/upgrade.ts` runs those that are due, after a backup: there is no way back but that.
 *
 * Changes of a migration have to fit into memory until it is committed (a million rows of 1 kB, 2.7 GB seen), so it leaves
 * alone what it need not touch. It reads and writes rows as they were in its two versions, through tables of its own
 * (`{ name, encode, decode }`): those in `tables.ts` go on changing after it.
 *
 * @module
 */
import type { Tx } from "../access.ts";
import { StoreError } from "../store-error.ts";
import { meta, SCHEMA_VERSION } from "../tables.ts";
import type { Store } from "./store.ts";

export interface Migration {
  /** The schema version it leads to, from the one before. */
  to: number;
  /** Change for the log: `turns know their agent`. */
  says: string;
  /** Does all of it; everything is as before when it throws. */
  run(tx: Tx): void;
}

/** In order, up to `SCHEMA_VERSION`. There is none yet: no Cairn with another schema was released. */
export const MIGRATIONS: readonly Migration[] = [];

/**
 * Migrations that a store of this version needs, in order.
 *
 * @throws {StoreError} when one is missing on the way
 */
export function migrationsFrom(schema: number, migrations: readonly Migration[]): Migration[] {
  return Array.from({ length: SCHEMA_VERSION - schema }, (_, index) => {
    const to = schema + index + 1;
    const migration = migrations.find((candidate) => candidate.to === to);
    if (migration === undefined) {
      throw new StoreError(
        `This Cairn reads schema version ${SCHEMA_VERSION} and cannot make version ${to} of an older store. Start an older Cairn first.`,
      );
    }
    return migration;
  });
}

export function migrate(store: Store, migration: Migration): Promise<void> {
  return store.commitExclusive((tx) => {
    migration.run(tx);
    tx.put(meta, "schema", String(migration.to));
  });
}
