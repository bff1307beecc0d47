/**
 * Opens the records of a store for a command of the operator's, also while servers serve from it.
 *
 * @module
 */
import { startAudit } from "../audit/start.ts";
import type { KeyMaker } from "../keys/keys.ts";
import { bounded, type Clock } from "../lib/clock.ts";
import { Settings } from "../settings/settings.ts";
import { makePrivate, prepareDirectory } from "../storage/lmdb/directory/data-directory.ts";
import { Store } from "../storage/lmdb/store.ts";
import { openDatabase } from "../storage/postgres/connection/open-database.ts";
import { NoStoreError } from "../storage/postgres/migrations.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { systemCaller, type Deps } from "../traces/record.ts";
import { holdsStore } from "./store-file.ts";
import type { StorePlace } from "./with-store.ts";

/** Dependencies of a command of the operator's. */
export interface CommandDeps extends Deps {
  readonly operator: KeyMaker;
}

interface RecordsOptions {
  /** Reads the time of the database; a test has its own. */
  readonly databaseTime?: (() => Promise<number>) | undefined;
  /** Called where a store is made. In a database none is made without this. */
  readonly onNew?: (() => void) | undefined;
}

export async function openRecords(place: StorePlace, own: Clock, options: RecordsOptions = {}): Promise<CommandDeps> {
  const { store, clock } = await openPlace(place, own, options);
  await startAudit(store, place.dataDirectory, { isServer: false });
  const { trace_retention_days } = (await Settings.open(store, {})).values;
  return { store, clock: bounded(clock), operator: { ...systemCaller(() => trace_retention_days), scopes: ["admin"] } };
}

async function openPlace(
  { dataDirectory, database }: StorePlace,
  clock: Clock,
  { databaseTime: time, onNew }: RecordsOptions,
): Promise<{ store: RecordStore; clock: Clock }> {
  if (database === undefined) {
    const directory = prepareDirectory(dataDirectory);
    if (!holdsStore(directory)) onNew?.();
    const store = await Store.open(directory, clock);
    makePrivate(directory);
    return { store, clock };
  }
  try {
    return await openDatabase(database, clock, { time, asItIs: true });
  } catch (error) {
    if (!(error instanceof NoStoreError) || onNew === undefined) throw error;
    const made = await openDatabase(database, clock, { time });
    onNew();
    return made;
  }
}
