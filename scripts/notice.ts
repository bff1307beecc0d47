/**
 * Keeps NOTICE true: the packages it names are those in the executable, no fewer and no more.
 *
 * Only names are compared. Whether the licence and the copyright line beside a name are right is for whoever adds it.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure } from "./failure.ts";

const PACKAGE_ENTRY = /^(\S+) \(npm; .+\)$/gm;
const PACKAGE_OF_PATH = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//;

/**
 * @param paths - every file that went into the executable
 * @throws {Failure} naming what NOTICE lacks and what it should not have
 */
export function assertNoticeNames(paths: readonly string[]): void {
  const bundled = new Set(paths.flatMap((path) => PACKAGE_OF_PATH.exec(path)?.[1] ?? []));
  const notice = readFileSync(join(dirname(import.meta.dir), "NOTICE"), "utf8");
  const named = new Set(Array.from(notice.matchAll(PACKAGE_ENTRY), (entry) => entry[1] ?? ""));
  const missing = [...bundled.difference(named)].toSorted();
  const unused = [...named.difference(bundled)].toSorted();
  const problems = [
    missing.length > 0 ? `NOTICE does not name these packages of the executable: ${missing.join(", ")}.` : "",
    unused.length > 0 ? `NOTICE names these packages, which are not in the executable: ${unused.join(", ")}.` : "",
  ].filter(Boolean);
  if (problems.length > 0) throw new Failure(problems.join("\n"));
}
