/**
 * Statements that read any number of keys and spans of any tables.
 *
 * Their texts depend on the tables alone, not on how much is read of each: the driver and the database keep each text that was prepared.
 *
 * @module
 */
import { MAX_KEY } from "../../keys.ts";
import type { AnswerRow, Statement } from "../connection/database.ts";
import { locationOf } from "../schema.ts";
import type { ReadSet, FoundRows, SpanAsk, StoredRow } from "./fetched-rows.ts";

type Parameter = Statement["values"][number];

/** Numbers the parameters of a statement in the order in which they are added. */
export class Parameters {
  readonly values: Parameter[] = [];

  add(value: Parameter): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}

/** Spans of one table that one part of a statement reads: those of one direction, with texts or without, of all keys or the last ones. */
interface SpanGroup {
  readonly table: string;
  readonly width: number | undefined;
  readonly order: "asc" | "desc";
  readonly withRows: boolean;
  readonly readSet: readonly (readonly [name: string, ask: SpanAsk])[];
}

export function groupSpans(spans: ReadonlyMap<string, SpanAsk>): SpanGroup[] {
  const groups = Map.groupBy(spans, ([, { table, span, withRows, width }]) =>
    [table, span.descending === true ? "desc" : "asc", withRows ? "rows" : "keys", width].join(" "),
  );
  const sorted = Array.from(groups).sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([, readSet]) => {
    const [, { table, span, withRows, width }] = readSet[0]!;
    return { table, width, order: span.descending === true ? "desc" : "asc", withRows, readSet };
  });
}

/**
 * Arrays as the columns of a relation, of whose length the planner knows nothing: otherwise it would plan each statement again for the
 * arrays that it is given, which takes longer than the statement.
 */
export function unnested(relation: string, columns: readonly { readonly name: string; readonly array: string }[]): string {
  const names = columns.map(({ name }) => name).join(", ");
  const arrays = columns.map(({ name, array }) => `${array} as ${name}`).join(", ");
  return `(select ${arrays} offset 0) as ${relation}_arrays cross join lateral unnest(${names}) as ${relation}(${names})`;
}

/** `from` clause and lateral read of the spans of a group; `found` has key, row and rev, and `ask` the number of the span. */
export function spansSource(
  { table, width, order, withRows, readSet }: SpanGroup,
  parameters: Parameters,
): { asked: string; found: string } {
  const { relation, column, row, rev } = locationOf(table);
  const of = (value: (ask: SpanAsk) => string) => parameters.add(readSet.map(([, ask]) => value(ask)));
  const numbers = (value: (ask: SpanAsk, i: number) => number | null) => parameters.add(readSet.map(([, ask], i) => value(ask, i)));
  const columns = [
    { name: "ask", array: `${numbers((_, i) => i)}::int8[]` },
    { name: "low", array: `${of(({ span }) => span.from)}::text[]` },
    { name: "high", array: `${of(({ span }) => span.to)}::text[]` },
    { name: "most", array: `${numbers(({ span }) => span.limit ?? null)}::int8[]` },
  ];
  const asked = unnested("q", columns);
  if (width !== undefined) return { asked, found: lastOfEach(relation, column, width) };
  const found =
    `select ${column} as key, ${withRows ? row : "null::text"} as row, ${rev} as rev from ${relation}` +
    ` where ${column} >= q.low collate "C" and ${column} < q.high collate "C" order by ${column} ${order} limit q.most`;
  return { asked, found };
}

/** Goes from the first key of each prefix to the first behind that prefix, and reads the last of each. */
function lastOfEach(relation: string, column: string, width: number): string {
  const one = (from: string, to: string, order: "asc" | "desc") =>
    `(select ${column} from ${relation} where ${column} >= ${from} and ${column} < ${to} order by ${column} ${order} limit 1)`;
  const behind = `left(first, ${width}) || '${MAX_KEY}' collate "C"`;
  const high = `q.high collate "C"`;
  return (
    `with recursive prefixes(first) as (select ${one(`q.low collate "C"`, high, "asc")}` +
    ` union all select ${one(behind, high, "asc")} from prefixes where first is not null)` +
    ` select ${one("first", behind, "desc")} as key, null::text as row, 0::int8 as rev from prefixes where first is not null limit q.most`
  );
}

