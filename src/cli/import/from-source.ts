/**
 * `cairn import --from SOURCE`: the history of another program, into the store that `cairn mcp` and hooks use, or into that of a server.
 *
 * @module
 */
import { existsSync, realpathSync } from "node:fs";
import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { readImportConfig, UsageError, type ImportConfig } from "../../config.ts";
import { systemClock } from "../../lib/clock.ts";
import { parseDuration } from "../../lib/duration.ts";
import { createLog } from "../../lib/log.ts";
import { parseInstant } from "../../lib/time.ts";
import { OperationError } from "../../operations/report.ts";
import { holdsStore } from "../../operations/store-file.ts";
import { announced } from "../announcement.ts";
import { checkedName, reportRejections } from "../command-line.ts";
import { doorTo, type Door } from "../door.ts";
import { STORE_FAILED_EXIT_CODE } from "../exit-codes.ts";
import { escaped, print } from "../print.ts";
import { showProgress } from "../progress.ts";
import { patiently } from "./asking.ts";
import { chatgpt } from "./chatgpt.ts";
import { claudeAi } from "./claude-ai.ts";
import type { Found, FoundMemory, Selection, SourceSession, SourceTurn } from "./found.ts";
import { mem0 } from "./mem0.ts";
import { memoryFiles } from "./memory-files.ts";
import { MemoryWriter } from "./memory-writer.ts";
import { CLAUDE_CODE, CODEX, transcripts } from "./transcripts.ts";
import { Writer } from "./writer.ts";

interface Source {
  /** Paths that are read where none is named. */
  readonly usual?: (config: ImportConfig) => readonly string[];
  /** Set where conversations take place in directories. */
  readonly hasProjects?: boolean;
  readonly read: (paths: readonly string[], selection: Selection) => AsyncGenerator<Found>;
}

const SOURCES: Readonly<Record<string, Source>> = {
  "claude-code": {
    usual: ({ transcripts: { "claude-code": path } }) => [path],
    hasProjects: true,
    read: (paths, selection) => transcripts(CLAUDE_CODE, paths, selection),
  },
  codex: {
    usual: ({ transcripts: { codex } }) => [codex],
    hasProjects: true,
    read: (paths, selection) => transcripts(CODEX, paths, selection),
  },
  chatgpt: { read: chatgpt },
  "claude-ai": { read: claudeAi },
  mem0: { read: mem0 },
  "memory-files": { usual: ({ memoryFiles: all }) => all.filter((path) => existsSync(path)), read: memoryFiles },
};
const PROJECT_SOURCES = Object.keys(SOURCES).filter((name) => SOURCES[name]?.hasProjects === true);
const SAMPLES = 5;
const SAMPLE_LENGTH = 60;

export async function importFrom(args: readonly string[]): Promise<number> {
  const config = readImportConfig(args);
  const source = Object.hasOwn(SOURCES, config.source) ? SOURCES[config.source] : undefined;
  if (source === undefined) throw new UsageError(`--from must be one of ${Object.keys(SOURCES).join(", ")}; got ${config.source}`);
  checkedName("user", config.user);
  const paths = config.paths.length === 0 ? (source.usual?.(config) ?? []) : config.paths;
  if (paths.length === 0) throw new UsageError(`--from ${config.source} takes the export: a file, a ZIP archive or a folder`);
  if (config.flags.project !== undefined && source.hasProjects !== true)
    throw new UsageError(`--project is for ${PROJECT_SOURCES.join(" and ")}; ${config.source} knows no directories`);
  const selection = selectionOf(config);
  const log = createLog({
    level: config.config.logLevel,
    pretty: false,
    now: () => systemClock.now(),
    write: (line) => process.stderr.write(line),
  });
  reportRejections(log);
  const door = hasNoStore(config) ? undefined : doorTo(config, log, () => process.exit(STORE_FAILED_EXIT_CODE));
  try {
    await using run = await Run.begin(config, door);
    await run.all(source.read(paths, selection));
    await run.tell();
    return 0;
  } finally {
    await door?.close();
  }
}

