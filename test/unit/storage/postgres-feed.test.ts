/**
 * The feed of changes on PostgreSQL: each change once it is committed, in whatever order, or the word that some are missing.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../../src/lib/clock.ts";
import { Database } from "../../../src/storage/postgres/connection/database.ts";
import {
  ChangeFeed,
  feedRemoval,
  feedRestart,
  feedStatements,
  type FeedPosition,
} from "../../../src/storage/postgres/follow/change-feed.ts";
import { indexedDocuments, memories, provider, sessions } from "../../../src/storage/tables.ts";
import { isHere } from "../../support/platform.ts";
import { Postgres, POSTGRES } from "../../support/postgres.ts";

if (isHere(POSTGRES, "how servers follow the changes of others")) {
  describe("the feed of changes", () => {
    let postgres: Postgres;
    let url: string;
    let connections: number;
    beforeAll(async () => void (postgres = await Postgres.start()));
    afterAll(() => postgres.stop());
    beforeEach(async () => {
      url = await postgres.migrated();
      connections = 1;
    });

    const HOUR_MS = 3_600_000;
    interface Opened extends AsyncDisposable {
      readonly database: Database;
      readonly feed: ChangeFeed;
    }
    const open = (): Opened => {
      const database = new Database(url, systemClock);
      const feed = new ChangeFeed({
        read: (statement) => database.query(statement),
        change: (statements) => database.transaction(statements),
        connections: () => connections,
        now: () => 0,
      });
      return { database, feed, [Symbol.asyncDispose]: () => database.close() };
    };
    const put = (table: { name: string }, key: string) => ({ table: table.name, key, value: "row", isNew: false });
    const commit = (database: Database, key: string, at = 0) => database.transaction(feedStatements([put(memories, key)], 7, at));
    const begin = async (feed: ChangeFeed): Promise<FeedPosition> => {
      // The database's own upkeep can have a transaction under way that is older than all of the feed.
      for (;;) {
        const position = await feed.begin();
        if (position !== undefined) return position;
      }
    };
    const next = async (feed: ChangeFeed, position: FeedPosition): Promise<{ keys: string[]; position: FeedPosition }> => {
      const page = await feed.since(position);
      if (page === undefined) throw new Error("the feed does not reach back");
      return { keys: Array.from(page.keys.get(memories.name) ?? []), position: page.position };
    };
    const numbers = async (): Promise<number[]> => {
      await using sql = new SQL(url);
      return (await sql`select rev from cairn.changes order by xid`).map(({ rev }: { rev: string }) => Number(rev));
    };

    test("a change is given with its table, of those that are followed, and once", async () => {
      await using opened = open();
      const { database, feed } = opened;
      const position = await begin(feed);
      expect(feedStatements([put(sessions, "s")], 1, 0)).toEqual([]);
      await database.transaction(
        feedStatements([put(memories, "a"), put(indexedDocuments, "b"), put(provider, "current"), put(memories, "c")], 1, 0),
      );
      const page = await feed.since(position);
      expect(page?.keys).toEqual(
        new Map([
          [memories.name, new Set(["a", "c"])],
          [indexedDocuments.name, new Set(["b"])],
          [provider.name, new Set(["current"])],
        ]),
      );
      expect([page?.transactions, page?.last]).toEqual([1, undefined]);
      expect((await next(feed, page!.position)).keys).toEqual([]);
    });

    test("a transaction that began first and ends last is given when it has ended, and those in between at once", async () => {
      await using opened = open();
      const { database, feed } = opened;
      let position = await begin(feed);
      const take = async () => {
        const { keys, position: after } = await next(feed, position);
        position = after;
        return keys;
      };
      await using late = new SQL(url, { max: 1 });
      await late.unsafe("begin");
      await late.unsafe("insert into cairn.changes values (pg_current_xact_id(), 1, 0, 'mlate')");
      await commit(database, "first");
      expect(await take()).toEqual(["first"]);
      await commit(database, "second");
      expect(await take()).toEqual(["second"]);
      await late.unsafe("commit");
      expect(await take()).toEqual(["late"]);
      await commit(database, "third");
      expect(await take()).toEqual(["third"]);
      expect(await take()).toEqual([]);
    });

    test("after a change of connections all that is newer than the anchor is given again", async () => {
      await using opened = open();
      const { database, feed } = opened;
      const position = await begin(feed);
      await commit(database, "first");
      const first = await next(feed, position);
      expect(first.keys).toEqual(["first"]);
      // What a crash had the database forget: numbers that its snapshots knew of, and that it gives once more.
      const forgotten = { ...first.position, snapshot: "999999999:999999999:" };
      await commit(database, "second");
      expect((await next(feed, forgotten)).keys).toEqual([]);
      connections++;
      expect((await next(feed, forgotten)).keys).toEqual(["second"]);
    });

    test("more than a page is given in pages, and the first one's position is good for all of them", async () => {
      await using opened = open();
      const { database, feed } = opened;
      const position = await begin(feed);
      const count = 4_500;
      await using sql = new SQL(url, { max: 1 });
      await sql.unsafe(`do $$ begin for i in 1..${count} loop
        insert into cairn.changes values (pg_current_xact_id(), i, 0, 'm' || i); commit; end loop; end $$`);
      const seen = new Set<string>();
      const sizes: number[] = [];
      let end: FeedPosition | undefined;
      for (let after: number | undefined = 0; after !== undefined;) {
        const page = await feed.since(position, after);
        if (page === undefined) throw new Error("the feed does not reach back");
        if (sizes.length === 0) await commit(database, "meanwhile");
        for (const key of page.keys.get(memories.name) ?? []) seen.add(key);
        sizes.push(page.transactions);
        end ??= page.position;
        after = page.last;
      }
      expect(sizes).toEqual([2_000, 2_000, 501]);
      expect(seen.size).toBe(count + 1);
      expect((await next(feed, end!)).keys).toEqual(["meanwhile"]);
    });

    test("the oldest are removed after an hour, the newest stays, and who is further behind is told to read all again", async () => {
      await using opened = open();
      const { database, feed } = opened;
      const position = await begin(feed);
      for (const [i, at] of [0, 2, HOUR_MS + 5, 1, HOUR_MS + 9].entries())
        await database.transaction(feedStatements([put(memories, "k")], i + 1, at));
      const { position: newest } = await next(feed, position);
      await database.query(feedRemoval(HOUR_MS + 3));
      // One whose time is earlier than that of the one before it, by another server's clock, stays with it.
      expect(await numbers()).toEqual([3, 4, 5]);
      expect(await feed.since(position)).toBeUndefined();
      expect((await next(feed, newest)).keys).toEqual([]);
      await database.query(feedRemoval(9 * HOUR_MS));
      expect(await numbers()).toEqual([5]);
      await database.query(feedRemoval(9 * HOUR_MS));
      expect(await numbers()).toEqual([5]);
      expect((await next(feed, newest)).keys).toEqual([]);
    });

    test("one removal at a time: while one may still be undone, none goes on behind what it removes", async () => {
      await using opened = open();
      const { database } = opened;
      await using sql = new SQL(url, { max: 1 });
      await sql.unsafe(`do $$ begin for i in 1..6000 loop
        insert into cairn.changes values (pg_current_xact_id(), i, 0, 'm'); commit; end loop; end $$`);
      const before = await numbers();
      const { text, values } = feedRemoval(9 * HOUR_MS);
      await sql.unsafe("begin");
      await sql.unsafe(text, [...values]);
      await database.query(feedRemoval(9 * HOUR_MS));
      await sql.unsafe("rollback");
      expect(await numbers()).toEqual(before);
      await database.query(feedRemoval(9 * HOUR_MS));
      expect(await numbers()).toEqual(before.slice(5_000));
    });

    test("after all was replaced, and in another database, nobody continues", async () => {
      await using opened = open();
      const { database, feed } = opened;
      const position = await begin(feed);
      await database.transaction(feedRestart(0));
      expect(await feed.since(position)).toBeUndefined();
      const restarted = await begin(feed);
      expect((await next(feed, restarted)).keys).toEqual([]);
      expect(await feed.since({ ...restarted, anchor: { ...restarted.anchor, rev: restarted.anchor.rev + 1 } })).toBeUndefined();
    });

    test("a dump of another cluster, whose numbers are higher, is followed from its restoration on", async () => {
      await using opened = open();
      const { database, feed } = opened;
      await using sql = new SQL(url);
      await sql`delete from cairn.changes`;
      await sql`insert into cairn.changes values ('999999999', 1, 0, 'mold')`;
      const position = await begin(feed);
      await commit(database, "new");
      expect((await next(feed, position)).keys).toEqual(["new"]);
      expect(await numbers()).toHaveLength(2);
    });
  });
}
