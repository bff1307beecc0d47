/**
 * What only the store on PostgreSQL does: several servers share it, and the database can go while it makes a change.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock, type Clock } from "../../../src/lib/clock.ts";
import { homeOfUser, NO_PARTITION } from "../../../src/lib/ids.ts";
import { toIso } from "../../../src/lib/time.ts";
import type { Reader, Tx } from "../../../src/storage/access.ts";
import { DocumentWriter } from "../../../src/storage/document-records.ts";
import { externalIdKey } from "../../../src/storage/keys.ts";
import { Database } from "../../../src/storage/postgres/connection/database.ts";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.ts";
import { FetchQueue } from "../../../src/storage/postgres/read/fetch-queue.ts";
import { ReadSet, firstKeyOf, nameOfSpan } from "../../../src/storage/postgres/read/fetched-rows.ts";
import type { RecordStore } from "../../../src/storage/record-store.ts";
import { StoreError } from "../../../src/storage/store-error.ts";
import {
  apiKeys,
  erasures,
  memories,
  meta,
  provider,
  sessions,
  turns,
  vectors,
  webhooks,
  type ApiKeyRow,
  type ErasureRow,
  type SessionRow,
  type WebhookRow,
} from "../../../src/storage/tables.ts";
import { FakeClock } from "../../support/clock.ts";
import { isHere } from "../../support/platform.ts";
import { PostgresProxy } from "../../support/postgres-proxy.ts";
import { Postgres, POSTGRES } from "../../support/postgres.ts";

const text = (body: string) => ({ shown: body, rest: "" });
const ALL = { from: "", to: "~" };
const keysOf = async (store: RecordStore) => store.read((reader) => reader.keys(turns, ALL));
const refusalOf = (url: string) =>
  PostgresStore.open(url, new FakeClock()).then(
    () => undefined,
    (error: unknown) => error,
  );

/** One more than it was, and a row that only this one writes. */
const count = (tx: Tx) => {
  const before = Number(tx.get(meta, "counter") ?? "0");
  tx.put(meta, "counter", String(before + 1));
  tx.add(turns, tx.bareId(), text(String(before)));
  return before;
};

async function afterMicrotasks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await Promise.resolve();
}

const numbers = (length: number) => Array.from({ length }, (_, i) => i);

