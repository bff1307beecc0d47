import { expect, test } from "bun:test";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { lockDirectory } from "../../../src/storage/lmdb/directory/directory-lock.ts";
import { scratchDirectory } from "../../support/process.ts";

const refusalOf = (directory: string): string => {
  try {
    using _ = lockDirectory(directory);
  } catch (error) {
    return String(error);
  }
  return "none";
};

test("a directory is locked by one process at a time, and the error of the second names what may have locked it", () => {
  using directory = scratchDirectory();
  const lock = lockDirectory(directory.path);
  expect(refusalOf(directory.path)).toBe(
    `DirectoryInUseError: Another Cairn is using ${directory.path}: a server, a cairn mcp, or a command that changes all of it, such as restore, import or doctor --fix. Stop it or let it end first, or give this one a --data-dir of its own.`,
  );
  lock[Symbol.dispose]();
  expect(refusalOf(directory.path)).toBe("none");
});

test("a directory that cannot be locked for another reason is not said to be in use", () => {
  using directory = scratchDirectory();
  mkdirSync(join(directory.path, "serve.lock"));
  expect(refusalOf(directory.path)).toStartWith(`Error: ${join(directory.path, "serve.lock")} cannot be locked: `);
});

test("a lock that is a link to a file elsewhere is refused, and nothing is made there", () => {
  using directory = scratchDirectory();
  symlinkSync(join(directory.path, "elsewhere"), join(directory.path, "serve.lock"));
  expect(refusalOf(directory.path)).toStartWith(`Error: ${join(directory.path, "serve.lock")} cannot be locked: `);
  expect(existsSync(join(directory.path, "elsewhere"))).toBe(false);
});

test("a directory on a disk that takes no more bytes is locked too, by one process at a time", () => {
  using directory = scratchDirectory();
  const module = join(import.meta.dir, "../../../src/storage/lmdb/directory/directory-lock.ts");
  const script = `import { lockDirectory } from "${module}"; lockDirectory("${directory.path}"); process.stdout.write("locked");`;
  const elsewhere = () => {
    // Of no bytes, since a full disk has room for names only.
    const child = Bun.spawnSync(["sh", "-c", 'ulimit -f 0; exec "$0" "$@"', process.execPath, "--eval", script]);
    return child.stdout.toString() || child.stderr.toString();
  };
  expect(elsewhere()).toBe("locked");
  const lock = lockDirectory(directory.path);
  expect(elsewhere()).toContain("Another Cairn is using");
  lock[Symbol.dispose]();
  expect(elsewhere()).toBe("locked");
});
