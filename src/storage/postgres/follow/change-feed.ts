/**
 * Feed of the commits of all servers to the records that are searched, for the copies that servers search (`search/replica/`).
 *
 * ```
 * cairn.changes (xid, rev, at, keys)      a row of each transaction that changed any: `m1a2b… d3c4d… p`
 * ```
 * A transaction can commit after one with a higher number. So a position in the feed is a snapshot of the database: what comes next is
 * what can be seen now and could not be seen in that one, in whatever order it was committed. Which rows a change left is not in the
 * feed: those who follow it read them, so that a change may be given twice.
 *
 * A position also names its anchor, a row that is older than all that was under way. When that row is gone, the feed does not reach back
 * to the position: it was shortened, or the database is another one by now. After a crash or a promotion the database gives numbers of
 * transactions that left nothing once more, so after any change of connections all that is newer than the anchor is given again.
 *
 * @module
 */
import { HOUR_MS } from "../../../lib/duration.ts";
import { invariant } from "../../../lib/invariant.ts";
import { indexedDocuments, memories, provider } from "../../tables.ts";
import type { Change } from "../commit/commit-statements.ts";
import type { AnswerRow, Statement } from "../connection/database.ts";

/** Time that a change is kept, for servers that have stopped or cannot reach the database. */
const CHANGES_KEPT_MS = HOUR_MS;
const REMOVED_MAX = 5_000;
/** Rows of the feed that one statement gives. */
const ROWS_PER_LOOK = 2_000;

/** The tables that are followed, each with the letter that its keys follow. */
const LETTERS: ReadonlyMap<string, string> = new Map([
  [memories.name, "m"],
  [indexedDocuments.name, "d"],
  [provider.name, "p"],
]);
const TABLES: ReadonlyMap<string, string> = new Map(Array.from(LETTERS, ([table, letter]) => [letter, table]));

export interface FeedPosition {
  /** As PostgreSQL writes one: `xmin:xmax:those under way`. */
  readonly snapshot: string;
  readonly anchor: { readonly xid: number; readonly rev: number };
  /** Number of changes of connections; -1 for a position of another process. */
  readonly connections: number;
}

/** Some of what was committed since a position. */
export interface FeedPage {
  /** Keys of the rows that were put or removed, by table. */
  readonly keys: ReadonlyMap<string, ReadonlySet<string>>;
  /** Number of its transactions. */
  readonly transactions: number;
  /** The position after the first page is that after all of them. */
  readonly position: FeedPosition;
  /** Position to continue behind; undefined at the end. */
  readonly last: number | undefined;
}

export interface FeedOptions {
  /** Answers what only reads, once what it has read is there to stay. */
  readonly read: (statement: Statement) => Promise<readonly AnswerRow[]>;
  readonly change: (statements: readonly Statement[]) => Promise<unknown>;
  /** Number of connections opened or lost. */
  readonly connections: () => number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

const LOOK = `with s as materialized (select pg_current_snapshot() as now)
select s.now::text as snapshot, a.xid::text as anchor, a.rev as anchor_rev,
  exists (select from cairn.changes where xid = $1::text::xid8 and rev = $2::int8) as reaches,
  c.xid::text as xid, c.keys
from s
left join lateral (select xid, rev from cairn.changes where xid < pg_snapshot_xmin(s.now) order by xid desc limit 1) as a on true
left join lateral (
  select xid, keys from cairn.changes
  where xid >= pg_snapshot_xmin($3::text::pg_snapshot) and not pg_visible_in_snapshot(xid, $3::text::pg_snapshot) and xid > $4::text::xid8
  order by xid limit $5::int8
) as c on true`;
const NO_ANCHOR = { xid: 0, rev: 0 };
/** No transaction has a higher number. */
const NOTHING_AFTER = "18446744073709551615";

export class ChangeFeed {
  readonly #options: FeedOptions;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /**
   * The position from which on a server follows that is going to read all there is.
   *
   * @returns undefined while a transaction is under way that is older than all of the feed
   */
  async begin(): Promise<FeedPosition | undefined> {
    // Numbers of another cluster, whose dump this database was made of, would be in the future.
    await this.#options.change([
      { text: "delete from cairn.changes where xid >= pg_snapshot_xmax(pg_current_snapshot())", values: [] },
      {
        text: `insert into cairn.changes (xid, rev, at, keys) select ${FIRST_ROW} where not exists (select from cairn.changes)`,
        values: [this.#options.now()],
      },
    ]);
    const connections = this.#options.connections();
    const [answer] = await this.#look(NO_ANCHOR, "1:1:", NOTHING_AFTER);
    return answer === undefined ? undefined : positionIn(answer, connections);
  }

