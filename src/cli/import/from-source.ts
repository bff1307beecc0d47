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
import { apiOverHttp, type Api } from "../../mcp/api.ts";
import { OperationError } from "../../operations/report.ts";
import { holdsStore } from "../../operations/store-file.ts";
import { announced } from "../announcement.ts";
import { checkedName, reportRejections } from "../command-line.ts";
import { doorTo, type Door } from "../door.ts";
import { STORE_FAILED_EXIT_CODE } from "../exit-codes.ts";
import { escaped, print } from "../print.ts";
import { showProgress } from "../progress.ts";
import type { Found, Selection, SourceSession, SourceTurn } from "./found.ts";
import { CLAUDE_CODE, CODEX, transcripts } from "./transcripts.ts";
import { Writer } from "./writer.ts";

type Source = (config: ImportConfig, selection: Selection) => AsyncGenerator<Found>;

const SOURCES: Readonly<Record<string, Source>> = {
  "claude-code": ({ paths, transcripts: { "claude-code": usual } }, selection) =>
    transcripts(CLAUDE_CODE, paths.length === 0 ? [usual] : paths, selection),
  codex: ({ paths, transcripts: { codex } }, selection) => transcripts(CODEX, paths.length === 0 ? [codex] : paths, selection),
};
const SAMPLES = 5;
const SAMPLE_LENGTH = 60;

export async function importFrom(args: readonly string[]): Promise<number> {
  const config = readImportConfig(args);
  const source = Object.hasOwn(SOURCES, config.source) ? SOURCES[config.source] : undefined;
  if (source === undefined) throw new UsageError(`--from must be one of ${Object.keys(SOURCES).join(", ")}; got ${config.source}`);
  checkedName("user", config.user);
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
    await run.all(source(config, selection));
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
  readonly #report: Awaited<ReturnType<typeof open>> | undefined;
  readonly #progress = showProgress("Importing", "turns");
  readonly #samples: string[] = [];
  #firstSkipped: string | undefined;
  #skipped = 0;
  #open = 0;
  #from: string | undefined;
  #to: string | undefined;
  #removing: SourceSession | undefined;

  private constructor(config: ImportConfig, door: Door | undefined, report: Awaited<ReturnType<typeof open>> | undefined) {
    this.#config = config;
    this.#report = report;
    const api: Api | undefined = door && apiOverHttp((call) => door.send(call));
    this.#writer = new Writer({
      api,
      clock: systemClock,
      user: config.user,
      isDry: config.has("dry-run"),
      onRefused: (turn, reason) => this.#skip(`the turn ${turn.external_id}`, reason),
    });
  }

  static async begin(config: ImportConfig, door: Door | undefined): Promise<Run> {
    const { report } = config.flags;
    return new Run(config, door, report === undefined ? undefined : await open(report, "w", 0o600));
  }

  async all(found: AsyncIterable<Found>): Promise<void> {
    for await (const one of found) {
      if (one.kind === "skipped") await this.#skip(one.place, one.reason);
      else if (one.kind === "open") this.#open += 1;
      else if (this.#config.has("remove")) await this.#remove(one.session);
      else await this.#turn(one.session, one.turn);
    }
    await this.#writer.end();
  }

  async #turn(session: SourceSession, turn: SourceTurn): Promise<void> {
    if (!(await this.#writer.turn(session, turn))) return;
    const { occurred_at: at } = turn;
    if (at !== undefined && (this.#from === undefined || at < this.#from)) this.#from = at;
    if (at !== undefined && (this.#to === undefined || at > this.#to)) this.#to = at;
    if (this.#samples.length < SAMPLES) this.#samples.push(`${at ?? "at a time unknown"}  ${turn.input.content.slice(0, SAMPLE_LENGTH)}`);
    this.#progress.show(this.#writer.counts.turns);
  }

  async #remove(session: SourceSession): Promise<void> {
    if (session === this.#removing) return;
    this.#removing = session;
    await this.#writer.remove(session);
  }

  async #skip(place: string, reason: string): Promise<void> {
    if (this.#config.has("strict")) {
      await this.#writer.end();
      throw new OperationError(`${place}: ${reason}. Turns that end before it are imported.`);
    }
    this.#skipped += 1;
    this.#firstSkipped ??= `${place}: ${reason}`;
    await this.#report?.write(`${JSON.stringify({ place, reason })}\n`);
  }

  async tell(): Promise<void> {
    this.#progress.clear();
    const { turns, present, sessions, removed } = this.#writer.counts;
    const isDry = this.#config.has("dry-run");
    if (this.#config.has("remove")) await print(`${isDry ? "Would remove" : "Removed"} ${counted(removed, "session")} of earlier imports.`);
    else {
      const times = this.#from === undefined ? "" : `, from ${this.#from} to ${this.#to ?? ""}`;
      await print(`${isDry ? "Would import" : "Imported"} ${counted(turns, "turn")}${times}; ${counted(sessions, "session")} new.`);
      if (present > 0) await print(`There already: ${counted(present, "turn")}.`);
    }
    if (this.#open > 0)
      await print(`Left for the next time, since the agent may be at work: the last turn of ${counted(this.#open, "transcript")}.`);
    if (this.#firstSkipped !== undefined)
      await print(escaped(`Skipped ${counted(this.#skipped, "record")}. The first: ${this.#firstSkipped}`));
    if (isDry) for (const sample of this.#samples) await print(`  ${escaped(sample)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#progress.clear();
    await this.#report?.close();
  }
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
