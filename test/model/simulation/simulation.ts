/**
 * Cairn and its model side by side: the same requests to both, with the time moving, timers running and the process
 * starting again in between, all of it drawn from one seed. Whatever is answered is compared whole, and so is the trace that
 * it leaves; now and then everything that there is.
 *
 * @module
 */
import { expect } from "bun:test";
import { MAX_KEY } from "../../../src/storage/keys.ts";
import {
  apiKeys,
  idempotency,
  memories,
  outbox,
  removals,
  sessions,
  traces,
  turns,
  vectors,
  versions,
} from "../../../src/storage/tables.ts";
import { pagesOf, refusal } from "../../support/answers.ts";
import { type Answer, type Cairn, startCairn, WITH_GRAPH } from "../../support/cairn.ts";
import { Chance } from "../../support/process.ts";
import { isOnPostgres, SERVERS } from "../../support/stores.ts";
import { CONTENTS, drawn, QUERIES, Steps } from "./steps.ts";
import { type Caller, DAY_MS, type Expected, type Json, type Key, plain, type Step } from "./wire.ts";
import { type Scores, World } from "./world.ts";

const SHOWN_STEPS = 30;
const SHOWN_LENGTH = 300;
const DEADLINES_LOOKED_AT = 3;
/** More than one commit removes. */
const LARGE_SESSION_TURNS = 210;

/** A request as it was sent, to be sent again. */
interface Sent {
  step: Step;
  key: Key;
  idempotencyKey: string | undefined;
}

/** What is done, of so many times altogether. */
const HAPPENINGS = { request: 1_000, retry: 80, time: 120, deadline: 60, timer: 90, clockSetBack: 20, restart: 10, largeSession: 2 };

/** Set back by more than a minute altogether, several servers give ids in an order of their own until the time has come again. */
const LONGEST_STEP_BACK_MS = SERVERS === 1 ? 3_600_000 : 55_000;

/** How much time passes at once, at most. */
const TIMES = { second: 80, minute: 60, hour: 30, day: 20, month: 4, year: 1 };
const TIMES_MS = { second: 1_000, minute: 60_000, hour: 3_600_000, day: DAY_MS, month: 30 * DAY_MS, year: 400 * DAY_MS };

/** Of all words that simulations use, asked once: a score depends on the two texts and on nothing else. */
async function askScores(): Promise<Scores> {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await Promise.all(CONTENTS.map((content) => cairn.addMemory(id, content)));
  const scores = new Map<string, Map<string, number>>();
  for (const query of QUERIES) {
    const { data } = await cairn.search(query, { threshold: 0, limit: 50 });
    const found = new Map<string, number>(data.map(({ content, score }: Json) => [content, score]));
    expect({ query, found: found.size, same: [...found].filter(([, score]) => score === 1).map(([content]) => content) }).toEqual({
      query,
      found: CONTENTS.length,
      same: CONTENTS.filter((content) => content === query),
    });
    scores.set(query, found);
  }
  return scores;
}
let scores: Promise<Scores> | undefined;

export class Simulation implements AsyncDisposable {
  /** What came about, by name. */
  readonly reached = new Set<string>();
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #cairn: Cairn;
  readonly #world: World;
  readonly #steps: Steps;
  readonly #log: string[] = [];
  #sent: Sent[] = [];
  /** The latest time that the clock was set back from. */
  #latest = 0;

  private constructor(seed: number, cairn: Cairn, knownScores: Scores) {
    this.#seed = seed;
    this.#chance = new Chance(seed);
    this.#cairn = cairn;
    // A server on a database does not step back by a little: it stands still until that time has come again.
    this.#world = new World({ now: () => cairn.service.clock.now() }, knownScores);
    this.#steps = new Steps(this.#world, this.#chance);
  }

  static async start(seed: number): Promise<Simulation> {
    scores ??= askScores();
    const knownScores = await scores;
    const cairn = await startCairn(seed % 2 === 0 ? WITH_GRAPH : {});
    const simulation = new Simulation(seed, cairn, knownScores);
    const [key] = (await cairn.ok(cairn.get("/v1/api_keys"))).data;
    simulation.#world.addFirstKey(key, cairn.key);
    await simulation.#compareNewestTraces(1);
    return simulation;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cairn[Symbol.asyncDispose]();
  }

