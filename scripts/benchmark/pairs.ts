/**
 * `scripts/bench pairs`: what a feature costs, with it and without it by turns on one server, so that both see the same machine.
 *
 * @module
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { Executable } from "../executable.ts";
import { Failure, readArguments } from "../failure.ts";
import { Connection } from "../../src/cli/bench/load/connection.ts";
import { load } from "../../src/cli/bench/load/load.ts";
import { costed, median, type Costed } from "../../src/cli/bench/load/timing.ts";
import {
  addMemory,
  encodeRequest,
  memoryContent,
  OPERATIONS,
  question,
  type OperationName,
  type Request,
} from "../../src/cli/bench/load/workload.ts";

const HELP = `scripts/bench pairs: measures what a feature costs, with it and without it by turns

  --only NAME,NAME         retrieval-log, index-turns, metadata, budget, step (all of them), or add-memory, which
                           needs --beside
  --rounds N               of each (12)
  --seconds N              of a round (0.5)
  --concurrency N          requests at once (1)
  --provider NAME          which embeds (words)
  --binary FILE            another executable (dist/cairn)
  --beside FILE            another executable to compare with, for add-memory
`;

const root = dirname(dirname(import.meta.dir));
const MEMORIES = 1_000;
const TURNS = 1_000;
const PER_BATCH = 100;
const SESSIONS = 100;
const QUESTIONS = 60;
const USER = "user-1";

/** One half of a pair: the requests of a step of it, the i-th, and settings to change before a round. */
interface Half {
  readonly settings?: Record<string, unknown>;
  /** Server that is asked; the first one unless it is the one beside. */
  readonly isBeside?: true;
  readonly requests: (i: number) => Request[];
}

interface Pair {
  readonly title: string;
  readonly halves: readonly [Half, Half];
  /** Figure that is compared: processor time, or loops in a second. */
  readonly by: "cpuMsEach" | "perSecond";
}

interface Parts {
  /** Session of 1,000 turns of a user with 1,000 memories. */
  readonly long: string;
  /** Sessions that take turns or memories, with words indexed and without. */
  readonly indexed: readonly string[];
  readonly plain: readonly string[];
}

const ofOperation = (operation: OperationName, ids: readonly string[]) => (i: number) =>
  OPERATIONS[operation].requests(ids[i % ids.length]!, i, i % 2);

const withMetadata = (request: Request, i: number): Request => ({
  ...request,
  body: { ...(request.body as object), metadata: { channel: `c${i % 7}`, rank: i % 100, open: i % 2 === 0, order: `order-${i}` } },
});

const PAIRS: Record<string, (parts: Parts) => Pair> = {
  "retrieval-log": () => {
    const requests = (i: number): Request[] => [
      { method: "POST", path: "/v1/memory/search", body: { query: question(i % QUESTIONS), user_id: USER, threshold: 0 } },
    ];
    const logging = (isOn: boolean): Half => ({ settings: { retrieval_log: isOn }, requests });
    return { title: "search, logged beside not logged", by: "cpuMsEach", halves: [logging(true), logging(false)] };
  },
  "index-turns": ({ indexed, plain }) => ({
    title: "add turn, words indexed beside not indexed",
    by: "cpuMsEach",
    halves: [{ requests: ofOperation("add-turn", indexed) }, { requests: ofOperation("add-turn", plain) }],
  }),
  metadata: ({ indexed }) => ({
    title: "add memory, 4 members of metadata beside none",
    by: "cpuMsEach",
    halves: [
      { requests: (i) => [withMetadata(addMemory(indexed[i % indexed.length]!, i), i)] },
      { requests: (i) => [addMemory(indexed[i % indexed.length]!, i)] },
    ],
  }),
  budget: ({ long }) => {
    const limits = { memory_limit: 20, turn_limit: 50 };
    const contexts = (more: object): Half => ({
      requests: (i) => [
        { method: "POST", path: `/v1/sessions/${long}/context`, body: { query: question(i % QUESTIONS), ...limits, ...more } },
      ],
    });
    const halves = [contexts({ max_tokens: 8_000 }), contexts({})] as const;
    return { title: "context of 8,000 tokens beside one without a budget", by: "cpuMsEach", halves };
  },
  step: ({ indexed }) => ({
    title: "loops as context and step beside the four calls",
    by: "perSecond",
    halves: [{ requests: ofOperation("agent-step", indexed) }, { requests: ofOperation("agent-loop", indexed) }],
  }),
  "add-memory": ({ plain }) => ({
    title: "add memory beside the other executable",
    by: "cpuMsEach",
    halves: [{ requests: ofOperation("add-memory", plain) }, { isBeside: true, requests: ofOperation("add-memory", plain) }],
  }),
};