function selectionOf({ flags }: ImportConfig): Selection {
  const now = systemClock.now();
  const { since: text, project } = flags;
  const ms = text === undefined ? undefined : parseDuration(text);
  const since = ms === undefined ? (parseInstant(text ?? "") ?? parseInstant(`${text}T00:00Z`)) : now - ms;
  if (text !== undefined && since === undefined)
    throw new UsageError(`--since must be a duration such as 90d, or a time such as 2026-01-31; got ${text}`);
  return { now, since, projects: project === undefined ? undefined : namesOf(project) };
}

/** Names of a directory that agents may have written down: as it was called, and without links. */
function namesOf(directory: string): readonly string[] {
  const path = resolve(directory);
  return existsSync(path) ? [path, realpathSync(path)] : [path];
}

/** Checks whether a dry run, or a removal, has no store, and would make one. */
function hasNoStore({ has, server, config: { database, dataDirectory } }: ImportConfig): boolean {
  return (
    (has("dry-run") || has("remove")) &&
    server === undefined &&
    database === undefined &&
    !holdsStore(dataDirectory) &&
    announced(dataDirectory) === undefined
  );
}

class Run implements AsyncDisposable {
  readonly #config: ImportConfig;
  readonly #writer: Writer;
  readonly #memories: MemoryWriter;
  readonly #report: Awaited<ReturnType<typeof open>> | undefined;
  readonly #progress = showProgress("Importing", "turns");
  readonly #samples: string[] = [];
  #firstSkipped: string | undefined;
  #skipped = 0;
  #left = 0;
  #open = 0;
  #from: string | undefined;
  #to: string | undefined;
  #removing: SourceSession | undefined;