  /** @throws what did not agree, with the seed and the last steps before it */
  async run(steps: number, stepsBetweenLooks: number): Promise<void> {
    try {
      for (let step = 1; step <= steps; step++) {
        await this.#happenings[drawn(this.#chance, HAPPENINGS)]();
        if (step % stepsBetweenLooks === 0) await this.#compareAll();
      }
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const last = this.#log.slice(-SHOWN_STEPS).join("\n");
      error.message = `Seed ${this.#seed}: ${error.message}\n\nCAIRN_TEST_SEED=${this.#seed} repeats it. The last steps:\n${last}\n`;
      throw error;
    }
  }

  readonly #happenings: Record<keyof typeof HAPPENINGS, () => Promise<void>> = {
    request: async () => {
      const step = this.#steps.next();
      const isChange = (step.method === "POST" || step.method === "PATCH") && step.scope !== "read" && step.name !== "invalid";
      const isIdempotent = isChange && this.#chance.below(3) === 0;
      const sent = { step, key: this.#someKey(), idempotencyKey: isIdempotent ? `key ${this.#log.length}` : undefined };
      if (isIdempotent) this.#sent = [...this.#sent, sent].slice(-20);
      // Rolled twice at once, a key may end before the second one is let in, or after; two servers disagree about the millisecond.
      const isTwice = isIdempotent && step.name !== "rollKey" && this.#chance.below(5) === 0 && SERVERS === 1;
      await this.#send(sent, isTwice ? 2 : 1);
    },
    /** What was sent with an idempotency key is sent again: as it was, with another body, or under another API key. */
    retry: async () => {
      const sent = this.#chance.pick(this.#sent);
      if (sent === undefined) return;
      const { step } = sent;
      const how = this.#chance.below(8);
      // Settings refuse a field that they do not know, once nothing is kept for the key.
      const hasOther = how === 0 && step.name !== "changeSettings";
      if (hasOther) await this.#send({ ...sent, step: { ...step, body: { ...step.body, note: "another body" } } });
      else await this.#send(how === 1 ? { ...sent, key: this.#someKey() } : sent);
    },
    time: async () => this.#pass(Math.ceil(this.#chance.next() * TIMES_MS[drawn(this.#chance, TIMES)])),
    /** Up to when something ends, to the millisecond; then that is looked at. */
    deadline: async () => {
      const soon = this.#steps.one(...this.#deadlines()).filter(({ at }) => at > this.#world.ids.now + 1);
      const next = this.#chance.pick(soon.toSorted((a, b) => a.at - b.at).slice(0, DEADLINES_LOOKED_AT));
      if (next === undefined) return;
      this.#pass(next.at + this.#steps.one(-1, 0, 0, 1) - this.#world.ids.now);
      await this.#send(next.look);
    },
    clockSetBack: async () => {
      const ms = this.#chance.below(this.#steps.one(10, 5_000, LONGEST_STEP_BACK_MS));
      this.#note(`the clock is set back by ${ms} ms`);
      this.reached.add("clock set back");
      const { now } = this.#world.ids;
      this.#latest = Math.max(this.#latest, now);
      // Servers that were started since know of ids from before, and do not stand still.
      await this.#cairn.setBack(Math.min(now, Math.max(now - ms, this.#latest - LONGEST_STEP_BACK_MS)));
    },
    timer: async () => {
      await this.#runTask(this.#steps.one("session expiry", "session expiry", ...Object.keys(this.#world.tasks)));
    },
    restart: async () => {
      this.#note("restart");
      this.reached.add("restart");
      await this.#cairn.restart();
    },
    /** A session that takes more than one commit to remove, and what it knew. */
    largeSession: async () => {
      const memory = this.#world.memories.findLast(({ shown }) => this.#world.sessions.some(({ id }) => id === shown.session_id));
      const key = this.#world.access.allKeys[0];
      if (memory === undefined || key === undefined) return;
      const { id, session_id } = memory.shown;
      const send = (step: Step) => this.#send({ step, key, idempotencyKey: undefined });
      for (let i = 0; i < LARGE_SESSION_TURNS; i++) await send(this.#steps.of("addTurn", session_id));
      if (this.#chance.below(3) === 0) return;
      await send(this.#steps.of("deleteSession", session_id));
      if ((await this.#cairn.count(removals)) > 0) this.reached.add("large session deleted");
      await send(this.#steps.of("getMemory", id));
    },
  };

  #pass(ms: number): void {
    this.#note(`${ms} ms pass`);
    this.#cairn.clock.advance({ ms });
  }

  /** When sessions, traces, keys and kept answers end, and how to see it. */
  #deadlines(): { at: number; look: Sent }[][] {
    const { sessions: there, trail, access } = this.#world;
    const first = access.allKeys[0] as Key;
    const read = (key: Key, step: Step): Sent => ({ step, key, idempotencyKey: undefined });
    return [
      there.map(({ id, expiresAt }) => ({ at: expiresAt, look: read(first, this.#steps.of("getSession", id)) })),
      trail.traces.map(({ shown, expiresAt }) => ({ at: expiresAt, look: read(first, this.#steps.of("getTrace", shown.id)) })),
      access.keys.map((key) => ({ at: key.expiresAt ?? 0, look: read(key, this.#steps.of("listSessions")) })),
      this.#sent.map((sent) => ({ at: access.keptUntil(sent.key, sent.idempotencyKey) ?? 0, look: sent })),
    ];
  }

  /** Mostly the first one, which may do everything; else one of the others, or any there ever was. */
  #someKey(): Key {
    const { keys, allKeys } = this.#world.access;
    const key = this.#chance.below(4) > 0 ? allKeys[0] : this.#chance.pick(this.#chance.below(5) > 0 ? keys : allKeys);
    if (key === undefined) throw new Error("there is no key");
    return key;
  }

  #note(line: string): void {
    this.#log.push(`${this.#log.length} ${new Date(this.#world.ids.now).toISOString()} ${line}`);
  }

  /** Asks Cairn and the model, so many times at once, and compares the answers and what they left behind. */
  async #send({ step, key, idempotencyKey }: Sent, times = 1): Promise<void> {
    const { name, method, path, body } = step;
    const caller: Caller = { key, requestId: `request-${this.#log.length}` };
    const headers = { "X-Request-Id": caller.requestId, ...(idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey }) };
    const said = [idempotencyKey, times > 1 ? "twice at once" : undefined, method, path, JSON.stringify(body)?.slice(0, SHOWN_LENGTH)];
    this.#note([key.shown.prefix, ...said.filter((part) => part !== undefined)].join(" "));
    const tracesBefore = this.#world.trail.traces.length;
    const send = () => this.#cairn.request(method, path, { body, headers, key: key.secret });
    const answers = await Promise.all(Array.from({ length: times }, send));
    // Which of two that come at once is let in first is the server's choice.
    const isReplay = (answer: Answer) => Number(shownOf(answer).isReplay);
    for (const answer of answers.toSorted((a, b) => isReplay(a) - isReplay(b))) {
      const expected = this.#world.access.answer(step, caller, idempotencyKey, answer.body);
      expect(shownOf(answer)).toEqual(expected);
      const { status, body: shown, isReplay } = expected;
      this.reached.add(status < 300 ? `${name}: ${isReplay ? "replayed" : "answered"}` : `refused: ${status} ${shown.code}`);
    }
    await this.#compareNewestTraces(this.#world.trail.traces.length - tracesBefore);
  }

  async #runTask(name: string): Promise<void> {
    this.#note(`timer: ${name}`);
    const tracesBefore = this.#world.trail.traces.length;
    // What a large session left is removed in pieces; between them nobody must see it.
    if (name === "session removal") await this.#cairn.runTaskOnce(name);
    else await this.#runTaskToEnd(name);
    this.#world.tasks[name]?.();
    if (this.#world.trail.traces.length !== tracesBefore) this.reached.add(`timer: ${name}`);
    await this.#compareNewestTraces(Math.max(0, this.#world.trail.traces.length - tracesBefore));
  }

  /** What several servers commit takes a millisecond, in which more can become due. */
  async #runTaskToEnd(name: string): Promise<void> {
    for (let began = Number.NaN; began !== this.#world.ids.now;) {
      began = this.#world.ids.now;
      await this.#cairn.runTask(name);
    }
  }

  /** Reads with the first key, for what is no step itself. */
  #read(path: string): Promise<Json> {
    this.#world.access.read();
    return this.#cairn.ok(this.#cairn.get(path));
  }

  /** So many traces are new, and the one before them is still the one before them. */
  async #compareNewestTraces(count: number): Promise<void> {
    const limit = count + 1;
    const { data } = await this.#read(`/v1/traces?limit=${limit}`);
    const added = this.#world.trail.traces.slice(this.#world.trail.traces.length - count);
    for (const [i, { shown }] of added.entries()) {
      const answered = data[count - 1 - i];
      shown.id = this.#world.ids.take("trace", answered?.id);
      // The clock may be moved on while a database is waited for.
      if (isOnPostgres && shown.metadata.latency_ms === 0) shown.metadata.latency_ms = answered?.metadata.latency_ms;
    }
    expect(data).toEqual(plain(this.#world.trail.list(undefined, { limit }).data));
  }

  async #compareAll(): Promise<void> {
    this.#note("everything is compared");
    const world = this.#world;
    world.access.read();
    const all = async (path: string) => {
      const pages = await pagesOf(this.#cairn, `${path}${path.includes("?") ? "&" : "?"}limit=${this.#steps.one(5, 20, 100)}`);
      return pages.flatMap(({ data }) => data);
    };
    const expectAll = async (path: string, expected: Json[]) =>
      expect({ path, data: await all(path) }).toEqual(plain({ path, data: expected }));
    const everything = { limit: Infinity };
    await expectAll("/v1/sessions", world.listSessions(everything).data);
    await expectAll("/v1/memory", world.listMemories(everything).data);
    await expectAll("/v1/traces", world.trail.list(undefined, everything).data);
    const keys = await all("/v1/api_keys");
    expect(keys).toEqual(plain(world.access.listKeys(keys)));
    for (const { id } of world.listSessions(everything).data) {
      await expectAll(`/v1/sessions/${id}/turns?order=asc`, world.listTurns(id, { ...everything, order: "asc" }).data);
      await expectAll(`/v1/memory?session_id=${id}`, world.listMemories({ ...everything, session_id: id }).data);
      const versionsOf = world.listVersions(id, everything).data;
      await expectAll(`/v1/sessions/${id}/versions`, versionsOf);
      for (const { version } of versionsOf) {
        expect(await this.#read(`/v1/sessions/${id}/versions/${version}`)).toEqual(plain(world.showVersion(id, version)));
      }
    }
    await this.#compareStore();
  }

  /** What cannot be seen from outside: the events that wait, that nothing is left over, and that the store is in order. */
  async #compareStore(): Promise<void> {
    const world = this.#world;
    expect(await this.#cairn.findings()).toEqual([]);
    expect(await this.#cairn.count(outbox)).toBe(0);
    await this.#cairn.runTask("session removal");
    // Those that have expired are removed late where they were kept for less time than any trace that was looked at since the start.
    const expiries = await this.#cairn.read((reader) => reader.rows(traces, { from: "", to: MAX_KEY }).map(({ row }) => row.expiresAt));
    const isThere = (expiresAt: number) => expiresAt > world.ids.now;
    expect(expiries.filter(isThere).length).toBe(world.trail.traces.filter((trace) => isThere(trace.expiresAt)).length);
    const tables = [sessions, versions, turns, memories, vectors, apiKeys, idempotency];
    expect(await this.#cairn.countsByName(tables)).toEqual({
      sessions: world.sessions.length,
      versions: sum(world.sessions.map((session) => session.versions.length)),
      turns: sum(world.sessions.map((session) => session.turns.length)),
      memories: world.memories.length,
      vectors: world.memories.filter(({ embed }) => embed).length,
      api_keys: world.access.keys.length,
      idempotency: world.access.kept.size,
    });
  }
}

/** What an answer is compared by: an error without its text. */
function shownOf(answer: Answer): Expected {
  const { status, body, headers } = answer;
  const { code, param } = refusal(answer);
  return {
    status,
    body: body.error === undefined ? body : plain({ code, param }),
    isReplay: headers.get("Idempotency-Replayed") === "true",
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
