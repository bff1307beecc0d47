/**
 * One statement that reads any number of keys and spans of any tables at one moment.
 *
 * Its text depends on the tables alone, not on how much is read of each, so that there are few texts to prepare.
 *
 * @module
 */
import type { AnswerRow, Statement } from "./database.ts";
import type { Asks, Found, SpanAsk, StoredRow } from "./fetched.ts";
import { placeOf } from "./schema.ts";

type Parameter = Statement["values"][number];

/** Numbers the parameters of a statement in the order in which they are added. */
export class Parameters {
  readonly values: Parameter[] = [];

  add(value: Parameter): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}

/** Spans of one table that one part of a statement reads: those of one direction, with texts or without. */
interface SpanGroup {
  readonly table: string;
  readonly order: "asc" | "desc";
  readonly withRows: boolean;
  readonly asks: readonly (readonly [name: string, ask: SpanAsk])[];
}

export function groupSpans(spans: ReadonlyMap<string, SpanAsk>): SpanGroup[] {
  const groups = Map.groupBy(spans, ([, { table, span, withRows }]) =>
    [table, span.descending === true ? "desc" : "asc", withRows ? "rows" : "keys"].join(" "),
  );
  return Array.from(groups.values(), (asks) => {
    const [, { table, span, withRows }] = asks[0]!;
    return { table, order: span.descending === true ? "desc" : "asc", withRows, asks };
  });
}

/** `from` clause and lateral read of the spans of a group; `found` has key, row and rev, and `ask` the number of the span. */
export function spansSource({ table, order, withRows, asks }: SpanGroup, parameters: Parameters): { asked: string; found: string } {
  const { relation, column, row, rev } = placeOf(table);
  const of = (value: (ask: SpanAsk) => string) => parameters.add(asks.map(([, ask]) => value(ask)));
  const numbers = (value: (ask: SpanAsk, i: number) => number | null) => parameters.add(asks.map(([, ask], i) => value(ask, i)));
  const asked = `unnest(${numbers((_, i) => i)}::int8[], ${of(({ span }) => span.from)}::text[], ${of(({ span }) => span.to)}::text[], ${numbers(({ span }) => span.limit ?? null)}::int8[]) as q(ask, low, high, most)`;
  const found =
    `select ${column} as key, ${withRows ? row : "null::text"} as row, ${rev} as rev from ${relation}` +
    ` where ${column} >= q.low collate "C" and ${column} < q.high collate "C" order by ${column} ${order} limit q.most`;
  return { asked, found };
}

export function fetchStatement(asks: Asks): {
  statement: Statement;
  foundIn: (answers: readonly AnswerRow[]) => Found;
} {
  const parameters = new Parameters();
  const tables = Array.from(asks.keys);
  const groups = groupSpans(asks.spans);
  const parts = [
    ...tables.map(([table, keys], part) => {
      const { relation, column, row, rev } = placeOf(table);
      const wanted = parameters.add(Array.from(keys));
      return `select ${part} as part, 0::int8 as ask, ${column} as key, ${row} as row, ${rev} as rev from ${relation} where ${column} = any(${wanted}::text[])`;
    }),
    ...groups.map((group, i) => {
      const { asked, found } = spansSource(group, parameters);
      return `select ${tables.length + i} as part, q.ask, f.* from ${asked} cross join lateral (${found}) as f`;
    }),
  ];
  return {
    statement: { text: parts.join("\nunion all\n"), values: parameters.values },
    foundIn: (answers) => {
      const rows = new Map<string, Map<string, StoredRow>>(tables.map(([table]) => [table, new Map<string, StoredRow>()]));
      const spans = new Map<string, StoredRow[]>(Array.from(asks.spans.keys(), (name) => [name, []]));
      for (const { part, ask, key, row, rev } of answers) {
        const found = { key: key as string, text: row as string | null, rev: Number(rev) };
        const group = groups[(part as number) - tables.length];
        if (group === undefined) rows.get(tables[part as number]![0])!.set(found.key, found);
        else spans.get(group.asks[Number(ask)]![0])!.push(found);
      }
      // SQL promises no order of what several parts give.
      for (const group of groups) {
        const sign = group.order === "asc" ? 1 : -1;
        for (const [name] of group.asks) spans.get(name)!.sort((a, b) => (a.key < b.key ? -sign : sign));
      }
      return { rows, spans };
    },
  };
}
