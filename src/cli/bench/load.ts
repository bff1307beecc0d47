/**
 * `cairn bench load`: the loop of an agent, in four requests and as a step in two, by turns, on some numbers of connections.
 *
 * @module
 */
import { readBenchConfig, UsageError } from "../../config.ts";
import { version } from "../../lib/version.ts";
import { print } from "../print.ts";
import { showProgress } from "../progress.ts";
import { makeKey } from "../selftest/own-server.ts";
import { Connection } from "./load/connection.ts";
import { load } from "./load/load.ts";
import { pick, randomOf } from "./load/texts.ts";
import { costed, median, type Costed, type Run } from "./load/timing.ts";
import { addMemory, createSession, encodeRequest, filling, OPERATIONS, SESSIONS_PER_USER, type Request } from "./load/workload.ts";
import { assertOptions, numberIn } from "./options.ts";
import { clientOf, namedServer, startServer, type BenchServer } from "./server.ts";
import { aligned, whole } from "./tables.ts";

const FLAGS = ["connections", "sessions", "seconds", "dir", "url"] as const;
const SWITCHES = ["json"] as const;
const CONNECTIONS = [1, 16, 64];
const CONNECTIONS_MAX = 1_024;
const SESSIONS = 100;
const SESSIONS_MAX = 100_000;
const SECONDS = 6;
const SECONDS_MAX = 3_600;
/** Machines change their mind within seconds: each is measured in turns, and the median counts. */
const TURNS = 3;
const MEMORIES_PER_SESSION = 10;
const FILL_CONNECTIONS = 16;
const KINDS = ["agent-loop", "agent-step"] as const;
type Kind = (typeof KINDS)[number];

/** One number of connections; milliseconds of the server's processor time are null where it is not this command's own. */
interface Measured {
  readonly connections: number;
  readonly loop: Figures;
  readonly step: Figures;
}

interface Figures extends Run {
  readonly cpuMsEach: number | null;
}

export async function benchLoad(args: readonly string[]): Promise<number> {
  const config = readBenchConfig(args, { flags: FLAGS, switches: SWITCHES });
  const { flags, has, positionals } = config;
  assertOptions("load", config, [...FLAGS, ...SWITCHES]);
  if (positionals.length > 0) throw new UsageError("cairn bench load takes no file");
  const connections = connectionsIn(flags["connections"]);
  const count = numberIn(flags, "sessions", SESSIONS_MAX, SESSIONS);
  const seconds = numberIn(flags, "seconds", SECONDS_MAX, SECONDS);
  await using server = config.server === undefined ? await startServer(flags["dir"]) : namedServer(config.server);
  await using filled = await Filled.on(server, count);
  const measured: Measured[] = [];
  using progress = showProgress("Measuring", "runs");
  for (const at of connections) {
    const runs: Record<Kind, Costed[]> = { "agent-loop": [], "agent-step": [] };
    // Code that runs for the first time is compiled.
    for (const kind of KINDS) await filled.load(kind, at, seconds / TURNS);
    for (let turn = 0; turn < TURNS; turn++)
      for (const kind of KINDS) {
        runs[kind].push(await costed(server.pid === undefined ? [] : [server.pid], () => filled.load(kind, at, seconds / TURNS)));
        progress.show(measured.length * TURNS + turn, connections.length * TURNS);
      }
    const figures = (kind: Kind) => medianOf(runs[kind], server.pid !== undefined);
    measured.push({ connections: at, loop: figures("agent-loop"), step: figures("agent-step") });
  }
  progress.clear();
  const head = { cairn: version, sessions: count, seconds };
  await print(has("json") ? JSON.stringify({ ...head, measured }, undefined, 2) : tableOf(head, measured).join("\n"));
  return 0;
}

function connectionsIn(text: string | undefined): readonly number[] {
  if (text === undefined) return CONNECTIONS;
  return text.split(",").map((one) => numberIn({ connections: one }, "connections", CONNECTIONS_MAX, 1));
}

/** Sessions to work on, of users that nobody else has; their removal is the end. */
class Filled implements AsyncDisposable {
  readonly #server: BenchServer;
  readonly #ids: readonly string[];
  readonly #prepared = new Map<Kind, readonly Uint8Array[][]>();

  private constructor(server: BenchServer, ids: readonly string[]) {
    this.#server = server;
    this.#ids = ids;
  }

