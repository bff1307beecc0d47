/**
 * The executable, for tests of what only a process can show: signals, crashes, start-up.
 *
 * @module
 */
import { dirname, join } from "node:path";

const root = dirname(dirname(import.meta.dir));

let built: Promise<string> | undefined;

/**
 * Builds `dist/cairn` unless it is current, and gives its path; or that in CAIRN_TEST_EXECUTABLE, which is to be tested as it is.
 *
 * `scripts/test` has built it already, so only a run of single tests waits for it: some seconds, and half a minute when
 * the native add-ons were never built.
 */
export function buildBinary(): Promise<string> {
  built ??= Promise.resolve(process.env["CAIRN_TEST_EXECUTABLE"] ?? build());
  return built;
}

async function build(): Promise<string> {
  const child = Bun.spawn([process.execPath, "scripts/build.ts", "--if-changed"], {
    cwd: root,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`scripts/build.ts failed:\n${output}`);
  return join(root, "dist/cairn");
}
