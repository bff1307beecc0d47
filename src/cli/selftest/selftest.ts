/**
 * `cairn selftest`: checks guarantees of this very executable on this machine, with servers of its own in a temporary directory.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseFlags, UsageError } from "../../config.ts";
import { messageOf } from "../../lib/errors.ts";
import { cleanUpAfter } from "../../operations/files.ts";
import { escaped, print } from "../print.ts";
import { checkBackup } from "./backup.ts";
import { checkDurability } from "./durability.ts";
import { checkErasure } from "./erasure.ts";
import { makeKey } from "./own-server.ts";
import { checkRecall } from "./recall.ts";

/** In the order of running: the backup is of what was written before. Each says what it has seen. */
const CHECKS: readonly (readonly [name: string, check: (directory: string, key: string) => Promise<string>])[] = [
  ["kill -9", checkDurability],
  ["backup", checkBackup],
  ["erasure", checkErasure],
  ["recall", checkRecall],
];

export async function selftest(args: readonly string[]): Promise<number> {
  const { flags } = parseFlags(args, { flags: ["dir"] });
  const unknown = Object.keys(flags).find((name) => name !== "dir");
  if (unknown !== undefined) throw new UsageError(`cairn selftest takes no --${unknown}: its servers are its own`);
  const directory = mkdtempSync(join(flags["dir"] ?? tmpdir(), "cairn-selftest-"));
  using _ = cleanUpAfter(() => rmSync(directory, { recursive: true, force: true }));
  const key = makeKey();
  let failed = 0;
  for (const [name, check] of CHECKS) {
    try {
      await print(`ok      ${name}: ${await check(directory, key)}`);
    } catch (error) {
      failed++;
      await print(`BROKEN  ${name}: ${escaped(messageOf(error))}`);
    }
  }
  return failed === 0 ? 0 : 1;
}
