/**
 * Processor time and memory of a process, as the system says.
 *
 * @module
 */
import { readFileSync } from "node:fs";

const TICKS_PER_SECOND = 100;

export interface Memory {
  /** Megabytes in RAM, with pages of the store that the system can drop, and without; on macOS both with. */
  rss: number;
  rssAnon: number;
}

/** Milliseconds of processor time that all threads of a process have used, to 10 ms. */
export function cpuMs(pid: number): number {
  if (process.platform !== "linux") return psCpuMs(said("cputime", pid));
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name in brackets may hold spaces; user and system time are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}

export function memoryOf(pid: number): Memory {
  if (process.platform !== "linux") {
    // Not told apart there.
    const rss = Math.round(Number(said("rss", pid)) / 1024);
    return { rss, rssAnon: rss };
  }
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const megabytes = (name: string) => Math.round(Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(status)?.[1]) / 1024);
  return { rss: megabytes("VmRSS"), rssAnon: megabytes("RssAnon") };
}

/** Output of `ps` on a process, for systems without /proc. */
function said(column: "cputime" | "rss", pid: number): string {
  return Bun.spawnSync(["ps", "-o", `${column}=`, "-p", `${pid}`])
    .stdout.toString()
    .trim();
}

/** @param time - days, hours, minutes and seconds, as in `1-02:03:04` or `3:04.05` */
export function psCpuMs(time: string): number {
  const [clock = "", days = "0"] = time.split("-").toReversed();
  const seconds = clock.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
  return Math.round((Number(days) * 86_400 + seconds) * 1000);
}
