/**
 * What was asked of a server, what it answered, and whether what it keeps agrees with that.
 *
 * Every change carries the id of its request into what it makes: as `metadata.request` of a session, a turn or a memory,
 * as the reasoning of a state version, as `metadata.request_id` of its trace. So after a crash each record can be laid
 * beside its request:
 *
 * ```
 * acknowledged   a 2xx came: it is there, once, as it was answered
 * refused        another status came: nothing of it is there
 * unknown        no answer came: it is there once and whole, or nothing of it is
 * ```
 *
 * @module
 */
import { expect } from "bun:test";
import type { CairnProcess, Chance } from "../support/process.ts";

type Kind = "create" | "state" | "rollback" | "turn" | "memory" | "forget" | "delete";
type Outcome = "acknowledged" | "refused" | "unknown";

interface Change {
  kind: Kind;
  request: string;
  method: "POST" | "DELETE";
  path: string;
  body: Record<string, unknown> | undefined;
  /** Set when the request was sent with one. */
  idempotencyKey: string | undefined;
  /** The session or memory it concerns. */
  target: string | undefined;
  outcome: Outcome;
  /** Of an acknowledged one, as it came. */
  text: string;
  answer: any;
}

const ACTIONS: Record<Kind, string> = {
  create: "session.created",
  state: "state.updated",
  rollback: "state.rolled_back",
  turn: "turn.added",
  memory: "memory.created",
  forget: "memory.deleted",
  delete: "session.deleted",
};

/** How often what is asked for, of so many times altogether. */
export type Shares = Record<Kind, number>;

export const SHARES: Shares = { create: 8, state: 25, rollback: 5, turn: 30, memory: 24, forget: 6, delete: 2 };

/** So many changes in a hundred carry an idempotency key, and half of those are sent twice. */
const IDEMPOTENT_SHARE = 30;

export class Ledger {
  readonly changes: Change[] = [];
  readonly #chance: Chance;
  readonly #shares: Shares;
  #sent = 0;
  #acknowledged = 0;

  constructor(chance: Chance, shares: Shares = SHARES) {
    this.#chance = chance;
    this.#shares = shares;
  }

