/**
 * A session of Cairn for each conversation of a framework: its documents are deleted with it, and turns can be logged in it.
 *
 * @module
 */
import { CairnError, type Cairn, type Documents } from "../../client/index.ts";
import { Clock } from "./clock.ts";
import { hashOf } from "./hash.ts";

/** Keeps each conversation in a session of Cairn. */
export interface SessionOptions {
  /** Opens the sessions, and logs their turns. */
  cairn: Pick<Cairn, "sessions" | "turns">;
  /** The agent of the sessions; the documents' own, or else the name of the framework, unless given. */
  agent_id?: string;
  /**
   * Time that a session is kept after a change; 30 days unless given, which is the longest but `never`. It is prolonged by a change when
   * less than half of that is left. What the conversation has ends with it.
   */
  ttl_seconds?: number | "never";
  /** Logs a turn for each answer to a user, so that contexts and people see the conversation. */
  logTurns?: boolean;
}

/** A message, as far as a turn has it. A call of a tool, and what it gave, is `other`. */
export interface ConversationMessage {
  /** Mark that no other message of the conversation has: a message of the same name and text is logged once. */
  readonly name?: string | undefined;
  readonly role: "user" | "assistant" | "other";
  readonly text: string;
}

const TTL_SECONDS = 2_592_000;
const EXTERNAL_ID_LENGTH_MAX = 256;
/** A turn has two such texts, and a request 1 MiB. */
const TURN_TEXT_LENGTH_MAX = 100_000;
/** A server runs for months: only the latest of its conversations are remembered. */
const REMEMBERED_MAX = 1_000;

interface Open {
  readonly id: string;
  /** Time at which it is prolonged, by the clock of this machine. */
  readonly renewAt: number;
}

export class Sessions {
  readonly #documents: Documents;
  readonly #root: readonly string[];
  readonly #framework: string;
  readonly #options: SessionOptions | undefined;
  readonly #clock: Clock;
  readonly #open = new Map<string, Promise<Open>>();

  /**
   * @param root - the namespace of the adapter, by which sessions are named
   * @throws {TypeError} for another agent than that of the documents, which could not belong to its sessions
   */
  constructor(documents: Documents, root: readonly string[], framework: string, options: SessionOptions | undefined, clock = new Clock()) {
    const agentId = documents.owner.agent_id;
    if (options?.agent_id !== undefined && agentId !== undefined && options.agent_id !== agentId)
      throw new TypeError(
        `session.agent_id must be ${JSON.stringify(agentId)}, the agent of the documents; got ${JSON.stringify(options.agent_id)}.`,
      );
    this.#documents = documents;
    this.#root = root;
    this.#framework = framework;
    this.#options = options;
    this.#clock = clock;
  }

  get logsTurns(): boolean {
    return this.#options?.logTurns === true;
  }