  /**
   * Changes committed since a position.
   *
   * @param after - the `last` of the page before
   * @returns undefined when the feed does not reach back to it
   */
  async since({ snapshot, anchor, connections }: FeedPosition, after = 0): Promise<FeedPage | undefined> {
    for (;;) {
      const present = this.#options.connections();
      const first = String(anchor.xid + 1);
      const rows = await this.#look(anchor, connections === present ? snapshot : `${first}:${first}:`, String(after));
      if (this.#options.connections() !== present) continue;
      const [row] = rows;
      const position = row === undefined ? undefined : positionIn(row, present);
      if (row === undefined || position === undefined || row["reaches"] !== true || position.anchor.xid < anchor.xid) return undefined;
      const found = rows.filter(({ xid }) => xid !== null);
      return {
        keys: keysIn(found),
        transactions: found.length,
        position,
        last: found.length < ROWS_PER_LOOK ? undefined : Number(found.at(-1)?.["xid"]),
      };
    }
  }

  #look(anchor: FeedPosition["anchor"], snapshot: string, after: string): Promise<readonly AnswerRow[]> {
    return this.#options.read({ text: LOOK, values: [String(anchor.xid), anchor.rev, snapshot, after, ROWS_PER_LOOK] });
  }
}

function positionIn({ snapshot, anchor, anchor_rev: rev }: AnswerRow, connections: number): FeedPosition | undefined {
  return anchor === null ? undefined : { snapshot: String(snapshot), anchor: { xid: Number(anchor), rev: Number(rev) }, connections };
}

function keysIn(rows: readonly AnswerRow[]): ReadonlyMap<string, ReadonlySet<string>> {
  const keys = new Map<string, Set<string>>();
  for (const row of rows) {
    for (const named of String(row["keys"]).split(" ")) {
      const table = TABLES.get(named.charAt(0));
      if (table === undefined) continue;
      let some = keys.get(table);
      if (some === undefined) keys.set(table, (some = new Set()));
      some.add(named.slice(1));
    }
  }
  return keys;
}

const FIRST_ROW = "pg_current_xact_id(), (random() * 2 ^ 52)::int8, $1::int8, ''";

/** Entry of a transaction in the feed. @param at - Unix milliseconds */
export function feedStatements(changes: readonly Change[], rev: number, at: number): Statement[] {
  const keys = changes.flatMap(({ table, key }) => {
    const letter = LETTERS.get(table);
    return letter === undefined ? [] : [letter + key];
  });
  if (keys.length === 0) return [];
  invariant(!keys.some((key) => key.includes(" ")), "no key that is followed has a space");
  const text = "insert into cairn.changes (xid, rev, at, keys) values (pg_current_xact_id(), $1::int8, $2::int8, $3)";
  return [{ text, values: [rev, at, keys.join(" ")] }];
}

/** Has all that follow read everything again, as after an import. */
export function feedRestart(now: number): Statement[] {
  return [
    { text: "delete from cairn.changes", values: [] },
    { text: `insert into cairn.changes (xid, rev, at, keys) values (${FIRST_ROW})`, values: [now] },
  ];
}

/** Held to the end of the transaction: of two removals the second would go on behind rows that the first may have to leave after all. */
const REMOVAL_LOCK = "(select pg_try_advisory_xact_lock(hashtext('cairn removal of changes')))";

/** Removes the oldest rows, the oldest first: where a row is there, all that are newer are. The newest stays, as an anchor. */
export function feedRemoval(now: number): Statement {
  const newest = "(select max(xid) from cairn.changes where xid < pg_snapshot_xmin(pg_current_snapshot()))";
  const fresh = "(select xid from cairn.changes where at >= $1::int8 order by xid limit 1)";
  return {
    text:
      "delete from cairn.changes where xid in (select xid from cairn.changes " +
      `where ${REMOVAL_LOCK} and xid < ${newest} and xid < coalesce(${fresh}, ${newest}) order by xid limit $2::int8 for update skip locked)`,
    values: [now - CHANGES_KEPT_MS, REMOVED_MAX],
  };
}
