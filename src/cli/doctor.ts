/**
 * `cairn doctor`: says what is wrong with a store, and mends it when asked to.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import type { Finding } from "../operations/report.ts";
import { readCommandLine, type Prepare } from "./command-line.ts";
import { escaped, print } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function doctor(args: readonly string[], prepare: Prepare): Promise<number> {
  const { config, has } = readCommandLine({ command: "doctor", file: "none", switches: ["fix"], needsStore: true }, args, prepare);
  const { examineAll, mendAll } = await import("../operations/doctor.ts");
  const { withStore, withClaimedStore } = await import("../operations/with-store.ts");
  using progress = showProgress("Looking", "rows");
  const onProgress = (done: number, total: number) => progress.show(done, total);
  if (!has("fix")) {
    const { findings, rows, points } = await withStore(config.dataDirectory, systemClock, (store) => examineAll(store, onProgress));
    progress.clear();
    await describe(findings);
    if (findings.length === 0) await print(`Nothing is wrong: ${rows} rows, ${points} vectors in the index on disk.`);
    else if (findings.some(({ canBeMended }) => canBeMended))
      await print("Stop the server and run cairn doctor --fix to mend what can be mended.");
    return findings.length === 0 ? 0 : 1;
  }
  const { found, left } = await withClaimedStore(config.dataDirectory, systemClock, (store) => mendAll(store, onProgress));
  progress.clear();
  await describe(found);
  if (left.length === 0) await print(found.length === 0 ? "Nothing was wrong." : "All of it is mended.");
  else {
    await print("\nStill wrong, because the records do not say what would be right:");
    await describe(left);
  }
  return left.length === 0 ? 0 : 1;
}

async function describe(findings: readonly Finding[]): Promise<void> {
  for (const { what, count, examples } of findings) {
    await print(`${what}: ${count}`);
    for (const example of examples) await print(`  ${escaped(example)}`);
    if (examples.length > 0 && count > examples.length) await print(`  and ${count - examples.length} more`);
  }
}
