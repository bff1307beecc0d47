/**
 * `cairn bench load` of the executable, on a store of its own and on a server that is named.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { KEY, runCairn, scratchDirectory, startProcess } from "../support/process.ts";

const SMALL = ["--connections", "2", "--sessions", "3", "--seconds", "1"];

test("on a store of its own the loop and the step are measured with the server's processor time, and nothing is left", async () => {
  using scratch = scratchDirectory();
  const { code, stdout, stderr } = await runCairn(["bench", "load", ...SMALL, "--dir", scratch.path]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [head, , , loop, step, , ratio] = stdout.split("\n");
  expect(head).toMatch(/^cairn \S+: 3 sessions; each measured 3 times, 1 s in all$/);
  expect(loop).toMatch(/^loop of 4 requests +2( +[\d.]+){4} +0 +[\d.]+$/);
  expect(step).toMatch(/^step of 2 requests +2( +[\d.]+){4} +0 +[\d.]+$/);
  expect(ratio).toMatch(/^2 at once: a step takes [\d.]+ of the time of a loop \(p50\), [\d.]+ of its processor time$/);
  expect(readdirSync(scratch.path)).toEqual([]);
});

test("of a server that is named the sessions that were made are deleted, and its processor time is not known", async () => {
  await using cairn = await startProcess();
  const environment = { CAIRN_API_KEY: KEY };
  const { code, stdout } = await runCairn(["bench", "load", ...SMALL, "--url", cairn.address, "--json"], { environment });
  expect(code).toBe(0);
  const { measured } = JSON.parse(stdout);
  const figures = { errors: 0, cpuMsEach: null, p50: expect.any(Number), perSecond: expect.any(Number) };
  expect(measured).toMatchObject([{ connections: 2, loop: figures, step: figures }]);
  expect(await cairn.all("/v1/sessions")).toEqual([]);
});

test("wrong flags are refused with what may stand there", async () => {
  const refused: readonly [readonly string[], string][] = [
    [["--connections", "1,x"], "--connections must be a whole number from 1 to 1024; got x"],
    [["--sessions", "0"], "--sessions must be a whole number from 1 to 100000; got 0"],
    [["--port", "1"], "cairn bench load takes no --port: its server is its own, or that of --url"],
    [["file"], "cairn bench load takes no file"],
  ];
  for (const [args, said] of refused) {
    const { code, stderr } = await runCairn(["bench", "load", ...args]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: `cairn: ${said}\nTry: cairn bench --help\n` });
  }
});
