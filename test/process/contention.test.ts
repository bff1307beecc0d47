/**
 * Several servers whose clients change the same records at the same time: none waits for another that waits for it.
 *
 * `scripts/test --all test/process/contention.test.ts` goes on for a minute each, and compares with one server.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { SQL } from "bun";
import { isHere } from "../support/platform.ts";
import { Postgres, POSTGRES } from "../support/postgres.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";
import { longRounds } from "../support/rounds.ts";
import { Contention, type Kind } from "./contention.ts";

const SECONDS = longRounds(1.5, 60);
/** In a few seconds the slowest of a hundred requests is the machine's doing. */
const P99_FACTOR_MAX = longRounds(Infinity, 3);
const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? 20_261_124);
setDefaultTimeout(1_800_000);

if (isHere(POSTGRES, "servers whose clients change the same records at the same time")) {
  let postgres: Postgres;
  beforeAll(async () => void (postgres = await Postgres.start()));
  afterAll(() => postgres.stop());

  const query = async (url: string, text: string): Promise<Record<string, unknown>[]> => {
    await using sql = new SQL(url, { max: 1 });
    return Array.from((await sql.unsafe(text)) as Record<string, unknown>[]);
  };

  /** Runs clients on this many servers, of one kind after another, and checks what they were answered. */
  async function load(servers: number, loads: readonly { kind: Kind; settings: object }[]) {
    const url = await postgres.migrated();
    const database = new URL(url).pathname.slice(1);
    // A deadlock is counted when it is found, for which the database usually waits longer than Cairn does for a lock.
    await query(url, `alter database ${database} set deadlock_timeout = '10ms'`);
    await using started = new AsyncDisposableStack();
    const processes: CairnProcess[] = [];
    for (let i = 0; i < servers; i++) processes.push(started.use(await startProcess({ environment: { CAIRN_STORE: url } })));
    const latencies = [];
    for (const [i, { kind, settings }] of loads.entries()) {
      await processes[0]!.ok(processes[0]!.request("PATCH", "/v1/settings", settings));
      const contention = new Contention(processes, kind, SEED + i);
      await contention.run(SECONDS);
      await contention.check();
      latencies.push(contention.latencies);
    }
    // What is counted of a connection is there for certain once that has ended.
    for (const one of processes) expect(await one.stop()).toBe(0);
    const [counted] = await query(await postgres.database(), `select deadlocks from pg_stat_database where datname = '${database}'`);
    return { deadlocks: Number(counted?.["deadlocks"]), latencies };
  }

  const LOADS = [
    { name: "batches that put, delete, pop and delete all", kind: "batches", settings: {} },
    { name: "states of which three versions are kept", kind: "states", settings: { state_versions_kept: 3 } },
    { name: "states", kind: "states", settings: { state_versions_kept: null } },
    { name: "batches and states beside erasures", kind: "mixed with erasures", settings: {} },
  ] as const;

  test(`two servers whose clients change the same records meet no deadlock, lose nothing and do nothing twice (seed ${SEED})`, async () => {
    const two = await load(2, LOADS);
    expect(two.deadlocks).toBe(0);
    if (P99_FACTOR_MAX === Infinity) return;
    const one = await load(1, LOADS);
    for (const [i, { name }] of LOADS.entries()) {
      const [ofOne, ofTwo] = [one.latencies[i]!, two.latencies[i]!];
      console.log({ name, ofOne, ofTwo });
      expect(ofTwo.p99Ms / ofOne.p99Ms).toBeLessThan(P99_FACTOR_MAX);
      expect(ofTwo.othersP99Ms / ofOne.othersP99Ms).toBeLessThan(P99_FACTOR_MAX);
    }
  });
}
