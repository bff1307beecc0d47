/**
 * `cairn bench recall`: a benchmark of retrieval through the API, without a language model.
 *
 * Files are read twice, first to the end, so that one that does not fit is refused before anything is stored.
 *
 * @module
 */
import { statSync } from "node:fs";
import { basename } from "node:path";
import type { Cairn } from "../../client/client.ts";
import { readBenchConfig, UsageError, type BenchConfig } from "../../config.ts";
import { systemClock } from "../../lib/clock.ts";
import { version } from "../../lib/version.ts";
import { assertOptions, numberIn } from "./options.ts";
import { escaped, print } from "../print.ts";
import { showProgress } from "../progress.ts";
import { Figures, type Summary } from "./figures.ts";
import { FORMAT_NAMES, haystacksOf, sourceOf, type Source } from "./formats/formats.ts";
import type { Haystack } from "./haystack.ts";
import { memoryOf, type Memory } from "./process-use.ts";
import { Results } from "./results.ts";
import { clientOf, namedServer, startServer, vectorsMade, type BenchServer } from "./server.ts";
import { makeKey } from "../selftest/own-server.ts";
import { tablesOf, type Done } from "./tables.ts";
import { STORED_AS, Trial, type Answer, type StoredAs } from "./trial.ts";

const FLAGS = ["format", "store-as", "limit", "questions", "concurrency", "results", "dir", "url"] as const;
const SWITCHES = ["json", "force"] as const;
const LIMIT_MAX = 50;
const QUESTIONS_MAX = 1_000_000;
const CONCURRENCY_MAX = 64;

interface Options {
  readonly storedAs: StoredAs;
  readonly limit: number;
  readonly questions: number;
  readonly concurrency: number;
}

/** Counts of what the files have. */
interface Counts {
  haystacks: number;
  conversations: number;
  questions: number;
}

export async function benchRecall(args: readonly string[]): Promise<number> {
  const config = readBenchConfig(args, { flags: FLAGS, switches: SWITCHES });
  const options = optionsOf(config);
  const { flags, has, positionals: paths } = config;
  if (paths.length === 0) throw new UsageError("cairn bench recall needs the files of a benchmark, or their directory");
  const source = await sourceOf(paths, flags["format"]);
  const counts = await countIn(source, options);
  const { storedAs, limit } = options;
  const files = paths.map((path) => `${basename(path)} ${statSync(path).size}`);
  const header = { benchmark: "recall", cairn: version, format: source.format, files, stored_as: storedAs, limit } as const;
  await using results = await Results.open(flags["results"], { ...header, run: makeKey().slice(-12) }, { force: has("force") });
  const beganAt = systemClock.elapsed();
  await using run = new Run(options, counts, results);
  if (results.before.length < counts.questions) {
    await using server = config.server === undefined ? await startServer(flags["dir"]) : namedServer(config.server);
    await run.all(source, server);
  }
  const done: Done = {
    format: source.format,
    ...counts,
    before: results.before.length,
    messages: run.messages,
    stored_as: storedAs,
    limit,
    seconds: Math.round((systemClock.elapsed() - beganAt) / 1000),
    memory_mb: run.memory === undefined ? null : { rss: run.memory.rss, own: run.memory.rssAnon },
    cairn: version,
  };
  await print(has("json") ? JSON.stringify({ ...done, ...run.summary }, undefined, 2) : escapedLines(tablesOf(done, run.summary)));
  return 0;
}

const escapedLines = (lines: readonly string[]) => lines.map(escaped).join("\n");

function optionsOf(config: BenchConfig): Options {
  assertOptions("recall", config, [...FLAGS, ...SWITCHES]);
  const { flags } = config;
  const format = flags["format"];
  if (format !== undefined && !FORMAT_NAMES.includes(format))
    throw new UsageError(`--format must be one of ${FORMAT_NAMES.join(", ")}; got ${format}`);
  const storedAs = STORED_AS.find((name) => name === (flags["store-as"] ?? "memories"));
  if (storedAs === undefined) throw new UsageError(`--store-as must be one of ${STORED_AS.join(", ")}; got ${flags["store-as"]}`);
  return {
    storedAs,
    limit: numberIn(flags, "limit", LIMIT_MAX, LIMIT_MAX),
    questions: numberIn(flags, "questions", QUESTIONS_MAX, QUESTIONS_MAX),
    concurrency: numberIn(flags, "concurrency", CONCURRENCY_MAX, 1),
  };
}

async function countIn(source: Source, { questions: most }: Options): Promise<Counts> {
  using progress = showProgress("Reading", "questions");
  const counts = { haystacks: 0, conversations: 0, questions: 0 };
  for await (const { questions, conversations } of haystacksOf(source)) {
    if (counts.questions >= most) continue;
    counts.haystacks += 1;
    counts.conversations += conversations.length;
    counts.questions = Math.min(most, counts.questions + questions.length);
    progress.show(counts.questions);
  }
  return counts;
}

class Run implements AsyncDisposable {
  readonly #options: Options;
  readonly #counts: Counts;
  readonly #results: Results;
  readonly #figures: Figures;
  readonly #answered = new Set<string>();
  readonly #progress = showProgress("Asking", "questions");
  messages = 0;
  memory: Memory | undefined;

  constructor(options: Options, counts: Counts, results: Results) {
    this.#options = options;
    this.#counts = counts;
    this.#results = results;
    this.#figures = new Figures(options.limit);
    for (const answer of results.before) this.#note(answer);
  }

  get summary(): Summary {
    return this.#figures.summary;
  }

  async all(source: Source, server: BenchServer): Promise<void> {
    const client = clientOf(server);
    let number = 0;
    let left = this.#options.questions;
    for await (const haystack of haystacksOf(source)) {
      if (left <= 0) break;
      const questions = haystack.questions.slice(0, left);
      left -= questions.length;
      await this.#one({ ...haystack, questions }, number, client, server);
      number += 1;
    }
    this.#progress.clear();
  }

  async #one(haystack: Haystack, number: number, client: Cairn, { pid }: BenchServer): Promise<void> {
    const open = haystack.questions.flatMap((question, i) => (this.#answered.has(`${number} ${i}`) ? [] : [{ question, i }]));
    if (open.length === 0) return;
    const target = { client, clock: systemClock, vectorsMade: () => vectorsMade(client) };
    const trial = new Trial(target, `cairn-bench-${this.#results.run}-${number}`, this.#options.storedAs);
    await trial.remove();
    await trial.store(haystack);
    this.messages += trial.messages;
    await inParallel(open, this.#options.concurrency, async ({ question, i }) => {
      const asked = await trial.ask(question, this.#options.limit);
      const answer = { haystack: number, question: i, ...asked, id: `${haystack.id} ${asked.id}`, language: haystack.language };
      await this.#results.add(answer);
      this.#note(answer);
    });
    if (pid !== undefined) this.#noteMemory(memoryOf(pid));
    await trial.remove();
  }

  #note(answer: Answer): void {
    this.#answered.add(`${answer.haystack} ${answer.question}`);
    this.#figures.add(answer);
    this.#progress.show(this.#answered.size, this.#counts.questions);
  }

  #noteMemory(now: Memory): void {
    if (this.memory === undefined || now.rssAnon > this.memory.rssAnon) this.memory = now;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#progress.clear();
    return Promise.resolve();
  }
}

/** Calls `work` for each item, with a bounded number at a time. */
async function inParallel<Item>(items: readonly Item[], atOnce: number, work: (item: Item) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < items.length) await work(items[next++]!);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
}
