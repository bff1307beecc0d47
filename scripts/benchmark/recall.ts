/**
 * `scripts/bench recall`: what searches find of what they should, and what they cost, as the store grows.
 *
 * For each size a store is filled (`filling.ts`) with texts of `texts.ts`; the executable then answers the questions over HTTP, with
 * each filter. Recall is of the final ranking: what share of the ten best scores of all memories that pass are in the answer. An answer
 * of another memory with the same score is as right.
 *
 * @module
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Executable, providerEnvironment } from "../executable.ts";
import { Failure, readArguments } from "../failure.ts";
import { Child } from "./child.ts";
import { Connection } from "../../src/cli/bench/load/connection.ts";
import type { FillingOrder, FillingResult } from "./filling.ts";
import { FILTER_NAMES, FILTERED_BY, filterOf, groupOf, type Asked, type FilteredBy, type FilterName } from "./filters.ts";
import { load } from "../../src/cli/bench/load/load.ts";
import type { Neighbours, NeighboursOrder, NeighboursResult } from "./neighbours.ts";
import type { ProviderOrder } from "./provider.ts";
import { printTable } from "./report.ts";
import { Collection, randomOf, TEXT_KINDS, TOPICS, type TextKind } from "../../src/cli/bench/load/texts.ts";
import { costed, type Run } from "../../src/cli/bench/load/timing.ts";
import { encodeRequest, SESSIONS_PER_USER } from "../../src/cli/bench/load/workload.ts";

const HELP = `scripts/bench recall: recall@10 against the exhaustive ranking, and CPU of a search

  --sizes N,N              memories (20000)
  --texts KIND,KIND        varied, apart: texts that have next to nothing in common (varied)
  --filters NAME,NAME      ${FILTER_NAMES.join(", ")} (all of them)
  --by NAME                what shares are asked for by: ${FILTERED_BY.join(", ")} (tags)
  --questions N            (100)
  --concurrency N          searches at once (4)
  --seconds N              measuring time for each filter (1)
  --data DIR               keeps the stores there, and uses those it finds: fill once, measure often. They are of this
                           source: delete them when rows or scores change
  --beside                 hnswlib alone too, with its graph and comparing all; takes its time, and 3 KB of memory a vector
  --binary FILE            another executable (dist/cairn)
  --json                   everything as JSON on standard output
`;

const root = dirname(dirname(import.meta.dir));
const MEMORIES_PER_USER = 600;
const LIMIT = 10;
/** Two scores that differ less are equal: they have six decimals. */
const SCORE_STEP = 1e-6;
const SETTLE_SECONDS = 3 * 3600;

interface Options {
  sizes: number[];
  texts: TextKind[];
  filters: FilterName[];
  by: FilteredBy;
  questions: number;
  concurrency: number;
  seconds: number;
  data: string | undefined;
  beside: boolean;
  binary: string;
  json: boolean;
}

