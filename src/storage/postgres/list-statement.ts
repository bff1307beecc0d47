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
import type { Posting } from "../walk.ts";
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
  const conditions = filter.filter((one) => one !== walked).map((one) => conditionOf(one, relation, id, parameters));
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

/** Whether a record `r` passes a posting: it has an entry, or a key, that begins with one of the prefixes. */
function conditionOf({ table, prefixes }: Posting, records: string, id: string, parameters: Parameters): string {
  const { relation, column } = placeOf(table);
  if (relation !== records) {
    const wanted = parameters.add(prefixes);
    return `exists (select from unnest(${wanted}::text[]) as p(prefix) join ${relation} as e on e.${column} = p.prefix || ${id})`;
  }
  const ranges = prefixes.map(
    (prefix) => `(r.${column} >= ${parameters.add(prefix)} and r.${column} < ${parameters.add(prefix + AFTER_ALL)})`,
  );
  return ranges.length === 0 ? "false" : `(${ranges.join(" or ")})`;
}
