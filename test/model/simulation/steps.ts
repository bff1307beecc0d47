/**
 * The requests that a simulation makes, drawn by chance from all that the API has: mostly sensible ones on what is there,
 * sometimes on what is gone or never was, sometimes ones that are refused.
 *
 * @module
 */
import { unknownId } from "../../support/answers.ts";
import type { Chance } from "../../support/process.ts";
import type { Prefix } from "./ids.ts";
import { type Fields, Refusal, type Step } from "./wire.ts";
import type { World } from "./world.ts";

const AGENTS = ["support-bot", "planner"];
const USERS = ["ada", "böb"];
const TYPES = ["fact", "preference", "of our own"];
const TAGS = ["home", "work", "ü t"];
const TTLS = [1, 60, 3_600, 86_400, 604_800, 604_800, 2_592_000, 2_592_000];
const TEXTS = ["", "Because it was asked for.", "line\nfeed \u0000 😀"];
const VALUES = [0, 1, -1.5, true, "x", "", null, [], [1, { a: null }], {}, { deep: { deeper: [0] } }];
const KEYS = ["a", "b", "c", "ü", "constructor"];

/** A text of more than is shown of it, which counts characters and not halves of them. */
const LONG = `The parcel for the house at the lake ${"😀".repeat(120)} is blue and heavy.`;
export const CONTENTS = [
  "Ada drinks green tea in the morning.",
  "Tea is what she orders, never coffee.",
  "The invoice of March was paid twice.",
  "His train to Vienna leaves at seven.",
  "He prefers e-mail to phone calls.",
  "Do not call the customer before noon.",
  "The cat is allergic to fish.",
  "?!",
  LONG,
];
/** Signs without a word, which no content has. */
const SIGNS = "…?";
export const QUERIES = [...CONTENTS.slice(0, 3), "What does she like to drink?", "How does the customer want to be contacted?", SIGNS];

const LIMITS = [undefined, undefined, 1, 2, 3, 7, 100];

/** How often what is asked for, of so many times altogether. */
const SHARES = {
  createSession: 3,
  getSession: 4,
  listSessions: 4,
  updateSession: 6,
  deleteSession: 2,
  forkSession: 4,
  updateState: 14,
  rollback: 8,
  listVersions: 4,
  getVersion: 4,
  addTurn: 12,
  getTurn: 4,
  listTurns: 4,
  addMemory: 12,
  getMemory: 4,
  listMemories: 5,
  updateMemory: 8,
  deleteMemory: 4,
  search: 7,
  context: 7,
  listTraces: 5,
  getTrace: 3,
  createKey: 3,
  rollKey: 3,
  getKey: 2,
  deleteKey: 1,
  getSettings: 1,
  changeSettings: 2,
  invalid: 3,
};

export const NAMES = Object.keys(SHARES);

/** One of the names, as often as its share says. */
export function drawn<Name extends string>(chance: Chance, shares: Record<Name, number>): Name {
  const names = Object.keys(shares) as Name[];
  let at = chance.below(names.reduce((sum, name) => sum + shares[name], 0));
  return names.find((name) => (at -= shares[name]) < 0) as Name;
}

/** What is wrong wherever it is sent, with what is named as wrong. */
const INVALID: { method: "GET" | "POST"; path: string; scope: string; body?: Fields; param: string }[] = [
  { method: "POST", path: "/v1/sessions", scope: "write", body: {}, param: "agent_id" },
  { method: "POST", path: "/v1/sessions", scope: "write", body: { agent_id: "a", ttl_seconds: 0 }, param: "ttl_seconds" },
  { method: "GET", path: "/v1/sessions?limit=101", scope: "read", param: "limit" },
  { method: "GET", path: "/v1/memory?starting_after=sess_0VQk3aB4x1Zq", scope: "read", param: "starting_after" },
  { method: "POST", path: "/v1/memory", scope: "write", body: { session_id: "sess_0VQk3aB4x1Zq", content: "" }, param: "content" },
  { method: "POST", path: "/v1/memory/search", scope: "read", body: { query: "tea", threshold: 1.1 }, param: "threshold" },
  { method: "GET", path: "/v1/traces?action=session.renamed", scope: "read", param: "action" },
  { method: "POST", path: "/v1/api_keys", scope: "admin", body: { scopes: ["all"] }, param: "scopes.0" },
];

export class Steps {
  readonly #world: World;
  readonly #chance: Chance;

