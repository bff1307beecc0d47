/**
 * A whole Cairn in this process, on a directory of its own, with a clock that the test moves. Requests go through the
 * front door: the HTTP application, without a socket.
 *
 * On PostgreSQL it can be several servers: each request goes to the next of them, and each has a clock that is wrong in its own way.
 *
 * @module
 */
import { SQL } from "bun";
import { spyOn } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../../src/server/app.ts";
import { createFirstKey } from "../../src/keys/first-key.ts";
import { createKey, type NewKey } from "../../src/keys/keys.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { NO_PARTITION } from "../../src/lib/ids.ts";
import { createLog, type Log } from "../../src/lib/log.ts";
import { examineAll } from "../../src/operations/doctor.ts";
import { stored } from "../../src/operations/records.ts";
import { openService, type Service, type ServiceOptions } from "../../src/server/service.ts";
import { changesIn, type GivenSettings } from "../../src/settings/schema.ts";
import type { Reader } from "../../src/storage/access.ts";
import { MAX_KEY } from "../../src/storage/keys.ts";
import type { Store } from "../../src/storage/lmdb/store.ts";
import { idOfEntry, locationOf, relationOf } from "../../src/storage/postgres/schema.ts";
import type { AnyTable, Index } from "../../src/storage/tables.ts";
import { EVENT_TYPES } from "../../src/traces/events.ts";
import type { VectorIndex } from "../../src/search/vector-index.ts";
import { FakeClock } from "./clock.ts";
import { expectDocumented } from "./documented.ts";
import { giveBackDatabase, newDatabase, SERVERS } from "./stores.ts";

/** Searches of tests of something else leave nothing in the log of retrievals, and no id in their answers. */
const NO_LOG = { retrieval_log: false };

/** Settings without those that are undefined: these have their default. */
const given = (settings: object) => Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));

export interface Options extends Omit<ServiceOptions, "environment"> {
  /** The settings of the environment, written as for `PATCH /v1/settings`. */
  environment?: Record<string, unknown>;
  /** Where to open; one that is given is not removed at the end. */
  directory?: string;
  /** The URL of a database; one that is given is not removed at the end. */
  database?: string | undefined;
  clock?: FakeClock;
  allowedHosts?: string[];
  metrics?: "open" | "key";
  host?: string;
  corsOrigins?: string[];
  requireHttps?: boolean;
  /** How many servers share its database; as many as the run of the tests says unless given. */
  servers?: number;
}

/** A graph is built of however few vectors, as it is of 5,000 otherwise. */
export const WITH_GRAPH: Options = { index: { graphFrom: 0 } };

/** No test looks a name up outside: every name is the same public address. */
const resolve = () => Promise.resolve(["93.184.215.14"]);

export interface Answer<Body = any> {
  status: number;
  headers: Headers;
  body: Body;
}

export interface RequestOptions {
  body?: unknown;
  /** Sent as it is, with whatever content type the headers say. */
  raw?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  headers?: Record<string, string>;
  /** null presents none. */
  key?: string | null;
  /** Which server is asked; the next one unless given. */
  server?: number;
}

interface Server {
  readonly service: Service;
  readonly app: ReturnType<typeof createApp>;
  /** The answers that it has still to give. */
  readonly underWay: Set<Promise<Response>>;
}

const DELIVERIES = "webhook deliveries";
/** Said at each start, of every database of the tests. */
const NO_STANDBY = "the database names no synchronous standby";

/** The clocks of two servers are that far apart. */
const SKEW_MS = 2_000;
/** Leases do not end by the clock, which a test moves on by months at once, while nobody can renew them. */
const LEASE_MS = 1_000 * 365 * 86_400_000;
/** Of each server to the database: opening them is a fifth of what a short test on PostgreSQL costs. */
const CONNECTIONS = 4;
/** Changes of a database are at most that much later than its time, unless that was set back. */
const LATER_MS_MAX = 60_000;

