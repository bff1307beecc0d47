import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EVENT_TYPES } from "../../src/traces/events.ts";
import {
  Chance,
  WITH_GRAPH,
  crashWhileStarting,
  runCairn,
  scratchDirectory,
  startProcess,
  until,
  vectorsMade,
  type CairnProcess,
} from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";
import { longRounds } from "../support/rounds.ts";
import { audit } from "./audit.ts";
import { Ledger, SHARES, type Change } from "./ledger.ts";

/** What is written, when about the process ends and what is looked into; the rest is the machine's doing. */
const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? 20_260_507);
/** More of either can be asked for by hand; these make 1,650 acknowledged changes at the least, and 100,000 with `--all`. */
const ROUNDS = Number(process.env["CAIRN_TEST_ROUNDS"] ?? longRounds(12, 200));
const CHANGES_PER_ROUND = Number(process.env["CAIRN_TEST_CHANGES"] ?? longRounds(150, 530));
const WRITERS = 64;
/** Thousands of events, one at a time. */
const EVENTS_SECONDS = 600;
const WITHOUT_GRAPH = {};

setDefaultTimeout(ROUNDS * CHANGES_PER_ROUND * 400);

test(`what was acknowledged is there after every kill -9, whole and once; what was not is there once or not at all; every event arrives (seed ${SEED})`, async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.path;
  const chance = new Chance(SEED);
  const ledger = new Ledger(chance);
  // An event may come twice, with the same id.
  const events = new Map<string, string>();
  await using receiver = startReceiver(({ event: { id, type, data } }) => {
    events.set(id, `${type} ${data.object === "trace" ? data.id : (data.session_id ?? data.id)}`);
    return new Response();
  });
  for (let round = 0; round < ROUNDS; round++) {
    const isSeldom = round % 4 === 3;
    const before = ledger.changes.length;
    const environment = round % 2 === 0 ? WITH_GRAPH : WITHOUT_GRAPH;
    await using server = await startProcess({ dataDirectory, environment });
    if (round === 0) await server.ok(server.post("/v1/webhooks", { url: receiver.url, events: EVENT_TYPES }));
    await writeAndKill(ledger, server, (round + chance.next()) * CHANGES_PER_ROUND, chance.below(8));
    if (isSeldom) await expectNothingWrong(dataDirectory);
    if (isSeldom) await crashWhileStarting(dataDirectory, chance.below(200));

    // Compared one by one: a graph may miss a memory among many that are nearly the same.
    await using again = await startProcess({ dataDirectory, environment: WITHOUT_GRAPH });
    // What became of the last changes; now and then the rest too. What is lost once is missing to the end.
    const isLookedInto = () => chance.below(ROUNDS) < 2;
    const isConcerned = ({ outcome }: Change) => outcome === "unknown" || isLookedInto();
    await ledger.retry(again, ledger.changes.slice(before).filter(isConcerned));
    if (isSeldom) await audit(again, ledger.changes, isLookedInto);
    await again.kill();
  }
  await using last = await startProcess({ dataDirectory, environment: WITHOUT_GRAPH });
  await ledger.retry(last);
  await audit(last, ledger.changes, () => true);
  await expectEventOfEveryTrace(last, events);
  expect(await last.stop()).toBe(0);
  await expectNothingWrong(dataDirectory);
  expect(await runCairn(["audit", "verify", "--data-dir", dataDirectory])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+ traces are as they were signed, in \d+ chains?\.\n[^]*Nothing was changed\.\n$/),
  });
  expect(ledger.acknowledged).toBeGreaterThanOrEqual((ROUNDS - 1) * CHANGES_PER_ROUND);
  expect(ledger.changes.filter(({ outcome }) => outcome === "unknown").length).toBeGreaterThan(0);
});

