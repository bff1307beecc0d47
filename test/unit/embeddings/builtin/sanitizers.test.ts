import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENCODER_ARITHMETIC } from "../../../../scripts/build-native.ts";
import { findWeights } from "../../../../src/embeddings/builtin/native.ts";
import { needs, SANITIZERS } from "../../../support/platform.ts";
import { longRounds } from "../../../support/rounds.ts";

const ROOT = join(import.meta.dir, "../../../..");
const SOURCES = ["encoder", "kernels", "tokenizer", "weights"].map((name) => join(ROOT, "src/native", `${name}.cc`));
/** The compiler alone takes minutes on a machine that is busy. */
const TIMEOUT_MS = 3_600_000;
const SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", "-g", "-w"];

async function output(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return `${stdout}${stderr.slice(0, 5_000)}${(await child.exited) === 0 ? "" : `ended with ${child.exitCode}`}`;
}

async function fuzz(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "cairn-encoder-fuzz-"));
  const program = join(directory, "fuzz");
  const rounds = longRounds(50, 20_000);
  const seed = process.env["CAIRN_TEST_SEED"] ?? String(Math.trunc(Math.random() * 2 ** 32));
  const source = join(ROOT, "test/support/encoder-fuzz.cc");
  try {
    const flags = ["-std=c++17", ...SANITIZE, ...ENCODER_ARITHMETIC, `-I${join(ROOT, "src/native")}`];
    expect(await output([process.env["CXX"] ?? "c++", ...flags, source, ...SOURCES, "-o", program])).toBe("");
    const weights = findWeights().flatMap(({ path, bytes }) => [path, String(bytes)]);
    expect({ seed, said: await output([program, seed, String(rounds), ...weights]) }).toEqual({ seed, said: `${rounds} rounds\n` });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

needs(SANITIZERS)("texts made up by chance break neither the encoder nor the rules of C++, and have one vector", fuzz, TIMEOUT_MS);
