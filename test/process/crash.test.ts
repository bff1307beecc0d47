import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EVENT_TYPES } from "../../src/traces/events.ts";
import { Chance, scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";
import { Ledger, SHARES } from "./ledger.ts";

/** What is written and after how many acknowledgements the process ends; when exactly is the machine's doing. */
const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? 20_260_507);
const ROUNDS = 8;
const WRITERS = 24;
const TIMEOUT_MS = 120_000;

test(
  `what was acknowledged is there after every kill -9, whole and once; what was not is there once or not at all; every event arrives (seed ${SEED})`,
  async () => {
    using directory = scratchDirectory();
    const chance = new Chance(SEED);
    const ledger = new Ledger(chance);
    // An event may come twice, with the same id.
    const events = new Map<string, string>();
    await using receiver = startReceiver(({ event: { id, type, data } }) => {
      events.set(id, `${type} ${data.object === "trace" ? data.id : (data.session_id ?? data.id)}`);
      return new Response();
    });
    for (let round = 0; round < ROUNDS; round++) {
      await using server = await startProcess({ dataDirectory: directory.path });
      if (round === 0) await server.ok(server.post("/v1/webhooks", { url: receiver.url, events: EVENT_TYPES }));
      const enough = ledger.acknowledged + 20 + chance.below(400);
      let killed: Promise<void> | undefined;
      await ledger.write(server, WRITERS, () => {
        if (ledger.acknowledged >= enough) killed ??= server.kill();
        return killed !== undefined;
      });
      await killed;

      await using again = await startProcess({ dataDirectory: directory.path });
      await ledger.retry(again);
      await ledger.check(again);
      await again.kill();
    }
    await using last = await startProcess({ dataDirectory: directory.path });
    await ledger.check(last);
    await expectEventOfEveryTrace(last, events);
    expect(await last.stop()).toBe(0);
    expect(ledger.changes.filter(({ outcome }) => outcome === "unknown").length).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);

test(
  `SIGTERM under load ends with code 0 within 15 s, loses nothing that was acknowledged and leaves a snapshot of the index (seed ${SEED})`,
  async () => {
    using directory = scratchDirectory();
    // Memories enough that there is an index to write.
    const ledger = new Ledger(new Chance(SEED), { ...SHARES, memory: 60, delete: 0 });
    await using server = await startProcess({ dataDirectory: directory.path });
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
    const manifest = JSON.parse(readFileSync(join(directory.path, "vectors/manifest.json"), "utf8"));
    expect(existsSync(join(directory.path, "vectors", manifest.file))).toBe(true);

    await using again = await startProcess({ dataDirectory: directory.path });
    const loaded = await until("the index to be loaded", () => again.logged("vector index ready")[0]);
    expect({ isRebuilding: "rebuilding" in loaded, isEmpty: !(loaded.indexed > 0) }).toEqual({ isRebuilding: false, isEmpty: false });
    await ledger.retry(again);
    await ledger.check(again);
  },
  TIMEOUT_MS,
);

/** The event that carries the record, beside `trace.created` for each trace and `trace.rollback` for each rollback. */
const RECORD_EVENTS: Record<string, string> = {
  "session.created": "session.created",
  "state.updated": "session.updated",
  "state.rolled_back": "session.updated",
  "session.deleted": "session.deleted",
  "turn.added": "turn.added",
  "memory.created": "memory.created",
};

async function expectEventOfEveryTrace(server: CairnProcess, events: ReadonlyMap<string, string>): Promise<void> {
  const expected = (await server.all("/v1/traces")).flatMap(({ id, action, session_id }) => {
    const ofTrace = ["trace.created", ...(action === "state.rolled_back" ? ["trace.rollback"] : [])].map((type) => `${type} ${id}`);
    return [...ofTrace, ...(action in RECORD_EVENTS ? [`${RECORD_EVENTS[action]} ${session_id}`] : [])];
  });
  await until("every event to arrive", () => events.size >= expected.length);
  expect([...events.values()].sort()).toEqual(expected.sort());
}