/** Ends the process when so many changes are acknowledged and so many milliseconds have passed since, in the middle of others. */
async function writeAndKill(ledger: Ledger, server: CairnProcess, acknowledged: number, ms: number): Promise<void> {
  let killed: Promise<void> | undefined;
  let isOver = false;
  await ledger.write(server, WRITERS, () => {
    if (ledger.acknowledged >= acknowledged) {
      killed ??= Bun.sleep(ms).then(() => {
        isOver = true;
        return server.kill();
      });
    }
    return isOver;
  });
  await killed;
}

/** Asks `cairn doctor`. */
async function expectNothingWrong(dataDirectory: string): Promise<void> {
  expect(await runCairn(["doctor", "--data-dir", dataDirectory])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Nothing is wrong: \d+ rows(, \d+ vectors in the index on disk|; no vector index on disk, .*)\.\n$/),
  });
}

test(`SIGTERM under load ends with code 0 within 15 s, loses nothing that was acknowledged and leaves a snapshot of the index (seed ${SEED})`, async () => {
  using directory = scratchDirectory();
  // Memories enough that there is an index to write.
  const ledger = new Ledger(new Chance(SEED), { ...SHARES, memory: 60, delete: 0 });
  await using server = await startProcess({ dataDirectory: directory.path, environment: WITH_GRAPH });
  await ledger.write(server, WRITERS, () => ledger.acknowledged >= 400);
  await vectorsMade(server);
  let stopped: Promise<number> | undefined;
  let askedAt = 0;
  await ledger.write(server, WRITERS, () => {
    if (ledger.acknowledged >= 800 && stopped === undefined) {
      askedAt = performance.now();
      stopped = server.stop();
    }
    return false;
  });
  expect(await stopped).toBe(0);
  expect(performance.now() - askedAt).toBeLessThan(15_000);
  expect(server.logged("stopped").length).toBe(1);
  const manifest = JSON.parse(readFileSync(directory.at("vectors/manifest.json"), "utf8"));
  for (const kind of ["tables", "hnsw"]) expect(existsSync(join(directory.path, "vectors", `${manifest.name}.${kind}`))).toBe(true);

  await using again = await startProcess({ dataDirectory: directory.path, environment: WITH_GRAPH });
  const loaded = await until("the index to be loaded", () => again.logged("vector index ready")[0]);
  expect({ isRebuilding: "rebuilding" in loaded, isEmpty: !(loaded.indexed > 0) }).toEqual({ isRebuilding: false, isEmpty: false });
  expect(await again.stop()).toBe(0);
  await using last = await startProcess({ dataDirectory: directory.path, environment: WITHOUT_GRAPH });
  await ledger.retry(last);
  await audit(last, ledger.changes, () => true);
  expect(await last.stop()).toBe(0);
  await expectNothingWrong(directory.path);
});

/** The event that carries the record, beside `trace.created` for each trace and `trace.rollback` for each rollback. */
const RECORD_EVENTS: Record<string, string> = {
  "session.created": "session.created",
  "session.forked": "session.created",
  "session.updated": "session.updated",
  "state.updated": "session.updated",
  "state.rolled_back": "session.updated",
  "session.deleted": "session.deleted",
  "turn.added": "turn.added",
  "memory.created": "memory.created",
};

async function expectEventOfEveryTrace(server: CairnProcess, events: ReadonlyMap<string, string>): Promise<void> {
  const ofSessions = (await server.all("/v1/traces")).filter(({ session_id }) => session_id !== null);
  const expected = ofSessions.flatMap(({ id, action, session_id }) => {
    const ofTrace = ["trace.created", ...(action === "state.rolled_back" ? ["trace.rollback"] : [])].map((type) => `${type} ${id}`);
    return [...ofTrace, ...(action in RECORD_EVENTS ? [`${RECORD_EVENTS[action]} ${session_id}`] : [])];
  });
  await until("every event to arrive", () => events.size >= expected.length, EVENTS_SECONDS);
  expect([...events.values()].sort()).toEqual(expected.sort());
}
