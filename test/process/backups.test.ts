/**
 * Backups over HTTP, of the executable: made by another process of it, restored by the command, and cut off.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endOf } from "../support/backups.ts";
import { onLinux, PS } from "../support/platform.ts";
import { runCairn, scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";

const it = onLinux("what a process has open, and its children", PS);

const backupsIn = (directory: string) => (existsSync(join(directory, "backups")) ? readdirSync(join(directory, "backups")) : []);
const begin = async (server: CairnProcess): Promise<string> => (await server.ok(server.post("/v1/backups", {}))).id;

/** 20 MB: long enough for a backup to be seen while it is made. */
async function fill(server: CairnProcess): Promise<void> {
  for (let step = 0; step < 22; step++) await server.createSession({ initial_state: { large: "x".repeat(900_000) } });
}

test("a backup made over HTTP while the server serves is restored by cairn restore, and what is in the directory is listed then too", async () => {
  using directory = scratchDirectory();
  let kept: any;
  let id = "";
  {
    await using server = await startProcess({ dataDirectory: directory.at("data") });
    kept = await server.createSession({ initial_state: { step: 1 } });
    id = await begin(server);
    // Others are answered meanwhile.
    const later = await server.createSession();
    expect((await endOf(server, id)).status).toBe("ready");
    const { url } = await server.ok(server.post(`/v1/backups/${id}/ticket`, {}));
    const response = await fetch(server.address + url);
    expect([response.status, response.headers.get("content-disposition")]).toEqual([200, `attachment; filename="${id}.cairn"`]);
    writeFileSync(directory.at("downloaded"), await response.bytes());
    expect(later.object).toBe("session");
    await server.stop();
  }
  const data = directory.at("data");
  expect(await runCairn(["restore", directory.at("downloaded"), "--force", "--data-dir", data])).toMatchObject({ code: 0 });
  await using again = await startProcess({ dataDirectory: data });
  expect((await again.get(`/v1/sessions/${kept.id}`)).body).toMatchObject({ id: kept.id, state: { step: 1 } });
  expect((await again.all("/v1/backups")).map((backup) => backup.id)).toEqual([id]);
});

it("a kill -9 in the middle of a backup loses nothing that was acknowledged, ends the process that makes it, and leaves no draft after the next start", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.path;
  const server = await startProcess({ dataDirectory });
  await fill(server);
  const acknowledged: string[] = [];
  // Stopped while it writes, so that it is in the middle when the server is killed.
  const { id, child } = await until("a backup that is cut off", async () => {
    const id = await begin(server);
    const [child] = childrenOf(server.pid);
    const draft = () => backupsIn(dataDirectory).some((name) => name.startsWith(`.${id}`) && name.endsWith(".draft"));
    await until("the draft, or the end", async () => draft() || (await server.get(`/v1/backups/${id}`)).body.status !== "running");
    if (child !== undefined && draft()) {
      process.kill(child, "SIGSTOP");
      await until("the process to be stopped", () => stateOf(child).startsWith("T"));
      if (draft()) return { id, child };
      process.kill(child, "SIGCONT");
    }
    await server.ok(server.delete(`/v1/backups/${id}`));
    return undefined;
  });
  for (let i = 0; i < 5; i++) acknowledged.push((await server.createSession()).id);
  await server.kill();
  process.kill(child, "SIGCONT");
  await until("the process that makes the backup to end", () => !isCairn(child));
  await using again = await startProcess({ dataDirectory });
  expect(backupsIn(dataDirectory).filter((name) => name.startsWith("."))).toEqual([]);
  expect((await again.get(`/v1/backups/${id}`)).status).toBe(404);
  for (const session of acknowledged) expect((await again.get(`/v1/sessions/${session}`)).status).toBe(200);
  expect((await endOf(again, await begin(again))).status).toBe("ready");
});

it("a stop ends the process that makes a backup, with its draft, and a download that a client leaves is closed", async () => {
  await using server = await startProcess();
  await fill(server);
  const id = await begin(server);
  expect((await endOf(server, id)).bytes).toBeGreaterThan(20_000_000);
  const leaving = new AbortController();
  const response = await fetch(`${server.address}/v1/backups/${id}/file`, { headers: { "X-API-Key": server.key }, signal: leaving.signal });
  const reader = response.body!.getReader();
  await reader.read();
  const isOpen = () => openFilesOf(server.pid).some((path) => path.includes(id));
  expect(isOpen()).toBe(true);
  leaving.abort();
  await until("the file to be closed", () => !isOpen());

  await begin(server);
  const children = childrenOf(server.pid);
  expect(await server.stop()).toBe(0);
  expect(children.filter(isCairn)).toEqual([]);
  expect(backupsIn(server.dataDirectory).filter((name) => name.startsWith("."))).toEqual([]);
  const [name = ""] = backupsIn(server.dataDirectory).filter((one) => one.startsWith(id));
  expect((statSync(join(server.dataDirectory, "backups", name)).mode & 0o777).toString(8)).toBe("600");
});

function childrenOf(pid: number): number[] {
  return Bun.spawnSync(["ps", "-o", "pid=", "--ppid", `${pid}`])
    .stdout.toString()
    .split("\n")
    .map(Number)
    .filter((child) => child > 0);
}

/** A process that has ended, and waits for nobody but init, is none. */
function isCairn(pid: number): boolean {
  return /^[^Z\s]/.test(stateOf(pid));
}

function stateOf(pid: number): string {
  return Bun.spawnSync(["ps", "-o", "stat=", "-p", `${pid}`]).stdout.toString();
}

function openFilesOf(pid: number): string[] {
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory).flatMap((name) => {
    try {
      return [readlinkSync(join(directory, name))];
    } catch {
      return [];
    }
  });
}
