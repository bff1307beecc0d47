/**
 * Libraries of C that tests put in the place of the system's.
 *
 * @module
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { presentCompiler } from "../../scripts/compiler.ts";
import { hostTarget } from "../../scripts/targets.ts";

export interface Library extends Disposable {
  readonly path: string;
}

/** The one that Cairn's own native parts are made with. */
const compiler = await presentCompiler(hostTarget(), "system");

/** Compiles C code. */
export function compileLibrary(code: string): Library {
  const directory = mkdtempSync(join(tmpdir(), "cairn-library-"));
  const path = join(directory, "library.so");
  const source = join(directory, "library.c");
  writeFileSync(source, code);
  const command = [...compiler.c, ...compiler.flags, "-shared", "-fPIC", "-O1", "-Wall", source, "-o", path, "-ldl"];
  const { exitCode, stderr } = Bun.spawnSync(command, { env: { ...process.env, ...compiler.environment } });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  return { path, [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
}