  /** Changes that were answered 2xx. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Sends changes from so many writers at once, until the server is gone or `enough` says so. */
  async write(server: CairnProcess, writers: number, enough: () => boolean): Promise<void> {
    await Promise.all(
      Array.from({ length: writers }, async () => {
        while (!enough()) {
          const change = this.#next();
          this.changes.push(change);
          const twice = change.idempotencyKey !== undefined && this.#chance.below(2) === 0;
          const answers = await Promise.all([this.#send(server, change), ...(twice ? [this.#send(server, change)] : [])]);
          this.#settle(change, answers);
          if (change.outcome === "unknown") return;
        }
      }),
    );
  }

  /** Sends everything with an idempotency key again: what was acknowledged is answered as before, the rest becomes known. */
  async retry(server: CairnProcess): Promise<void> {
    for (const change of this.changes.filter(({ idempotencyKey, outcome }) => idempotencyKey !== undefined && outcome !== "refused")) {
      const answer = await this.#send(server, change);
      if (change.outcome === "acknowledged") {
        expect({ status: answer?.status, text: answer?.text, replayed: answer?.headers.get("idempotency-replayed") }).toEqual({
          status: change.kind === "state" || change.kind === "rollback" ? 200 : 201,
          text: change.text,
          replayed: "true",
        });
      }
      this.#settle(change, [answer]);
    }
  }

  #next(): Change {
    const request = `request-${++this.#sent}`;
    const sessions = this.#known("create", "delete");
    const kind = sessions.length < 4 ? "create" : this.#kind();
    const idempotencyKey = this.#chance.below(100) < IDEMPOTENT_SHARE ? `key of ${request}` : undefined;
    const session = this.#chance.pick(sessions)?.answer.id as string;
    const change = (method: "POST" | "DELETE", path: string, target: string | undefined, body?: Record<string, unknown>): Change => ({
      kind,
      request,
      method,
      path,
      body,
      idempotencyKey: method === "POST" ? idempotencyKey : undefined,
      target,
      outcome: "unknown",
      text: "",
      answer: undefined,
    });
    switch (kind) {
      case "create":
        return change("POST", "/v1/sessions", undefined, {
          agent_id: `agent-${this.#chance.below(3)}`,
          user_id: `user-${this.#chance.below(3)}`,
          initial_state: { of: request },
          metadata: { request },
        });
      case "state":
        return change("POST", `/v1/sessions/${session}/state`, session, {
          state: { of: request, text: "s".repeat(this.#chance.below(5000)) },
          reasoning: request,
        });
      case "rollback":
        return change("POST", `/v1/sessions/${session}/rollback`, session, { version: 0, reason: request });
      case "turn":
        return change("POST", `/v1/sessions/${session}/turns`, session, {
          input: { type: "text", content: `Question of ${request}` },
          output: { type: "text", content: "t".repeat(this.#chance.below(3000)) },
          metadata: { request },
        });
      case "memory":
        return change("POST", "/v1/memory", session, {
          session_id: session,
          content: `${this.#chance.pick(["Anna", "Boris", "Chen"])} keeps ${request} in the ${this.#chance.pick(["attic", "cellar", "garage"])}.`,
          metadata: { request },
        });
      case "forget": {
        const memory = this.#chance.pick(this.#known("memory", "forget"))?.answer.id as string | undefined;
        return change("DELETE", `/v1/memory/${memory ?? "mem_000000000000"}`, memory);
      }
      case "delete":
        break;
    }
    return change("DELETE", `/v1/sessions/${session}`, session);
  }

  #kind(): Kind {
    const shares = Object.entries(this.#shares) as [Kind, number][];
    let at = this.#chance.below(shares.reduce((sum, [, share]) => sum + share, 0));
    return shares.find(([, share]) => (at -= share) < 0)?.[0] as Kind;
  }

  /** Records that were made and that nobody has asked to delete. */
  #known(made: Kind, deleted: Kind): Change[] {
    const gone = new Set(this.changes.filter(({ kind }) => kind === deleted).map(({ target }) => target));
    return this.changes.filter(({ kind, outcome, answer }) => kind === made && outcome === "acknowledged" && !gone.has(answer.id));
  }

  #send(server: CairnProcess, { method, path, body, request, idempotencyKey }: Change) {
    const headers = { "X-Request-Id": request, ...(idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey }) };
    return server.request(method, path, body, headers).catch(() => undefined);
  }

  #settle(change: Change, answers: (Awaited<ReturnType<CairnProcess["request"]>> | undefined)[]): void {
    for (const answer of answers) {
      if (answer === undefined) continue;
      const isSuccess = answer.status >= 200 && answer.status <= 299;
      if (!isSuccess) {
        // What the target's deletion leads to; any other refusal is a fault.
        expect([answer.status, answer.body?.error?.code]).toEqual([404, expect.stringMatching(/^(session|memory)_not_found$/)]);
        if (change.outcome === "unknown") change.outcome = "refused";
        continue;
      }
      if (change.outcome === "acknowledged") expect(answer.text).toBe(change.text);
      else this.#acknowledged++;
      Object.assign(change, { outcome: "acknowledged", text: answer.text, answer: answer.body });
    }
  }

  /** Compares everything the server keeps with everything that was asked of it. */
  async check(server: CairnProcess): Promise<void> {
    const traces = await server.all("/v1/traces");
    const kept = new Map<string, any[]>();
    for (const trace of traces) kept.set(trace.metadata.request_id, [...(kept.get(trace.metadata.request_id) ?? []), trace]);
    const byRequest = new Map(this.changes.map((change) => [change.request, change]));
    /** Changes that took effect, as the audit trail says. */
    const done = new Set<string>();
    for (const change of this.changes) {
      const found = kept.get(change.request) ?? [];
      const expected = { acknowledged: [1], refused: [0], unknown: [0, 1] }[change.outcome];
      expect({ of: change.request, found: expected.includes(found.length) ? "as expected" : found }).toEqual({
        of: change.request,
        found: "as expected",
      });
      if (found.length === 0) continue;
      done.add(change.request);
      expect(found[0].action).toBe(ACTIONS[change.kind]);
      if (change.kind === "create" && change.answer !== undefined) expect(found[0].session_id).toBe(change.answer.id);
    }
    expect([...kept.keys()].filter((request) => !byRequest.has(request))).toEqual([]);

    const isDeleted = (target: string, kind: Kind) =>
      this.changes.some((change) => change.kind === kind && change.target === target && done.has(change.request));
    const sessions = await server.all("/v1/sessions");
    const expectedSessions = this.changes.filter(({ kind, request }) => kind === "create" && done.has(request));
    const live = expectedSessions.filter(({ answer }) => answer === undefined || !isDeleted(answer.id, "delete"));
    expect(sorted(sessions.map(({ metadata }) => metadata.request))).toEqual(sorted(live.map(({ request }) => request)));
    for (const { answer } of expectedSessions.filter((change) => change.answer !== undefined && !live.includes(change))) {
      expect((await server.get(`/v1/sessions/${answer.id}`)).status).toBe(404);
    }
    for (const session of sessions) await this.#checkSession(server, session, done, byRequest);
    await this.#checkMemories(server, sessions, done, isDeleted);
  }

  async #checkSession(
    server: CairnProcess,
    session: any,
    done: ReadonlySet<string>,
    byRequest: ReadonlyMap<string, Change>,
  ): Promise<void> {
    const made = byRequest.get(session.metadata.request) as Change;
    const of = (...kinds: Kind[]) =>
      this.changes
        .filter(({ kind, target, request }) => kinds.includes(kind) && target === session.id && done.has(request))
        .map(({ request }) => request);
    const unchanged = ["id", "agent_id", "user_id", "created_at", "metadata", "ttl_expires_at"] as const;
    const expected = { ...made.body, ...made.answer };
    for (const field of unchanged) if (expected[field] !== undefined) expect(session[field]).toEqual(expected[field]);

    const path = `/v1/sessions/${session.id}`;
    const versions = (await server.all(`${path}/versions`)).reverse();
    expect(versions.map(({ version }) => version)).toEqual(Array.from({ length: session.state_version + 1 }, (_, version) => version));
    expect(sorted(versions.slice(1).map(({ reasoning }) => reasoning))).toEqual(sorted(of("state", "rollback")));
    for (const { version, reasoning } of versions) {
      const { state } = await server.ok(server.get(`${path}/versions/${version}`));
      const change = reasoning === undefined ? made : (byRequest.get(reasoning) as Change);
      // A rollback here always goes back to the initial state.
      expect(state).toEqual(change.kind === "state" ? change.body?.["state"] : made.body?.["initial_state"]);
      if (change.answer !== undefined)
        expect({ state, version }).toEqual({ state: change.answer.state, version: change.answer.state_version });
      if (version === session.state_version) expect(session.state).toEqual(state);
    }

    const turns = await server.all(`${path}/turns?order=asc`);
    expect(turns.map(({ turn_number }) => turn_number)).toEqual(Array.from({ length: session.turn_count }, (_, index) => index + 1));
    expect(sorted(turns.map(({ metadata }) => metadata.request))).toEqual(sorted(of("turn")));
    for (const turn of turns) {
      const { answer, body } = byRequest.get(turn.metadata.request) as Change;
      expect(turn).toEqual(answer ?? expect.objectContaining(body as object));
    }
  }