  private constructor(config: ImportConfig, door: Door | undefined, report: Awaited<ReturnType<typeof open>> | undefined) {
    this.#config = config;
    this.#report = report;
    const ask = patiently(door?.api, systemClock);
    const common = { ask, user: config.user, isDry: config.has("dry-run") };
    this.#writer = new Writer({ ...common, onRefused: ({ external_id: name }, reason) => this.#skip(`the turn ${name}`, reason) });
    this.#memories = new MemoryWriter({
      ...common,
      isUpdate: config.has("update"),
      session: (session) => this.#writer.session(session),
      onRefused: ({ external_id: name }, reason) => this.#skip(`the memory ${name}`, reason),
    });
  }

  static async begin(config: ImportConfig, door: Door | undefined): Promise<Run> {
    const { report } = config.flags;
    return new Run(config, door, report === undefined ? undefined : await open(report, "w", 0o600));
  }

  async all(found: AsyncIterable<Found>): Promise<void> {
    for await (const one of found) {
      if (one.kind === "skipped") await this.#skip(one.place, one.reason);
      else if (one.kind === "left") await this.#leave(one.place, one.reason);
      else if (one.kind === "open") this.#open += 1;
      else if (this.#config.has("remove")) await this.#remove(one);
      else if (one.kind === "memory") await this.#memory(one);
      else await this.#turn(one.session, one.turn);
    }
    await this.#end();
    if (!this.#config.has("remove")) await this.#memories.takeAway();
  }

  async #end(): Promise<void> {
    await this.#writer.end();
    await this.#memories.end();
  }

  async #turn(session: SourceSession, turn: SourceTurn): Promise<void> {
    if (await this.#writer.turn(session, turn)) this.#sample(turn.occurred_at, turn.input.content || turn.output.content);
  }

  async #memory(found: FoundMemory): Promise<void> {
    if (await this.#memories.memory(found)) this.#sample(found.memory.occurred_at, found.memory.content);
  }

  /** Notes something new. */
  #sample(at: string | undefined, text: string): void {
    if (at !== undefined && (this.#from === undefined || at < this.#from)) this.#from = at;
    if (at !== undefined && (this.#to === undefined || at > this.#to)) this.#to = at;
    if (this.#samples.length < SAMPLES)
      this.#samples.push(`${at ?? "at a time unknown"}  ${text.slice(0, SAMPLE_LENGTH).replaceAll(/\s+/g, " ")}`);
    this.#progress.show(this.#writer.counts.turns + this.#memories.counts.memories);
  }

  async #remove(found: Exclude<Found, { kind: "skipped" | "left" | "open" }>): Promise<void> {
    if (found.kind === "memory" && found.session === undefined) return this.#memories.remove(found);
    if (found.session === undefined || found.session === this.#removing) return;
    this.#removing = found.session;
    await this.#writer.remove(found.session);
  }

  async #skip(place: string, reason: string): Promise<void> {
    if (this.#config.has("strict")) {
      await this.#end();
      throw new OperationError(`${place}: ${reason}. What stands before it is imported.`);
    }
    this.#skipped += 1;
    this.#firstSkipped ??= `${place}: ${reason}`;
    await this.#report?.write(`${JSON.stringify({ place, reason })}\n`);
  }

  async #leave(place: string, reason: string): Promise<void> {
    this.#left += 1;
    await this.#report?.write(`${JSON.stringify({ place, reason })}\n`);
  }

  async tell(): Promise<void> {
    this.#progress.clear();
    const isDry = this.#config.has("dry-run");
    if (this.#config.has("remove")) await this.#tellRemoved(isDry);
    else await this.#tellNew(isDry);
    if (this.#open > 0)
      await print(`Left for the next time, since the agent may be at work: the last turn of ${counted(this.#open, "transcript")}.`);
    if (this.#left > 0) await print(`Left out, since they had expired: ${counted(this.#left, "memory")}.`);
    if (this.#firstSkipped !== undefined)
      await print(escaped(`Skipped ${counted(this.#skipped, "record")}. The first: ${this.#firstSkipped}`));
    if (isDry) for (const sample of this.#samples) await print(`  ${escaped(sample)}`);
  }

  async #tellRemoved(isDry: boolean): Promise<void> {
    const [{ removed: sessions }, { removed: memories }] = [this.#writer.counts, this.#memories.counts];
    const what = [counted(sessions, "session"), ...(memories === 0 ? [] : [counted(memories, "memory")])].join(" and ");
    await print(`${isDry ? "Would remove" : "Removed"} ${what} of earlier imports.`);
  }

  async #tellNew(isDry: boolean): Promise<void> {
    const { turns, present, sessions } = this.#writer.counts;
    const { memories, present: presentMemories, changed, removed } = this.#memories.counts;
    const verb = isDry ? "Would import" : "Imported";
    const times = this.#from === undefined ? "" : `, from ${this.#from} to ${this.#to ?? ""}`;
    const isOfMemories = memories + presentMemories + changed > 0;
    const hasTurns = turns + present > 0 || !isOfMemories;
    const what = [...(hasTurns ? [counted(turns, "turn")] : []), ...(isOfMemories ? [counted(memories, "memory")] : [])].join(" and ");
    await print(`${verb} ${what}${times}; ${counted(sessions, "session")} new.`);
    const there = [
      ...(present > 0 ? [counted(present, "turn")] : []),
      ...(presentMemories > 0 ? [counted(presentMemories, "memory")] : []),
    ];
    if (there.length > 0) await print(`There already: ${there.join(" and ")}.`);
    if (removed > 0)
      await print(`${isDry ? "Would take away" : "Took away"} what their files have no longer: ${counted(removed, "memory")}.`);
    if (changed === 0) return;
    if (this.#config.has("update")) await print(`${isDry ? "Would update" : "Updated"} ${counted(changed, "memory")}.`);
    else await print(`Changed in the source, and left as it is here: ${counted(changed, "memory")}. --update replaces.`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#progress.clear();
    await this.#report?.close();
  }
}

function counted(count: number, what: string): string {
  return `${count} ${count === 1 ? what : `${what}s`.replace(/ys$/, "ies")}`;
}
