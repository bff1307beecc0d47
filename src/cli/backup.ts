/**
 * `cairn backup`: the whole store in one file, beside a running server too.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import { assertNotOwn } from "../operations/store-file.ts";
import { readCommandLine, type Prepare } from "./command-line.ts";
import { endWhenInterrupted } from "./interrupted.ts";
import { print } from "./print.ts";

export async function backup(args: readonly string[], prepare: Prepare): Promise<number> {
  const {
    config,
    file = "",
    has,
  } = readCommandLine({ command: "backup", file: "needed", switches: ["force"], needsStore: true, checkFile: assertNotOwn }, args, prepare);
  endWhenInterrupted();
  const { writeBackup } = await import("../operations/backup.ts");
  const { withStore } = await import("../operations/with-store.ts");
  const { bytes, sha256 } = await withStore(config.dataDirectory, systemClock, (store) =>
    writeBackup(store, systemClock, file, { force: has("force") }),
  );
  await print(`Wrote ${file}: ${bytes.toLocaleString("en")} bytes of store, SHA-256 ${sha256}`);
  return 0;
}