  static async on(server: BenchServer, count: number): Promise<Filled> {
    using progress = showProgress("Filling", "sessions");
    const ids: string[] = [];
    const run = makeKey().slice(-12);
    let next = 0;
    const lane = async () => {
      const connection = await Connection.open(server.address);
      const ask = (request: Request) => connection.askFor(encodeRequest(request, server.key, server.address.host));
      while (next < count) {
        const session = next++;
        const request = createSession(session);
        const user = `cairn-bench-${run}-${Math.floor(session / SESSIONS_PER_USER)}`;
        const { id } = JSON.parse(await ask({ ...request, body: { ...(request.body as object), user_id: user } })) as { id: string };
        ids[session] = id;
        for (const one of filling(id, session)) await ask(one);
        for (let i = 0; i < MEMORIES_PER_SESSION; i++) await ask(addMemory(id, FILLED_FROM + session * MEMORIES_PER_SESSION + i));
        progress.show(session, count);
      }
      connection.close();
    };
    await Promise.all(Array.from({ length: Math.min(FILL_CONNECTIONS, count) }, lane));
    return new Filled(server, ids);
  }

  /** Sessions are drawn at random, always the same ones. */
  load(kind: Kind, connections: number, seconds: number): Promise<Run> {
    const requests = this.#requestsOf(kind);
    return load([this.#server.address], connections, seconds, (connection) => {
      const random = randomOf(connection);
      return () => pick(requests, random);
    });
  }

  #requestsOf(kind: Kind): readonly Uint8Array[][] {
    const { address, key } = this.#server;
    const prepared =
      this.#prepared.get(kind) ??
      [0, 1].flatMap((variant) =>
        this.#ids.map((id, session) =>
          OPERATIONS[kind].requests(id, session, variant).map((request) => encodeRequest(request, key, address.host)),
        ),
      );
    this.#prepared.set(kind, prepared);
    return prepared;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A store of its own is removed whole.
    if (this.#server.pid !== undefined) return;
    const client = clientOf(this.#server);
    for (const id of this.#ids) await client.sessions.delete(id);
  }
}

/** Texts of these memories are of no request's. */
const FILLED_FROM = 1 << 22;

function medianOf(runs: readonly Costed[], isOwn: boolean): Figures {
  const of = (figure: keyof Costed) => median(runs.map((run) => run[figure]));
  const total = (figure: "count" | "errors") => runs.reduce((all, run) => all + run[figure], 0);
  return {
    count: total("count"),
    errors: total("errors"),
    perSecond: of("perSecond"),
    p50: of("p50"),
    p95: of("p95"),
    p99: of("p99"),
    cpuMsEach: isOwn ? of("cpuMsEach") : null,
  };
}

const COLUMNS = ["", "connections", "per s", "p50 ms", "p95 ms", "p99 ms", "errors", "CPU ms"];
const TITLES: Readonly<Record<"loop" | "step", string>> = { loop: "loop of 4 requests", step: "step of 2 requests" };

function tableOf(
  { cairn, sessions, seconds }: { cairn: string; sessions: number; seconds: number },
  measured: readonly Measured[],
): string[] {
  const row = (kind: "loop" | "step", { connections, [kind]: figures }: Measured) => {
    const { perSecond, p50, p95, p99, errors, cpuMsEach } = figures;
    const times = [p50, p95, p99].map((ms) => ms.toFixed(1));
    return [TITLES[kind], `${connections}`, perSecond.toFixed(1), ...times, `${errors}`, cpuMsEach?.toFixed(2) ?? ""];
  };
  const ratio = ({ connections, loop, step }: Measured) => {
    const cpu =
      loop.cpuMsEach === null || step.cpuMsEach === null ? "" : `, ${(step.cpuMsEach / loop.cpuMsEach).toFixed(2)} of its processor time`;
    return `${connections} at once: a step takes ${(step.p50 / loop.p50).toFixed(2)} of the time of a loop (p50)${cpu}`;
  };
  return [
    `cairn ${cairn}: ${whole(sessions)} sessions; each measured ${TURNS} times, ${seconds} s in all`,
    "",
    ...aligned([COLUMNS, ...measured.flatMap((one) => [row("loop", one), row("step", one)])]),
    "",
    ...measured.map(ratio),
    ...(measured.some(({ loop }) => loop.cpuMsEach === null)
      ? ["The processor time of a server that is named with --url is not known."]
      : []),
  ];
}
