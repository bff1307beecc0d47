/**
 * A backup of a running server becomes, restored, a store that answers the same.
 *
 * @module
 */
import { join } from "node:path";
import { OwnServer, runOwn } from "./own-server.ts";

/** Everything that a server has of sessions, turns and memories, as text. */
async function contentOf({ cairn }: OwnServer): Promise<string[]> {
  const sessions = await Array.fromAsync(cairn.sessions.list());
  const records: unknown[] = [...sessions, ...(await Array.fromAsync(cairn.memories.list()))];
  for (const { id } of sessions) records.push(...(await Array.fromAsync(cairn.turns.list(id))));
  return records.map((record) => JSON.stringify(record));
}

/** @param directory - of a store with records */
export async function checkBackup(directory: string, key: string): Promise<string> {
  const file = join(directory, "backup");
  const restored = join(directory, "restored");
  const before = await (async () => {
    await using server = await OwnServer.start(directory, key);
    await runOwn("backup", file, "--data-dir", directory);
    return await contentOf(server);
  })();
  await runOwn("restore", file, "--data-dir", restored);
  await runOwn("doctor", "--data-dir", restored);
  await using server = await OwnServer.start(restored, key);
  const after = await contentOf(server);
  const other = before.find((record, i) => record !== after[i]);
  if (other !== undefined || before.length !== after.length)
    throw new Error(`of ${before.length} records the restored store has ${after.length}; the first that differs: ${other?.slice(0, 200)}`);
  return `${before.length} records backed up while a server runs, and restored: all the same, and no finding of cairn doctor`;
}