/** Statements of a fetch, and the meaning of their answers. */
export class Fetch {
  readonly #readSet: ReadSet;
  readonly #lengthMax: number | undefined;
  readonly #tables: readonly string[];
  readonly #groups: readonly SpanGroup[];
  /** Each makes a part of the whole with parameters of its own or of all. */
  readonly #parts: readonly ((parameters: Parameters) => string)[];

  /** @param lengthMax - how many bytes of keys and texts a statement gives; one that would give more gives none */
  constructor(readSet: ReadSet, lengthMax?: number) {
    this.#readSet = readSet;
    this.#lengthMax = lengthMax;
    this.#tables = Array.from(readSet.keys.keys()).sort();
    this.#groups = groupSpans(readSet.spans);
    this.#parts = [
      ...this.#tables.map((table) => (parameters: Parameters) => {
        const { relation, column, row, rev } = locationOf(table);
        const asked = unnested("q", [{ name: "wanted", array: `${parameters.add(Array.from(readSet.keys.get(table) ?? []))}::text[]` }]);
        const found = `select ${column} as key, ${row} as row, ${rev} as rev from ${relation} where ${column} = q.wanted limit 1`;
        return `0::int8 as ask, f.* from ${asked} cross join lateral (${found}) as f`;
      }),
      ...this.#groups.map((group) => (parameters: Parameters) => {
        const { asked, found } = spansSource(group, parameters);
        return `q.ask, f.* from ${asked} cross join lateral (${found}) as f`;
      }),
    ];
  }

  /** One statement for all of it. There can be as many texts of it as there are sets of tables. */
  get together(): Statement {
    const parameters = new Parameters();
    const texts = this.#parts.map((part, i) => `select ${i} as part, ${part(parameters)}`);
    return this.#limited(texts.join("\nunion all\n"), parameters);
  }

  /** A statement for each table, of which there are few texts. */
  get apart(): Statement[] {
    return this.#parts.map((part, i) => {
      const parameters = new Parameters();
      const number = parameters.add(i);
      return this.#limited(`select ${number}::int4 as part, ${part(parameters)}`, parameters);
    });
  }

  /** Lengths are known without the texts, which are stored apart and compressed. */
  #limited(text: string, parameters: Parameters): Statement {
    if (this.#lengthMax === undefined) return { text, values: parameters.values };
    const fits = `length <= ${parameters.add(this.#lengthMax)}::int8`;
    const measured = `select *, sum(octet_length(key) + coalesce(octet_length(row), 0)) over () as length from (${text}) as found`;
    return {
      text: `select part, ask, key, rev, case when ${fits} then row end as row, ${fits} as fits from (${measured}) as measured`,
      values: parameters.values,
    };
  }

  /** The same as `foundIn`; undefined when a statement would have given more than it may. */
  foundUpToIn(answers: readonly AnswerRow[]): FoundRows | undefined {
    return answers.some(({ fits }) => fits === false) ? undefined : this.foundIn(answers);
  }

  /** @param answers - of all statements */
  foundIn(answers: readonly AnswerRow[]): FoundRows {
    const tables = this.#tables;
    const rows = new Map<string, Map<string, StoredRow>>(tables.map((table) => [table, new Map<string, StoredRow>()]));
    const spans = new Map<string, StoredRow[]>(Array.from(this.#readSet.spans.keys(), (name) => [name, []]));
    for (const { part, ask, key, row, rev } of answers) {
      const found = { key: key as string, text: row as string | null, rev: Number(rev) };
      const group = this.#groups[(part as number) - tables.length];
      if (group === undefined) rows.get(tables[part as number]!)!.set(found.key, found);
      else spans.get(group.readSet[Number(ask)]![0])!.push(found);
    }
    // SQL promises no order of what several parts give.
    for (const group of this.#groups) {
      const sign = group.order === "asc" ? 1 : -1;
      for (const [name] of group.readSet) spans.get(name)!.sort((a, b) => (a.key < b.key ? -sign : sign));
    }
    return { rows, spans };
  }
}