export async function measurePairs(args: string[]): Promise<void> {
  const { values } = readArguments({
    args,
    options: {
      only: { type: "string", default: "retrieval-log,index-turns,metadata,budget,step" },
      rounds: { type: "string", default: "12" },
      seconds: { type: "string", default: "0.5" },
      concurrency: { type: "string", default: "1" },
      provider: { type: "string", default: "words" },
      binary: { type: "string", default: join(root, "dist/cairn") },
      beside: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const names = values.only.split(",");
  const unknown = names.find((name) => !Object.hasOwn(PAIRS, name));
  if (unknown !== undefined) throw new Failure(`There is no ${unknown}; there are ${Object.keys(PAIRS).join(", ")}.`);
  if (names.includes("add-memory") && values.beside === undefined) throw new Failure("add-memory needs --beside FILE.");
  const [rounds, seconds, concurrency] = [values.rounds, values.seconds, values.concurrency].map(Number) as [number, number, number];
  for (const [option, number] of Object.entries({ rounds, seconds, concurrency }))
    if (!(number > 0)) throw new Failure(`--${option} must be a number above 0; got ${values[option as keyof typeof values]}.`);
  // Beside the repository's own files: a temporary directory may be in RAM, where a flush costs nothing.
  mkdirSync(join(root, "dist"), { recursive: true });
  const directory = mkdtempSync(join(root, "dist/bench-"));
  const servers: Server[] = [];
  try {
    for (const binary of [values.binary, ...(values.beside === undefined ? [] : [values.beside])])
      servers.push(await filled(binary, join(directory, `data-${servers.length}`), values.provider));
    for (const name of names) {
      const pairs = servers.map(({ parts }) => PAIRS[name]!(parts));
      console.log(await compared(servers, pairs, { rounds, seconds, concurrency }));
    }
  } finally {
    for (const { executable } of servers) executable.kill();
    rmSync(directory, { recursive: true, force: true });
  }
}

interface Server {
  readonly executable: Executable;
  readonly key: string;
  readonly parts: Parts;
}

async function filled(binary: string, dataDirectory: string, provider: string): Promise<Server> {
  const environment = { CAIRN_EMBEDDING_PROVIDER: provider };
  const executable = await Executable.start({ binary, dataDirectory, logLevel: "error", log: `${dataDirectory}.log`, environment });
  const key = await executable.createKey();
  const connection = await Connection.open(executable.port);
  const ask = async (path: string, body: object) =>
    JSON.parse(await connection.askFor(encodeRequest({ method: "POST", path, body }, key))) as { id: string };
  const session = (more: object) => ask("/v1/sessions", { agent_id: "agent", user_id: USER, ...more });
  const { id: long } = await session({});
  const batches = (count: number, of: (i: number) => object) =>
    Array.from({ length: count / PER_BATCH }, (_, batch) => Array.from({ length: PER_BATCH }, (_, i) => of(batch * PER_BATCH + i)));
  for (const memories of batches(MEMORIES, (i) => ({ session_id: long, content: memoryContent(i) })))
    await ask("/v1/memory/batch", { memories });
  for (const turns of batches(TURNS, (i) => OPERATIONS["add-turn"].requests(long, i, 0)[0]!.body as object))
    await ask(`/v1/sessions/${long}/turns/batch`, { turns });
  const sessions = async (more: object) => {
    const ids = [];
    for (let i = 0; i < SESSIONS; i++) ids.push((await session({ user_id: `user-${i + 2}`, ...more })).id);
    return ids;
  };
  const parts = { long, indexed: await sessions({ index_turns: "words" }), plain: await sessions({ index_turns: "off" }) };
  connection.close();
  await executable.settled();
  return { executable, key, parts };
}

/** @param pairs - the pair for each of the servers */
async function compared(
  servers: readonly Server[],
  pairs: readonly Pair[],
  { rounds, seconds, concurrency }: { rounds: number; seconds: number; concurrency: number },
): Promise<string> {
  const { title, by, halves } = pairs[0]!;
  const runs: [Costed[], Costed[]] = [[], []];
  let asked = 0;
  const run = async (half: 0 | 1) => {
    const at = halves[half].isBeside === true ? 1 : 0;
    const { executable, key } = servers[at]!;
    const { settings, requests } = pairs[at]!.halves[half];
    if (settings !== undefined) await executable.set(settings);
    const next = () => () => requests(asked++).map((request) => encodeRequest(request, key));
    return costed([executable.pid], () => load([executable.port], concurrency, seconds, next));
  };
  // Code that runs for the first time is compiled.
  for (const half of [0, 1] as const) await run(half);
  for (let round = 0; round < rounds; round++)
    for (const half of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) runs[half].push(await run(half));
  const failed = runs.flat().reduce((sum, { errors }) => sum + errors, 0);
  if (failed > 0) throw new Failure(`${title}: ${failed} requests failed.`);
  const ratios = runs[0].map((one, i) => one[by] / runs[1][i]![by]).toSorted((a, b) => a - b);
  const [first, last] = [ratios[Math.floor(ratios.length / 4)]!, ratios[Math.floor((ratios.length * 3) / 4)]!];
  const figures = runs.map((each) => median(each.map((one) => one[by])).toFixed(3)).join(" and ");
  const unit = by === "cpuMsEach" ? "ms of processor time" : "a second";
  return `${title}: ${median(ratios).toFixed(3)} times (${first.toFixed(3)} to ${last.toFixed(3)} in the middle half; ${figures} ${unit})`;
}
