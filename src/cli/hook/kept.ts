/**
 * State of hooks between events, below `hooks/` of the data directory: for each session of an agent what its model was shown and how far
 * its transcript was read; and the last event of each agent. Losing it costs nothing but a text that is shown again.
 *
 * @module
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "../../lib/clock.ts";
import { DAY_MS } from "../../lib/duration.ts";
import { hasCode } from "../../lib/errors.ts";
import type { SeenTurn } from "./transcript.ts";

const FOLDER = "hooks";
const PAUSED = "paused";
const STATUS = "status.json";
/** No hook runs longer: one that holds a lock so long was killed. */
const LOCK_MS = 10_000;
const LOOK_MS = 10;
/** Claude Code deletes transcripts then. */
const KEPT_MS = 30 * DAY_MS;
const TIMES_KEPT = 100;

export interface KeptSession {
  /** Ids of memories that its model has seen. */
  shown: string[];
  /** Ids of prompts that were answered. */
  prompts: string[];
  /** Place in its transcript up to which turns are logged. */
  inode: number;
  offset: number;
  /** A turn that began before that place, further back than is read at once. */
  open?: SeenTurn | undefined;
  /** Its session in Cairn. */
  session?: string | undefined;
  /** Turns that events have said, until they are logged. */
  said: SaidTurn[];
}

export interface SaidTurn {
  readonly id: string;
  readonly at: string;
  readonly input: string;
  readonly outputs: string[];
}

export interface LastEvent {
  readonly event: string;
  readonly at: string;
  readonly version?: string | undefined;
  readonly problem?: string | undefined;
  /** Durations of the latest prompts. */
  readonly ms: readonly number[];
}

function folderOf(directory: string): string {
  return join(directory, FOLDER);
}

export function isPaused(directory: string): boolean {
  return existsSync(join(folderOf(directory), PAUSED));
}

export function pause(directory: string, isPaused: boolean): void {
  const file = join(folderOf(directory), PAUSED);
  if (!isPaused) rmSync(file, { force: true });
  else {
    mkdirSync(folderOf(directory), { recursive: true });
    writeFileSync(file, "");
  }
}

/** One session's file, which one hook at a time has. */
export class SessionFile implements Disposable {
  readonly kept: KeptSession;
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
    const { shown = [], prompts = [], inode = 0, offset = 0, open, session, said = [] } = (readJson(path) ?? {}) as Partial<KeptSession>;
    this.kept = { shown, prompts, inode, offset, open, session, said };
  }

  /** Waits for the hook that has it. */
  static async open(directory: string, agent: string, sessionId: string): Promise<SessionFile> {
    const folder = folderOf(directory);
    mkdirSync(folder, { recursive: true });
    const path = join(folder, `${agent}.${sessionId}.json`);
    while (!takesLock(`${path}.lock`)) await systemClock.sleep(LOOK_MS);
    return new SessionFile(path);
  }

  save(): void {
    writeJson(this.#path, this.kept);
  }

  [Symbol.dispose](): void {
    rmSync(`${this.#path}.lock`, { force: true });
  }
}

/** Takes a lock, also from a hook that was killed. */
function takesLock(path: string): boolean {
  try {
    closeSync(openSync(path, "wx"));
    return true;
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
    const made = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (made !== undefined && systemClock.now() - made > LOCK_MS) rmSync(path, { force: true });
    return false;
  }
}

/** Removes files of sessions whose transcripts are gone. */
export function removeOld(directory: string): void {
  const folder = folderOf(directory);
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (name.includes(".") && name !== STATUS && changed !== undefined && systemClock.now() - changed > KEPT_MS)
      rmSync(path, { force: true });
  }
}

export function lastEvents(directory: string): Readonly<Record<string, LastEvent>> {
  return (readJson(join(folderOf(directory), STATUS)) ?? {}) as Record<string, LastEvent>;
}

/** @param ms - duration, of a prompt alone */
export function noteEvent(directory: string, agent: string, event: Omit<LastEvent, "ms" | "at">, ms: number | undefined): void {
  const events = lastEvents(directory);
  const before = events[agent];
  const times = [...(before?.ms ?? []), ...(ms === undefined ? [] : [Math.round(ms)])].slice(-TIMES_KEPT);
  const at = new Date(systemClock.now()).toISOString();
  const last = { ...event, version: event.version ?? before?.version, at, ms: times };
  writeJson(join(folderOf(directory), STATUS), { ...events, [agent]: last });
}

/** @returns undefined where it is not there or makes no sense */
function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

function writeJson(path: string, value: object): void {
  mkdirSync(dirname(path), { recursive: true });
  const fresh = `${path}.${process.pid}`;
  writeFileSync(fresh, JSON.stringify(value), { mode: 0o600 });
  renameSync(fresh, path);
}
