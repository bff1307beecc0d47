import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MOUNTS, mountCommand, needs, ownMounts } from "../support/platform.ts";
import { failed, runCairn, scratchDirectory, startProcess, succeeded, type Ended } from "../support/process.ts";

const NOBODY = 65_534;

const scratch = scratchDirectory();
const whole = join(scratch.path, "whole");
let sessionId: string;

beforeAll(async () => {
  await using server = await startProcess({ dataDirectory: whole });
  const session = await server.createSession();
  sessionId = session.id;
  await server.addMemory(session.id, "The boat is moored at pier nine.");
  await server.stop();
});
afterAll(() => scratch[Symbol.dispose]());

/** The command that runs another one for which nothing in a directory can be written. Root may do so whatever the modes say. */
function readOnly(dataDirectory: string): string[] {
  const mounts = ownMounts("a data directory on a disk that cannot be written to");
  if (mounts !== undefined) {
    const script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" "$0" && exec "$@"';
    return [...mounts, "sh", "-c", script, dataDirectory];
  }
  const isRoot = process.geteuid?.() === 0;
  for (const path of [...readdirSync(dataDirectory, { recursive: true, encoding: "utf8" }), "."].map((name) => join(dataDirectory, name))) {
    if (isRoot) chownSync(path, NOBODY, NOBODY);
    chmodSync(path, statSync(path).isDirectory() ? 0o500 : 0o400);
  }
  if (!isRoot) return ["env", "-i"];
  chownSync(join(dataDirectory, ".."), NOBODY, NOBODY);
  return ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"];
}

for (const { name, hasLock } of [
  { name: "with the lock file of the last server", hasLock: true },
  { name: "of which only the store file is left", hasLock: false },
]) {
  test(`what only reads works on a data directory that cannot be written to, ${name}; what writes says that it cannot`, async () => {
    using directory = scratchDirectory();
    const data = directory.at("data");
    if (hasLock) cpSync(whole, data, { recursive: true });
    else {
      mkdirSync(join(data, "store"), { recursive: true, mode: 0o700 });
      cpSync(join(whole, "store", "data.mdb"), join(data, "store", "data.mdb"));
      chmodSync(data, 0o700);
    }
    const before = readdirSync(data, { recursive: true, encoding: "utf8" }).toSorted();
    const through = readOnly(data);
    const run = (...args: string[]) => runCairn([...args, "--data-dir", data], { through });
    const backup = directory.at("backup");
    expect(await run("doctor")).toMatchObject(succeeded(/^Nothing is wrong: /));
    expect(await run("export")).toMatchObject({ code: 0, stdout: expect.stringContaining(sessionId.slice("sess_".length)) as string });
    expect(await run("export", "--salvage")).toMatchObject({ code: 0, stderr: "Nothing is left out.\n" });
    expect(await run("keys", "list")).toMatchObject(succeeded(/^ID .*\nkey_/));
    expect(await run("backup", backup)).toMatchObject({ code: 0, stderr: "" });
    const writing = [["serve", "--port", "0"], ["keys", "create"], ["doctor", "--fix"], ["rebuild-index"], ["restore", backup, "--force"]];
    for (const args of writing) {
      const ended = await run(...args);
      expect({ args, ...ended }).toEqual({ args, ...failed(/^cairn: .*(cannot be (written|locked)|is read-only).*\.\n$/) });
      expect(ended.stderr).not.toMatch(/\bE[A-Z]{3,}\b/);
    }
    expect(readdirSync(data, { recursive: true, encoding: "utf8" }).toSorted()).toEqual(before);
  });
}

/** The command that runs another one with a data directory on a small disk, filled as the script says. */
function onSmallDisk(dataDirectory: string, script: string): string[] {
  const prepare = `mount -t tmpfs -o size=48m tmpfs "$0" && cp -r ${whole}/. "$0" && (${script}) && exec "$@"`;
  return [...mountCommand(), "sh", "-c", prepare, dataDirectory];
}

needs(MOUNTS)("on a disk without any room a copy says so, and without room for its lock file a start too", async () => {
  using directory = scratchDirectory();
  const command = (through: string[], ...args: string[]) => runCairn([...args, "--data-dir", directory.path], { through });
  const filled = onSmallDisk(directory.path, 'dd if=/dev/zero of="$0/fill" bs=4k 2>/dev/null; true');
  const full = onSmallDisk(directory.path, 'rm "$0/store/lock.mdb"; dd if=/dev/zero of="$0/fill" bs=4k 2>/dev/null; true');
  for (const name of ["backup", "export"]) {
    const says = /^cairn: \/.*\/copy cannot be written: (the disk is full|No space left on device)\.\n$/;
    expect({ name, ...(await command(filled, name, directory.at("copy"))) }).toEqual({ name, ...failed(says) });
  }
  const says = `cairn: The files of the store in ${directory.path} cannot be made: the disk is full.\n`;
  for (const args of [
    ["serve", "--port", "0"],
    ["keys", "create"],
  ]) {
    expect({ args, ...(await command(full, ...args)) }).toEqual({ args, ...failed(says) });
  }
});