function readOptions(args: string[]): Options | undefined {
  const { values } = readArguments({
    args,
    options: {
      sizes: { type: "string", default: "20000" },
      texts: { type: "string", default: "varied" },
      filters: { type: "string", default: FILTER_NAMES.join(",") },
      by: { type: "string", default: "tags" },
      questions: { type: "string", default: "100" },
      concurrency: { type: "string", default: "4" },
      seconds: { type: "string", default: "1" },
      data: { type: "string" },
      beside: { type: "boolean", default: false },
      binary: { type: "string", default: join(root, "dist/cairn") },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const number = (name: string, text: string) => {
    if (!(Number(text) > 0)) throw new Failure(`--${name} must be a number above 0; got ${text}.`);
    return Number(text);
  };
  const choice = <Name extends string>(name: string, text: string, known: readonly Name[]) =>
    text.split(",").map((one) => {
      if (!(known as readonly string[]).includes(one)) throw new Failure(`--${name} knows ${known.join(", ")}; got ${one}.`);
      return one as Name;
    });
  return {
    sizes: values.sizes.split(",").map((text) => number("sizes", text)),
    texts: choice("texts", values.texts, TEXT_KINDS),
    filters: choice("filters", values.filters, FILTER_NAMES),
    by: choice("by", values.by, FILTERED_BY)[0]!,
    questions: number("questions", values.questions),
    concurrency: number("concurrency", values.concurrency),
    seconds: number("seconds", values.seconds),
    data: values.data,
    beside: values.beside,
    binary: values.binary,
    json: values.json,
  };
}

/** Data that are kept with a filled store. */
interface Filled extends FillingResult {
  asked: Asked[];
  filters: FilterName[];
  /** Of the server of dense vectors: a provider at another address would be another one. */
  providerPort: number;
}

interface Figures {
  filter: FilterName;
  passing: number;
  recall: number;
  /** Milliseconds for one search, over all threads. */
  cpuMs: number;
  p50: number;
  p99: number;
  errors: number;
}

interface Result {
  size: number;
  texts: TextKind;
  fillSeconds: number;
  startMs: number;
  settledMs: number;
  rss: number;
  rssAnon: number;
  /** Of the index, by part. */
  indexBytes: Record<string, number>;
  figures: Figures[];
  beside: (Neighbours & { graphMs: number; allMs: number }) | undefined;
}

/** One store of one size: filled, served, asked. */
class Trial implements AsyncDisposable {
  readonly #options: Options;
  readonly #size: number;
  readonly #texts: TextKind;
  readonly #directory: string;
  readonly #ended = new DisposableStack();
  #environment: Record<string, string> = {};

  constructor(options: Options, size: number, texts: TextKind) {
    this.#options = options;
    this.#size = size;
    this.#texts = texts;
    // Beside the repository's own files: a temporary directory may be in RAM, where a flush costs nothing.
    mkdirSync(join(root, "dist"), { recursive: true });
    this.#directory = options.data === undefined ? mkdtempSync(join(root, "dist/bench-")) : join(options.data, `${size}-${texts}`);
    mkdirSync(this.#directory, { recursive: true });
  }

  async run(): Promise<Result> {
    const filled = await this.#filled();
    const server = await this.#start();
    const key = await server.createKey();
    const settledMs = await server.settled(SETTLE_SECONDS);
    const figures: Figures[] = [];
    for (const filter of this.#options.filters) {
      if (filter === "topics" && this.#texts === "apart") continue;
      say(`  filter ${filter} …`);
      figures.push(await this.#figuresOf(server, key, filter, filled));
    }
    const { rss, rssAnon } = server.memory();
    const indexBytes = await server.indexBytes();
    const { startMs } = server;
    await server.stop();
    const { seconds: fillSeconds } = filled;
    const all = figures.find(({ filter }) => filter === "all");
    const beside = this.#options.beside && all !== undefined ? await this.#besides(filled, all.recall) : undefined;
    return {
      size: this.#size,
      texts: this.#texts,
      fillSeconds,
      startMs,
      settledMs,
      rss,
      rssAnon,
      indexBytes,
      figures,
      beside,
    };
  }

  async #besides({ asked, right }: Filled, recall: number): Promise<Result["beside"]> {
    say("  hnswlib alone …");
    const child = this.#ended.adopt(new Child<NeighboursOrder, NeighboursResult>("neighbours.ts"), (one) => one.end());
    const scores = right.map(({ all }) => all);
    const order = { directory: this.#data, queries: asked.map(({ query }) => query), right: scores, recall };
    const found = (await child.tell({ kind: "open", ...order })) as Neighbours;
    const { seconds } = this.#options;
    const cost = async (kind: "graph" | "all") => {
      const run = await costed([child.pid], async () => (await child.tell({ kind, seconds })) as Run);
      return run.cpuMsEach;
    };
    return { ...found, graphMs: await cost("graph"), allMs: await cost("all") };
  }

  async #filled(): Promise<Filled> {
    const file = join(this.#directory, "filled.json");
    if (existsSync(file)) {
      const filled = JSON.parse(readFileSync(file, "utf8")) as Filled;
      const isKnown = this.#options.filters.every((name) => filled.filters.includes(name));
      if (isKnown) await this.#serveVectors(filled.providerPort);
      if (isKnown) return filled;
    }
    say(`filling a store with ${this.#size.toLocaleString("en")} memories …`);
    rmSync(join(this.#directory, "data"), { recursive: true, force: true });
    const providerPort = await this.#serveVectors(0);
    const server = await this.#start();
    const users = await createUsers(server, Math.ceil(this.#size / MEMORIES_PER_USER), SESSIONS_PER_USER);
    await server.calibrated();
    await server.stop();
    const { filters } = this.#options;
    const asked = questions(this.#options.questions, this.#size, this.#texts, users.length);
    const child = this.#ended.adopt(new Child<FillingOrder, FillingResult>("filling.ts"), (one) => one.end());
    const order = { directory: this.#data, users, count: this.#size, texts: this.#texts, asked, filters };
    const filled = { ...(await child.tell(order)), asked, filters, providerPort };
    writeFileSync(file, JSON.stringify(filled));
    return filled;
  }

  get #data(): string {
    return join(this.#directory, "data");
  }

  async #serveVectors(port: number): Promise<number> {
    const child = this.#ended.adopt(new Child<ProviderOrder, number>("provider.ts"), (one) => one.end());
    const served = await child.tell({ port });
    this.#environment = providerEnvironment(served);
    return served;
  }

  async #start(): Promise<Executable> {
    const options = { binary: this.#options.binary, dataDirectory: this.#data, logLevel: "error", log: join(this.#directory, "log") };
    return this.#ended.adopt(await Executable.start({ ...options, environment: this.#environment }), (server) => server.kill());
  }

  async #figuresOf(server: Executable, key: string, filter: FilterName, { asked, right, passing }: Filled): Promise<Figures> {
    const requests = asked.map((one) => {
      const body = { query: one.query, limit: LIMIT, threshold: 0, ...filterOf(filter, one, this.#options.by) };
      return encodeRequest({ method: "POST", path: "/v1/memory/search", body }, key);
    });
    const connection = await Connection.open(server.port);
    let [found, wanted] = [0, 0];
    for (const [i, request] of requests.entries()) {
      const best = right[i]![filter];
      if (best.length === 0) continue;
      const { data } = JSON.parse(await connection.askFor(request)) as { data: { score: number }[] };
      const bar = best.at(-1)! - SCORE_STEP;
      found += Math.min(best.length, data.filter(({ score }) => score >= bar).length);
      wanted += best.length;
    }
    connection.close();
    const { concurrency, seconds } = this.#options;
    const { cpuMsEach, p50, p99, errors } = await costed([server.pid], () =>
      load([server.port], concurrency, seconds, (lane) => {
        let at = Math.floor((lane * requests.length) / concurrency);
        return () => [requests[at++ % requests.length]!];
      }),
    );
    return { filter, passing: passing[filter], recall: found / wanted, cpuMs: cpuMsEach, p50, p99, errors };
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#ended.dispose();
    if (this.#options.data === undefined) rmSync(this.#directory, { recursive: true, force: true });
    return Promise.resolve();
  }
}

/** Sessions of that many users. @returns their ids, by user */
async function createUsers(server: Executable, count: number, sessionsOfEach: number): Promise<string[][]> {
  const key = await server.createKey();
  const users: string[][] = Array.from({ length: count }, () => []);
  let next = 0;
  const make = async () => {
    const connection = await Connection.open(server.port);
    while (next < count * sessionsOfEach) {
      const user = Math.floor(next++ / sessionsOfEach);
      const body = { agent_id: "agent", user_id: `user-${user}`, ttl_seconds: 2_592_000 };
      const answer = await connection.askFor(encodeRequest({ method: "POST", path: "/v1/sessions", body }, key));
      users[user]!.push((JSON.parse(answer) as { id: string }).id);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: 32 }, make));
  return users;
}

function questions(count: number, memories: number, texts: TextKind, users: number): Asked[] {
  const collection = new Collection(texts);
  const random = randomOf(memories + count);
  return Array.from({ length: count }, (_, i) => ({
    query: collection.question(i, memories),
    user: Math.floor(random() * users),
    group: groupOf(Math.floor(random() * TOPICS)),
  }));
}

const COLUMNS = ["memories", "texts", "filter", "pass", "recall@10", "CPU ms", "p50 ms", "p99 ms", "errors"];

function print(results: readonly Result[]): string {
  const lines = results.flatMap(({ size, texts, fillSeconds, startMs, settledMs, rss, rssAnon, indexBytes, beside }) => [
    `${size.toLocaleString("en")} ${texts}: filled in ${Math.round(fillSeconds)} s, start ${Math.round(startMs)} ms, ` +
      `all indexed ${Math.round(settledMs)} ms later, memory (RSS, of it own) ${rss} MB, ${rssAnon} MB`,
    `  bytes of the index for each vector: ${bytesEach(indexBytes, size)}`,
    ...(beside === undefined
      ? []
      : [
          `  hnswlib alone: recall@10 ${beside.recall.toFixed(3)} at ef ${beside.ef}, ${beside.graphMs.toFixed(3)} ms of CPU; ` +
            `comparing all ${beside.allMs.toFixed(3)} ms`,
        ]),
  ]);
  const rows = results.flatMap(({ size, texts, figures }) =>
    figures.map(({ filter, passing, recall, cpuMs: cpu, p50, p99, errors }) => [
      size.toLocaleString("en"),
      texts,
      filter,
      Math.round(passing).toLocaleString("en"),
      recall.toFixed(3),
      cpu.toFixed(3),
      p50.toFixed(2),
      p99.toFixed(2),
      String(errors),
    ]),
  );
  return [...lines, "", ...printTable([COLUMNS, ...rows])].join("\n");
}

function bytesEach(indexBytes: Record<string, number>, vectors: number): string {
  const all = Object.values(indexBytes).reduce((sum, bytes) => sum + bytes, 0);
  const parts = Object.entries(indexBytes).map(([part, bytes]) => `${part} ${Math.round(bytes / vectors)}`);
  return `${Math.round(all / vectors)} (${parts.join(", ")})`;
}

function say(line: string): void {
  console.error(line);
}

export async function measureRecall(args: string[]): Promise<void> {
  const options = readOptions(args);
  if (options === undefined) return console.log(HELP);
  const results: Result[] = [];
  for (const size of options.sizes) {
    for (const texts of options.texts) {
      await using trial = new Trial(options, size, texts);
      const interrupted = () => void trial[Symbol.asyncDispose]().then(() => process.exit(130));
      process.once("SIGINT", interrupted);
      results.push(await trial.run());
      process.off("SIGINT", interrupted);
    }
  }
  console.log(options.json ? JSON.stringify(results, null, 2) : print(results));
}
