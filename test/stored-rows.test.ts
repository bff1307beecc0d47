/**
 * What requests leave in the store is what its tables declare, whatever they were: of every table, not of rows made by hand.
 *
 * @module
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { join } from "node:path";
import { endpointsOf } from "../src/server/app.ts";
import { writeBackup } from "../src/operations/backup.ts";
import { parseRow, RECORDS } from "../src/operations/records.ts";
import { COLLECTIONS } from "../src/storage/collections.ts";
import { VECTOR_TABLES } from "../src/storage/tables.ts";
import { isEmbedding } from "../src/search/encoding.ts";
import { startFilled } from "./operations/everything.ts";
import type { Cairn } from "./support/cairn.ts";
import { requestTo, World } from "./support/odd-requests.ts";
import { Chance } from "./support/process.ts";
import { longRounds } from "./support/rounds.ts";
import { isOnPostgres } from "./support/stores.ts";

const ROUNDS = longRounds(isOnPostgres ? 2 : 4, 200);
const REQUESTS_PER_ROUND = 100;
const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** Those that change records, while servers serve. */
const TASKS =
  "session expiry,session removal,document expiry,document removal,user erasure,trace retention,retrieval retention,embeddings,embeddings of turns,index of turns,webhook outbox,webhook deliveries,webhook retention,last use of keys,activity,users";

/** What is wrong in the rows of every table, and which tables have any. */
async function wrongRows({ service: { store } }: Cairn, seen: Set<string>): Promise<string[]> {
  await using snapshot = await store.snapshot();
  const wrong: string[] = [];
  for (const table of RECORDS) {
    for await (const rows of snapshot.rowBatches(table)) {
      for (const { key, text } of rows) {
        seen.add(table.name);
        const { problem } = parseRow(table, key, text);
        if (problem !== undefined) wrong.push(`${table.name} ${key}: ${problem}: ${text.slice(0, 300)}`);
      }
    }
  }
  for (const { vectors } of Object.values(COLLECTIONS)) {
    for await (const keys of snapshot.keyBatches(vectors)) {
      seen.add(vectors.name);
      const whole = await snapshot.readEach(keys, (reader, key) => isEmbedding(reader.vectorBytes(vectors, key) ?? new Uint8Array(0)));
      wrong.push(...keys.filter((_, i) => whole[i] !== true).map((key) => `${vectors.name} ${key}`));
    }
  }
  return wrong;
}

test(
  "whatever is sent, every row of every table is one that its table accepts, doctor finds nothing, and a backup can be made",
  async () => {
    const { cairn } = await startFilled();
    await using _ = cairn;
    const world = new World(cairn);
    // Backups are files, and events end with their reader.
    const endpoints = endpointsOf(cairn.service).filter(({ method, path }) => method !== "GET" && !path.startsWith("/v1/backups"));
    const chance = new Chance(SEED);
    const seen = new Set<string>();
    const expectRight = async (when: string) => {
      const found = { when, seed: SEED, wrong: await wrongRows(cairn, seen), doctor: await cairn.findings() };
      expect(found).toEqual({ when, seed: SEED, wrong: [], doctor: [] });
    };
    await expectRight("as it was filled");
    for (let round = 0; round < ROUNDS; round++) {
      await world.fill();
      const seed = chance.below(2 ** 31);
      let accepted = 0;
      for (const sent of fc.sample(fc.oneof(...endpoints.map(requestTo)), { numRuns: REQUESTS_PER_ROUND, seed })) {
        const { status } = await world.send(sent);
        if (status < 300) accepted++;
        if (sent.method === "DELETE" && status < 300) await world.fill();
        // Else nothing more could be stored.
        if (sent.path.startsWith("/v1/settings")) await cairn.ok(cairn.patch("/v1/settings", { max_store_bytes: null }));
      }
      expect(accepted).toBeGreaterThan(0);
      await expectRight(`round ${round}, after requests`);
      cairn.clock.advance({ seconds: chance.below(100_000) });
      for (const task of TASKS.split(",")) await cairn.runTask(task);
      await expectRight(`round ${round}, after tasks`);
      // The clock of a machine is set back now and then.
      if (round % 2 === 1) await cairn.setBack(cairn.clock.now() - 5_000);
    }
    expect([...RECORDS, ...VECTOR_TABLES].map(({ name }) => name).filter((name) => !seen.has(name))).toEqual([]);
    if (isOnPostgres) return;
    expect(await writeBackup(cairn.embedded, cairn.clock, join(cairn.directory, "of-all.backup"), { force: false })).toMatchObject({
      cairn: expect.any(String),
    });
  },
  longRounds(120_000, 3_600_000),
);
