/**
 * `cairn selftest` of the executable.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { filesWith } from "../../src/cli/selftest/erasure.ts";
import { runCairn, scratchDirectory } from "../support/process.ts";

test("an executable finds on this machine what the guarantees say, asks nothing of the environment, and leaves nothing", async () => {
  using scratch = scratchDirectory();
  // They would be those of a server that is in use.
  const environment = { CAIRN_DATA_DIR: scratch.at("none"), CAIRN_PORT: "1", CAIRN_EMBEDDING_PROVIDER: "words" };
  const { code, stdout, stderr } = await runCairn(["selftest", "--dir", scratch.path], { environment });
  const lines = stdout.trimEnd().split("\n");
  expect(lines.map((line) => line.replaceAll(/\d+/g, "N"))).toEqual([
    "ok      kill -N: N steps acknowledged before N kills: none lost, none half there",
    "ok      backup: N records backed up while a server runs, and restored: all the same, and no finding of cairn doctor",
    "ok      erasure: N sessions of a user erased: none of their texts is in a file of the data directory",
    "ok      recall: of N questions N have the memory that answers them first, N among three",
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(readdirSync(scratch.path)).toEqual([]);
});

test("flags of other commands are refused: its servers are its own", async () => {
  const { code, stderr } = await runCairn(["selftest", "--port", "4711"]);
  expect(code).toBe(2);
  expect(stderr).toContain("cairn selftest takes no --port");
});

test("a text is found in any file below a directory, wherever it stands", async () => {
  using scratch = scratchDirectory();
  await Bun.write(scratch.at("a/b/deep"), new Uint8Array([0, 255, ...Buffer.from("xmark-1y")]));
  await Bun.write(scratch.at("other"), "mark-");
  expect(filesWith(scratch.path, ["mark-2", "mark-1"])).toEqual([scratch.at("a/b/deep")]);
});
