/**
 * Whether what a server keeps agrees with the ledger of what was asked of it.
 *
 * The audit trail says which changes took effect and in which order; from that follows what every list has to hold and
 * what every record has to look like. Nobody writes meanwhile.
 *
 * @module
 */
import { expect } from "bun:test";
import { inTurns, type CairnProcess, vectorsMade } from "../support/process.ts";
import type { Change, Kind } from "./ledger.ts";

const ACTIONS: Record<Kind, string> = {
  create: "session.created",
  fork: "session.forked",
  patch: "session.updated",
  state: "state.updated",
  rollback: "state.rolled_back",
  turn: "turn.added",
  memory: "memory.created",
  edit: "memory.updated",
  forget: "memory.deleted",
  delete: "session.deleted",
};
/** These answer with the session as it is afterwards. */
const ANSWER_WITH_SESSION: ReadonlySet<Kind> = new Set(["create", "fork", "patch", "state", "rollback"]);
const AT_ONCE = 8;

/**
 * Compares all lists with all changes, and of the records those that `isLookedInto` chooses by session in detail: every
 * version and turn, every memory by search.
 */
export async function audit(server: CairnProcess, changes: readonly Change[], isLookedInto: (session: string) => boolean): Promise<void> {
  // Those of keys and webhooks are no record's.
  const traces = (await server.all("/v1/traces")).filter(({ session_id }) => session_id !== null).reverse();
  await new Audit(server, changes, traces, isLookedInto).run();
}

class Audit {
  readonly #server: CairnProcess;
  readonly #changes: readonly Change[];
  readonly #isLookedInto: (session: string) => boolean;
  readonly #byRequest: ReadonlyMap<string, Change>;
  /** Oldest first. */
  readonly #traces: readonly any[];
  readonly #traceOf = new Map<string, any>();
  /** The newest of each session. */
  readonly #lastTraceOf = new Map<string, any>();
  /** Changes that took effect, in their order. */
  readonly #done: readonly Change[];
  /** The same by what they concern, and by the session that they made. */
  readonly #doneTo = new Map<string, Change[]>();
  readonly #makerOf = new Map<string, Change>();
  /** What was deleted by itself: `delete sess_…`, `forget mem_…`. */
  readonly #deleted: ReadonlySet<string>;

