/**
 * What was asked of a server and what it answered; `audit.ts` lays that beside what the server keeps.
 *
 * Every change carries the id of its request into what it makes: as `metadata.request` of a session, a turn or a memory,
 * as the reasoning of a state version, as a key of the metadata it patches, and always as `metadata.request_id` of its
 * trace. So after a crash each record can be laid beside its request:
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
import { inTurns, type Answer, type CairnProcess, type Chance } from "../support/process.ts";

/** `patch` changes a session, `edit` a memory, `forget` deletes one, `delete` a session. */
export type Kind = "create" | "fork" | "patch" | "state" | "rollback" | "turn" | "memory" | "edit" | "forget" | "delete";
type Outcome = "acknowledged" | "refused" | "unknown";

export interface Change {
  kind: Kind;
  request: string;
  method: "POST" | "PATCH" | "DELETE";
  path: string;
  body: Record<string, any> | undefined;
  /** Set when the request was sent with one. */
  idempotencyKey: string | undefined;
  /** The session or memory it concerns. */
  target: string | undefined;
  outcome: Outcome;
  /** Of an acknowledged one, as it came. */
  text: string;
  answer: any;
}

/** How often what is asked for, of so many times altogether. */
export type Shares = Record<Kind, number>;

export const SHARES: Shares = { create: 8, fork: 4, patch: 8, state: 20, rollback: 5, turn: 23, memory: 20, edit: 6, forget: 4, delete: 2 };

/** So many changes in a hundred carry an idempotency key, and half of those are sent twice. */
const IDEMPOTENT_SHARE = 30;
const RETRIES_AT_ONCE = 8;

/** The status of success; 200 unless it makes a record. */
const MAKES: ReadonlySet<Kind> = new Set(["create", "fork", "turn", "memory"]);
/** What a target's deletion leads to, and a step back where there is none before. */
const REFUSALS: Partial<Record<Kind, RegExp>> = { rollback: /^(session|version)_not_found$/ };
const NOT_FOUND = /^(session|memory)_not_found$/;

export class Ledger {
  readonly changes: Change[] = [];
  readonly #chance: Chance;
  readonly #shares: Shares;
  #sent = 0;
  #acknowledged = 0;
  /** Ids of records that were made and that nobody has asked to delete. */
  readonly #sessions = new Living();
  readonly #memories = new Living();

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

  /**
   * Sends these again, as far as they have an idempotency key: what was acknowledged is answered as before, the rest
   * becomes known.
   */
  async retry(server: CairnProcess, changes: readonly Change[] = this.changes): Promise<void> {
    const keyed = changes.filter(({ idempotencyKey, outcome }) => idempotencyKey !== undefined && outcome !== "refused");
    await inTurns(keyed, RETRIES_AT_ONCE, async (change) => {
      const answer = await this.#send(server, change);
      if (change.outcome === "acknowledged") {
        expect({ status: answer?.status, text: answer?.text, replayed: answer?.headers.get("idempotency-replayed") }).toEqual({
          status: MAKES.has(change.kind) ? 201 : 200,
          text: change.text,
          replayed: "true",
        });
      }
      this.#settle(change, [answer]);
    });
  }

