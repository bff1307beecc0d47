/**
 * Libraries of C that tests put in the place of the system's.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Library extends Disposable {
  readonly path: string;
}

/** Compiles C code with the compiler that Cairn's own native parts are made with. */
export function compileLibrary(code: string): Library {
  const directory = mkdtempSync(join(tmpdir(), "cairn-library-"));
  const path = join(directory, "library.so");
  const compiler = process.env["CXX"] ?? "c++";
  const { exitCode, stderr } = Bun.spawnSync([compiler, "-x", "c", "-shared", "-fPIC", "-O1", "-Wall", "-", "-o", path, "-ldl"], {
    stdin: Buffer.from(code),
  });
  if (exitCode !== 0) throw new Error(`${compiler} cannot compile it: ${stderr.toString()}`);
  return { path, [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
}