  /**
   * Changes documents of a conversation, which belong to its session. When that was deleted meanwhile, and its documents with it, the
   * change is made again in a new one.
   *
   * @param make - gets whether it is made again, without anything that was there before
   */
  async change<Result>(conversation: string, make: (documents: Documents, isAgain: boolean) => Promise<Result>): Promise<Result> {
    if (this.#options === undefined) return make(this.#documents, false);
    return this.#within(conversation, (id, isAgain) => make(this.#documents.ofSession(id), isAgain));
  }

  /**
   * Logs the answers among messages that were added, each with what the user said last before it.
   *
   * @param before - gives the messages before these, when the user said nothing in these
   */
  async log(
    conversation: string,
    messages: readonly ConversationMessage[],
    before: () => Promise<readonly ConversationMessage[]>,
  ): Promise<void> {
    if (this.#options === undefined || !this.logsTurns) return;
    const { cairn } = this.#options;
    let question: string | undefined;
    for (const [i, { role, text, name }] of messages.entries()) {
      if (role === "user") question = text;
      if (role !== "assistant" || text === "" || messages[i + 1]?.role === "other") continue;
      question ??= lastAsked(await before());
      const turn = { input: textOf(question), output: textOf(text) };
      const key = name === undefined ? undefined : await hashOf(JSON.stringify([name, turn]));
      const named = key === undefined ? turn : { ...turn, external_id: key };
      await this.#within(conversation, (id) => cairn.turns.add(id, named));
    }
  }

  /** Deletes the session of a conversation, and with it its documents, turns and memories. */
  async delete(conversation: string): Promise<void> {
    if (this.#options === undefined) return;
    const { sessions } = this.#options.cairn;
    const { data } = await sessions.list({ ...(await this.#keyOf(conversation)), exact_user: true });
    this.#open.delete(conversation);
    for (const { id } of data) await sessions.delete(id).catch(unlessGone);
  }

  async #within<Result>(conversation: string, act: (sessionId: string, isAgain: boolean) => Promise<Result>): Promise<Result> {
    const { id } = await this.#opened(conversation);
    try {
      return await act(id, false);
    } catch (error) {
      unlessGone(error);
      this.#open.delete(conversation);
      return act((await this.#opened(conversation)).id, true);
    }
  }

  #opened(conversation: string): Promise<Open> {
    const known = this.#open.get(conversation);
    const open = () => this.#openOrProlong(conversation);
    const opened =
      known === undefined ? open() : known.then((session) => (this.#clock.time().getTime() < session.renewAt ? session : open()));
    // The one that was used last comes last.
    this.#open.delete(conversation);
    this.#open.set(conversation, opened);
    const [oldest] = this.#open.keys();
    if (this.#open.size > REMEMBERED_MAX && oldest !== undefined) this.#open.delete(oldest);
    opened.catch(() => {
      if (this.#open.get(conversation) === opened) this.#open.delete(conversation);
    });
    return opened;
  }

  async #openOrProlong(conversation: string): Promise<Open> {
    const { cairn, ttl_seconds = TTL_SECONDS } = this.#options as SessionOptions;
    const session = await cairn.sessions.create({ ...(await this.#keyOf(conversation)), if_exists: "return", ttl_seconds });
    if (session.ttl_expires_at === null) return { id: session.id, renewAt: Number.POSITIVE_INFINITY };
    const now = this.#clock.time().getTime();
    const half = ttl_seconds === "never" ? Number.POSITIVE_INFINITY : (ttl_seconds * 1000) / 2;
    const renewAt = Date.parse(session.ttl_expires_at) - half;
    if (renewAt > now) return { id: session.id, renewAt: Math.min(renewAt, now + half) };
    await cairn.sessions.update(session.id, { ttl_seconds });
    return { id: session.id, renewAt: now + half };
  }

  /** The user and the name of the session of a conversation, by which it is made and found, and the agent that asks for it. */
  async #keyOf(conversation: string) {
    const { user_id, agent_id } = this.#documents.owner;
    return {
      agent_id: this.#options?.agent_id ?? agent_id ?? this.#framework,
      ...(user_id === undefined ? {} : { user_id }),
      external_id: await this.#nameOf(conversation),
    };
  }

  /** The `external_id` of the session of a conversation: the same for no other one, and for nobody else's. */
  async #nameOf(conversation: string): Promise<string> {
    const { user_id, agent_id } = this.#documents.owner;
    const owner = (user_id === undefined ? "" : `@${escaped(user_id)}`) + (agent_id === undefined ? "" : `~${escaped(agent_id)}`);
    const name = [...this.#root, conversation].map(escaped).join(":") + owner;
    if (name.length <= EXTERNAL_ID_LENGTH_MAX) return name;
    return `${this.#framework}:${await hashOf(name)}`;
  }
}

/** Latest text of the user. */
export function lastAsked(messages: readonly ConversationMessage[]): string {
  return messages.filter(({ role }) => role === "user").at(-1)?.text ?? "";
}

function escaped(part: string): string {
  return part.replace(/[%:@~]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}

function textOf(text: string) {
  return { type: "text", content: text.slice(0, TURN_TEXT_LENGTH_MAX) } as const;
}

/** @throws the error, unless it says that there is no such session */
function unlessGone(error: unknown): void {
  if (!(error instanceof CairnError) || error.code !== "session_not_found") throw error;
}
