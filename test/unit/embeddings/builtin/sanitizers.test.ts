import { expect } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ENCODER_ARITHMETIC, filesBelow } from "../../../../scripts/build-native.ts";
import { findWeights } from "../../../../src/embeddings/builtin/native.ts";
import { needs, SANITIZERS } from "../../../support/platform.ts";
import { longRounds } from "../../../support/rounds.ts";

const ROOT = join(import.meta.dir, "../../../..");
const NATIVE = join(ROOT, "src/native");
const SOURCES = ["encoder", "kernels", "tokenizer", "weights"].map((name) => join(NATIVE, `${name}.cc`));
const FUZZ = join(ROOT, "test/support/encoder-fuzz.cc");
const BUILT = join(ROOT, ".tools/encoder-fuzz");
/** The compiler alone takes minutes on a machine that is busy. */
const TIMEOUT_MS = 3_600_000;
const SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", "-g", "-w"];

async function output(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return `${stdout}${stderr.slice(0, 5_000)}${(await child.exited) === 0 ? "" : `ended with ${child.exitCode}`}`;
}

/** Compiles the program, unless an earlier run has compiled the same: that takes most of the test's time. @returns its path */
async function build(): Promise<string> {
  const compiler = process.env["CXX"] ?? "c++";
  const flags = ["-std=c++17", ...SANITIZE, ...ENCODER_ARITHMETIC, `-I${NATIVE}`];
  const key = createHash("sha256").update(JSON.stringify([flags, await output([compiler, "--version"])]));
  for (const path of [FUZZ, ...filesBelow(NATIVE)]) key.update(readFileSync(path));
  const program = join(BUILT, key.digest("hex"));
  if (existsSync(program)) return program;
  rmSync(BUILT, { recursive: true, force: true });
  mkdirSync(BUILT, { recursive: true });
  expect(await output([compiler, ...flags, FUZZ, ...SOURCES, "-o", `${program}.new`])).toBe("");
  renameSync(`${program}.new`, program);
  return program;
}

async function fuzz(): Promise<void> {
  const program = await build();
  const rounds = longRounds(50, 20_000);
  const seed = process.env["CAIRN_TEST_SEED"] ?? String(Math.trunc(Math.random() * 2 ** 32));
  const weights = findWeights().flatMap(({ path, bytes }) => [path, String(bytes)]);
  expect({ seed, said: await output([program, seed, String(rounds), ...weights]) }).toEqual({ seed, said: `${rounds} rounds\n` });
}

needs(SANITIZERS)("texts made up by chance break neither the encoder nor the rules of C++, and have one vector", fuzz, TIMEOUT_MS);
