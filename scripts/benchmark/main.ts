/**
 * `scripts/bench`: what the executable does on this machine, beside what the machine can do.
 *
 * Each operation is measured in short turns with its limits: a bare HTTP server that answers the same bytes, and lmdb-js
 * alone writing the same bytes; the medians of the turns count, for machines change their mind within seconds.
 *
 * @module
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join } from "node:path";
import { Postgres } from "../../test/support/postgres.ts";
import { Executable } from "../executable.ts";
import { Failure, readArguments, runScript } from "../failure.ts";
import { Child } from "./child.ts";
import type { ClientOrder, ClientResult } from "./client.ts";
import type { CommitsOrder, CommitsResult } from "./commits.ts";
import type { EchoOrder } from "./echo.ts";
import type { EmbeddingCost, EmbeddingOrder } from "./embedding.ts";
import type { FillingOrder, FillingResult } from "./filling.ts";
import { measureHook } from "./hook.ts";
import { measurePairs } from "./pairs.ts";
import { measureRecall } from "./recall.ts";
import { printReport, type Measured, type Report } from "./report.ts";
import { costed, median, type Costed, type Run } from "../../src/cli/bench/load/timing.ts";
import {
  OPERATIONS,
  OPERATION_NAMES,
  SESSIONS_PER_USER,
  TURNS_PER_SESSION,
  type OperationName,
} from "../../src/cli/bench/load/workload.ts";

const HELP = `scripts/bench: measures Cairn against the limits of this machine

  --quick                  small and short: a first impression in half a minute
  --users N                who have 5 sessions each, with 20 turns (1000)
  --memories N             stored before measuring: some users have five times as many as others (200 for each user)
  --only NAME,NAME         ${OPERATION_NAMES.join(", ")}, embedding
  --concurrency N,N        requests at once (1,16,64)
  --seconds N              measuring time of each, in turns, after as long a warm-up (1.5)
  --turns N                how many turns (3)
  --no-limits              only Cairn
  --store postgres[://…]   in that database, or one of a PostgreSQL started here from Debian's
                           packages, whose processor time counts, too; without limits
  --servers N              how many share the database (1)
  --provider NAME          which embeds: words costs nothing, so that the rest shows (builtin)
  --binary FILE            another executable (dist/cairn)
  --log-level LEVEL        of the server: info writes a line for each request (error)
  --json                   everything as JSON on standard output

scripts/bench recall measures what searches find, and what they cost as the store grows: scripts/bench recall --help
scripts/bench pairs measures what a feature costs, with it and without it by turns: scripts/bench pairs --help
scripts/bench hook measures what a hook of a coding agent adds to a prompt, next to curl: scripts/bench hook --help
`;

const root = dirname(dirname(import.meta.dir));
const MEMORIES_PER_USER = 200;
/** Stored through the API, which takes longer. */
const MEMORIES_PER_USER_IN_DATABASE = 20;
const FILL_CONNECTIONS = 64;
/** An index of many vectors is built for long. */
const SETTLE_SECONDS = 3 * 3600;

interface Options {
  users: number;
  memories: number;
  operations: OperationName[];
  embedding: boolean;
  concurrency: number[];
  seconds: number;
  turns: number;
  limits: boolean;
  /** `postgres`, or the URL of a database; undefined for the embedded store. */
  store: string | undefined;
  servers: number;
  provider: string;
  binary: string;
  logLevel: string;
  json: boolean;
}

