/**
 * What is acknowledged stays, once and in order, when the database's server is killed, restarted or replaced by its standby.
 *
 * `CAIRN_TEST_KILLS=200 scripts/test test/unit/storage/postgres-faults.test.ts` kills it as often as that, and says what it has counted.
 */
import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { ApiError } from "../../../src/lib/errors.ts";
import type { Tx } from "../../../src/storage/access.ts";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.ts";
import { meta, sessions, turns } from "../../../src/storage/tables.ts";
import { PostgresProxy } from "../../support/postgres-proxy.ts";
import { isHere } from "../../support/platform.ts";
import { Postgres, POSTGRES } from "../../support/postgres.ts";
import { longRounds } from "../../support/rounds.ts";

const KILLS = Number(process.env["CAIRN_TEST_KILLS"] ?? longRounds(10, 200));
const tell = (counted: object) => {
  if (process.env["CAIRN_TEST_KILLS"] !== undefined) console.log(counted);
};
const WRITERS_PER_SERVER = 6;
const SESSIONS = ["s0", "s1", "s2", "s3"];
const CHANGES_BETWEEN_KILLS = 20;
const ALL = { from: "", to: "~" };

interface Change {
  readonly name: string;
  readonly session: string;
  readonly number: number;
}

/** Servers on one database, and clients that send changes of a few sessions to them, each again until it is acknowledged. */
class Load {
  readonly acknowledged: Change[] = [];
  /** How often a change was refused as not made, and how often nobody knew. */
  readonly refusals = { notMade: 0, unknown: 0 };
  #isOver = false;
  readonly #running: Promise<void>[];

  constructor(stores: readonly PostgresStore[]) {
    this.#running = stores.flatMap((store, server) => [
      ...Array.from({ length: WRITERS_PER_SERVER }, (_, writer) => this.#write(stores, `${server}-${writer}`)),
      this.#read(store),
    ]);
  }

  /** Ends once every change is acknowledged that was begun. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  /** Resolves once that many more changes are acknowledged. */
  async more(changes: number): Promise<void> {
    const enough = this.acknowledged.length + changes;
    while (this.acknowledged.length < enough) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  async #write(stores: readonly PostgresStore[], client: string): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      const session = SESSIONS[i % SESSIONS.length]!;
      const name = `${client}-${i}`;
      for (let attempt = 0; ; attempt++) {
        try {
          // Sent again it goes to another server.
          const store = stores[(i + attempt) % stores.length]!;
          const number = await store.commit(session, (tx) => addOnce(tx, session, name));
          this.acknowledged.push({ name, session, number });
          break;
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          this.refusals[error.code === "internal_error" ? "unknown" : "notMade"]++;
        }
      }
    }
  }

  /** Each look sees all that was acknowledged before it. */
  async #read(store: PostgresStore): Promise<void> {
    while (!this.#isOver) {
      const acknowledged = Object.groupBy(this.acknowledged, ({ session }) => session);
      const least = SESSIONS.map((session) => acknowledged[session]?.length ?? 0);
      const found = await Promise.resolve(store.read((reader) => SESSIONS.map((key) => reader.get(sessions, key)?.turnCount ?? 0))).catch(
        (error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
          return least;
        },
      );
      expect(found.every((count, i) => count >= least[i]!)).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

/** Adds a turn unless it was added before. @returns its number */
function addOnce(tx: Tx, key: string, name: string): number {
  const before = tx.get(meta, name);
  if (before !== undefined) return Number(before);
  const row = tx.get(sessions, key)!;
  const turnCount = row.turnCount + 1;
  tx.put(sessions, key, { ...row, turnCount, updatedAt: Math.max(row.updatedAt, tx.now) });
  tx.add(turns, key + tx.bareId(), { shown: name, rest: String(turnCount) });
  tx.add(meta, name, String(turnCount));
  return turnCount;
}

async function makeSessions(store: PostgresStore): Promise<void> {
  const row = { agentId: "a", userId: null, createdAt: 1, updatedAt: 1, metadata: {}, memoryCount: 0, turnCount: 0, ttlSeconds: 60 };
  await store.commit("s0", (tx) => {
    for (const key of SESSIONS) tx.add(sessions, key, { ...row, expiresAt: 2 ** 41, version: 0 });
  });
}

/** What was acknowledged is there once, under its number, and the turns of each session are in order without a gap. */
async function expectAll(store: PostgresStore, acknowledged: readonly Change[]): Promise<void> {
  const rows = await store.read((reader) => reader.rows(turns, ALL));
  const stored = rows.map(({ key, row }): Change => ({ name: row.shown, session: key.slice(0, 2), number: Number(row.rest) }));
  const byName = (changes: readonly Change[]) => changes.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  expect(byName(stored)).toEqual(byName(acknowledged));
  for (const session of SESSIONS) {
    const numbers = stored.filter((change) => change.session === session).map(({ number }) => number);
    expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  }
}

if (isHere(POSTGRES, "a database that is killed and replaced")) {
  test(`of what is acknowledged while the server is killed ${KILLS} times nothing is lost, doubled or out of order`, async () => {
    const postgres = await Postgres.start({ fsync: true });
    const url = await postgres.database();
    const stores = [await PostgresStore.open(url, systemClock), await PostgresStore.open(url, systemClock)];
    await makeSessions(stores[0]!);
    const load = new Load(stores);
    const nextWriteMs: number[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      await load.more(CHANGES_BETWEEN_KILLS);
      await postgres.kill();
      await postgres.restart();
      const readyAt = performance.now();
      await load.more(1);
      nextWriteMs.push(Math.round(performance.now() - readyAt));
    }
    await load.more(CHANGES_BETWEEN_KILLS);
    await load.end();
    await expectAll(stores[1]!, load.acknowledged);
    nextWriteMs.sort((a, b) => a - b);
    const [medianMs, longestMs] = [nextWriteMs[KILLS >> 1], nextWriteMs.at(-1)];
    tell({ kills: KILLS, acknowledged: load.acknowledged.length, ...load.refusals, firstAfterStartMs: { medianMs, longestMs } });
    for (const store of stores) await store.close();
    postgres.stop();
  }, 3_600_000);

  test("a standby that takes over has all that was acknowledged, and nothing that was answered before it had got it", async () => {
    const primary = await Postgres.start({ fsync: true });
    const url = await primary.database();
    const standby = await primary.standby({ fsync: true });
    using proxy = new PostgresProxy(url);
    const stores = [await PostgresStore.open(proxy.url, systemClock), await PostgresStore.open(proxy.url, systemClock)];
    await makeSessions(stores[0]!);
    const load = new Load(stores);
    await load.more(50);
    // The standby gets nothing any more: from here on the server has changes that nobody else has.
    await standby.kill();
    while ((await primary.waitingCommits()) === 0);
    // It shows them once it has been started again, although no standby has them.
    await primary.kill();
    await primary.restart();
    while ((await primary.waitingCommits()) === 0);
    await primary.kill();
    await standby.restart();
    await standby.promote();
    proxy.leadTo(standby.same(url));
    const promotedAt = performance.now();
    await load.more(1);
    const ms = Math.round(performance.now() - promotedAt);
    await load.more(100);
    await load.end();
    await expectAll(stores[1]!, load.acknowledged);
    tell({ acknowledged: load.acknowledged.length, firstAfterPromotionMs: ms, ...load.refusals });
    for (const store of stores) await store.close();
    primary.stop();
    standby.stop();
  }, 600_000);
}
