import { expect, test } from "bun:test";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { claim } from "../../../src/storage/claim.ts";
import { scratchDirectory } from "../../support/process.ts";

const refusalOf = (directory: string): string => {
  try {
    claim(directory)();
  } catch (error) {
    return String(error);
  }
  return "none";
};

test("a directory is one claimant's at a time; whoever comes second is told what may have it", () => {
  using directory = scratchDirectory();
  const release = claim(directory.path);
  expect(refusalOf(directory.path)).toBe(
    `DirectoryInUseError: Another Cairn is using ${directory.path}: a server, or a command that changes all of it, such as restore, import or doctor --fix. Stop it or let it end first, or give this one a --data-dir of its own.`,
  );
  release();
  expect(refusalOf(directory.path)).toBe("none");
});

test("a directory that cannot be claimed for another reason is not said to be in use", () => {
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

test("a directory on a disk that takes no more bytes is claimed too, by one process at a time", () => {
  using directory = scratchDirectory();
  const module = join(import.meta.dir, "../../../src/storage/claim.ts");
  const script = `import { claim } from "${module}"; claim("${directory.path}"); process.stdout.write("claimed");`;
  const elsewhere = () => {
    // Of no bytes, since a full disk has room for names only.
    const child = Bun.spawnSync(["prlimit", "--fsize=0", process.execPath, "--eval", script]);
    return child.stdout.toString() || child.stderr.toString();
  };
  expect(elsewhere()).toBe("claimed");
  const release = claim(directory.path);
  expect(elsewhere()).toContain("DirectoryInUseError");
  release();
  expect(elsewhere()).toBe("claimed");
});
