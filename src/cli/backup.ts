/**
 * `cairn backup`: the whole store in one file, also while a server is running.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import { writeBackup } from "../operations/backup.ts";
import { withStore } from "../operations/with-store.ts";
import type { CommandLine } from "./command-line.ts";
import { print } from "./print.ts";

export async function backup({ config, file = "", has }: CommandLine): Promise<number> {
  using _ = endWithParent();
  const { bytes, sha256 } = await withStore(config.dataDirectory, systemClock, (store) =>
    writeBackup(store, systemClock, file, { force: has("force") }),
  );
  await print(`Wrote ${file}: ${bytes.toLocaleString("en")} bytes of store, SHA-256 ${sha256}`);
  return 0;
}

/** A server that is gone waits for no backup any more; of a command that nobody holds a connection to this is nothing. */
function endWithParent(): Disposable {
  const end = () => process.exit(1);
  process.once("disconnect", end);
  return {
    [Symbol.dispose]() {
      process.off("disconnect", end);
      if (process.connected) process.disconnect?.();
    },
  };
}