  async #checkMemories(
    server: CairnProcess,
    sessions: readonly any[],
    done: ReadonlySet<string>,
    isDeleted: (target: string, kind: Kind) => boolean,
  ): Promise<void> {
    const listed = new Map((await server.all("/v1/memory")).map((memory) => [memory.metadata.request as string, memory]));
    const expected = this.changes.filter(
      ({ kind, request, target, answer }) =>
        kind === "memory" &&
        done.has(request) &&
        !isDeleted(target as string, "delete") &&
        (answer === undefined || !isDeleted(answer.id, "forget")),
    );
    expect(sorted([...listed.keys()])).toEqual(sorted(expected.map(({ request }) => request)));
    for (const { request, answer, body } of expected) {
      const memory = listed.get(request);
      expect(memory).toEqual(answer ?? expect.objectContaining({ ...body, vector_available: true }));
      const search = { query: memory.content, limit: 1 };
      for (const scope of [{}, { session_id: memory.session_id }]) {
        expect((await server.post("/v1/memory/search", { ...search, ...scope })).body.data).toMatchObject([{ id: memory.id, score: 1 }]);
      }
    }
    for (const { id, memory_count } of sessions) {
      const own = [...listed.values()].filter((memory) => memory.session_id === id);
      expect({ id, memory_count }).toEqual({ id, memory_count: own.length });
    }
    const gone = this.changes.filter(({ kind, answer, request }) => kind === "memory" && answer !== undefined && !listed.has(request));
    for (const { answer } of gone) {
      expect((await server.get(`/v1/memory/${answer.id}`)).status).toBe(404);
      const found = (await server.post("/v1/memory/search", { query: answer.content, threshold: 0, limit: 50 })).body.data;
      expect(found.map(({ id }: { id: string }) => id)).not.toContain(answer.id);
    }
  }
}

function sorted(texts: string[]): string[] {
  return texts.sort();
}