  constructor(world: World, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  next(): Step {
    // Where hardly anything is left, something new begins.
    return this.of(this.#world.sessions.length < 3 ? "createSession" : drawn(this.#chance, SHARES));
  }

  /** A step of this name, and where it is given on this record. */
  of(name: keyof typeof SHARES, id?: string): Step {
    return { name, ...this.#kinds[name](id) };
  }

  /** One of a few. */
  one<Item>(...items: Item[]): Item {
    return this.#chance.pick(items) as Item;
  }

  #isOnce(times: number): boolean {
    return this.#chance.below(times) === 0;
  }

  /** Half of the time left out, which a null says too. */
  #maybe<Value>(value: Value): Value | null | undefined {
    return this.one(value, value, value, undefined, undefined, null);
  }

  #object(): Fields {
    return Object.fromEntries(KEYS.filter(() => this.#isOnce(2)).map((key) => [key, this.one(...VALUES)]));
  }

  #tags(): string[] {
    return TAGS.filter(() => this.#isOnce(2));
  }

  /** Mostly one that is there, rather one of the first or the last; sometimes one that is gone, or never was. */
  #id(prefix: Prefix, there: readonly string[], ever: readonly string[] = this.#world.ids.given[prefix]): string {
    if (this.#isOnce(10)) return this.one(unknownId(prefix), `${prefix}_x`, this.one(...ever) ?? "x");
    return this.one(...this.one(there, there.slice(0, 3), there.slice(-3))) ?? unknownId(prefix);
  }

  #session(): string {
    return this.#id(
      "sess",
      this.#world.sessions.map(({ id }) => id),
    );
  }

