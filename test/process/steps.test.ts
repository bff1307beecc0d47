/**
 * Steps of agents (a state, a turn and memories in one request) and batches of turns, cut off by crashes: each is there whole or not at all.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { diskShim } from "../support/disk-shim.ts";
import { needs, onLinux } from "../support/platform.ts";
import { Postgres, POSTGRES } from "../support/postgres.ts";
import { Chance, inTurns, scratchDirectory, startProcess, type CairnProcess } from "../support/process.ts";
import { longRounds } from "../support/rounds.ts";

const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? 20_260_507);
const ROUNDS = longRounds(4, 60);
const WRITERS = 8;
const REQUESTS_MAX = 80;
const BATCH = 5;
const MEMORIES = 2;

setDefaultTimeout(ROUNDS * 120_000);

interface Request {
  readonly isStep: boolean;
  /** Names of its turns. */
  readonly names: readonly string[];
  readonly path: string;
  readonly body: object;
}

const turnOf = (external_id: string) => ({
  external_id,
  input: { type: "text", content: external_id },
  output: { type: "text", content: "t".repeat(200) },
});

/** One agent, who goes on with what it does not know to be done, and what it has to find after a crash. */
class Agent {
  readonly #session: string;
  readonly #done: Request[] = [];
  #asked: Request | undefined;

  constructor(session: string) {
    this.#session = session;
  }

  /** @returns whether it was answered */
  async ask(server: CairnProcess): Promise<boolean> {
    const request = (this.#asked ??= this.#next());
    const answer = await server.post(request.path, request.body).catch(() => undefined);
    if (answer === undefined) return false;
    expect([200, 201]).toContain(answer.status);
    this.#done.push(request);
    this.#asked = undefined;
    return true;
  }

  #next(): Request {
    const path = `/v1/sessions/${this.#session}/turns`;
    const number = this.#done.length;
    const isStep = number % 3 !== 0;
    const names = Array.from({ length: isStep ? 1 : BATCH }, (_, i) => `${number}.${i}`);
    const memories = Array.from({ length: MEMORIES }, (_, i) => ({ content: `Fact ${i} of step ${number}.`, embed: false }));
    const body = isStep ? { ...turnOf(names[0]!), state: { number }, memories } : { turns: names.map(turnOf) };
    return { isStep, names, path: isStep ? path : `${path}/batch`, body };
  }

  /** Whether all that was answered is there, and all or nothing of what was not. */
  async check(server: CairnProcess): Promise<void> {
    const path = `/v1/sessions/${this.#session}`;
    const turns = await server.all(`${path}/turns?order=asc`);
    const answered = this.#done.flatMap(({ names }) => names);
    const isThere = turns.length > answered.length;
    const done = [...this.#done, ...(isThere && this.#asked !== undefined ? [this.#asked] : [])];
    const steps = done.filter(({ isStep }) => isStep);
    const names = done.flatMap((request) => request.names);
    expect(turns.map(({ external_id, turn_number }) => [turn_number, external_id])).toEqual(names.map((name, i) => [i + 1, name]));
    const counts = { turn_count: names.length, memory_count: MEMORIES * steps.length, state_version: steps.length };
    const session = await server.ok(server.get(path));
    expect(session).toMatchObject({ ...counts, state: (steps.at(-1)?.body as { state?: object })?.state ?? {} });
    expect(await server.all(`/v1/memory?session_id=${this.#session}`)).toHaveLength(counts.memory_count);
    const traces = (await server.all(`/v1/traces?session_id=${this.#session}`)).map(({ action }) => action as string);
    const traced = (action: string) => traces.filter((one) => one === action).length;
    expect([traced("turn.added"), traced("memory.created"), traced("state.updated")]).toEqual([
      counts.turn_count,
      counts.memory_count,
      counts.state_version,
    ]);
  }
}

/** @param crash - what comes after the end of the process, before the next start */
async function crashes(start: () => Promise<CairnProcess>, crash: (chance: Chance) => void = () => undefined): Promise<void> {
  const chance = new Chance(SEED);
  const agents: Agent[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await using server = await start();
    while (agents.length < WRITERS) agents.push(new Agent((await server.createSession({ user_id: `user ${agents.length}` })).id));
    let left = 1 + chance.below(REQUESTS_MAX);
    let killed: Promise<void> | undefined;
    await Promise.all(
      agents.map(async (agent) => {
        while (await agent.ask(server)) if (--left <= 0) killed ??= server.kill();
      }),
    );
    await killed;
    crash(chance);
    await using again = await start();
    await inTurns(agents, WRITERS, (agent) => agent.check(again));
    // What nobody knew of is there once when it is sent again, by the name of its turn.
    await inTurns(agents, WRITERS, async (agent) => void (await agent.ask(again)));
    await inTurns(agents, WRITERS, (agent) => agent.check(again));
    await again.kill();
    crash(chance);
  }
}

test(`after a kill -9 each step and each batch of turns is there whole or not at all, and all that was answered (seed ${SEED})`, async () => {
  using directory = scratchDirectory();
  await crashes(() => startProcess({ dataDirectory: directory.path }));
});

needs(POSTGRES)(`the same of a server on PostgreSQL (seed ${SEED})`, async () => {
  const postgres = await Postgres.start();
  try {
    const url = await postgres.database();
    using directory = scratchDirectory();
    await crashes(() => startProcess({ dataDirectory: directory.path, flags: ["--store", url] }));
  } finally {
    postgres.stop();
  }
});

onLinux("a shim of the calls of a process")(`the same after a power cut (seed ${SEED})`, async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path, { isSlow: true });
  const dataDirectory = directory.at("data");
  const { environment } = shim;
  await using first = await startProcess({ dataDirectory });
  expect(await first.stop()).toBe(0);
  shim.simulateDisk(dataDirectory);
  await crashes(
    () => startProcess({ dataDirectory, environment }),
    (chance) => shim.cutPower(dataDirectory, chance),
  );
});
