/**
 * `local.json` in a data directory: where its server listens, and with which key programs of its owner may ask it. Only the owner
 * can read it. Who holds the lock of the directory writes and removes it; one that a killed process left leads to nobody.
 *
 * @module
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FILE = "local.json";

/** Where a server is reached, and with which key. */
export interface Place {
  readonly url: string;
  readonly key: string;
  /** Its database, as it may be shown, where its records are not in the directory. */
  readonly store?: string | undefined;
}

/** @throws {Error} when it cannot be written */
export function announce(directory: string, { url, key, store }: Place): void {
  const path = join(directory, FILE);
  const fresh = `${path}.new`;
  // Its mode is given when it is made.
  rmSync(fresh, { force: true });
  writeFileSync(fresh, JSON.stringify({ url, key, store }), { mode: 0o600, flag: "wx" });
  renameSync(fresh, path);
}

export function withdraw(directory: string): void {
  rmSync(join(directory, FILE), { force: true });
}

/** Returns what was announced last; undefined when it is not there or makes no sense. */
export function announced(directory: string): Place | undefined {
  try {
    const { url, key, store } = JSON.parse(readFileSync(join(directory, FILE), "utf8")) as Partial<Place>;
    return typeof url === "string" && URL.canParse(url) && typeof key === "string" ? { url, key, store } : undefined;
  } catch {
    return undefined;
  }
}