  #memory(): string {
    return this.#id(
      "mem",
      this.#world.memories.map(({ shown }) => shown.id),
    );
  }

  #turn(session: string): string {
    return this.#id("turn", this.#world.sessions.find(({ id }) => id === session)?.turns.map(({ id }) => id) ?? []);
  }

  #page(prefix: Prefix): { limit?: number | undefined; starting_after?: string | undefined } {
    return { limit: this.one(...LIMITS), starting_after: this.#isOnce(2) ? undefined : this.one(...this.#world.ids.given[prefix]) };
  }

  /** What is asked of the current version mostly holds. */
  #expectedVersion(session: string): number | undefined {
    const current = (this.#world.sessions.find(({ id }) => id === session)?.versions.length ?? 1) - 1;
    return this.one(undefined, undefined, current, current, current, Math.max(0, current - 1), current + 1);
  }

  #filter(): Fields {
    const rarely = <Value>(value: Value) => (this.#isOnce(3) ? value : undefined);
    return {
      session_id: rarely(this.#session()),
      user_id: rarely(this.one(...USERS)),
      type: rarely(this.one(...TYPES)),
      tags: rarely(this.#tags()),
    };
  }

  readonly #kinds: Record<keyof typeof SHARES, (id?: string) => Omit<Step, "name">> = {
    createSession: () => {
      const body = {
        agent_id: this.one(...AGENTS),
        user_id: this.#maybe(this.one(...USERS)),
        initial_state: this.#maybe(this.#object()),
        metadata: this.#maybe(this.#object()),
        ttl_seconds: this.#maybe(this.one(...TTLS)),
      };
      return post("/v1/sessions", 201, body, (caller, given) => this.#world.createSession(caller, body, given));
    },
    getSession: (id = this.#session()) => {
      return get(`/v1/sessions/${id}`, () => this.#world.showSession(this.#world.live(id)));
    },
    listSessions: () => {
      const filter = { agent_id: this.one(undefined, ...AGENTS), user_id: this.one(undefined, ...USERS), ...this.#page("sess") };
      return get(`/v1/sessions?${query(filter)}`, () => this.#world.listSessions(filter));
    },
    updateSession: (id = this.#session()) => {
      const body = { metadata: this.#maybe(this.#object()), ttl_seconds: this.#maybe(this.one(...TTLS)) };
      return patch(`/v1/sessions/${id}`, body, (caller) => this.#world.updateSession(caller, id, body));
    },
    deleteSession: (id = this.#session()) => {
      const reason = this.one(undefined, ...TEXTS);
      return remove(`/v1/sessions/${id}?${query({ reason })}`, (caller) => this.#world.deleteSession(caller, id, reason));
    },
    forkSession: (id = this.#session()) => {
      const body = { version: this.#maybe(this.#version(id)) };
      return post(`/v1/sessions/${id}/fork`, 201, body, (caller, given) => this.#world.forkSession(caller, id, body, given));
    },
    updateState: (id = this.#session()) => {
      const body = { state: this.#object(), reasoning: this.#maybe(this.one(...TEXTS)), expected_version: this.#expectedVersion(id) };
      return post(`/v1/sessions/${id}/state`, 200, body, (caller) => this.#world.updateState(caller, id, body));
    },
    rollback: (id = this.#session()) => {
      const body = { version: this.#version(id), reason: this.#maybe(this.one(...TEXTS)), expected_version: this.#expectedVersion(id) };
      return post(`/v1/sessions/${id}/rollback`, 200, body, (caller) => this.#world.rollback(caller, id, body));
    },
    listVersions: (id = this.#session()) => {
      const filter = { limit: this.one(...LIMITS), starting_after: this.one(undefined, this.#chance.below(12)) };
      return get(`/v1/sessions/${id}/versions?${query(filter)}`, () => this.#world.listVersions(id, filter));
    },
    getVersion: (id = this.#session()) => {
      const version = Math.max(0, this.#version(id));
      return get(`/v1/sessions/${id}/versions/${version}`, () => this.#world.showVersion(id, version));
    },
    addTurn: (id = this.#session()) => {
      const body = {
        input: { type: this.one("text", "audio", "image", "tool_call"), content: this.one(...TEXTS) },
        output: { type: this.one("text", "image", "tool_result", "tool_response", "error"), content: this.one(...TEXTS) },
        reasoning: this.#maybe(this.one(...TEXTS)),
        metadata: this.#maybe(this.#object()),
        state_before: this.#maybe(this.#object()),
        state_after: this.#maybe(this.#object()),
      };
      return post(`/v1/sessions/${id}/turns`, 201, body, (caller, given) => this.#world.addTurn(caller, id, body, given));
    },
    getTurn: () => {
      const session = this.#session();
      const id = this.#turn(session);
      return get(`/v1/sessions/${session}/turns/${id}`, () => this.#world.getTurn(session, id));
    },
    listTurns: (id = this.#session()) => {
      const filter = { order: this.one(undefined, "asc", "desc"), ...this.#page("turn") };
      return get(`/v1/sessions/${id}/turns?${query(filter)}`, () => this.#world.listTurns(id, filter));
    },
    addMemory: () => {
      const body = {
        session_id: this.#session(),
        content: this.one(...CONTENTS),
        type: this.#maybe(this.one(...TYPES)),
        tags: this.#maybe(this.#tags()),
        metadata: this.#maybe(this.#object()),
        embed: this.one(undefined, undefined, null, true, false),
      };
      return post("/v1/memory", 201, body, (caller, given) => this.#world.addMemory(caller, body, given));
    },
    getMemory: (id = this.#memory()) => {
      return get(`/v1/memory/${id}`, () => this.#world.memory(id).shown);
    },
    listMemories: () => {
      const { tags = [], ...filter } = { ...this.#filter(), ...this.#page("mem") };
      // An empty text is no list of tags.
      const listed = { ...filter, tags: tags.length === 0 ? undefined : tags.join(",") };
      return get(`/v1/memory?${query(listed)}`, () => this.#world.listMemories({ ...filter, tags }));
    },
    updateMemory: (id = this.#memory()) => {
      const body = {
        content: this.#maybe(this.one(...CONTENTS)),
        type: this.#maybe(this.one(...TYPES)),
        tags: this.#maybe(this.#tags()),
        metadata: this.#maybe(this.#object()),
      };
      return patch(`/v1/memory/${id}`, body, (caller, given) => this.#world.updateMemory(caller, id, body, given));
    },
    deleteMemory: (id = this.#memory()) => {
      const reason = this.one(undefined, ...TEXTS);
      return remove(`/v1/memory/${id}?${query({ reason })}`, (caller) => this.#world.deleteMemory(caller, id, reason));
    },
    search: () => {
      const body = {
        query: this.one(...QUERIES),
        ...this.#filter(),
        limit: this.one(undefined, 1, 5, 50),
        threshold: this.one(undefined, 0, 0.3, 0.9, 1),
      };
      return { ...post("/v1/memory/search", 200, body, () => this.#world.search(body)), scope: "read" };
    },
    context: (id = this.#session()) => {
      const body = {
        query: this.#maybe(this.one(...QUERIES)),
        memory_limit: this.one(undefined, null, 0, 1, 20),
        turn_limit: this.one(undefined, null, 0, 1, 50),
      };
      return { ...post(`/v1/sessions/${id}/context`, 200, body, () => this.#world.context(id, body)), scope: "read" };
    },
    listTraces: () => {
      const times = this.#world.trail.traces.map(({ shown }) => shown.timestamp as string);
      const filter = {
        session_id: this.#isOnce(2) ? this.one(...this.#world.ids.given.sess) : undefined,
        user_id: this.one(undefined, undefined, ...USERS),
        action: this.#isOnce(3) ? this.one(...this.#world.trail.traces)?.shown.action : undefined,
        created_after: this.#isOnce(4) ? this.one(...times) : undefined,
        created_before: this.#isOnce(4) ? this.one(...times) : undefined,
        ...this.#page("trace"),
      };
      return get(`/v1/traces?${query(filter)}`, (caller) => this.#world.trail.list(caller, filter));
    },
    getTrace: (id = this.#id("trace", this.#world.ids.given.trace)) => {
      return get(`/v1/traces/${id}`, (caller) => this.#world.trail.get(caller, id));
    },
    createKey: () => {
      const body = {
        name: this.one(undefined, "for a test"),
        scopes: this.one(undefined, ["read"], ["write"], ["read", "write"], ["admin"]),
        tier: this.one(undefined, "free", "pro", "enterprise"),
        expires_at: this.one(undefined, this.#later()),
      };
      return { ...post("/v1/api_keys", 201, body, (caller, given) => this.#world.createKey(caller, body, given)), scope: "admin" };
    },
    rollKey: (id = this.#key()) => {
      const body = { overlap_seconds: this.one(undefined, 0, 604_800), expires_at: this.one(undefined, undefined, this.#later()) };
      return {
        ...post(`/v1/api_keys/${id}/roll`, 201, body, (caller, given) => this.#world.rollKey(caller, id, body, given)),
        scope: "admin",
      };
    },
    getKey: (id = this.#key()) => {
      return { ...get(`/v1/api_keys/${id}`, (_, given) => this.#world.access.getKey(id, given)), scope: "admin" };
    },
    deleteKey: (id = this.#key()) => {
      const reason = this.one(undefined, ...TEXTS);
      return {
        ...remove(`/v1/api_keys/${id}?${query({ reason })}`, (caller) => this.#world.deleteKey(caller, id, reason)),
        scope: "admin",
      };
    },
    getSettings: () => ({ ...get("/v1/settings", (_, given) => this.#world.access.showSettings(given)), scope: "admin" }),
    changeSettings: () => {
      const body = this.one<Fields>(
        { memories_on_expiry: "keep" },
        { memories_on_expiry: "delete" },
        { trace_retention_days: this.one(1, 5, 400) },
        { memories_on_expiry: null },
        { trace_retention_days: null },
      );
      return { ...patch("/v1/settings", body, (caller, given) => this.#world.changeSettings(caller, body, given)), scope: "admin" };
    },
    invalid: () => {
      const { param, ...request } = this.one(...INVALID);
      const answer = () => {
        throw new Refusal(400, "invalid_request", param);
      };
      return { ...request, status: 200, answer };
    },
  };

  #later(): string {
    return new Date(this.#world.ids.now + this.one(...TTLS) * 1000).toISOString();
  }

  #version(session: string): number {
    const count = this.#world.sessions.find(({ id }) => id === session)?.versions.length ?? 1;
    return this.one(this.#chance.below(count), this.#chance.below(count), count - 1, -1, -count, 1 - count, count);
  }

  /** Rather one of the last, for old ones have mostly ended; never the first, which the simulation itself reads with. */
  #key(): string {
    const others = this.#world.access.keys.slice(1).map(({ id }) => id);
    return this.#id("key", others.slice(-4), this.#world.ids.given.key.slice(1));
  }
}

type Work = Step["answer"];

const get = (path: string, answer: Work): Omit<Step, "name"> => ({ method: "GET", path, scope: "read", status: 200, answer });
const remove = (path: string, answer: Work): Omit<Step, "name"> => ({ method: "DELETE", path, scope: "write", status: 200, answer });
const patch = (path: string, body: Fields, answer: Work): Omit<Step, "name"> => ({
  method: "PATCH",
  path,
  scope: "write",
  status: 200,
  body,
  answer,
});
const post = (path: string, status: number, body: Fields, answer: Work): Omit<Step, "name"> => ({
  method: "POST",
  path,
  scope: "write",
  status,
  body,
  answer,
});

function query(parameters: Record<string, unknown>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return new URLSearchParams(set.map(([name, value]): [string, string] => [name, String(value)])).toString();
}
