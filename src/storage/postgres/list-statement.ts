/**
 * One statement for the ids of a list, whatever its filter: newest first, of records that pass all postings.
 *
 * Where a posting has one prefix, its entries in order are the ids in order: that index is walked, and the others decide about each
 * record. What is without one is walked by the table's own ids.
 *
 * @module
 */
import { firstBareIdAt, type BareId, type IdPrefix } from "../../lib/ids.ts";
import { AFTER_ALL } from "../keys.ts";
import type { Listing } from "../list.ts";
import type { Filter } from "../walk.ts";
import type { Statement } from "./database.ts";
import { Parameters } from "./fetch-statement.ts";
import { idOfEntry, idOfRecord, placeOf } from "./schema.ts";

/** @returns a statement that gives up to `limit` ids before `before`, as `id` */
export function listStatement<Prefix extends IdPrefix>(
  { table, ahead, filter, created: { createdAfter, createdBefore } }: Listing<Prefix>,
  before: BareId | undefined,
  limit: number,
): Statement {
  const parameters = new Parameters();
  const { relation } = placeOf(table.name);
  const id = idOfRecord(table.name, "r.key");
  const walkable = filter.filter(({ prefixes }) => prefixes.length === 1);
  const walked = walkable.find(({ table: name }) => name !== table.name) ?? walkable[0];
  const place = walked === undefined ? undefined : placeOf(walked.table);
  const isOwn = place === undefined || place.relation === relation;
  const from = createdAfter === undefined ? "" : firstBareIdAt(createdAfter + 1);
  const conditions = conditionsOf(
    filter.filter((one) => one !== walked),
    relation,
    id,
    parameters,
  );
  let order = id;
  if (walked !== undefined && place !== undefined) {
    const [prefix = ""] = walked.prefixes;
    const column = `${isOwn ? "r" : "e"}.${place.column}`;
    order = column;
    conditions.push(`${column} >= ${parameters.add(prefix + from)}`, `${column} < ${parameters.add(prefix + (before ?? AFTER_ALL))}`);
  } else {
    conditions.push(`${id} >= ${parameters.add(from)}`, `${id} < ${parameters.add(before ?? AFTER_ALL)}`);
  }
  // The time of an id can be later than its record's: then the record is in an index of its own.
  if (createdBefore !== undefined)
    conditions.push(`(${id} < ${parameters.add(firstBareIdAt(createdBefore))} or r.${placeOf(ahead.name).column} is not null)`);
  const source =
    isOwn || place === undefined
      ? `${relation} as r`
      : `${place.relation} as e join ${relation} as r on r.key = ${idOfEntry(`e.${place.column}`)}`;
  return {
    text: `select ${id} as id from ${source} where ${conditions.join(" and ")} order by ${order} desc limit ${parameters.add(limit)}::int8`,
    values: parameters.values,
  };
}

/**
 * Conditions that a record `r` passes all postings: it has an entry, or a key, that begins with one of the prefixes of each. Their texts do
 * not depend on how many prefixes there are, nor on how many postings of one index.
 */
function conditionsOf(postings: Filter, records: string, id: string, parameters: Parameters): string[] {
  const withOne = postings.filter(({ table, prefixes }) => prefixes.length === 1 && placeOf(table).relation !== records);
  const ofIndexes = Map.groupBy(withOne, ({ table }) => table);
  return [
    ...Array.from(ofIndexes, ([table, some]) => {
      const { relation, column } = placeOf(table);
      const wanted = parameters.add(some.flatMap(({ prefixes }) => prefixes));
      return `not exists (select from unnest(${wanted}::text[]) as p(prefix) where not exists (select from ${relation} as e where e.${column} = p.prefix || ${id}))`;
    }),
    ...postings
      .filter((one) => !withOne.includes(one))
      .map(({ table, prefixes }) => {
        const { relation, column } = placeOf(table);
        const wanted = `unnest(${parameters.add(prefixes)}::text[]) as p(prefix)`;
        if (relation !== records) return `exists (select from ${wanted} join ${relation} as e on e.${column} = p.prefix || ${id})`;
        return `exists (select from ${wanted} where starts_with(r.${column}, p.prefix))`;
      }),
  ];
}