if (isHere(POSTGRES, "the store on PostgreSQL")) {
  describe("the store on PostgreSQL", () => {
    let postgres: Postgres;
    let url: string;
    beforeAll(async () => void (postgres = await Postgres.start()));
    afterAll(() => postgres.stop());
    beforeEach(async () => void (url = await postgres.migrated()));

    const open = async (clock: Clock = new FakeClock(), at = url): Promise<PostgresStore & AsyncDisposable> => {
      const store = await PostgresStore.open(at, clock);
      return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
    };

    /** Another transaction that has the key of a row: who writes that waits for it. */
    const holding = async (key: string) => {
      const sql = new SQL(url);
      const connection = await sql.reserve();
      await connection.unsafe("begin");
      await connection.unsafe("insert into cairn.turns (key, row, rev) values ($1, '', 1)", [key]);
      return {
        /** Resolves once as many transactions wait for locks. */
        waiting: async (count: number, until: () => boolean) => {
          const text = "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
          while (!until() && ((await connection.unsafe(text)) as { n: number }[])[0]!.n < count) await new Promise(setImmediate);
        },
        release: async () => {
          await connection.unsafe("rollback");
          void connection.release();
          await sql.close();
        },
      };
    };

    test("servers that start at the same time on an empty database all open it", async () => {
      url = await postgres.database();
      const stores = await Promise.all(numbers(5).map(() => open()));
      expect(await Promise.all(stores.map((store) => store.read((reader) => reader.get(meta, "schema"))))).toEqual(
        numbers(5).map(() => "1"),
      );
      for (const store of stores) await store.close();
    });

    test("of changes that several servers make to one row at the same time none is lost, and each sees all before it", async () => {
      const stores = await Promise.all(numbers(3).map(() => open()));
      const seen = await Promise.all(stores.flatMap((store) => numbers(100).map(() => store.commit(NO_PARTITION, count))));
      expect(seen.toSorted((a, b) => a - b)).toEqual(numbers(300));
      expect((await keysOf(stores[0]!)).length).toBe(300);
      for (const store of stores) await store.close();
    });

    /** Has the database count deadlocks of connections that are opened from now on, although nobody waits a second for a lock. */
    const noticeDeadlocks = async () => {
      await using sql = new SQL(url, { max: 1 });
      await sql.unsafe(`alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '10ms'`);
    };

    /** Returns how many there were. What is counted of a connection is there for certain once that has ended. */
    const deadlocks = async (): Promise<unknown> => {
      await postgres.disconnect(url);
      await using sql = new SQL(await postgres.database(), { max: 1 });
      const [row] = await sql`select deadlocks::int from pg_stat_database where datname = ${new URL(url).pathname.slice(1)}`;
      return row.deadlocks;
    };

    test("changes meet no deadlock of which each writes unread what the other reads", async () => {
      await noticeDeadlocks();
      const stores = [await open(systemClock), await open(systemClock)];
      await stores[0]!.commit("aa", (tx) => ["a", "b"].forEach((key) => tx.add(meta, key, "0")));
      const changes = [
        { home: "aa", read: "a", unread: "b" },
        { home: "bb", read: "b", unread: "a" },
      ].map(async ({ home, read, unread }, i) => {
        for (let number = 0; number < 100; number++) {
          await stores[i]!.commit(home, (tx) => {
            // A table without an index: to put a row of one that has any reads it.
            tx.put(meta, read, `${tx.get(meta, read)?.length}`);
            tx.put(meta, unread, String(number));
          });
        }
      });
      await Promise.all(changes);
      for (const store of stores) await store.close();
      expect(await deadlocks()).toBe(0);
    });

    test("changes meet no deadlock over a row that another put again after one had locked those of its table", async () => {
      await noticeDeadlocks();
      await using store = await open(systemClock);
      await store.commit("aa", (tx) => {
        tx.add(sessions, "s", SESSION);
        tx.add(turns, "t", text("0"));
      });
      // Two conflicts in a row: from then on what is going to be changed is locked before it is read.
      let runs = 0;
      await store.commit("aa", (tx) => tx.add(turns, ++runs <= 4 ? "t" : "other", text("1")));
      await using sql = new SQL(url, { max: 4 });
      const [putting, gate, rival, watch] = [await sql.reserve(), await sql.reserve(), await sql.reserve(), await sql.reserve()];
      const waits = "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      const waiting = async (count: number, until: () => boolean = () => false) => {
        while (!until() && ((await watch.unsafe(waits)) as { n: number }[])[0]!.n < count) await new Promise(setImmediate);
      };

      await putting`begin`;
      await putting`delete from cairn.sessions where key = 's'`;
      await putting.unsafe("insert into cairn.sessions (key, row, rev) values ('s', $1, 7)", [sessions.encode(SESSION)]);
      const changed = store.commit("aa", (tx) => {
        tx.get(memories, "read last");
        tx.put(sessions, "s", { ...tx.get(sessions, "s")!, turnCount: 1 });
        tx.put(turns, "t", text(`${tx.get(turns, "t")!.shown}1`));
      });
      await waiting(1);
      // From here on the change has locked the turn and not the session, and waits before it has read all.
      await gate`begin`;
      await gate`lock table cairn.memories in access exclusive mode`;
      await putting`commit`;
      await waiting(1);
      await rival`begin`;
      await rival`select from cairn.sessions where key = 's' for no key update`;
      let hasBoth = false;
      const both = rival`select from cairn.turns where key = 't' for no key update`.then(() => (hasBoth = true));
      await waiting(2, () => hasBoth);
      await gate`rollback`;
      await both;
      await rival`commit`;
      await changed;
      expect(await store.read((reader) => [reader.get(sessions, "s")?.turnCount, reader.get(turns, "t")?.shown])).toEqual([1, "01"]);
      for (const connection of [putting, gate, rival, watch]) void connection.release();
      await Promise.all([store.close(), sql.close()]);
      expect(await deadlocks()).toBe(0);
    });

    /** A store that locks what it is going to change before it reads, and a connection that changes rows of `turns` meanwhile. */
    const contended = async (clock: FakeClock, rows: Readonly<Record<string, string>>) => {
      const store = await open(clock);
      await store.commit("aa", (tx) => Object.entries(rows).forEach(([key, value]) => tx.add(turns, key, text(value))));
      // Two conflicts in a row.
      let runs = 0;
      await store.commit("aa", (tx) => tx.add(turns, ++runs <= 4 ? Object.keys(rows)[0]! : "other", text("")));
      const sql = new SQL(url, { max: 2 });
      const [rival, watch] = [await sql.reserve(), await sql.reserve()];
      const put = (key: string, value: string) =>
        rival.unsafe("update cairn.turns set row = $1, rev = rev + 1 where key = $2", [turns.encode(text(value)), key]);
      const waits = "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      const waiting = async () => {
        while (((await watch.unsafe(waits)) as { n: number }[])[0]!.n === 0) await new Promise(setImmediate);
      };
      const close = async () => {
        for (const connection of [rival, watch]) void connection.release();
        await Promise.all([store.close(), sql.close()]);
      };
      return { store, rival, put, waiting, [Symbol.asyncDispose]: close };
    };

    test("a change that needs another row than it expected has it at once where nobody holds that, and waits in order where somebody does", async () => {
      await using servers = await contended(new FakeClock(), { which: "a", a: "", b: "", c: "" });
      const { store, rival, put, waiting } = servers;
      const change = () => store.commit("aa", (tx) => tx.put(turns, tx.get(turns, "which")!.shown, text("changed")));
      const before = store.conflicts;
      await put("which", "b");
      await change();
      expect(store.conflicts).toBe(before);

      await put("which", "c");
      await rival`begin`;
      await rival`select from cairn.turns where key = 'c' for no key update`;
      const changed = change();
      await waiting();
      await rival`commit`;
      await changed;
      expect(store.conflicts).toBe(before + 1);
      const shown = ["a", "b", "c"].map((key) => store.read((reader) => reader.get(turns, key)?.shown));
      expect(await Promise.all(shown)).toEqual(["", "changed", "changed"]);
    });

    test("changes lock before they read for as long as others change the same rows, and no longer", async () => {
      const clock = new FakeClock();
      await using servers = await contended(clock, { shared: "" });
      const { store, rival, put, waiting } = servers;
      /** Changes the row while another changes it; returns how many conflicts that met. */
      const conflictsOfBoth = async () => {
        const before = store.conflicts;
        await rival`begin`;
        await put("shared", "theirs");
        const changed = store.commit("aa", (tx) => tx.put(turns, "shared", text(`${tx.get(turns, "shared")!.shown} and ours`)));
        await waiting();
        await rival`commit`;
        await changed;
        return store.conflicts - before;
      };
      for (let i = 0; i < 4; i++) {
        clock.advance({ ms: 600 });
        expect(await conflictsOfBoth()).toBe(0);
      }
      expect(await store.read((reader) => reader.get(turns, "shared")?.shown)).toBe("theirs and ours");
      clock.advance({ ms: 1_100 });
      expect(await conflictsOfBoth()).toBeGreaterThan(0);
    });

    test("a change that waits for a server without end holds up none that was made at the same time, and goes on once it may", async () => {
      await using store = await open(systemClock);
      const held = await holding("held");
      let isDone = false;
      const waiting = store.commit("aa", (tx) => tx.add(turns, "held", text("mine"))).then(() => (isDone = true));
      await store.commit("bb", (tx) => tx.add(turns, "other", text("")));
      expect([isDone, await keysOf(store)]).toEqual([false, ["other"]]);
      await held.release();
      await waiting;
      expect(await keysOf(store)).toEqual(["held", "other"]);
    });

    /** Several servers make sessions with the same name where they find none. */
    const expectOneOfEach = async (names: readonly string[], setUp: () => Promise<unknown> = () => Promise.resolve()) => {
      const stores = await Promise.all(numbers(3).map(() => open()));
      await setUp();
      const { byExternalId } = sessions.index;
      for (const externalId of names) {
        const from = externalIdKey(externalId, undefined, undefined);
        const made = await Promise.all(
          // Each has a home of its own, as sessions without a user have.
          stores.flatMap((store, i) =>
            numbers(4).map((n) =>
              store.commit(`${i}${n}`, (tx) => {
                const [entry] = tx.keys(byExternalId, { from, to: `${from}~`, limit: 1 });
                if (entry !== undefined) return byExternalId.recordOf(entry);
                const key = tx.bareId();
                tx.add(sessions, key, { ...SESSION, externalId });
                return key;
              }),
            ),
          ),
        );
        expect(new Set(made).size).toBe(1);
      }
      for (const store of stores) await store.close();
    };

    test("of several servers that look for a session and make it when there is none, one makes it", () => expectOneOfEach(["x", "y", "z"]));

    test("one makes it also once the database begins transactions with another isolation by default", () =>
      expectOneOfEach(["u", "v", "w", "x", "y", "z"], async () => {
        await using sql = new SQL(url);
        await sql.unsafe(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = 'repeatable read'`);
        await postgres.disconnect(url);
      }));

    test("a commit builds on a row that another server has changed since, and on one it has removed", async () => {
      await using one = await open();
      await using other = await open();
      const put = (store: RecordStore, value: string) =>
        store.commit(NO_PARTITION, (tx) => {
          const before = tx.get(meta, "name");
          tx.put(meta, "name", value);
          return before;
        });
      expect(await put(one, "1")).toBeUndefined();
      expect(await put(other, "2")).toBe("1");
      expect(await put(one, "3")).toBe("2");
      await other.commit(NO_PARTITION, (tx) => tx.remove(meta, "name"));
      expect(await put(one, "4")).toBeUndefined();
      const isEmpty = () => one.commit(NO_PARTITION, (tx) => (tx.put(meta, "name", "5"), tx.isEmpty(turns)));
      expect(await isEmpty()).toBe(true);
      await other.commit(NO_PARTITION, (tx) => tx.put(turns, "t", text("there")));
      expect(await isEmpty()).toBe(false);
      await other.commit(NO_PARTITION, (tx) => tx.remove(turns, "t"));
      expect(await isEmpty()).toBe(true);
    });

    describe("a commit that only reads what another one changes is before that one or after it:", () => {
      /** Each is read by one commit and changed by another: what a read of it says before and afterwards. */
      const cases: { name: string; reads: (reader: Reader) => boolean; prepares?: (tx: Tx) => void; changes: (tx: Tx) => void }[] = [
        {
          name: "a session that is removed",
          prepares: (tx) => tx.add(sessions, "s", SESSION),
          reads: (reader) => reader.has(sessions, "s"),
          changes: (tx) => tx.remove(sessions, "s"),
        },
        {
          name: "a session that ends",
          prepares: (tx) => tx.add(sessions, "s", { ...SESSION, expiresAt: 2 ** 40 }),
          reads: (reader) => reader.get(sessions, "s")!.expiresAt === 2 ** 40,
          changes: (tx) => tx.put(sessions, "s", { ...tx.get(sessions, "s")!, expiresAt: 2 }),
        },
        {
          name: "a provider that is replaced",
          prepares: (tx) => tx.put(provider, "current", { identity: "one", generation: 1 }),
          reads: (reader) => reader.get(provider, "current")!.generation === 1,
          changes: (tx) => tx.put(provider, "current", { identity: "two", generation: 2 }),
        },
        {
          name: "a webhook, where there was none",
          reads: (reader) => reader.isEmpty(webhooks),
          changes: (tx) => tx.add(webhooks, "w", WEBHOOK),
        },
        {
          name: "a webhook that wants more events",
          prepares: (tx) => tx.add(webhooks, "w", WEBHOOK),
          reads: (reader) => reader.rows(webhooks, ALL)[0]!.row.events.length === 0,
          changes: (tx) => tx.put(webhooks, "w", { ...tx.get(webhooks, "w")!, events: ["turn.added"] }),
        },
        {
          name: "a second webhook",
          prepares: (tx) => tx.add(webhooks, "w", WEBHOOK),
          reads: (reader) => reader.keys(webhooks, ALL).length === 1,
          changes: (tx) => tx.add(webhooks, "x", WEBHOOK),
        },
        {
          name: "the erasure of a user",
          reads: (reader) => !reader.has(erasures, "u"),
          changes: (tx) => tx.add(erasures, "u", ERASURE),
        },
        {
          name: "a key that is revoked",
          prepares: (tx) => tx.add(apiKeys, "k", KEY),
          reads: (reader) => reader.keys(apiKeys.index.byId, ALL).length === 1,
          changes: (tx) => tx.remove(apiKeys, "k"),
        },
      ];

      for (const { name, reads, prepares, changes } of cases) {
        for (const first of ["reads", "changes"] as const) {
          test(`${name}, when the one that ${first} it is first`, async () => {
            await using one = await open(systemClock);
            await using other = await open(systemClock);
            if (prepares !== undefined) await one.commit("aa", prepares);
            const held = await holding("held");
            const ended: string[] = [];
            const reading = (mark?: string) =>
              one.commit("aa", (tx) => {
                const seen = reads(tx);
                tx.add(turns, mark ?? "other", text(String(seen)));
                return seen;
              });
            const changing = (mark?: string) =>
              other.commit("bb", (tx) => {
                changes(tx);
                tx.add(turns, mark ?? "other", text("changed"));
              });
            // What the first one has read is looked at once more, and nothing of it is committed yet.
            const begun = (first === "reads" ? reading("held") : changing("held")).then((seen) => (ended.push("first"), seen));
            await held.waiting(1, () => false);
            const then = (first === "reads" ? changing() : reading()).then((seen) => (ended.push("second"), seen));
            await held.waiting(2, () => ended.length > 0);
            // The second one waits for the first. Which answer arrives first once both have committed is up to their connections.
            expect(ended).toEqual([]);
            await held.release();
            const seen = await Promise.all([begun, then]);
            expect(seen.filter((one) => one !== undefined)).toEqual([first === "reads"]);
          });
        }
      }

      test("two commits that each write the session that the other one reads end, and one sees the other", async () => {
        await using one = await open(systemClock);
        await using other = await open(systemClock);
        await one.commit("aa", (tx) => {
          for (const key of ["s", "t"]) tx.add(sessions, key, SESSION);
        });
        const visit = (store: PostgresStore, written: string, read: string) =>
          store.commit(written, (tx) => {
            const { turnCount } = tx.get(sessions, read)!;
            const row = tx.get(sessions, written)!;
            tx.put(sessions, written, { ...row, turnCount: Math.max(turnCount, row.turnCount) + 1 });
          });
        for (let i = 0; i < 10; i++) await Promise.all([visit(one, "s", "t"), visit(other, "t", "s")]);
        const counts = await one.read((reader) => ["s", "t"].map((key) => reader.get(sessions, key)!.turnCount));
        // In whichever order, the second of each pair counts on from the first.
        expect(Math.max(...counts)).toBe(20);
      });
    });

    test("a request reads what it is going to read with its first read, each time of one moment, and its own changes at once", async () => {
      await using one = await open();
      await using other = await open();
      const both = (store: RecordStore, value: string) =>
        store.commit(NO_PARTITION, (tx) => {
          for (const key of ["x", "y"]) tx.put(turns, key, text(value));
        });
      const tripsOf = async <Result>(read: Result | Promise<Result>): Promise<[Result, number]> => {
        const before = one.roundTrips;
        return [await read, one.roundTrips - before];
      };
      const x = (reader: Reader) => reader.get(turns, "x")?.shown;
      const xAndY = (reader: Reader) => ["x", "y"].map((key) => reader.get(turns, key)?.shown);
      await both(one, "1");
      await one.read(x);
      await one.request([x, (reader) => reader.rows(turns, { ...ALL, limit: 1, descending: true })], async () => {
        const schema = one.read((reader) => reader.get(meta, "schema"));
        expect(await tripsOf(schema)).toEqual(["1", 1]);
        // A row of a span that was fetched is known by its key, too.
        expect(await tripsOf(one.read(xAndY))).toEqual([["1", "1"], 0]);
        await both(other, "2");
        expect(await one.read(xAndY)).toEqual(["1", "1"]);
        expect(await one.read((reader) => [...xAndY(reader), reader.has(turns, "z")])).toEqual(["2", "2", false]);
        expect(await one.readNewest(x)).toBe("2");
        await both(one, "3");
        expect(await one.read(xAndY)).toEqual(["3", "3"]);
        expect(await one.read((reader) => reader.keys(turns, ALL))).toEqual(["x", "y"]);
        await one.commit(NO_PARTITION, (tx) => tx.remove(turns, "x"));
        expect(await one.read((reader) => [reader.has(turns, "x"), reader.keys(turns, ALL)])).toEqual([false, ["y"]]);
      });
      // What is read afterwards is of another request.
      await both(other, "4");
      expect(await one.read(xAndY)).toEqual(["4", "4"]);
    });

    test("a commit checks the very rows and spans that its work was run on, whenever its request ends", async () => {
      await using one = await open();
      await using other = await open();
      for (let ticks = 0; ticks < 8; ticks++) {
        const key = `k${ticks}`;
        const read = (reader: Reader) => [reader.get(turns, key)?.shown, reader.keys(turns, { from: key, to: `${key}~` }).length];
        await other.commit(NO_PARTITION, (tx) => tx.put(turns, key, text("there")));
        const { seen } = await one.request([], async () => {
          await one.read(read);
          await other.commit(NO_PARTITION, (tx) => tx.remove(turns, key));
          const commit = one.commit(key, (tx) => {
            const found = read(tx);
            tx.put(meta, "seen", String(found));
            return found;
          });
          // What the work has read is forgotten that much later.
          if (ticks > 0) await afterMicrotasks(ticks);
          return { seen: commit };
        });
        expect([ticks, ...(await seen)]).toEqual([ticks, undefined, 0]);
      }
    });

    test("a commit that changes nothing is answered from one moment, also once others contend with it", async () => {
      await using store = await open();
      const put = (value: string) =>
        store.commit("aa", (tx) => {
          tx.put(meta, "name", value);
          tx.put(turns, "name", text(value));
        });
      const read = (tx: Tx) => [tx.get(meta, "name"), tx.get(turns, "name")?.shown];
      await put("1");
      // Two conflicts in a row: from then on what is read is locked before.
      let runs = 0;
      await store.commit("aa", (tx) => tx.add(turns, ++runs <= 4 ? "name" : "other", text("1")));
      await using sql = new SQL(url);
      const others = await sql.reserve();
      await others`begin`;
      await others`lock table cairn.turns in access exclusive mode`;
      const seen = store.commit("aa", read);
      const waits = "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      while (((await others.unsafe(waits)) as { n: number }[])[0]!.n === 0) await new Promise(setImmediate);
      await others`update cairn.meta set row = '2', rev = rev + 1 where key = 'name'`;
      await others.unsafe("update cairn.turns set row = $1, rev = rev + 1 where key = 'name'", [turns.encode(text("2"))]);
      await others`commit`;
      void others.release();
      expect(await seen).toEqual(["2", "2"]);
    });

    test("part of a span that was fetched is known, as far as that reached", async () => {
      await using store = await open();
      await store.commit(NO_PARTITION, (tx) => {
        for (const key of ["a", "b", "c", "d"]) tx.put(turns, key, text(key));
      });
      const spans = [
        { from: "", to: "~", limit: 3 },
        { from: "b", to: "~", limit: 3, descending: true },
        { from: "b", to: "d" },
      ];
      const bounds = ["", "a", "b", "c", "d", "~"];
      for (const span of spans) {
        for (const from of bounds) {
          for (const to of bounds.filter((bound) => bound > from)) {
            for (const limit of [1, 2, 3, 4, undefined]) {
              const part = { from, to, ...(limit === undefined ? {} : { limit }), descending: span.descending === true };
              const keysIn = (reader: Reader) => reader.keys(turns, part);
              const found = await store.request([], async () => {
                await store.read((reader) => reader.rows(turns, span));
                return store.read(keysIn);
              });
              expect({ span, part, found }).toEqual({ span, part, found: await store.read(keysIn) });
            }
          }
        }
      }
    });

    test("an id that another server gave at the same moment is not given twice", async () => {
      await using store = await open();
      let runs = 0;
      await store.commit(NO_PARTITION, (tx) => tx.put(turns, "taken", text("first")));
      await store.commit(NO_PARTITION, (tx) => {
        // Each work is run twice: only the runs of the first attempt meet.
        tx.add(turns, ++runs <= 2 ? "taken" : "free", text("second"));
      });
      expect(await store.read((reader) => [reader.get(turns, "taken"), reader.get(turns, "free")])).toEqual([
        text("first"),
        text("second"),
      ]);
    });

    test("what is fetched is the same in one statement for all tables and in one for each", async () => {
      await using store = await open();
      await store.commit("aa", (tx) => {
        for (const key of ["a", "b", "c"]) tx.put(turns, key, text(key));
        tx.add(sessions, "s", SESSION);
        tx.putVector(vectors, "v", Uint8Array.of(1, 2, 255));
      });
      const readSet = new ReadSet();
      for (const [table, key] of [
        [turns.name, "b"],
        [turns.name, "none"],
        [sessions.name, "s"],
        [vectors.name, "v"],
        [sessions.index.byExpiry.name, sessions.index.byExpiry.entriesOf("s", SESSION)[0]!],
      ] as const)
        readSet.addKey(table, key);
      for (const ask of [
        { table: turns.name, span: { from: "b", to: "~" }, withRows: true },
        { table: turns.name, span: { from: "", to: "~", limit: 2, descending: true }, withRows: false },
        { table: sessions.index.byAgent.name, span: ALL, withRows: false },
        firstKeyOf(meta.name),
      ])
        readSet.spans.set(nameOfSpan(ask), ask);
      const database = new Database(url, new FakeClock());
      const [together, apart] = await Promise.all([200, 0].map((texts) => new FetchQueue(database, texts).find(readSet)));
      await database.close();
      expect(apart).toEqual(together);
      expect(Array.from(together!.rows, ([table, rows]) => [table, Array.from(rows.keys())])).toEqual([
        ["sessions", ["s"]],
        ["sessions.byExpiry", sessions.index.byExpiry.entriesOf("s", SESSION)],
        ["turns", ["b"]],
        ["vectors", ["v"]],
      ] as [string, string[]][]);
      expect(Array.from(together!.spans.values(), (rows) => rows.map(({ key }) => key))).toEqual([
        ["b", "c"],
        ["c", "b"],
        sessions.index.byAgent.entriesOf("s", SESSION) as string[],
        ["schema"],
      ]);
    });

    test("a work that reads under an id it has just made fails instead of running for ever", async () => {
      await using store = await open();
      const commit = store.commit(NO_PARTITION, (tx) => tx.get(turns, String(Math.random())));
      expect(String(await commit.catch((error: unknown) => error))).toContain("asks for something else each time");
      expect(await store.commit(NO_PARTITION, () => 7)).toBe(7);
    });

    test("ids of a user's documents rise from server to server, whose clocks are apart", async () => {
      const clock = new FakeClock();
      await using behind = await open(clock);
      await using ahead = await open(new FakeClock(toIso(clock.now() + 5_000)));
      const ids: string[] = [];
      for (const store of [ahead, behind, ahead, behind]) {
        const given = await store.commit(homeOfUser("ada"), (tx) => {
          const writer = new DocumentWriter(tx);
          const two = numbers(2).map(() => writer.id());
          writer.flush();
          return two;
        });
        ids.push(...given);
      }
      expect(ids).toEqual(ids.toSorted());
      expect(new Set(ids).size).toBe(ids.length);
    });

    describe("while a transaction is under way,", () => {
      const write = (store: PostgresStore, key: string) => store.commit(key, (tx) => tx.add(turns, key, text("x")));
      /** Each arrives when all before it had time to begin. */
      const arriving = async (store: PostgresStore, keys: readonly string[]) => {
        const written: Promise<unknown>[] = [];
        for (const key of keys) {
          written.push(write(store, key));
          await new Promise(setImmediate);
        }
        return written;
      };
      const keys = (count: number) => numbers(count).map((i) => `k${i}`);

      test("the changes that come are the next one together", async () => {
        await using store = await open();
        const held = await holding("held");
        const first = write(store, "held");
        await held.waiting(1, () => false);
        const others = await arriving(store, keys(10));
        await held.release();
        await Promise.all([first, ...others]);
        await using sql = new SQL(url);
        expect(Array.from(await sql`select distinct xmin::text from cairn.turns where key <> 'held'`)).toHaveLength(1);
      });

      test("the next one begins once enough have come", async () => {
        await using store = await open();
        const held = await holding("held");
        const first = write(store, "held");
        await held.waiting(1, () => false);
        await Promise.all(await arriving(store, keys(24)));
        await held.release();
        await first;
      });

      test("the next one begins once that takes longer than usual", async () => {
        const clock = new FakeClock();
        await using store = await open(clock);
        const held = await holding("held");
        const first = write(store, "held");
        await held.waiting(1, () => false);
        const [other] = await arriving(store, ["other"]);
        clock.advance({ ms: 20 });
        await other;
        await held.release();
        await first;
      });

      test("the next one begins once that has met a conflict", async () => {
        await using store = await open();
        await using another = await open();
        for (const one of [store, another]) await one.commit(NO_PARTITION, count);
        const held = await holding("held");
        const first = store.commit(NO_PARTITION, (tx) => {
          count(tx);
          tx.add(turns, "held", text("x"));
        });
        await held.waiting(1, () => false);
        await write(store, "other");
        await held.release();
        await first;
        expect(store.conflicts).toBe(1);
      });
    });

    test("documents of one user are written while those of another one are", async () => {
      await using store = await open(systemClock);
      const write = (user: string) =>
        store.commit(homeOfUser(user), (tx) => {
          const writer = new DocumentWriter(tx);
          const id = writer.id();
          writer.flush();
          return id;
        });
      await write("ada");
      await using sql = new SQL(url);
      const other = await sql.reserve();
      // As a commit does that has not ended yet.
      await other`begin`;
      await other`update cairn.last_document_id set rev = rev`;
      const written = await write("grace");
      await other`rollback`;
      void other.release();
      expect(written.slice(-2)).toBe(homeOfUser("grace"));
    });

    test("a transaction waits for the database once, whatever it has to lock, check and write, on a connection that knows its statements", async () => {
      using proxy = new PostgresProxy(url);
      await using store = await open(systemClock, proxy.url);
      const questionsOfCommit = async () => {
        const before = proxy.questions;
        await store.commit(NO_PARTITION, count);
        return proxy.questions - before;
      };
      let least = Infinity;
      for (let i = 0; i < 1_000 && least > 1; i++) least = Math.min(least, await questionsOfCommit());
      expect(least).toBe(1);
    });

    test("a change whose answer was lost is made once, whether the database had made it or never got it", async () => {
      for (const fault of ["answer", "question"] as const) {
        using proxy = new PostgresProxy(url);
        await using store = await open(systemClock, proxy.url);
        const before = (await keysOf(store)).length;
        proxy.fault = fault;
        expect(await store.commit(NO_PARTITION, count)).toBe(before);
        expect({ fault, hadFault: proxy.fault === undefined, rows: (await keysOf(store)).length }).toEqual({
          fault,
          hadFault: true,
          rows: before + 1,
        });
      }
    });

    test("what was acknowledged while connections were ended again and again is there once", async () => {
      await using store = await open(systemClock);
      const seen: number[] = [];
      const writers = numbers(8).map(async () => {
        while (seen.length < 300) seen.push(await store.commit(NO_PARTITION, count));
      });
      const reader = (async () => {
        for (let last = 0; seen.length < 300;) {
          const now = (await keysOf(store)).length;
          expect(now).toBeGreaterThanOrEqual(last);
          last = now;
        }
      })();
      while (seen.length < 250) {
        const soon = seen.length + 50;
        await postgres.disconnect(url);
        while (seen.length < soon) await new Promise(setImmediate);
      }
      await Promise.all([...writers, reader]);
      expect(seen.toSorted((a, b) => a - b)).toEqual(numbers(seen.length));
      expect((await keysOf(store)).length).toBe(seen.length);
    });

    test("after a connection was lost a row is committed before anything is answered that was only read", async () => {
      await using store = await open(systemClock);
      const names = async () => {
        await using sql = new SQL(url);
        return Number(((await sql.unsafe("select count(*) as n from cairn.commits")) as { n: string }[])[0]?.n);
      };
      const reads = async () => {
        const before = await names();
        await keysOf(store);
        return (await names()) - before;
      };
      // Until each connection of the pool is known.
      while ((await reads()) > 0);
      await postgres.disconnect(url);
      expect(await reads()).toBeGreaterThan(0);
    });

    test("without its database every read and change is refused as one that was not made, and works again with it", async () => {
      using proxy = new PostgresProxy(url);
      const clock = new FakeClock();
      await using store = await open(clock, proxy.url);
      await store.commit(NO_PARTITION, count);
      proxy.stop();
      const waited: number[] = [];
      // What is sent before anybody has noticed may have arrived.
      for (const refused of [() => keysOf(store), () => store.commit(NO_PARTITION, count)]) {
        const askedAt = clock.elapsed();
        expect(await refused().catch((error: unknown) => error)).toMatchObject({
          code: "service_unavailable",
          message: "The database does not answer. Nothing was changed.",
        });
        waited.push(clock.elapsed() - askedAt);
      }
      // It may be back soon; after that time whoever comes is told soon.
      expect(waited[0]).toBeGreaterThanOrEqual(20_000);
      expect(waited[1]).toBe(100);
      proxy.start();
      expect(await store.commit(NO_PARTITION, count)).toBe(1);
    });

    test("a change is not said to be unmade when the database went with it and does not come back", async () => {
      using proxy = new PostgresProxy(url);
      await using store = await open(new FakeClock(), proxy.url);
      proxy.fault = "answer";
      proxy.isDownAfterFault = true;
      const refused: unknown = await store.commit(NO_PARTITION, count).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: "internal_error", message: expect.stringContaining("with the same Idempotency-Key") });
      proxy.start();
      expect(await store.commit(NO_PARTITION, count)).toBe(1);
    });

    test("what is led to a server that takes no changes is refused as not made, and finds the one that does although nothing ends its connections", async () => {
      const clock = new FakeClock();
      await using store = await open(clock);
      await store.commit(NO_PARTITION, count);
      await using sql = new SQL(url, { max: 1 });
      await sql`set default_transaction_read_only = off`;
      const name = new URL(url).pathname.slice(1);
      // Like a name that leads to a standby for a while: connections that were made by then stay what they are.
      await sql.unsafe(`alter database ${name} set default_transaction_read_only = on`);
      await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
      for (const refused of [() => keysOf(store), () => store.commit(NO_PARTITION, count)]) {
        expect(await refused().catch((error: unknown) => error)).toMatchObject({
          code: "service_unavailable",
          message: "The database takes no changes. Nothing was changed.",
        });
        expect(store.health.problem()).toBe("The database takes no changes.");
        // It answers, but what is answered may be old.
        await store.count(turns);
        expect(store.health.problem()).toBe("The database takes no changes.");
      }
      await sql.unsafe(`alter database ${name} reset default_transaction_read_only`);
      clock.advance({ seconds: 1 });
      expect(await store.commit(NO_PARTITION, count)).toBe(1);
      await store.probe();
      expect(store.health.problem()).toBeUndefined();
    });

    test("a database that cannot be used is refused with the reason, and without its password", async () => {
      const of = (change: (parts: URL) => void) => {
        const parts = new URL(url);
        change(parts);
        return refusalOf(parts.href);
      };
      const refusals = {
        password: await of((parts) => void (parts.password = "wr0ng-secret")),
        database: await of((parts) => void (parts.pathname = "/nowhere")),
        tls: await of((parts) => void (parts.search = "?sslmode=require")),
      };
      for (const [what, refused] of Object.entries(refusals)) {
        expect([what, refused instanceof StoreError]).toEqual([what, true]);
        expect(`${String(refused)} ${(refused as StoreError).stack}`).not.toMatch(/wr0ng-secret|p%40ss|p@ss/);
      }
      expect(String(refusals.database)).toContain('database "nowhere" does not exist');
      await using sql = new SQL(url);
      await sql.unsafe(`alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`);
      expect(String(await refusalOf(url))).toContain("synchronous_commit is off and has to be on");
    });

    test("a database of another schema version is refused and left as it is", async () => {
      await using store = await open();
      await store.commit(NO_PARTITION, (tx) => tx.put(meta, "schema", "2"));
      expect(String(await refusalOf(url))).toContain("schema version 2; this Cairn reads version 1");
      expect(await store.read((reader) => reader.get(meta, "schema"))).toBe("2");
    });
  });
}

const SESSION: SessionRow = {
  agentId: "a",
  userId: null,
  createdAt: 1,
  updatedAt: 1,
  metadata: {},
  memoryCount: 0,
  turnCount: 0,
  ttlSeconds: 60,
  expiresAt: 2,
  version: 0,
};

const WEBHOOK: WebhookRow = {
  url: "https://example.com",
  events: [],
  description: null,
  enabled: true,
  disabledReason: null,
  secret: "",
  previousSecrets: [],
  createdAt: 1,
  updatedAt: 1,
  failingSince: null,
};

const ERASURE: ErasureRow = {
  userId: "u",
  startedAt: 1,
  until: "0".repeat(12),
  phase: "sessions",
  after: "",
  actor: "system",
  retentionDays: 1,
  counts: { sessions: 0, turns: 0, versions: 0, retrievals: 0, memories: 0, documents: 0, traces: 0, deliveries: 0, answers: 0 },
};

const KEY: ApiKeyRow = {
  id: "key_000000000000",
  kind: "key",
  name: null,
  prefix: "crn_0000",
  scopes: ["admin"],
  tier: "free",
  perMinute: 1,
  burst: 1,
  createdAt: 1,
  expiresAt: null,
};
