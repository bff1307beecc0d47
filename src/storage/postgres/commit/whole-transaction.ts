/**
 * One transaction for all of the store, on a connection of its own: an export, an examination, an import.
 *
 * Tables are read in pages by their keys, each about as large as the one before was meant to be, so that neither many rows nor large
 * ones fill the memory.
 *
 * @module
 */
import type { Partition, IdSource } from "../../../lib/ids.ts";
import type { Reader, Tx } from "../../access.ts";
import type { ChangedStore, WholeRow, WholeStore } from "../../record-store.ts";
import type { AnyTable } from "../../tables.ts";
import { repeatable } from "../../callback.ts";
import { WriteBuffer } from "../../write-buffer.ts";
import type { AnswerRow, Connection, Statement } from "../connection/database.ts";
import { Fetch } from "../read/fetch-statement.ts";
import { ReadSet, attemptOf, FetchedRows, RerunReader } from "../read/fetched-rows.ts";
import { columnOf, locationOf, TEXT_TABLES } from "../schema.ts";
import { changesOf, writesOf } from "./commit-statements.ts";

const ROWS_FIRST = 100;
const ROWS_MAX = 500;
const TEXT_PER_PAGE = 1024 * 1024;

const BY_NAME = new Map(TEXT_TABLES.map((table) => [table.name, table]));

/** Dependencies of such a transaction on the store. */
export interface WholeParts {
  readonly connection: Connection;
  readonly now: number;
  readonly elapsed: number;
  readonly ids: IdSource;
  readonly newRevision: () => number;
}

export class WholeTransaction implements WholeStore, ChangedStore {
  readonly hasIndexColumns = true;
  readonly #parts: WholeParts;
  readonly #end: () => Promise<void>;

  /** @param end - called when it is disposed of */
  constructor(parts: WholeParts, end: () => Promise<void> = () => Promise.resolve()) {
    this.#parts = parts;
    this.#end = end;
  }

  async *rowBatches(table: AnyTable): AsyncGenerator<readonly WholeRow[], void, undefined> {
    const { relation } = locationOf(table.name);
    const indexes = (BY_NAME.get(table.name)?.indexes ?? []).filter((index) => !index.hasMany);
    const columns = ["key", "row", ...indexes.map(columnOf)].join(", ");
    const rowOf = (answer: AnswerRow): WholeRow => ({
      key: answer["key"] as string,
      text: answer["row"] as string,
      columns: Object.fromEntries(indexes.map((index) => [index.name, answer[columnOf(index)] as string | null])),
    });
    const text = `select ${columns} from ${relation} where key > $1 order by key limit $2::int8`;
    for (let after = "", limit = ROWS_FIRST; ;) {
      const rows = (await this.#query({ text, values: [after, limit] })).map(rowOf);
      yield rows;
      const last = rows.at(-1);
      if (last === undefined || rows.length < limit) return;
      after = last.key;
      const length = rows.reduce((sum, row) => sum + row.text.length, 0);
      limit = Math.max(1, Math.min(ROWS_MAX, Math.floor((limit * TEXT_PER_PAGE) / Math.max(1, length))));
    }
  }

  async *keyBatches(table: AnyTable): AsyncGenerator<readonly string[], void, undefined> {
    const { relation, column } = locationOf(table.name);
    const text = `select ${column} as key from ${relation} where ${column} > $1 order by ${column} limit $2::int8`;
    for (let after: string | undefined = ""; after !== undefined;) {
      const keys: string[] = (await this.#query({ text, values: [after, ROWS_MAX] })).map(({ key }) => key as string);
      yield keys;
      after = keys.length < ROWS_MAX ? undefined : keys.at(-1);
    }
  }

  /** Fetches together what the items miss; only those that missed something are worked on again. */
  async readEach<Item, Result>(items: readonly Item[], callback: (reader: Reader, item: Item) => Result): Promise<Result[]> {
    const fetched = new FetchedRows();
    const results: Result[] = [];
    let open = items.map((_, i) => i);
    while (open.length > 0) {
      const missing = new ReadSet();
      open = open.filter((i) => {
        const own = new FetchedRows(fetched);
        const answer = attemptOf(() => callback(new RerunReader(own, this.#parts.now), items[i]!));
        missing.add(own.missing);
        if (own.missing.isEmpty) results[i] = answer();
        return !own.missing.isEmpty;
      });
      await this.#load(missing, fetched);
    }
    return results;
  }

  /** Writes of `callback` are committed, or dropped, with the transaction. Nobody else changes anything meanwhile. */
  async commit<Result>(partition: Partition, callback: (tx: Tx) => Result): Promise<Result> {
    const { connection, now, elapsed, ids, newRevision } = this.#parts;
    const fetched = new FetchedRows();
    const context = repeatable({ now, elapsed, partition }, () => ids);
    for (;;) {
      fetched.begin();
      context.rewind();
      const tx = new WriteBuffer(new RerunReader(fetched, now), context);
      const answer = attemptOf(() => callback(tx));
      if (fetched.missing.isEmpty) {
        const result = answer();
        await connection.send(writesOf(changesOf(tx.writes), fetched, newRevision()));
        return result;
      }
      await this.#load(fetched.missing, fetched);
    }
  }

  async count({ name }: AnyTable): Promise<number> {
    const { relation, column } = locationOf(name);
    const [row] = await this.#query({ text: `select count(${column}) as n from ${relation}`, values: [] });
    return Number(row?.["n"]);
  }

  /** The transaction is itself what it shows. */
  snapshot(): WholeStore {
    return new WholeTransaction(this.#parts);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end();
  }

  async #load(readSet: ReadSet, fetched: FetchedRows): Promise<void> {
    if (readSet.isEmpty) return;
    const fetch = new Fetch(readSet);
    fetched.take(readSet, fetch.foundIn((await this.#parts.connection.send(fetch.apart)).flat()));
  }

  async #query(statement: Statement): Promise<readonly AnswerRow[]> {
    return (await this.#parts.connection.send([statement])).flat();
  }
}
