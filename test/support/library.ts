/**
 * Libraries of C that tests put in the place of the system's.
 *
 * @module
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { presentCompiler } from "../../scripts/compiler.ts";
import { hostTarget } from "../../scripts/targets.ts";

/** The one that Cairn's own native parts are made with. */
const compiler = await presentCompiler(hostTarget(), "system");
const LIBRARIES = join(import.meta.dir, "../../.tools/test-libraries");

/** Compiles C code, unless an earlier run has compiled the same. @returns the path of the library */
export function compileLibrary(code: string): string {
  const flags = [...compiler.flags, "-shared", "-fPIC", "-O1", "-Wall"];
  const key = createHash("sha256")
    .update(JSON.stringify([code, flags, compiler.version]))
    .digest("hex");
  const path = join(LIBRARIES, `${key}.so`);
  if (existsSync(path)) return path;
  mkdirSync(LIBRARIES, { recursive: true });
  const [source, made] = [join(LIBRARIES, `${key}.c`), join(dirname(path), `${key}-${randomUUID()}.so`)];
  writeFileSync(source, code);
  const command = [...compiler.c, ...flags, source, "-o", made, "-ldl"];
  const { exitCode, stderr } = Bun.spawnSync(command, { env: { ...process.env, ...compiler.environment } });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  renameSync(made, path);
  return path;
}
