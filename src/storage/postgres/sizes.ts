/**
 * Sizes: rows of a table, and bytes of all.
 *
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { AnyTable } from "../tables.ts";
import type { Database } from "./connection/database.ts";
import { locationOf, SCHEMA } from "./schema.ts";

/** Up to this number rows are counted, which takes a millisecond; beyond it the planner's estimate is given. */
const COUNTED_MAX = 10_000;
const MEASURE_EVERY_MS = 1_000;

export class Sizes {
  readonly #database: Database;
  readonly #clock: Clock;
  #bytes = 0;
  #measuredAt = Number.NEGATIVE_INFINITY;
  /** The names of those that are counted next. */
  readonly #toCount = new Set<string>();
  #counts: Promise<ReadonlyMap<string, number>> | undefined;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Bytes of all tables and their indexes, as they were measured last; asking for them has them measured again. */
  get bytes(): number {
    const now = this.#clock.elapsed();
    if (now - this.#measuredAt >= MEASURE_EVERY_MS) void this.measure().catch(() => undefined);
    return this.#bytes;
  }

  /** @throws {DatabaseError} */
  async measure(): Promise<void> {
    this.#measuredAt = this.#clock.elapsed();
    const [row] = await this.#database.query({
      text: `select sum(pg_total_relation_size(oid))::int8 as bytes from pg_class where relkind = 'r' and relnamespace = '${SCHEMA}'::regnamespace`,
      values: [],
    });
    this.#bytes = Number(row?.["bytes"]);
  }

  /** Counts tables that are asked for in the same turn by one statement. @throws {DatabaseError} */
  async count({ name }: AnyTable): Promise<number> {
    this.#counts ??= Promise.resolve().then(() => this.#countAll());
    this.#toCount.add(name);
    return (await this.#counts).get(name) ?? 0;
  }

  async #countAll(): Promise<ReadonlyMap<string, number>> {
    const names = Array.from(this.#toCount).sort();
    this.#toCount.clear();
    this.#counts = undefined;
    const rows = await this.#database.query({ text: names.map(countOf).join(" union all "), values: [COUNTED_MAX] });
    return new Map(rows.map(({ name, n }) => [String(name), Number(n)]));
  }
}

/** Counts the rows of one table. */
function countOf(name: string): string {
  const { relation, column } = locationOf(name);
  const [schema, table] = relation.split(".") as [string, string];
  return (
    `select '${name}' as name, case when n < $1::int8 then n else greatest(n, (select (c.reltuples * (1 - coalesce(s.null_frac, 0)))::int8 from pg_class as c` +
    ` left join pg_stats as s on s.schemaname = '${schema}' and s.tablename = '${table}' and s.attname = '${column}' where c.oid = '${relation}'::regclass)) end as n` +
    ` from (select count(*) as n from (select from ${relation} where ${column} is not null limit $1::int8) as r) as counted`
  );
}
