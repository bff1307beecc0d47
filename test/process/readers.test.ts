import { expect, test } from "bun:test";
import { closeSync, openSync, statSync } from "node:fs";
import { NO_PARTITION } from "../../src/lib/ids.ts";
import { toJson } from "../../src/lib/json.ts";
import { payloads } from "../../src/storage/tables.ts";
import { buildBinary } from "../support/binary.ts";
import { startCairn } from "../support/cairn.ts";
import { scratchDirectory, until } from "../support/process.ts";

const TURNS = 20;
/** More than what a pipe holds that nobody reads. */
const TEXT = "x".repeat(200_000);

test("what a killed export was reading is let go of while the server runs, and its room on the disk is used again", async () => {
  using directory = scratchDirectory();
  await using cairn = await startCairn({ directory: directory.path });
  const { store } = cairn.service;
  const session = await cairn.createSession();
  for (let i = 0; i < TURNS; i++) await cairn.addTurn(session.id, TEXT);

  // Nobody reads what it writes, so it never comes to its end.
  const pipe = directory.at("pipe");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  const end = openSync(pipe, "r+");
  const reader = Bun.spawn([await buildBinary(), "export", "--data-dir", directory.path], {
    env: {},
    stdin: "ignore",
    stdout: end,
    stderr: "ignore",
  });
  const isReading = () => {
    // Read by another process: one that closes the file gives up every lock it has in it.
    const { stdout } = Bun.spawnSync(["cat", directory.at("store/lock.mdb")]);
    return new Int32Array(Uint8Array.from(stdout).buffer, 0, Math.floor(stdout.length / 4)).includes(reader.pid);
  };
  await until("the export to read", isReading);
  /** What the file grows by while a row is replaced again and again. */
  const growth = async () => {
    const size = () => statSync(directory.at("store/data.mdb")).size;
    const before = size();
    for (let i = 0; i < 20; i++) await store.commit(NO_PARTITION, (tx) => tx.put(payloads, "again", toJson(`${TEXT}${i}`)));
    return size() - before;
  };
  expect(await growth()).toBeGreaterThan(10 * TEXT.length);
  reader.kill("SIGKILL");
  await reader.exited;
  closeSync(end);
  expect(isReading()).toBe(true);
  expect(await growth()).toBeGreaterThan(10 * TEXT.length);

  await cairn.runTaskOnce("dead readers");
  expect(isReading()).toBe(false);
  expect(await growth()).toBeLessThan(2 * TEXT.length);
  const told = cairn.logged.map((line) => JSON.parse(line)).filter(({ message }) => message.includes("of killed processes"));
  expect(told).toMatchObject([{ level: "info", count: expect.any(Number) }]);
  await cairn.runTaskOnce("dead readers");
  expect((await cairn.ok(cairn.get(`/v1/sessions/${session.id}`))).turn_count).toBe(TURNS);
});
