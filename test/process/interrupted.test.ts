/**
 * Commands for the whole store that end before they are done: told to, or killed.
 *
 * @module
 */
import { expect } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { buildBinary } from "../support/binary.ts";
import { runCairn, scratchDirectory, startProcess, until } from "../support/process.ts";
import { needs, onLinux, PS } from "../support/platform.ts";

const it = onLinux("paths of open directories", PS);

/** A data directory of 20 MB. */
async function fillStore(dataDirectory: string): Promise<void> {
  await using server = await startProcess({ dataDirectory });
  const large = "x".repeat(900_000);
  for (let step = 0; step < 22; step++) await server.createSession({ initial_state: { large } });
}

const draftsIn = (directory: string) => readdirSync(directory).filter((name) => name.startsWith("."));

const isStopped = (pid: number) =>
  Bun.spawnSync(["ps", "-o", "stat=", "-p", `${pid}`])
    .stdout.toString()
    .startsWith("T");

/** Starts a command and stops it while it writes a draft to the directory; again when it was done before that was seen. */
async function stoppedWhileWriting(args: readonly string[], directory: string, file: string) {
  const before = draftsIn(directory);
  for (;;) {
    const child = Bun.spawn([await buildBinary(), ...args], { env: {}, stdout: "ignore", stderr: "ignore" });
    while (child.exitCode === null) {
      const draft = draftsIn(directory).find((name) => !before.includes(name));
      if (draft !== undefined && sizeOf(join(directory, draft, file)) > 0) {
        child.kill("SIGSTOP");
        await until("the command to be stopped", () => isStopped(child.pid));
        if (existsSync(join(directory, draft, file))) return { child, draft };
        child.kill("SIGCONT");
        await child.exited;
      }
      await Bun.sleep(0);
    }
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

for (const { command, file } of [
  { command: "backup", file: "data.mdb" },
  { command: "export", file: "export" },
]) {
  needs(PS)(`a cairn ${command} that is told to stop ends at once, with its draft`, async () => {
    using directory = scratchDirectory();
    await fillStore(directory.at("data"));
    for (const [signal, code] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      const args = [command, directory.at("copy"), "--force", "--data-dir", directory.at("data")];
      const ended = await until("a command to hear of it before it is done", async () => {
        const { child } = await stoppedWhileWriting(args, directory.path, file);
        child.kill(signal);
        child.kill("SIGCONT");
        return (await child.exited) || undefined;
      });
      expect({ ended, left: draftsIn(directory.path) }).toEqual({ ended: code, left: [] });
    }
  });

  needs(PS)(`what a killed cairn ${command} has left is removed by the next to the same name, and nothing of one that runs`, async () => {
    using directory = scratchDirectory();
    await fillStore(directory.at("data"));
    const args = [command, directory.at("copy"), "--data-dir", directory.at("data")];
    const killed = await stoppedWhileWriting(args, directory.path, file);
    killed.child.kill("SIGKILL");
    await killed.child.exited;
    const running = await stoppedWhileWriting([...args.with(1, directory.at("copy-2")), "--force"], directory.path, file);
    expect(draftsIn(directory.path).toSorted()).toEqual([killed.draft, running.draft].toSorted());

    expect(await runCairn(args.with(1, directory.at("other")))).toMatchObject({ code: 0 });
    expect(draftsIn(directory.path).toSorted()).toEqual([killed.draft, running.draft].toSorted());
    expect(await runCairn(args)).toMatchObject({ code: 0 });
    expect(await runCairn(args.with(1, directory.at("copy-2")))).toMatchObject({ code: 0 });
    expect(draftsIn(directory.path)).toEqual([running.draft]);
    running.child.kill("SIGCONT");
    expect({ code: await running.child.exited, left: draftsIn(directory.path) }).toEqual({ code: 0, left: [] });
  });
}

/** An unprivileged user that every Linux has. */
const NOBODY = 65_534;

/** Makes a draft as somebody else would who wants another file changed: where this user may not give it away, it is one that all may write to. */
function plantDraft(path: string, links: Record<string, string>): void {
  mkdirSync(path);
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(path, name));
  chmodSync(path, 0o777);
  if (process.geteuid?.() === 0) chownSync(path, NOBODY, NOBODY);
}

for (const { command, file } of [
  { command: "backup", file: "data.mdb" },
  { command: "export", file: "export" },
]) {
  it(`a cairn ${command} into a directory of somebody else follows no link that was planted there, before it or while it writes`, async () => {
    using directory = scratchDirectory();
    const shared = directory.at("shared");
    await fillStore(directory.at("data"));
    writeFileSync(directory.at("victim"), "untouched");
    chmodSync(directory.at("victim"), 0o644);
    mkdirSync(shared);
    chmodSync(shared, 0o777);
    if (process.geteuid?.() === 0) chownSync(shared, NOBODY, NOBODY);
    const untouched = () => ({
      victim: [readFileSync(directory.at("victim"), "utf8"), statSync(directory.at("victim")).mode & 0o777],
      isMade: existsSync(directory.at("made")),
    });
    const expected = { victim: ["untouched", 0o644], isMade: false };
    plantDraft(join(shared, ".copy-aaaaaa.draft"), { "serve.lock": directory.at("victim") });
    plantDraft(join(shared, ".copy-bbbbbb.draft"), { "serve.lock": directory.at("made") });
    const args = [command, join(shared, "copy"), "--force", "--data-dir", directory.at("data")];
    expect(await runCairn(args)).toMatchObject({ code: 0 });
    expect({ ...untouched(), drafts: draftsIn(shared).length }).toEqual({ ...expected, drafts: 2 });

    const running = await stoppedWhileWriting(args, shared, file);
    renameSync(join(shared, running.draft), join(shared, "moved"));
    plantDraft(join(shared, running.draft), { [file]: directory.at("victim"), "serve.lock": directory.at("made") });
    running.child.kill("SIGCONT");
    expect(await running.child.exited).toBe(0);
    expect(untouched()).toEqual(expected);
    expect(readdirSync(join(shared, running.draft)).toSorted()).toEqual([file, "serve.lock"].toSorted());
    expect(await runCairn(["keys", "list", "--data-dir", directory.at("data")])).toMatchObject({ code: 0 });
    expect(statSync(join(shared, "copy")).mode & 0o777).toBe(0o600);
  });
}

needs(PS)(
  "an import that is told to stop leaves nothing, and what a killed one has left goes with the next start of the server",
  async () => {
    using directory = scratchDirectory();
    const dataDirectory = directory.path;
    const importing = async () => {
      const command = [await buildBinary(), "import", "--data-dir", dataDirectory];
      const child = Bun.spawn(command, { env: {}, stdin: "pipe", stdout: "ignore", stderr: "ignore" });
      await until("the import to begin", () => existsSync(join(dataDirectory, "incoming/store/data.mdb")));
      return child;
    };
    for (const [signal, code] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      const child = await importing();
      child.kill(signal);
      expect({ code: await child.exited, left: existsSync(join(dataDirectory, "incoming")) }).toEqual({ code, left: false });
    }
    const child = await importing();
    child.kill("SIGKILL");
    await child.exited;
    expect(existsSync(join(dataDirectory, "incoming"))).toBe(true);
    await using server = await startProcess({ dataDirectory });
    expect({ status: (await server.get("/health")).status, left: existsSync(join(dataDirectory, "incoming")) }).toEqual({
      status: 200,
      left: false,
    });
  },
);
