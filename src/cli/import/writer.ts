/**
 * Brings what was found into a store, through the API. Names of the source are kept as external ids: what is there already is not sent, and
 * what is sent twice is stored once, also by an import that was killed and runs again.
 *
 * @module
 */
import { ApiError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import { LIMITS } from "../../lib/limits.ts";
import { isUnfit, type Ask } from "./asking.ts";
import type { SourceSession, SourceTurn } from "./found.ts";

/** The rest of a body is small. */
const BATCH_BYTES_MAX = LIMITS.bodyBytesMax - 65_536;
const LONGEST_TTL_SECONDS = 2_592_000;
const ANSWER = ":answer";

export interface Counts {
  turns: number;
  present: number;
  sessions: number;
  removed: number;
}

export interface WriterOptions {
  readonly ask: Ask;
  readonly user: string | undefined;
  /** True to count only. */
  readonly isDry: boolean;
  /** Called with a turn that the server refused. */
  readonly onRefused: (turn: SourceTurn, reason: string) => Promise<void> | void;
}

export class Writer {
  readonly counts: Counts = { turns: 0, present: 0, sessions: 0, removed: 0 };
  readonly #options: WriterOptions;
  readonly #ask: Ask;
  /** Ids of sessions that have memories. */
  readonly #sessions = new Map<string, string>();
  #session: SourceSession | undefined;
  /** Its id in the store; undefined until it is there. */
  #id: string | undefined;
  /** External ids of the turns of the session, each with whether it has an answer. */
  #present = new Map<string, boolean>();
  #batch: SourceTurn[] = [];
  #batchBytes = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#ask = options.ask;
  }

  /** Takes the next turn, which is stored with those after it, or by `end`. @returns true for one that is new */
  async turn(session: SourceSession, turn: SourceTurn): Promise<boolean> {
    if (session !== this.#session) await this.#begin(session);
    const isAnswered = this.#present.get(turn.external_id);
    if (isAnswered === false && turn.output.content !== "") return this.turn(session, answerOf(turn));
    if (isAnswered !== undefined) {
      this.counts.present += 1;
      return false;
    }
    const bytes = Buffer.byteLength(JSON.stringify(turn)) + 1;
    if (this.#batch.length === LIMITS.turnsAtOnceMax || this.#batchBytes + bytes > BATCH_BYTES_MAX) await this.#flush();
    this.#present.set(turn.external_id, true);
    this.#batch.push(turn);
    this.#batchBytes += bytes;
    return true;
  }

  async end(): Promise<void> {
    await this.#flush();
  }

  /** Removes a session that an import has made, with its turns. */
  async remove(session: SourceSession): Promise<void> {
    const found = await this.#find(session);
    if (found === undefined || (found["metadata"] as JsonObject)["source"] !== "import") return;
    this.counts.removed += 1;
    if (!this.#options.isDry) await this.#ask("DELETE /v1/sessions/{session_id}", { path: { session_id: found["id"] as string } });
  }

  async #begin(session: SourceSession): Promise<void> {
    await this.#flush();
    const found = await this.#find(session);
    this.#session = session;
    this.#id = found?.["id"] as string | undefined;
    this.#present = new Map();
    if (this.#id !== undefined) for await (const [name, isAnswered] of this.#names(this.#id)) this.#present.set(name, isAnswered);
  }

  /** Finds or makes a session for memories; the empty id where a dry run would make one. */
  async session(session: SourceSession): Promise<string> {
    const name = JSON.stringify([session.user, session.agentId, session.externalId]);
    const known = this.#sessions.get(name);
    if (known !== undefined) return known;
    const found = (await this.#find(session))?.["id"] as string | undefined;
    if (found === undefined) this.counts.sessions += 1;
    const id = found ?? (this.#options.isDry ? "" : await this.#make(session, undefined));
    this.#sessions.set(name, id);
    return id;
  }

  async #find({ externalId, agentId, user = this.#options.user }: SourceSession): Promise<JsonObject | undefined> {
    const query = { external_id: externalId, exact_user: true, user_id: user, agent_id: agentId };
    const { data } = await this.#ask("GET /v1/sessions", { query });
    return (data as JsonObject[])[0];
  }

  async *#names(id: string): AsyncGenerator<[string, boolean]> {
    for (let after: string | undefined; ;) {
      const query = { limit: LIMITS.listMax, status: "all", ...(after === undefined ? {} : { starting_after: after }) };
      const page = await this.#ask("GET /v1/sessions/{session_id}/turns", { path: { session_id: id }, query });
      const turns = page["data"] as { id: string; external_id?: string; output: { content: string } }[];
      for (const { external_id: name, output } of turns) if (name !== undefined) yield [name, output.content !== ""];
      after = turns.at(-1)?.id;
      if (page["has_more"] !== true) return;
    }
  }

  async #flush(): Promise<void> {
    const [session, turns] = [this.#session, this.#batch];
    if (session === undefined || turns.length === 0) return;
    [this.#batch, this.#batchBytes] = [[], 0];
    if (this.#id === undefined) {
      this.counts.sessions += 1;
      if (!this.#options.isDry) this.#id = await this.#make(session, turns[0]?.occurred_at);
    }
    if (this.#options.isDry) this.counts.turns += turns.length;
    else await this.#send(turns);
    // Of a dry run, it is counted once.
    this.#id ??= "";
  }

  /** Sends turns together; one by one where one of them does not fit. */
  async #send(turns: readonly SourceTurn[]): Promise<void> {
    try {
      await this.#ask("POST /v1/sessions/{session_id}/turns/batch", {
        path: { session_id: this.#id ?? "" },
        body: { turns },
      });
      this.counts.turns += turns.length;
    } catch (error) {
      if (!isUnfit(error)) throw error;
      const [turn] = turns;
      if (turn !== undefined && turns.length === 1) await this.#options.onRefused(turn, error.message);
      else for (const one of turns) await this.#send([one]);
    }
  }

  async #make(session: SourceSession, occurredAt: string | undefined): Promise<string> {
    const { externalId, agentId, metadata, user = this.#options.user } = session;
    const body: JsonObject = {
      agent_id: agentId,
      ...(user === undefined ? {} : { user_id: user }),
      external_id: externalId,
      if_exists: "return",
      metadata,
      ...(occurredAt === undefined ? {} : { occurred_at: occurredAt }),
    };
    const make = (ttl: number | "never") => this.#ask("POST /v1/sessions", { body: { ...body, ttl_seconds: ttl } });
    // A setting may keep sessions without an end to admin keys.
    const made = await make("never").catch((error: unknown) => {
      if (error instanceof ApiError && error.code === "permission_denied") return make(LONGEST_TTL_SECONDS);
      throw error;
    });
    return made["id"] as string;
  }
}

/** The answer to a question that was there without one, as a turn of its own: turns do not change. */
function answerOf(turn: SourceTurn): SourceTurn {
  return { ...turn, external_id: `${turn.external_id}${ANSWER}`, input: { ...turn.input, content: "" } };
}
