/**
 * Clients that change the same records through several servers at once, and what has to hold of all that they were answered.
 *
 * @module
 */
import { expect } from "bun:test";
import { Chance, type Answer, type CairnProcess } from "../support/process.ts";

/** What clients do: changes of few documents, states of few sessions, all of it beside erasures of the user who has the documents. */
export type Kind = "batches" | "states" | "mixed with erasures";

const CLIENTS = 8;
const USERS = ["ada", "eve"];
const NAMESPACES = [["orders"], ["orders", "open"], ["parcels"]];
const KEYS = 4;
const SESSIONS = 4;
const OPERATIONS_MAX = 5;

interface Operation {
  readonly op: string;
  readonly namespace: readonly string[];
  readonly key?: string;
  readonly value?: { readonly number: number };
}

export class Contention {
  readonly #servers: readonly CairnProcess[];
  readonly #chance: Chance;
  readonly #kind: Kind;
  readonly #sessions: string[] = [];
  /** How many states of each session were acknowledged. */
  readonly #states = new Map<string, number>();
  /** Of documents: how many more there are, and what was taken away, by user. */
  readonly #documents = new Map<string, number>();
  readonly #popped: number[] = [];
  /** Counts on through all loads: documents that one leaves are popped in the next one, which puts others. */
  static #values = 0;
  /** Milliseconds of each request, and of those of a user whom nobody else knows. */
  readonly #latencies: number[] = [];
  readonly #othersLatencies: number[] = [];
  readonly #problems: string[] = [];

  constructor(servers: readonly CairnProcess[], kind: Kind, seed: number) {
    this.#servers = servers;
    this.#kind = kind;
    this.#chance = new Chance(seed);
  }

  async run(seconds: number): Promise<void> {
    for (let i = 0; i < SESSIONS; i++) {
      const { id } = await this.#servers[0]!.createSession({ user_id: `of-state-${i % 2}` });
      this.#sessions.push(id);
      this.#states.set(id, 0);
    }
    const end = performance.now() + seconds * 1_000;
    const clients = Array.from({ length: CLIENTS }, (_, client) => this.#repeat(end, () => this.#step(this.#serverOf(client))));
    const other = this.#repeat(end, (number) => this.#createAlone(number));
    await Promise.all([...clients, other]);
  }

  /** How long requests took, those of a user whom nobody else knows apart. */
  get latencies() {
    const [all, others] = [this.#latencies, this.#othersLatencies];
    const shown = { requests: all.length, p99Ms: percentile(all, 99), maxMs: percentile(all, 99.999) };
    return { ...shown, othersP99Ms: percentile(others, 99), othersMaxMs: percentile(others, 99.999) };
  }

  /** Nothing is lost, and nothing there twice. */
  async check(): Promise<void> {
    expect(this.#problems.slice(0, 3)).toEqual([]);
    for (const server of this.#servers) {
      for (const [id, states] of this.#states) {
        expect(await server.ok(server.get(`/v1/sessions/${id}/state`))).toMatchObject({ version: states });
      }
      const counted = await Promise.all(USERS.map((user) => this.#count(server, user)));
      if (this.#kind === "batches") expect(counted).toEqual(USERS.map((user) => this.#documents.get(user) ?? 0));
    }
    expect(new Set(this.#popped).size).toBe(this.#popped.length);
    expect(this.#latencies.length).toBeGreaterThan(CLIENTS);
    expect(this.#othersLatencies.length).toBeGreaterThan(0);
  }

  async #repeat(end: number, step: (number: number) => Promise<void>): Promise<void> {
    for (let number = 0; performance.now() < end; number++) await step(number);
  }

  #serverOf(client: number): CairnProcess {
    return this.#servers[client % this.#servers.length]!;
  }

  async #timed(asked: () => Promise<Answer>, latencies = this.#latencies): Promise<any> {
    const startedAt = performance.now();
    const { status, text, body } = await asked();
    latencies.push(performance.now() - startedAt);
    if (status < 200 || status > 299) this.#problems.push(`${status} ${text}`);
    return body;
  }

  async #step(server: CairnProcess): Promise<void> {
    const isBatch = this.#kind === "batches" || (this.#kind !== "states" && this.#chance.below(2) === 0);
    if (this.#kind === "mixed with erasures" && this.#chance.below(40) === 0) await this.#erase(server);
    else if (isBatch) await this.#changeDocuments(server);
    else await this.#setState(server);
  }

  async #setState(server: CairnProcess): Promise<void> {
    const id = this.#chance.pick(this.#sessions)!;
    const { state_version: version } = await this.#timed(() =>
      server.post(`/v1/sessions/${id}/state`, { state: { n: ++Contention.#values } }),
    );
    if (typeof version === "number") this.#states.set(id, this.#states.get(id)! + 1);
  }

  #operation(): Operation {
    const namespace = this.#chance.pick(NAMESPACES)!;
    const key = `k${this.#chance.below(KEYS)}`;
    const put = { op: "put", namespace, value: { number: ++Contention.#values } };
    const some: Operation[] = [put, put, { ...put, key }, { op: "delete", namespace, key }, { op: "pop", namespace }];
    return this.#chance.below(12) === 0 ? { op: "delete_all", namespace } : this.#chance.pick(some)!;
  }

  async #changeDocuments(server: CairnProcess): Promise<void> {
    const user = this.#chance.pick(USERS)!;
    const operations = Array.from({ length: 1 + this.#chance.below(OPERATIONS_MAX) }, () => this.#operation());
    const body = await this.#timed(() => server.post("/v1/documents/batch", { user_id: user, operations }));
    const results: any[] = body?.data ?? [];
    let more = 0;
    for (const [i, result] of results.entries()) {
      const { op } = operations[i]!;
      if (op === "put") more += result.version === 1 ? 1 : 0;
      else if (op === "pop") {
        if (result !== null) {
          more--;
          this.#popped.push(result.value.number);
        }
      } else more -= result.deleted;
    }
    this.#documents.set(user, (this.#documents.get(user) ?? 0) + more);
  }

  async #erase(server: CairnProcess): Promise<void> {
    const startedAt = performance.now();
    const { status, text } = await server.delete(`/v1/users/${this.#chance.pick(USERS)!}`);
    this.#latencies.push(performance.now() - startedAt);
    // Nothing of the user may be there.
    if (status !== 200 && status !== 404) this.#problems.push(`${status} ${text}`);
  }

  async #createAlone(number: number): Promise<void> {
    const server = this.#serverOf(number);
    await this.#timed(() => server.post("/v1/sessions", { agent_id: "alone", user_id: "nobody else" }), this.#othersLatencies);
  }

  async #count(server: CairnProcess, user: string): Promise<number> {
    const operations = NAMESPACES.map((namespace) => ({ op: "count", namespace }));
    const answer = await server.ok(server.post("/v1/documents/query", { user_id: user, operations }));
    return (answer.data as { count: number }[]).reduce((sum, { count }) => sum + count, 0);
  }
}

/** Returns the value that so many of a hundred do not exceed. */
function percentile(values: readonly number[], percent: number): number {
  return Math.round(values.toSorted((a, b) => a - b)[Math.floor((values.length * percent) / 100)] ?? Number.NaN);
}