export class Cairn implements AsyncDisposable {
  /** The lines of the operator's log, but for that of a missing standby. */
  readonly logged: string[] = [];
  readonly #log: Log = createLog({
    level: "debug",
    pretty: false,
    now: () => this.clock.now(),
    write: (line) => void (line.includes(NO_STANDBY) || this.logged.push(line)),
  });
  readonly clock: FakeClock;
  readonly directory: string;
  #servers: Server[] = [];
  #requests = 0;
  /** Directories of servers but the first. */
  readonly #others: string[] = [];
  /** An enterprise key with all scopes. */
  key = "";
  readonly #options: Options;
  /** The database of this Cairn, where tests run on PostgreSQL. */
  #database: string | undefined;
  /** How far the clock was set ahead when it was measured last. */
  #offset = Number.NaN;
  /** The time of the last change of a database, and the server that made it. */
  #lastChange: { at: number; by: Service } | undefined;
  readonly #deliveryRuns = new Set<Promise<number>>();

  constructor(options: Options) {
    this.#options = options;
    this.clock = options.clock ?? new FakeClock();
    this.directory = options.directory ?? mkdtempSync(join(tmpdir(), "cairn-test-"));
  }

  async open(): Promise<this> {
    this.#database ??= this.#options.database ?? (await newDatabase());
    const servers = this.#database === undefined ? 1 : (this.#options.servers ?? SERVERS);
    while (this.#others.length < servers - 1) this.#others.push(mkdtempSync(join(tmpdir(), "cairn-test-")));
    while (this.#servers.length < servers) this.#servers.push(await this.#openServer(this.#servers.length));
    this.key = (await createFirstKey(this.service, this.service.system)) ?? this.key;
    return this;
  }

  async #openServer(i: number): Promise<Server> {
    const directory = [this.directory, ...this.#others][i]!;
    const clock: Clock = i === 0 ? this.clock : this.clock.ahead(i * SKEW_MS);
    const service = await openService(directory, clock, this.#log, {
      ...this.#options,
      database: this.#database && `${this.#database}&pool_max_conns=${CONNECTIONS}`,
      databaseTime: () => Promise.resolve(this.clock.now()),
      leaseMs: LEASE_MS,
      environment: changesIn(given({ ...NO_LOG, ...this.#options.environment })) as GivenSettings,
      network: { resolve, ...this.#options.network },
    });
    const app = createApp({
      ...service,
      host: this.#options.host ?? "127.0.0.1",
      allowedHosts: this.#options.allowedHosts ?? [],
      metrics: this.#options.metrics ?? "key",
      corsOrigins: this.#options.corsOrigins ?? [],
      requireHttps: this.#options.requireHttps ?? false,
      version: "test",
    });
    if (this.#database !== undefined) this.#followChanges(service);
    return { service, app, underWay: new Set() };
  }

  /** Where its store is, and the time of that, for commands beside it. */
  get place() {
    return { dataDirectory: this.directory, database: this.#database, databaseTime: () => Promise.resolve(this.clock.now()) };
  }

  /** The parts themselves, of the first server, for what cannot be seen from outside. */
  get service(): Service {
    const [first] = this.#servers;
    if (first === undefined) throw new Error("the Cairn is not open");
    return first.service;
  }

  /** Those of each server. */
  get services(): readonly Service[] {
    return this.#servers.map(({ service }) => service);
  }

  /** Ends the process's hold on the directory, as a stop does. */
  async close(): Promise<void> {
    const servers = this.#servers.splice(0);
    // Runs that the driver has started are waited for as well.
    await Promise.allSettled(this.#deliveryRuns);
    for (const { service } of servers) await service.close();
  }

  async restart(): Promise<void> {
    await this.close();
    await this.open();
  }

  /**
   * Stops each server and starts it again, one after another. Each answers what it was asked before.
   *
   * @param work - is done while one is away, where there are others, and once it is back
   * @param ask - sends requests that may be under way when it stops
   */
  async restartEach(work: () => Promise<unknown>, ask: () => Promise<unknown> = () => Promise.resolve()): Promise<void> {
    for (const i of this.#servers.keys()) {
      const asked = ask();
      const [stopped] = this.#servers.splice(i, 1);
      await Promise.all(stopped?.underWay ?? []);
      await stopped?.service.close();
      await asked;
      if (this.#servers.length > 0) await work();
      this.#servers.splice(i, 0, await this.#openServer(i));
      await work();
    }
  }

  /**
   * What two servers commit in the same millisecond is in no order, but for changes of one record, of which the second is a millisecond
   * later. So the clock is moved on between their commits, and up to the time of each.
   */
  #followChanges(service: Service): void {
    const { store } = service;
    const commit = store.commit.bind(store);
    store.commit = async (home, work) => {
      // A server that was started again knows what came before.
      const isOther = this.#servers.length > 1 && this.#lastChange?.by !== service;
      if (this.#lastChange !== undefined && isOther) this.#reach(this.#lastChange.at + 1);
      let at = 0;
      const result = await commit(home, (tx) => {
        at = tx.now;
        return work(tx);
      });
      this.#reach(at);
      const last = this.#lastChange?.at ?? 0;
      // Commits that wait at the same time do not end in the order of their times.
      if (at >= last || last - this.clock.now() > LATER_MS_MAX) this.#lastChange = { at, by: service };
      return result;
    };
  }

  /** Sets the clock to an earlier time. All servers of a database stand still then: they show the time that is to come again. */
  async setBack(time: number): Promise<void> {
    await this.#showTime();
    this.clock.set(time);
    await this.#showTime();
  }

  async #showTime(): Promise<void> {
    await this.#measuredClock();
    for (const { clock } of this.services) clock.now();
  }

  #reach(time: number): void {
    const ms = time - this.clock.now();
    if (ms > 0 && ms <= LATER_MS_MAX) this.clock.advance({ ms });
  }

  /** Runs a timer's work until there is no more of it now. */
  async runTask(name: string): Promise<void> {
    // Every attempt to deliver wakes this task when it ends; where a run waits for a database, that can be before the run does.
    const canEndMeanwhile = name === DELIVERIES && this.#database !== undefined;
    for (let isIdle = !canEndMeanwhile; ;) {
      const pause = await this.runTaskOnce(name);
      const inFlight = this.services.flatMap(({ webhooks }) => Array.from(webhooks.inFlight));
      const isWaiting = name === DELIVERIES && inFlight.length > 0;
      if (pause !== 0 && isWaiting) await Promise.race(inFlight);
      if (pause !== 0 && !isWaiting && isIdle) return;
      isIdle = !canEndMeanwhile || (pause !== 0 && !isWaiting);
    }
  }

  /** The time of a database is measured now and then; here whenever a test has set the clock. Waits for nothing otherwise. */
  #measuredClock(): Promise<unknown> | undefined {
    if (this.#database === undefined) return undefined;
    const offset = this.clock.now() - this.clock.elapsed();
    if (offset === this.#offset) return undefined;
    this.#offset = offset;
    return Promise.all(this.services.map((service) => runOf(service, "clock of the database")));
  }

  /** Runs one piece of a timer's work, in the server that has the lease of it, or in each. @returns the milliseconds until the next one */
  runTaskOnce(name: string): Promise<number> {
    const run = this.#runTaskOnce(name);
    if (name !== DELIVERIES) return run;
    this.#deliveryRuns.add(run);
    return run.finally(() => this.#deliveryRuns.delete(run));
  }

  async #runTaskOnce(name: string): Promise<number> {
    const measured = this.#measuredClock();
    if (measured !== undefined) await measured;
    const pauses: number[] = [];
    for (const service of await this.#runningOnes(name)) {
      const pause = await runOf(service, name);
      if (pause === undefined) throw new Error(`no task ${name}`);
      pauses.push(pause);
    }
    return Math.min(...pauses);
  }

  /** The server that has the lease of a task, or all where each runs it. */
  async #runningOnes(name: string): Promise<readonly Service[]> {
    const isLeased = this.services[0]?.servers?.leases()[name] !== undefined;
    if (!isLeased) return this.services;
    const holders = () => this.services.filter(({ leases }) => leases.find(name) !== undefined);
    if (holders().length > 0) return holders();
    // Those of servers that were stopped can be had from the next millisecond on, and of killed ones some time later.
    await using sql = new SQL(this.#database ?? "");
    await sql`update cairn.leases set until = 0`;
    for (const service of this.services) await runOf(service, "leases");
    return holders();
  }

  /** The embedded store, for tests of what only that does. */
  get embedded(): Store {
    const { embedded } = this.service;
    if (embedded === undefined) throw new Error("this test is of the embedded store");
    return embedded;
  }

  /** The index of memories of the embedded store. */
  get vectorIndex(): VectorIndex {
    return this.service.vectors as VectorIndex;
  }

  /** What `cairn doctor` finds. */
  async findings(): Promise<readonly object[]> {
    return (await examineAll(this.service.store)).findings;
  }

  /** What the store holds now. */
  async read<Result>(work: (reader: Reader) => Result): Promise<Result> {
    return this.service.store.read(work);
  }

  /** Replaces the texts of rows that are there, whatever they are then, as a failing disk or a wrong program does. */
  async overwrite(table: AnyTable, rows: readonly { key: string; text: string }[]): Promise<void> {
    if (this.#database === undefined) {
      await this.embedded.commit(NO_PARTITION, (tx) => {
        for (const { key, text } of rows) tx.put(stored(table), key, text);
      });
      return;
    }
    await using sql = new SQL(this.#database);
    const [keys, texts] = [rows.map(({ key }) => key), rows.map(({ text }) => text)].map((all) => sql.array(all, "TEXT"));
    await sql`update ${sql.unsafe(relationOf(table.name))} as x set row = w.text, rev = (random() * 2 ^ 52)::int8
      from unnest(${keys}::text[], ${texts}::text[]) as w(key, text) where x.key = w.key`;
  }

  /** Takes the entries of an index away whose records have keys behind `after`, as a Cairn left them that did not know the index. */
  async dropEntries(index: Index<never>, after: string): Promise<void> {
    if (this.#database === undefined) {
      await this.embedded.commit(NO_PARTITION, (tx) => {
        for (const entry of tx.keys(index, { from: "", to: MAX_KEY })) if (index.recordOf(entry) > after) tx.remove(stored(index), entry);
      });
      return;
    }
    await using sql = new SQL(this.#database);
    const { relation, column } = locationOf(index.name);
    if (index.hasMany) await sql`delete from ${sql.unsafe(relation)} where ${sql.unsafe(idOfEntry("key"))} > ${after}`;
    else await sql`update ${sql.unsafe(relation)} set ${sql.unsafe(column)} = null, rev = (random() * 2 ^ 52)::int8 where key > ${after}`;
  }

  /** How many rows a table has, or entries an index. */
  async count(table: AnyTable): Promise<number> {
    return this.service.store.count(table);
  }

  counts(tables: readonly AnyTable[]): Promise<number[]> {
    return Promise.all(tables.map((table) => this.count(table)));
  }

  /** The same by the names of the tables. */
  async countsByName(tables: readonly AnyTable[]): Promise<Record<string, number>> {
    const counts = await this.counts(tables);
    return Object.fromEntries(tables.map(({ name }, i) => [name, counts[i]!]));
  }

  /** Another key; the answer is its secret. */
  async newKey(input: Partial<NewKey> = {}): Promise<string> {
    const measured = this.#measuredClock();
    if (measured !== undefined) await measured;
    const caller = { ...this.service.system, scopes: ["admin"] };
    const made = await createKey(this.service, caller, { name: null, scopes: ["read", "write"], tier: "enterprise", ...input });
    return JSON.parse(made).key as string;
  }

  async request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const { text: _, ...answer } = await this.#answerOf(method, path, options);
    return answer;
  }

  /** A request whose answer need not be JSON. */
  async plain(method: string, path: string, options: RequestOptions = {}): Promise<{ status: number; headers: Headers; text: string }> {
    const { body: _, ...answer } = await this.#answerOf(method, path, options);
    return answer;
  }

  async #handled(request: Request, server = this.#requests++ % this.#servers.length): Promise<Response> {
    const asked = this.#servers[server];
    if (asked === undefined) throw new Error(`there is no server ${server}`);
    const answer = Promise.resolve(asked.app.handle(request));
    asked.underWay.add(answer);
    return answer.finally(() => asked.underWay.delete(answer));
  }

  /** Every answer must be as the OpenAPI document says. */
  async #answerOf(method: string, path: string, options: RequestOptions): Promise<Answer & { text: string }> {
    const measured = this.#measuredClock();
    if (measured !== undefined) await measured;
    const headers = new Headers(options.headers);
    const key = options.key === undefined ? this.key : options.key;
    if (key !== null && !headers.has("x-api-key")) headers.set("x-api-key", key);
    if (!headers.has("host")) headers.set("host", "localhost");
    if (options.body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
    const body = options.raw ?? (options.body === undefined ? null : JSON.stringify(options.body));
    const response = await this.#handled(new Request(`http://localhost${path}`, { method, headers, body }), options.server);
    const text = await textOf(response);
    const isJson = text !== "" && response.headers.get("content-type") === "application/json";
    const answer = { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : undefined };
    expectDocumented(method, path, answer);
    return { ...answer, text };
  }

  /** A stream of events, which is not read yet. */
  async events(
    query = "",
    { key = this.key, headers = {}, server }: { key?: string; headers?: Record<string, string>; server?: number | undefined } = {},
  ): Promise<Response> {
    return this.#handled(
      new Request(`http://localhost/v1/events${query}`, { headers: { host: "localhost", "x-api-key": key, ...headers } }),
      server,
    );
  }

  get(path: string, options?: RequestOptions) {
    return this.request("GET", path, options);
  }
  post(path: string, body?: unknown, options: RequestOptions = {}) {
    return this.request("POST", path, { ...options, body });
  }
  patch(path: string, body?: unknown, options: RequestOptions = {}) {
    return this.request("PATCH", path, { ...options, body });
  }
  delete(path: string, options?: RequestOptions) {
    return this.request("DELETE", path, options);
  }

  /** The body of an answer of success; anything else fails the test with what was answered. */
  async ok(answer: Promise<Answer>): Promise<any> {
    const { status, body } = await answer;
    if (status < 200 || status > 299) throw new Error(`answered ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** The records of a page. */
  async list(path: string, options?: RequestOptions): Promise<any[]> {
    return (await this.ok(this.get(path, options))).data;
  }
  createSession(body: Record<string, unknown> = {}) {
    return this.ok(this.post("/v1/sessions", { agent_id: "agent", ...body }));
  }
  session(id: string) {
    return this.ok(this.get(`/v1/sessions/${id}`));
  }
  setState(id: string, state: unknown, more: Record<string, unknown> = {}) {
    return this.ok(this.post(`/v1/sessions/${id}/state`, { state, ...more }));
  }
  rollback(id: string, version: number, more: Record<string, unknown> = {}) {
    return this.ok(this.post(`/v1/sessions/${id}/rollback`, { version, ...more }));
  }
  addTurn(id: string, input = "in", output = "out", more: Record<string, unknown> = {}) {
    return this.ok(
      this.post(`/v1/sessions/${id}/turns`, {
        input: { type: "text", content: input },
        output: { type: "text", content: output },
        ...more,
      }),
    );
  }
  addMemory(sessionId: string, content: string, more: Record<string, unknown> = {}) {
    return this.ok(this.post("/v1/memory", { session_id: sessionId, content, ...more }));
  }
  /** One after another. */
  async addMemories(sessionId: string, contents: readonly string[], more: Record<string, unknown> = {}): Promise<any[]> {
    const added: unknown[] = [];
    for (const content of contents) added.push(await this.addMemory(sessionId, content, more));
    return added;
  }
  search(query: string, more: Record<string, unknown> = {}) {
    return this.ok(this.post("/v1/memory/search", { query, ...more }));
  }
  context(id: string, more: Record<string, unknown> = {}) {
    return this.ok(this.post(`/v1/sessions/${id}/context`, more));
  }
  subscribe(url: string, more: Record<string, unknown> = {}) {
    return this.ok(this.post("/v1/webhooks", { url, events: EVENT_TYPES, secret: "a secret of my own choice", ...more }));
  }
  webhook(id: string) {
    return this.ok(this.get(`/v1/webhooks/${id}`));
  }
  /** Newest first. */
  deliveries(webhookId: string): Promise<any[]> {
    return this.list(`/v1/webhooks/${webhookId}/deliveries?limit=100`);
  }
  /** What the tasks do when they are woken: events become deliveries, and those that are due are made. */
  async deliver(): Promise<void> {
    if (this.#servers.length > 1) await this.runTask("settings of other servers");
    await this.runTask("webhook outbox");
    await this.runTask(DELIVERIES);
  }
  settings() {
    return this.ok(this.get("/v1/settings"));
  }
  /** Traces of a session, newest first. */
  traces(sessionId: string, action?: string): Promise<any[]> {
    return this.list(`/v1/traces?limit=100&session_id=${sessionId}${action === undefined ? "" : `&action=${action}`}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    const database = this.#options.database === undefined ? this.#database : undefined;
    // Given back once: whoever borrows it next has it alone.
    this.#database = undefined;
    if (database !== undefined) await giveBackDatabase(database);
    for (const directory of this.#others) rmSync(directory, { recursive: true, force: true });
    if (this.#options.directory === undefined) rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Runs one piece of a task's work. @returns the milliseconds until the next one; undefined where there is no such task */
async function runOf({ tasks }: Service, name: string): Promise<number | undefined> {
  return tasks.find((task) => task.name === name)?.run();
}

/** A stream of events does not end by itself: of one the first piece. */
async function textOf(response: Response): Promise<string> {
  if (response.headers.get("content-encoding") === "gzip") return new TextDecoder().decode(Bun.gunzipSync(await response.arrayBuffer()));
  if (response.headers.get("content-type") !== "text/event-stream" || response.body === null) return response.text();
  const reader = response.body.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

/** Lets every commit fail once its work is done, as on a full disk, until the end of the block. */
export function failingCommits({ service: { store } }: Cairn): Disposable {
  const commit = store.commit.bind(store);
  return spyOn(store, "commit").mockImplementation((home, work) =>
    commit(home, (tx) => {
      work(tx);
      throw new Error("the disk is full");
    }),
  );
}

export function startCairn(options: Options = {}): Promise<Cairn> {
  return new Cairn(options).open();
}
