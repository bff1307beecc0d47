/**
 * Runs `cairn backup` in a process of its own.
 *
 * It reads every page of the store, for seconds or minutes, which would hold the request thread; and should damage that nobody has
 * foreseen end it, it does not end the server.
 *
 * @module
 */
import { setPriority } from "node:os";
import { join } from "node:path";
import { IS_EXECUTABLE } from "../lib/native.ts";
import { systemReason } from "../lib/system-errors.ts";

export interface BackupCommand {
  /** Command that starts Cairn. */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The program that runs now. */
export const OWN_PROGRAM: readonly string[] = IS_EXECUTABLE ? [process.execPath] : [process.execPath, join(import.meta.dir, "../main.ts")];

/** Requests come first. */
const PRIORITY = 10;
const PROBLEM_LENGTH_MAX = 1_000;

export interface RunningBackup {
  /** Resolves when the process has ended: to why there is no backup, or to undefined. Never rejects. */
  readonly ended: Promise<string | undefined>;
  /** Ends the process at once. */
  kill(): void;
}

export function runBackup({ program, environment }: BackupCommand, dataDirectory: string, file: string): RunningBackup {
  try {
    const child = Bun.spawn([...program, "backup", file, "--data-dir", dataDirectory], {
      env: environment,
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
      // It ends when this connection does, so that a killed server leaves none behind.
      ipc: () => undefined,
    });
    lowerPriority(child.pid);
    return { ended: problemOf(child, file), kill: () => child.kill("SIGKILL") };
  } catch (error) {
    return { ended: Promise.resolve(`The command cannot be started: ${systemReason(error)}.`), kill: () => undefined };
  }
}

/** It may have ended already. */
function lowerPriority(pid: number): void {
  try {
    setPriority(pid, PRIORITY);
  } catch {
    // Then it runs as the server does.
  }
}

async function problemOf(child: Bun.Subprocess<"ignore", "ignore", "pipe">, file: string): Promise<string | undefined> {
  const [said, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code === 0) return undefined;
  if (child.signalCode !== null) return `The process that made it was ended by ${child.signalCode}.`;
  return said
    .trim()
    .replace(/^cairn: /, "")
    .replaceAll(file, "The backup")
    .slice(0, PROBLEM_LENGTH_MAX);
}
