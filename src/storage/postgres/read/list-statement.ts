/**
 * One statement for the ids of a list, whatever its filter: newest first, of records that pass all postings.
 *
 * If a posting has one prefix, its entries in order are the ids in order: that index is walked, and the others decide about each
 * record. What is without one is walked by the table's own ids. A statement walks a bounded number of records and says how far it
 * came: few may pass.
 *
 * @module
 */
import type { BareId } from "../../../lib/ids.ts";
import { MAX_KEY } from "../../keys.ts";
import type { Stretch } from "../../list.ts";
import type { AnyTable } from "../../tables.ts";
import type { Filter, Posting } from "../../walk.ts";
import type { AnswerRow, Statement } from "../connection/database.ts";
import { idOfEntry, idOfRecord, locationOf } from "../schema.ts";
import { Parameters } from "./fetch-statement.ts";

/** Result of a statement: ids that pass, and how many were walked, up to the last of them. */
interface Walked {
  readonly ids: readonly BareId[];
  readonly walked: number;
  readonly last: BareId | undefined;
}

/**
 * @param limit - how many ids are wanted
 * @param walkMax - how many records are walked for them
 */
export function listStatement(
  table: AnyTable,
  { filter, from = "", before = MAX_KEY }: Stretch,
  limit: number,
  walkMax: number,
): { statement: Statement; walkedIn: (answers: readonly AnswerRow[]) => Walked } {
  const parameters = new Parameters();
  const { relation } = locationOf(table.name);
  const others = filter.filter((one) => locationOf(one.table).relation !== relation);
  const wanted = filter.filter(({ isExcluded }) => isExcluded !== true);
  const walked = indexToWalk(wanted, table, others);
  const location = walked === undefined ? undefined : locationOf(walked.table);
  const isOwn = location === undefined || location.relation === relation;
  const entry = location === undefined ? idOfRecord(table.name, "r.key") : `${isOwn ? "r" : "e"}.${location.column}`;
  const prefix = walked?.prefixes[0] ?? "";
  const source = isOwn ? `${relation} as r` : `${location.relation} as e join ${relation} as r on r.key = ${idOfEntry(entry)}`;
  const rest = filter.filter((one) => one !== walked);
  const columns = new Set(rest.filter((one) => !others.includes(one)).map((one) => locationOf(one.table).column));
  columns.delete("key");
  const select = [`${idOfRecord(table.name, "r.key")} as id`, "r.key", ...Array.from(columns, (column) => `r.${column}`)];
  const range = `${entry} >= ${parameters.add(prefix + from)} and ${entry} < ${parameters.add(prefix + before)}`;
  const most = parameters.add(walkMax);
  const conditions = conditionsOf(rest, relation, parameters);
  return {
    statement: {
      text:
        `with walked as materialized (select ${select.join(", ")} from ${source} where ${range} order by ${entry} desc limit ${most}::int8)` +
        ` (select r.id, null::int8 as walked from walked as r${conditions.length === 0 ? "" : ` where ${conditions.join(" and ")}`}` +
        ` order by r.id desc limit ${parameters.add(limit)}::int8) union all select min(id), count(*) from walked`,
      values: parameters.values,
    },
    walkedIn: (answers) => {
      const end = answers.find((answer) => answer["walked"] !== null);
      const ids = answers.filter((answer) => answer["walked"] === null).map((answer) => answer["id"] as BareId);
      return {
        ids: ids.sort().reverse(),
        walked: Number(end?.["walked"]),
        last: (end?.["id"] ?? undefined) as BareId | undefined,
      };
    },
  };
}

/** The one that has the fewest records, as far as its kind says: hardly any is ahead of its time, and few have one tag. */
function indexToWalk(filter: Filter, table: AnyTable, others: readonly Posting[]): Posting | undefined {
  const walkable = filter.filter(({ prefixes }) => prefixes.length === 1);
  return (
    walkable.find(({ prefixes }) => prefixes[0] === "") ??
    walkable.find((one) => others.includes(one)) ??
    walkable.find((one) => one.table !== table.name) ??
    walkable[0]
  );
}

/**
 * Conditions that a walked record `r` passes all postings: it has an entry, or a key, that begins with one of the prefixes of each, or has
 * none where they are excluded. Their texts do not depend on how many prefixes there are, nor on how many postings of one index.
 */
function conditionsOf(filter: Filter, records: string, parameters: Parameters): string[] {
  const [excluded, postings] = [filter.filter(({ isExcluded }) => isExcluded), filter.filter(({ isExcluded }) => isExcluded !== true)];
  const withOne = postings.filter(({ table, prefixes }) => prefixes.length === 1 && locationOf(table).relation !== records);
  const ofIndexes = Map.groupBy(withOne, ({ table }) => table);
  return [
    ...Array.from(ofIndexes, ([table, some]) => {
      const { relation, column } = locationOf(table);
      const wanted = parameters.add(some.flatMap(({ prefixes }) => prefixes));
      return `not exists (select from unnest(${wanted}::text[]) as p(prefix) where not exists (select from ${relation} as e where e.${column} = p.prefix || r.id))`;
    }),
    ...postings
      .filter((one) => !withOne.includes(one))
      .map(({ table, prefixes }) => {
        const { relation, column } = locationOf(table);
        const wanted = `unnest(${parameters.add(prefixes)}::text[]) as p(prefix)`;
        if (relation !== records) return `exists (select from ${wanted} join ${relation} as e on e.${column} = p.prefix || r.id)`;
        return `exists (select from ${wanted} where starts_with(r.${column}, p.prefix))`;
      }),
    ...excluded.map(({ table, prefixes }) => {
      const { column } = locationOf(table);
      return `not exists (select from unnest(${parameters.add(prefixes)}::text[]) as p(prefix) where starts_with(r.${column}, p.prefix))`;
    }),
  ];
}