test("a data directory that its user alone may look into is not taken for one without a store by another", async () => {
  using directory = scratchDirectory();
  const data = directory.at("data");
  cpSync(whole, data, { recursive: true });
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) chmodSync(directory.path, 0o755);
  chmodSync(data, isRoot ? 0o700 : 0);
  const through = isRoot ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] : ["env", "-i"];
  try {
    for (const args of [["doctor"], ["export"], ["export", "--salvage"], ["keys", "list"], ["keys", "create"], ["serve", "--port", "0"]]) {
      const ended = await runCairn([...args, "--data-dir", data], { through });
      const says = expect.stringMatching(
        /^cairn: .*data cannot be .*: its mode, or that of a directory above it, does not allow it\./,
      ) as string;
      expect({ args, ...ended }).toEqual({ args, ...failed(says) });
    }
  } finally {
    chmodSync(data, 0o700);
  }
});

test("a path that is none is a sentence without a code of the system, and leaves nothing behind", async () => {
  using directory = scratchDirectory();
  writeFileSync(directory.at("file"), "x\n");
  using other = scratchDirectory();
  const pipe = join(other.path, "pipe");
  Bun.spawnSync(["mkfifo", pipe]);
  const cases: { args: string[]; says: string }[] = [
    { args: ["serve", "--port", "0", "--data-dir", directory.at("file")], says: "cannot be written to: there is a file of that name." },
    {
      args: ["serve", "--port", "0", "--data-dir", directory.at("file/below")],
      says: "cannot be written to: a part of the path is a file.",
    },
    { args: ["keys", "create", "--data-dir", directory.at("file")], says: "cannot be written to: there is a file of that name." },
    { args: ["doctor", "--data-dir", directory.at("file/below")], says: "There is no store in " },
    {
      args: ["restore", directory.at("none"), "--data-dir", directory.at("new/deep")],
      says: "cannot be read: there is nothing of that name.",
    },
    {
      args: ["restore", directory.at("file/below"), "--data-dir", directory.at("new/deep")],
      says: "cannot be read: a part of the path is a file.",
    },
    { args: ["restore", directory.at("file"), "--data-dir", directory.at("new/deep")], says: "is not a Cairn backup" },
    {
      args: ["import", directory.at("none"), "--data-dir", directory.at("new/deep")],
      says: "cannot be read: there is nothing of that name.",
    },
    { args: ["import", directory.path, "--data-dir", directory.at("new/deep")], says: "is not a file but a directory." },
    { args: ["import", directory.at("file"), "--data-dir", directory.at("new/deep")], says: "Line 1 cannot be imported: it is not JSON." },
    {
      args: ["import", directory.at("file"), "--data-dir", directory.at("file")],
      says: "cannot be written to: there is a file of that name.",
    },
    { args: ["backup", directory.at("file/below"), "--data-dir", whole], says: `There is no directory ${directory.at("file")}.` },
    { args: ["backup", directory.path, "--force", "--data-dir", whole], says: "is not a file but a directory." },
    { args: ["export", pipe, "--force", "--data-dir", whole], says: "is not a file but something else." },
    { args: ["import", "/dev/null", "--data-dir", directory.at("new/deep")], says: "is not a file but a device." },
    {
      args: ["serve", "--port", "0", "--tls-cert", directory.at("none"), "--tls-key", directory.at("none"), "--data-dir", whole],
      says: "none cannot be read: there is nothing of that name.",
    },
    { args: ["export", "/proc/none", "--data-dir", whole], says: "/proc cannot be written to: " },
  ];
  for (const { args, says } of cases) {
    const { code, stdout, stderr }: Ended = await runCairn(args);
    expect({ args, code, stdout, stderr }).toEqual({ args, ...failed(expect.stringContaining(says)) });
    expect(stderr).not.toMatch(/\bE[A-Z]{3,}\b|\n./);
    expect(readdirSync(directory.path)).toEqual(["file"]);
  }
  expect(existsSync(directory.at("new"))).toBe(false);
});
