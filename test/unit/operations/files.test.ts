import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeAtomically } from "../../../src/operations/files.ts";
import { scratchDirectory } from "../../support/process.ts";

/** As on macOS. */
const WITHOUT_HANDLES = { force: false, handles: "/nowhere" };

const write = (path: string) =>
  writeAtomically(path, WITHOUT_HANDLES, async (directory) => {
    const file = join(directory, "draft");
    writeFileSync(file, "whole");
    return Promise.resolve(file);
  });

test("where the system has no paths of open directories a file is made whole in a directory of its owner's, and leaves nothing else", async () => {
  using scratch = scratchDirectory();
  mkdirSync(scratch.at("own"), { mode: 0o700 });
  await write(scratch.at("own/file"));
  expect(readFileSync(scratch.at("own/file"), "utf8")).toBe("whole");
  expect([readdirSync(scratch.at("own")), statSync(scratch.at("own/file")).mode & 0o777]).toEqual([["file"], 0o600]);
  const failure = writeAtomically(scratch.at("own/other"), WITHOUT_HANDLES, () => Promise.reject(new Error("no more")));
  await expect(failure).rejects.toThrow("no more");
  expect(readdirSync(scratch.at("own"))).toEqual(["file"]);
});

test("there a directory in which others could put another one in its place is refused, and nothing is left in it", async () => {
  using scratch = scratchDirectory();
  mkdirSync(scratch.at("shared"));
  chmodSync(scratch.at("shared"), 0o777);
  const refused = write(scratch.at("shared/file"));
  await expect(refused).rejects.toThrow(
    `Others can replace what is written to ${scratch.at("shared")}. Write to a directory that only you can write to.`,
  );
  expect(readdirSync(scratch.at("shared"))).toEqual([]);
});