function readOptions(): Options | undefined {
  const { values } = readArguments({
    options: {
      quick: { type: "boolean", default: false },
      users: { type: "string" },
      memories: { type: "string" },
      only: { type: "string" },
      concurrency: { type: "string" },
      seconds: { type: "string" },
      turns: { type: "string" },
      "no-limits": { type: "boolean", default: false },
      store: { type: "string" },
      servers: { type: "string", default: "1" },
      provider: { type: "string", default: "builtin" },
      binary: { type: "string" },
      "log-level": { type: "string", default: "error" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const number = (name: string, text: string) => {
    if (!(Number(text) > 0)) throw new Failure(`--${name} must be a number above 0; got ${text}.`);
    return Number(text);
  };
  const users = number("users", values.users ?? (values.quick ? "50" : "1000"));
  const { store } = values;
  if (store !== undefined && store !== "postgres" && !/^postgres(ql)?:/.test(store))
    throw new Failure("--store must be postgres, or the URL of a database.");
  const servers = number("servers", values.servers);
  if (servers > 1 && store === undefined) throw new Failure("--servers needs --store: an embedded store is one server's.");
  const memoriesPerUser = store === undefined ? MEMORIES_PER_USER : MEMORIES_PER_USER_IN_DATABASE;
  const memories = number("memories", values.memories ?? String(memoriesPerUser * users));
  const names = values.only?.split(",") ?? [...OPERATION_NAMES, "embedding"];
  const unknown = names.find((name) => name !== "embedding" && !isOperation(name));
  if (unknown !== undefined) throw new Failure(`There is no ${unknown}; there are ${OPERATION_NAMES.join(", ")} and embedding.`);
  return {
    users,
    memories,
    operations: OPERATION_NAMES.filter((name) => names.includes(name)),
    embedding: names.includes("embedding"),
    concurrency: (values.concurrency ?? (values.quick ? "1,64" : "1,16,64")).split(",").map((text) => number("concurrency", text)),
    seconds: number("seconds", values.seconds ?? (values.quick ? "0.25" : "1.5")),
    turns: number("turns", values.turns ?? (values.quick ? "2" : "3")),
    limits: !values["no-limits"] && store === undefined,
    store,
    servers,
    provider: values.provider,
    binary: values.binary ?? join(root, "dist/cairn"),
    logLevel: values["log-level"],
    json: values.json,
  };
}

function isOperation(name: string): name is OperationName {
  return Object.hasOwn(OPERATIONS, name);
}

/** Everything that takes part, and the directory it works in. */
class Bench implements AsyncDisposable {
  readonly #options: Options;
  readonly #directory: string;
  readonly #client = new Child<ClientOrder, ClientResult>("client.ts");
  readonly #echo = new Child<EchoOrder, number>("echo.ts");
  readonly #commits = new Child<CommitsOrder, CommitsResult>("commits.ts");
  readonly #filling = new Child<FillingOrder, FillingResult>("filling.ts");
  /** One server, or those that share a database. */
  #subjects: Executable[] = [];
  #postgres: Postgres | undefined;
  #database: string | undefined;

  constructor(options: Options) {
    this.#options = options;
    // Beside the repository's own files: a temporary directory may be in RAM, where a flush costs nothing.
    mkdirSync(join(root, "dist"), { recursive: true });
    this.#directory = mkdtempSync(join(root, "dist/bench-"));
  }

  async run(): Promise<Report> {
    const { users, memories, operations, concurrency, limits, embedding } = this.#options;
    const sessions = users * SESSIONS_PER_USER;
    const data = join(this.#directory, "data");
    let subject = await this.#start(data);
    const started = subject.memory();
    const key = await subject.createKey();
    say(`storing ${sessions} sessions, each with ${TURNS_PER_SESSION} turns …`);
    const fillStartedAt = performance.now();
    const fill = { kind: "fill", port: subject.port, key, sessions, connections: FILL_CONNECTIONS } as const;
    const ids = (await this.#client.tell(fill)) as string[];
    const fillSeconds = (performance.now() - fillStartedAt) / 1000;
    await this.#storeMemories(subject, data, ids);

    const copy = join(this.#directory, "copy");
    if (limits) cpSync(data, copy, { recursive: true });
    if (this.#database === undefined) subject = await this.#start(data);
    const { startMs } = subject;
    if (limits) {
      say("recording what each operation writes …");
      await this.#commits.tell({ kind: "open", store: join(copy, "store"), scratch: this.#directory, sessions: ids });
    }
    const indexMs = this.#database === undefined ? await subject.settled(SETTLE_SECONDS) : 0;
    const filled = subject.memory();

    const measured: Measured[] = [];
    for (const operation of operations) {
      for (const at of concurrency) {
        say(`${OPERATIONS[operation].title}, ${at} at once …`);
        measured.push(await this.#measure(subject, operation, at));
      }
    }
    const memory = { started, filled, measured: subject.memory() };
    const stopStartedAt = performance.now();
    for (const one of this.#subjects) if ((await one.stop()) !== 0) throw new Failure("The server did not stop as it should.");
    const stopMs = performance.now() - stopStartedAt;
    const costs = embedding ? await this.#embeddingCosts() : [];
    return {
      machine: { cpus: cpus().length, model: cpus()[0]?.model ?? "", bun: Bun.version },
      memories,
      users,
      sessions,
      fill: { seconds: fillSeconds, writesPerSecond: (sessions * (2 + TURNS_PER_SESSION)) / fillSeconds },
      startMs,
      indexMs,
      stopMs,
      memory,
      measured,
      embedding: costs,
    };
  }

  /** On a database through the API, by a server that keeps running. */
  async #storeMemories(subject: Executable, directory: string, ids: readonly string[]): Promise<void> {
    const { users, memories: count } = this.#options;
    say(`storing ${count} memories …`);
    if (this.#database !== undefined) {
      await this.#client.tell({ kind: "memories", port: subject.port, count, connections: FILL_CONNECTIONS });
      return;
    }
    await subject.stop();
    const byUser = Array.from({ length: users }, (_, user) => ids.slice(user * SESSIONS_PER_USER, (user + 1) * SESSIONS_PER_USER));
    await this.#filling.tell({ directory, users: byUser, count, texts: "varied", asked: [], filters: [] });
  }

  /** @returns the first of the servers */
  async #start(data: string): Promise<Executable> {
    const { binary, logLevel, store, servers, provider } = this.#options;
    if (store === "postgres") {
      this.#postgres = await Postgres.start({ fsync: true });
      this.#database = await this.#postgres.database();
    } else this.#database = store;
    this.#subjects = [];
    for (let i = 0; i < servers; i++) {
      const dataDirectory = i === 0 ? data : `${data}-${i}`;
      const database: Record<string, string> = this.#database === undefined ? {} : { CAIRN_STORE: this.#database };
      const environment = { ...database, CAIRN_EMBEDDING_PROVIDER: provider };
      this.#subjects.push(await Executable.start({ binary, dataDirectory, logLevel, log: join(this.#directory, `log-${i}`), environment }));
    }
    return this.#subjects[0]!;
  }

  /** The processes whose time is what an operation costs; those of a database that was there before are not known. */
  get #pids(): number[] {
    return [...this.#subjects.map(({ pid }) => pid), ...(this.#postgres?.pids ?? [])];
  }

  async #measure(subject: Executable, operation: OperationName, concurrency: number): Promise<Measured> {
    const { turns, limits } = this.#options;
    const seconds = this.#options.seconds / turns;
    const { writes, searches, indexes, title } = OPERATIONS[operation];
    const ports = this.#subjects.map(({ port }) => port);
    const load = (to: readonly number[], length: number) => {
      const adds = to === ports && searches === true;
      return this.#client.tell({ kind: "load", ports: to, operation, concurrency, seconds: length, adds }) as Promise<Run>;
    };
    const bodies = (await this.#client.tell({ kind: "sample", port: subject.port, operation })) as string[];
    const loops: Partial<Record<OperationName, string[]>> = {
      "agent-loop": ["/context", "/turns", "/state", "/memory"],
      "agent-step": ["/context", "/turns"],
    };
    const paths = loops[operation] ?? [""];
    const echoPort = await this.#echo.tell({ answers: bodies.map((body, index) => ({ path: paths[index] as string, body })) });
    // Code that runs for the first time is compiled, and a user's first search reads which vectors are theirs.
    await load(ports, this.#options.seconds);

    const runs = { cairn: [] as Costed[], echo: [] as Costed[], commits: [] as (CommitsResult & Costed)[] };
    let indexedMs: number | undefined;
    for (let turn = 0; turn < turns; turn++) {
      const withIndex = async () => {
        const run = await load(ports, seconds);
        if (indexes && this.#database === undefined) indexedMs = Math.max(indexedMs ?? 0, await subject.settled());
        return run;
      };
      runs.cairn.push(await costed(this.#pids, withIndex));
      if (!limits) continue;
      runs.echo.push(await costed([this.#echo.pid], () => load([echoPort], seconds)));
      if (writes) {
        const commit = () => this.#commits.tell({ kind: "load", operation, concurrency, seconds });
        runs.commits.push(await costed([this.#commits.pid], commit));
      }
    }
    const commits = middle(runs.commits);
    return {
      operation,
      title,
      concurrency,
      cairn: middle(runs.cairn) as Costed,
      indexedMs,
      bytes: bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0),
      echo: middle(runs.echo),
      commits: commits && { ...commits, puts: runs.commits[0]?.puts ?? 0, bytes: runs.commits[0]?.bytes ?? 0 },
    };
  }

  async #embeddingCosts(): Promise<EmbeddingCost[]> {
    say("embedding …");
    const child = new Child<EmbeddingOrder, EmbeddingCost[]>("embedding.ts");
    try {
      return await child.tell({ rounds: this.#options.turns });
    } finally {
      child.end();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    for (const child of [this.#client, this.#echo, this.#commits, this.#filling]) child.end();
    for (const one of this.#subjects) one.kill();
    this.#postgres?.stop();
    rmSync(this.#directory, { recursive: true, force: true });
    return Promise.resolve();
  }
}

/** Of each figure the median over the turns; counts are summed up. */
function middle(runs: readonly Costed[]): Costed | undefined {
  if (runs.length === 0) return undefined;
  const of = (figure: keyof Costed) => median(runs.map((run) => run[figure]));
  const sum = (figure: "count" | "errors") => runs.reduce((total, run) => total + run[figure], 0);
  return {
    count: sum("count"),
    errors: sum("errors"),
    perSecond: of("perSecond"),
    p50: of("p50"),
    p95: of("p95"),
    p99: of("p99"),
    cpuMsEach: of("cpuMsEach"),
  };
}

function say(line: string): void {
  console.error(line);
}

await runScript(async () => {
  if (Bun.argv[2] === "recall") return measureRecall(Bun.argv.slice(3));
  if (Bun.argv[2] === "pairs") return measurePairs(Bun.argv.slice(3));
  if (Bun.argv[2] === "hook") return measureHook(Bun.argv.slice(3));
  const options = readOptions();
  if (options === undefined) return console.log(HELP);
  await using bench = new Bench(options);
  process.once("SIGINT", () => void bench[Symbol.asyncDispose]().then(() => process.exit(130)));
  const report = await bench.run();
  if (options.json) console.log(JSON.stringify(report, null, 2));
  else console.log(printReport(report));
});
process.exit();
