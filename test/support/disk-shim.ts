/**
 * A Cairn process with `disk-shim.c` between it and the system: its disk can fail and lose power, and what it writes, sends
 * and whom it calls can be read.
 *
 * @module
 */
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { compileLibrary } from "./library.ts";
import type { Chance } from "./process.ts";

/** Disks write a sector whole or not at all. */
const SECTOR_BYTES = 512;
/** Before the bytes of each write in the cache: where it begins and how long it is, in 8 bytes each. */
const RECORD_BYTES = 16;

type Kind = "data" | "meta" | "sync" | "space";

export interface DiskShim extends Disposable {
  /** To be part of the environment of the process. */
  readonly environment: Record<string, string>;
  /** Lines of `trace`, as far as they are complete. */
  trace(): string[];
  /** Makes calls of this kind fail, the next one or all until `repair`. */
  fail(kind: Kind, error: keyof typeof constants.errno, once?: "once"): void;
  /** Takes all room on the disk until `repair`. */
  fill(): void;
  /** Makes calls of this kind wait until `repair`. */
  hang(kind: Kind): void;
  repair(): void;
  /** Takes the store as it is now, while nobody writes, for what is on the disk. */
  simulateDisk(dataDirectory: string): void;
  /**
   * Takes the power from the simulated disk of a process that was killed: the store is left with what was flushed, and with
   * those of the sectors written since that chance decides.
   */
  cutPower(dataDirectory: string, chance: Chance): void;
}

export function diskShim(directory: string, { traces = false, isSlow = false, hasLargePages = false } = {}): DiskShim {
  const path = join(directory, "shim");
  const own = (name: string) => join(path, name);
  mkdirSync(path);
  if (traces) writeFileSync(own("trace"), "");
  if (isSlow) writeFileSync(own("slow"), "");
  if (hasLargePages) writeFileSync(own("pages"), "");
  const storeIn = (dataDirectory: string) => join(dataDirectory, "store/data.mdb");
  const repair = () => rmSync(own("faults"), { force: true });
  const fail: DiskShim["fail"] = (kind, error, once) => appendFileSync(own("faults"), `${kind} ${constants.errno[error]} ${once ?? ""}\n`);
  return {
    environment: { LD_PRELOAD: compileLibrary(readFileSync(join(import.meta.dir, "disk-shim.c"), "utf8")), DISK_SHIM: path },
    trace: () => readFileSync(own("trace"), "utf8").split("\n").slice(0, -1),
    fail,
    fill: () => (["data", "space"] as const).forEach((kind) => fail(kind, "ENOSPC")),
    hang: (kind) => writeFileSync(own("faults"), `${kind} 0\n`),
    repair,
    simulateDisk(dataDirectory) {
      copyFileSync(storeIn(dataDirectory), own("disk"));
      writeFileSync(own("cache"), "");
    },
    cutPower(dataDirectory, chance) {
      const disk = withSome(readFileSync(own("disk")), readFileSync(own("cache")), chance);
      writeFileSync(own("disk"), disk);
      truncateSync(own("cache"));
      writeFileSync(storeIn(dataDirectory), disk);
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** A disk, and what a disk may have taken up of a cache by itself: nothing, everything or any part of it. */
function withSome(disk: Buffer, cache: Buffer, chance: Chance): Buffer {
  const share = chance.pick([0, 0.5, 1]) ?? 0;
  let result = disk;
  for (let at = 0; at + RECORD_BYTES <= cache.length;) {
    const [offset, length] = [Number(cache.readBigUInt64LE(at)), Number(cache.readBigUInt64LE(at + 8))];
    at += RECORD_BYTES;
    for (let sector = 0; sector < length; sector += SECTOR_BYTES) {
      if (chance.next() >= share) continue;
      const bytes = cache.subarray(at + sector, Math.min(at + sector + SECTOR_BYTES, at + length));
      const end = offset + sector + bytes.length;
      if (end > result.length) result = Buffer.concat([result, Buffer.alloc(end - result.length)]);
      bytes.copy(result, offset + sector);
    }
    at += length;
  }
  return result;
}
