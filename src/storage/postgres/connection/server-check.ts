/**
 * Check that a database can have the store, and keeps what it acknowledges.
 *
 * @module
 */
import type { Clock } from "../../../lib/clock.ts";
import type { Durability } from "../../durability.ts";
import { StoreError } from "../../store-error.ts";
import { SCHEMA_VERSION } from "../../tables.ts";
import { checkSchema, migrateSchema } from "../migrations.ts";
import { READ_VERSION } from "../schema.ts";
import type { Database } from "./database.ts";

const SERVER_VERSION_MIN = 150_000;

/**
 * @returns whether the database waits for a standby before it acknowledges a change
 * @throws {StoreError} when it cannot be used, or would not keep what it acknowledges
 * @throws {DatabaseError}
 */
export async function checkServer(database: Database, durability: Durability): Promise<{ hasStandby: boolean }> {
  const [server] = await database.query({
    text: "select current_setting('server_version_num')::int as number, current_setting('server_version') as version, pg_is_in_recovery() as standby, current_setting('transaction_read_only') as readonly, current_setting('server_encoding') as encoding, current_setting('default_transaction_isolation') as isolation, current_setting('synchronous_commit') as synchronous, current_setting('synchronous_standby_names') <> '' as standbys",
    values: [],
  });
  const { number, version, standby, readonly, encoding, isolation, synchronous, standbys } = server ?? {};
  if (Number(number) < SERVER_VERSION_MIN) throw new StoreError(`The database has to be PostgreSQL 15 or newer; it is ${version}.`);
  if (standby === true) throw new StoreError("The database is a standby, which takes no changes. Name its primary.");
  if (readonly === "on")
    throw new StoreError("The database takes no changes: default_transaction_read_only is on, for it or for this user.");
  if (encoding !== "UTF8") throw new StoreError(`The database has the encoding ${encoding}; it has to be UTF8.`);
  if (isolation !== "read committed")
    throw new StoreError(
      `The database begins transactions as ${isolation}: its default_transaction_isolation has to be read committed, for it and for this user.`,
    );
  if (durability === "strict" && synchronous !== "on" && synchronous !== "remote_apply")
    throw new StoreError(
      `The database acknowledges what a crash can lose: its synchronous_commit is ${synchronous} and has to be on, unless Cairn is started with --durability relaxed.`,
    );
  return { hasStandby: standbys === true };
}

/**
 * @param asItIs - refuses a database without a store, or with that of an older Cairn; otherwise that is made, or brought up to date
 * @throws {StoreError} for the schema of another version
 * @throws {DatabaseError}
 */
export async function openSchema(database: Database, clock: Clock, asItIs: boolean): Promise<void> {
  await (asItIs ? checkSchema(database) : migrateSchema(database, clock));
  const [row] = await database.query(READ_VERSION);
  const schema = Number(row?.["row"]);
  if (schema !== SCHEMA_VERSION)
    throw new StoreError(
      `The database has schema version ${schema}; this Cairn reads version ${SCHEMA_VERSION}. Start the Cairn that wrote it.`,
    );
}