  #next(): Change {
    const request = `request-${++this.#sent}`;
    const kind = this.#sessions.ids.length < 4 ? "create" : this.#kind();
    const session = this.#chance.pick(this.#sessions.ids) as string;
    const ofSession = `/v1/sessions/${session}`;
    const idempotencyKey = this.#chance.below(100) < IDEMPOTENT_SHARE ? `key of ${request}` : undefined;
    const change = (method: Change["method"], path: string, target: string | undefined, body?: Change["body"]): Change => ({
      kind,
      request,
      method,
      path,
      body,
      idempotencyKey: method === "DELETE" ? undefined : idempotencyKey,
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
      case "fork":
        return change("POST", `${ofSession}/fork`, session, this.#chance.below(2) === 0 ? {} : { version: 0 });
      case "patch":
        return change("PATCH", ofSession, session, {
          metadata: { [request]: "patched" },
          ...(this.#chance.below(2) === 0 ? {} : { ttl_seconds: 10_000 + this.#sent }),
        });
      case "state":
        return change("POST", `${ofSession}/state`, session, {
          state: { of: request, text: "s".repeat(this.#chance.below(5000)) },
          reasoning: request,
        });
      case "rollback":
        return change("POST", `${ofSession}/rollback`, session, { version: -this.#chance.below(2), reason: request });
      case "turn":
        return change("POST", `${ofSession}/turns`, session, {
          input: { type: "text", content: `Question of ${request}` },
          output: { type: "text", content: "t".repeat(this.#chance.below(3000)) },
          metadata: { request },
        });
      case "memory":
        return change("POST", "/v1/memory", session, { session_id: session, content: this.#fact(request), metadata: { request } });
      case "edit": {
        const memory = this.#memory();
        return change("PATCH", `/v1/memory/${memory}`, memory, {
          metadata: { [request]: "edited" },
          ...(this.#chance.below(2) === 0 ? { tags: [request] } : { content: this.#fact(request) }),
        });
      }
      case "forget": {
        const memory = this.#memory();
        this.#memories.delete(memory);
        return change("DELETE", `/v1/memory/${memory}`, memory);
      }
      case "delete":
        break;
    }
    this.#sessions.delete(session);
    return change("DELETE", ofSession, session);
  }

  #kind(): Kind {
    const shares = Object.entries(this.#shares) as [Kind, number][];
    let at = this.#chance.below(shares.reduce((sum, [, share]) => sum + share, 0));
    return shares.find(([, share]) => (at -= share) < 0)?.[0] as Kind;
  }

  #fact(request: string): string {
    return `${this.#chance.pick(["Anna", "Boris", "Chen"])} keeps ${request} in the ${this.#chance.pick(["attic", "cellar", "garage"])}.`;
  }

  #memory(): string {
    return this.#chance.pick(this.#memories.ids) ?? "mem_000000000000";
  }

  #send(server: CairnProcess, { method, path, body, request, idempotencyKey }: Change): Promise<Answer | undefined> {
    const headers = { "X-Request-Id": request, ...(idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey }) };
    return server.request(method, path, body, headers).catch(() => undefined);
  }

  #settle(change: Change, answers: (Answer | undefined)[]): void {
    for (const answer of answers) {
      if (answer === undefined) continue;
      const isSuccess = answer.status >= 200 && answer.status <= 299;
      if (!isSuccess) {
        expect([answer.status, answer.body?.error?.code]).toEqual([404, expect.stringMatching(REFUSALS[change.kind] ?? NOT_FOUND)]);
        // One that was sent twice at once may have been done by the other.
        if (change.outcome === "unknown" && !answers.includes(undefined)) change.outcome = "refused";
        continue;
      }
      if (change.outcome === "acknowledged") expect(answer.text).toBe(change.text);
      else {
        this.#acknowledged++;
        if (change.kind === "create" || change.kind === "fork") this.#sessions.add(answer.body.id);
        if (change.kind === "memory") this.#memories.add(answer.body.id);
      }
      Object.assign(change, { outcome: "acknowledged", text: answer.text, answer: answer.body });
    }
  }
}

/** Ids, one of which can be picked and taken out at once however many there are. */
class Living {
  readonly ids: string[] = [];
  readonly #places = new Map<string, number>();

  add(id: string): void {
    this.#places.set(id, this.ids.push(id) - 1);
  }

  delete(id: string): void {
    const place = this.#places.get(id);
    const last = this.ids.at(-1);
    if (place === undefined || last === undefined) return;
    this.ids[place] = last;
    this.#places.set(last, place);
    this.ids.pop();
    this.#places.delete(id);
  }
}