  constructor(server: CairnProcess, changes: readonly Change[], traces: readonly any[], isLookedInto: (session: string) => boolean) {
    this.#server = server;
    this.#changes = changes;
    this.#traces = traces;
    this.#isLookedInto = isLookedInto;
    this.#byRequest = new Map(changes.map((change) => [change.request, change]));
    const requests = traces.map(({ metadata }) => metadata.request_id as string);
    expect(requests.filter((request) => !this.#byRequest.has(request))).toEqual([]);
    this.#done = requests.map((request) => this.#byRequest.get(request) as Change);
    this.#deleted = new Set(this.#done.map(({ kind, target }) => `${kind} ${target}`));
    for (const trace of traces) {
      this.#traceOf.set(trace.metadata.request_id, trace);
      this.#lastTraceOf.set(trace.session_id, trace);
    }
    for (const change of this.#done) {
      if (change.kind === "create" || change.kind === "fork") this.#makerOf.set(this.#sessionOf(change), change);
      if (change.target === undefined) continue;
      const others = this.#doneTo.get(change.target);
      if (others === undefined) this.#doneTo.set(change.target, [change]);
      else others.push(change);
    }
  }

  async run(): Promise<void> {
    await vectorsMade(this.#server);
    this.#checkTraces();
    const sessions = await this.#server.all("/v1/sessions");
    const made = this.#done.filter(({ kind }) => kind === "create" || kind === "fork").map((change) => this.#sessionOf(change));
    const isGone = (id: string) => this.#deleted.has(`delete ${id}`);
    expect(idsOf(sessions)).toEqual(made.filter((id) => !isGone(id)).sort());
    await inTurns(made.filter(isGone), AT_ONCE, async (id) => {
      expect((await this.#server.get(`/v1/sessions/${id}`)).status).toBe(404);
    });
    await inTurns(sessions, AT_ONCE, async (session) => {
      this.#checkSession(session);
      if (this.#isLookedInto(session.id)) await this.#lookInto(session);
    });
    await this.#checkMemories(sessions);
  }

  /** A trace for what was acknowledged, none for what was refused, never two. */
  #checkTraces(): void {
    const counts = new Map<string, number>();
    for (const { request } of this.#done) counts.set(request, (counts.get(request) ?? 0) + 1);
    const wrong = this.#changes.filter(({ request, outcome }) => {
      const count = counts.get(request) ?? 0;
      return !{ acknowledged: [1], refused: [0], unknown: [0, 1] }[outcome].includes(count);
    });
    expect(wrong).toEqual([]);
    expect(this.#traces.map(({ action }) => action)).toEqual(this.#done.map(({ kind }) => ACTIONS[kind]));
    for (const change of this.#done) {
      if (change.answer === undefined || (change.kind !== "create" && change.kind !== "fork")) continue;
      expect(this.#sessionOf(change)).toBe(change.answer.id);
    }
  }

  /** The session that a change made, or was made in. */
  #sessionOf(change: Change): string {
    return this.#traceOf.get(change.request).session_id;
  }

  #of(target: string, ...kinds: Kind[]): Change[] {
    return (this.#doneTo.get(target) ?? []).filter(({ kind }) => kinds.includes(kind));
  }

  #checkSession(session: any): void {
    const maker = this.#makerOf.get(session.id) as Change;
    const patches = this.#of(session.id, "patch");
    const metadata = Object.assign({}, ...patches.map(({ body }) => body?.["metadata"]));
    const made = maker.answer ?? (maker.kind === "create" ? maker.body : { metadata: this.#forkedFrom(maker) });
    const { agent_id = session.agent_id, user_id = session.user_id, created_at = session.created_at } = made;
    expect(session).toMatchObject({ agent_id, user_id, created_at, metadata: { ...made.metadata, ...metadata } });
    if (maker.answer !== undefined) expect(session.metadata).toEqual({ ...made.metadata, ...metadata });
    const timed = patches.findLast(({ body }) => body?.["ttl_seconds"] !== undefined) ?? maker;
    if (timed.answer !== undefined) expect(session.ttl_expires_at).toBe(timed.answer.ttl_expires_at);

    const last = this.#byRequest.get(this.#lastTraceOf.get(session.id).metadata.request_id) as Change;
    if (last.answer !== undefined && ANSWER_WITH_SESSION.has(last.kind)) expect(session).toEqual(last.answer);
  }

  #forkedFrom(fork: Change): Record<string, unknown> {
    const { source_session_id, fork_version } = this.#traceOf.get(fork.request).details;
    expect(source_session_id).toBe(fork.target);
    return { forked_from: source_session_id, forked_version: fork_version };
  }

  async #lookInto(session: any): Promise<void> {
    const path = `/v1/sessions/${session.id}`;
    const versions = (await this.#server.all(`${path}/versions`)).reverse();
    expect(versions.map(({ version }) => version)).toEqual(Array.from({ length: session.state_version + 1 }, (_, version) => version));
    expect(versions.slice(1).map(({ reasoning }) => reasoning)).toEqual(
      this.#of(session.id, "state", "rollback").map(({ request }) => request),
    );
    const states: any[] = [];
    for (const { version, reasoning, source } of versions) {
      const { state } = await this.#server.ok(this.#server.get(`${path}/versions/${version}`));
      states.push(state);
      const change = this.#byRequest.get(reasoning);
      if (change === undefined)
        expect({ source, state }).toEqual({ source: "initial", state: await this.#initialState(session.id, state) });
      else if (change.kind === "state") expect({ source, state }).toEqual({ source: "update", state: change.body?.["state"] });
      else expect({ source, state }).toEqual({ source: "rollback", state: states[this.#traceOf.get(reasoning).details.to_version] });
      if (change?.answer !== undefined)
        expect({ state, version }).toEqual({ state: change.answer.state, version: change.answer.state_version });
    }
    expect(session.state).toEqual(states.at(-1));

    const turns = await this.#server.all(`${path}/turns?order=asc`);
    expect(turns.map(({ turn_number }) => turn_number)).toEqual(Array.from({ length: session.turn_count }, (_, index) => index + 1));
    const added = this.#of(session.id, "turn");
    expect(turns).toEqual(added.map(({ answer, body }) => answer ?? expect.objectContaining(body as object)));
  }

  /** What a session began with: as it was asked for, or what its source has at that version, as long as that is there. */
  async #initialState(session: string, otherwise: unknown): Promise<unknown> {
    const maker = this.#makerOf.get(session) as Change;
    if (maker.answer !== undefined) expect(otherwise).toEqual(maker.answer.state);
    if (maker.kind === "create") return maker.body?.["initial_state"];
    const { forked_from, forked_version } = this.#forkedFrom(maker);
    const source = await this.#server.get(`/v1/sessions/${String(forked_from)}/versions/${String(forked_version)}`);
    return source.status === 200 ? source.body.state : otherwise;
  }

  async #checkMemories(sessions: readonly any[]): Promise<void> {
    const listed = new Map((await this.#server.all("/v1/memory")).map((memory) => [memory.metadata.request as string, memory]));
    const made = this.#done.filter(({ kind }) => kind === "memory");
    const isThere = ({ answer, target }: Change) => !this.#deleted.has(`delete ${target}`) && !this.#deleted.has(`forget ${answer?.id}`);
    expect([...listed.keys()].reverse()).toEqual(made.filter(isThere).map(({ request }) => request));
    const counts = new Map<string, number>();
    for (const { session_id } of listed.values()) counts.set(session_id, (counts.get(session_id) ?? 0) + 1);
    for (const { id, memory_count } of sessions) expect({ id, memory_count }).toEqual({ id, memory_count: counts.get(id) ?? 0 });
    await inTurns(made, AT_ONCE, async (change) => {
      const memory = listed.get(change.request);
      if (memory !== undefined) this.#checkMemory(change, memory);
      if (!this.#isLookedInto(change.target as string)) return;
      if (memory !== undefined) await this.#findMemory(change, memory);
      else if (change.answer !== undefined) await this.#missMemory(change);
    });
  }

  #checkMemory({ answer, body }: Change, memory: any): void {
    const edits = this.#of(memory.id, "edit");
    const { metadata, ...changed } = Object.assign({}, ...edits.map((edit) => edit.body));
    const all = Object.assign({}, body?.["metadata"], ...edits.map((edit) => edit.body?.["metadata"]));
    expect(metadata === undefined).toBe(edits.length === 0);
    expect(memory).toEqual(expect.objectContaining({ ...body, ...changed, metadata: all, vector_available: true }));
    const last = edits.at(-1);
    const answered = last === undefined ? answer : last.answer;
    if (answered !== undefined) expect(memory).toEqual(answered.vector_available ? answered : { ...answered, ...embeddingOf(memory) });
  }

  /** By what it says, everywhere and in its session; and not by what it said before. */
  async #findMemory({ body }: Change, memory: any): Promise<void> {
    const search = { query: memory.content, limit: 1 };
    for (const scope of [{}, { session_id: memory.session_id }]) {
      expect((await this.#server.post("/v1/memory/search", { ...search, ...scope })).body.data).toMatchObject([
        { id: memory.id, score: 1 },
      ]);
    }
    if (memory.content === body?.["content"]) return;
    const { data } = await this.#server.ok(this.#server.post("/v1/memory/search", { query: body?.["content"], threshold: 0, limit: 50 }));
    expect(data.filter(({ id, score }: any) => id === memory.id && score === 1)).toEqual([]);
  }

  async #missMemory({ answer }: Change): Promise<void> {
    expect((await this.#server.get(`/v1/memory/${answer.id}`)).status).toBe(404);
    const found = (await this.#server.post("/v1/memory/search", { query: answer.content, threshold: 0, limit: 50 })).body.data;
    expect(idsOf(found)).not.toContain(answer.id);
  }
}

function idsOf(records: readonly { id: string }[]): string[] {
  return records.map(({ id }) => id).sort();
}

/** What a memory has once its vector is made, which can be after it was answered. */
const embeddingOf = ({ embedding_id, vector_available }: any) => ({ embedding_id, vector_available });
