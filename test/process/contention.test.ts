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

interface Load {
  readonly kind: Kind;
  readonly settings: object;
}

if (isHere(POSTGRES, "servers whose clients change the same records at the same time")) {
  let postgres: Postgres;
  beforeAll(async () => void (postgres = await Postgres.start()));
  afterAll(() => postgres.stop());

  const query = async (url: string, text: string): Promise<Record<string, unknown>[]> => {
    await using sql = new SQL(url, { max: 1 });
    return Array.from((await sql.unsafe(text)) as Record<string, unknown>[]);
  };

  /** Starts servers on a database of their own. */
  async function start(count: number, started: AsyncDisposableStack): Promise<{ processes: CairnProcess[]; database: string }> {
    const url = await postgres.migrated();
    const database = new URL(url).pathname.slice(1);
    // A deadlock is counted when it is found, for which the database usually waits longer than Cairn does for a lock.
    await query(url, `alter database ${database} set deadlock_timeout = '10ms'`);
    const processes: CairnProcess[] = [];
    for (let i = 0; i < count; i++) processes.push(started.use(await startProcess({ environment: { CAIRN_STORE: url } })));
    return { processes, database };
  }

  /** Runs clients on servers, and checks what they were answered. */
  async function load(processes: readonly CairnProcess[], { kind, settings }: Load, seed: number) {
    await processes[0]!.ok(processes[0]!.request("PATCH", "/v1/settings", settings));
    const contention = new Contention(processes, kind, seed);
    await contention.run(SECONDS);
    await contention.check();
    return contention.latencies;
  }

  const LOADS = [
    { name: "batches that put, delete, pop and delete all", kind: "batches", settings: {} },
    { name: "states of which three versions are kept", kind: "states", settings: { state_versions_kept: 3 } },
    { name: "states", kind: "states", settings: { state_versions_kept: null } },
    { name: "batches and states beside erasures", kind: "mixed with erasures", settings: {} },
  ] as const;

  test(`two servers whose clients change the same records meet no deadlock, lose nothing and do nothing twice (seed ${SEED})`, async () => {
    await using started = new AsyncDisposableStack();
    const two = await start(2, started);
    const one = P99_FACTOR_MAX === Infinity ? undefined : await start(1, started);
    const factors: { name: string; all: number; others: number }[] = [];
    for (const [i, { name, ...some }] of LOADS.entries()) {
      const ofTwo = await load(two.processes, some, SEED + i);
      if (one === undefined) continue;
      // Right after the other one, while the machine has as much else to do.
      const ofOne = await load(one.processes, some, SEED + i);
      console.log({ name, ofOne, ofTwo });
      factors.push({ name, all: ofTwo.p99Ms / ofOne.p99Ms, others: ofTwo.othersP99Ms / ofOne.othersP99Ms });
    }
    // What is counted of a connection is there for certain once that has ended.
    for (const process of two.processes) expect(await process.stop()).toBe(0);
    const [counted] = await query(await postgres.database(), `select deadlocks from pg_stat_database where datname = '${two.database}'`);
    expect(Number(counted?.["deadlocks"])).toBe(0);
    expect(factors.filter(({ all, others }) => Math.max(all, others) >= P99_FACTOR_MAX)).toEqual([]);
  });
}
