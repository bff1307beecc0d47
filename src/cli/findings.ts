/**
 * What is wrong with a store, as it is printed.
 *
 * @module
 */
import type { Finding } from "../operations/report.ts";
import { escaped, print } from "./print.ts";

export async function describeFindings(findings: readonly Finding[]): Promise<void> {
  for (const { what, count, examples } of findings) {
    await print(`${what}: ${count}`);
    for (const example of examples) await print(`  ${escaped(example)}`);
    if (examples.length > 0 && count > examples.length) await print(`  and ${count - examples.length} more`);
  }
}
