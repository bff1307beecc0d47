/** Whatever is done, in whatever order: Cairn answers as a small model of it does, and keeps what the model keeps. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { Simulation } from "./simulation/simulation.ts";
import { NAMES } from "./simulation/steps.ts";
import { longRounds } from "../support/rounds.ts";
import { isOnPostgres } from "../support/stores.ts";

const ASKED_SEED = process.env["CAIRN_TEST_SEED"];
/** A step takes some twenty times as long on a database. */
const OWN_SEEDS = Array.from({ length: isOnPostgres ? longRounds(2, 10) : longRounds(6, 100) }, (_, i) => i + 1);
const SEEDS = ASKED_SEED === undefined ? OWN_SEEDS : [Number(ASKED_SEED)];
const STEPS = isOnPostgres && ASKED_SEED === undefined ? 400 : 1_000;
const STEPS_BETWEEN_LOOKS = 200;
/** For a machine that is busy with other things: a seed takes a second or two, on three servers half a minute. */
setDefaultTimeout(longRounds(600_000, 3_600_000));

/** What the seeds have to come by between them, lest they pass because nothing happens. */
const REACHED = [
  ...NAMES.filter((name) => name !== "invalid").map((name) => `${name}: answered`),
  ...["createSession", "forkSession", "updateSession", "updateState", "rollback", "addTurn", "addMemory", "updateMemory"].map(
    (name) => `${name}: replayed`,
  ),
  ...["400 invalid_request", "401 authentication_failed", "403 permission_denied", "409 version_conflict"].map(
    (code) => `refused: ${code}`,
  ),
  ...["session", "version", "turn", "memory", "trace", "resource"].map((what) => `refused: 404 ${what}_not_found`),
  "timer: session expiry",
  "timer: trace retention",
  "clock set back",
  "restart",
  "large session deleted",
];

test(`thousands of operations, with time passing, timers, restarts and a clock that is set back, do what a small model does (seeds ${SEEDS.join(", ")})`, async () => {
  const reached = new Set<string>();
  for (const seed of SEEDS) {
    await using simulation = await Simulation.start(seed);
    await simulation.run(STEPS, STEPS_BETWEEN_LOOKS);
    for (const one of simulation.reached) reached.add(one);
  }
  // A single seed need not come by all of it, nor do the few steps on a database.
  if (ASKED_SEED === undefined && !isOnPostgres) expect(REACHED.filter((one) => !reached.has(one))).toEqual([]);
});
