/**
 * One haystack through the API: its messages stored, its questions asked, and everything removed again.
 *
 * @module
 */
import type { Cairn } from "../../client/client.ts";
import { countTokens } from "../../embeddings/builtin/token-count.ts";
import type { Clock } from "../../lib/clock.ts";
import { LIMITS } from "../../lib/limits.ts";
import { piecesOf } from "../import/values.ts";
import type { Haystack, Question } from "./haystack.ts";

/** Kinds of record that a message becomes: a memory, or a turn that is found by its words, or by its meaning too. */
export const STORED_AS = ["memories", "words", "meaning"] as const;
export type StoredAs = (typeof STORED_AS)[number];

export interface Target {
  readonly client: Cairn;
  /** Resolves once no vector is to be made: the encoder may have much to do. */
  readonly vectorsMade: () => Promise<void>;
  readonly clock: Clock;
}

/** A question with what a search found, as a line of the results has it. */
export interface Answer {
  /** Numbers of the haystack in its files and of the question in it, from 0. */
  readonly haystack: number;
  readonly question: number;
  /** Names of both in their file. */
  readonly id: string;
  readonly category: string;
  readonly language: string;
  readonly unanswerable: boolean;
  /** Messages and conversations that answer it and are there. */
  readonly relevant: readonly string[];
  readonly relevant_conversations: readonly string[];
  /** Evidence that the file names and does not have. */
  readonly missing: readonly string[];
  /** Messages found, best first, each once. */
  readonly found: readonly Found[];
  /** Tokens of the first ten results, estimated from above. */
  readonly tokens: number;
  readonly ms: number;
}

interface Found {
  readonly message: string;
  readonly conversation: string;
  readonly score: number;
}

const AGENT = "cairn-bench";
const BATCH_RECORDS = 100;
const BATCH_BYTES = 262_144;
/** Results that a search gives unless it is asked for another number. */
export const USUAL_RESULTS = 10;

interface Stored {
  readonly message: string;
  readonly conversation: string;
  readonly tokens: number;
}

interface Piece {
  readonly message: string;
  readonly text: string;
}

export class Trial {
  readonly #target: Target;
  readonly #user: string;
  readonly #as: StoredAs;
  /** By the id of the record. */
  readonly #stored = new Map<string, Stored>();
  readonly #messages = new Map<string, string>();
  readonly #sessions: string[] = [];
  readonly #conversations = new Set<string>();

  /** @param user - that nobody else has: all of it is removed at the end */
  constructor(target: Target, user: string, as: StoredAs) {
    this.#target = target;
    this.#user = user;
    this.#as = as;
  }

  get messages(): number {
    return this.#messages.size;
  }

  /** Stores all messages, and waits until searches find them. */
  async store({ conversations }: Haystack): Promise<void> {
    const { client, vectorsMade } = this.#target;
    const session = { agent_id: AGENT, user_id: this.#user, ttl_seconds: "never" as const };
    for (const { id: conversation, messages } of conversations) {
      this.#conversations.add(conversation);
      const created = await client.sessions.create(this.#as === "memories" ? session : { ...session, index_turns: this.#as });
      this.#sessions.push(created.id);
      const pieces = messages.flatMap(({ id, text }) => this.#piecesOf(id, text));
      for (const { message } of pieces) this.#messages.set(message, conversation);
      for (const batch of batchesOf(pieces)) {
        const ids = await this.#add(created.id, batch);
        for (const [i, { message, text }] of batch.entries())
          this.#stored.set(ids[i]!, { message, conversation, tokens: countTokens(text) });
      }
    }
    // The index of words begins with the first search.
    if (this.#as !== "memories") await client.turns.search({ query: AGENT, user_id: this.#user });
    await vectorsMade();
  }

  /** @param limit - results that are asked for, without a threshold */
  async ask(question: Question, limit: number): Promise<Omit<Answer, "haystack" | "question" | "language">> {
    const { client, clock } = this.#target;
    const body = { query: question.text.slice(0, LIMITS.queryLengthMax), user_id: this.#user, limit, threshold: 0 };
    const beganAt = clock.elapsed();
    const { data } = this.#as === "memories" ? await client.memories.search(body) : await client.turns.search(body);
    const ms = clock.elapsed() - beganAt;
    const results = data.map(({ id, score }) => ({ score, stored: this.#stored.get(id)! }));
    const seen = new Set<string>();
    const found = results.flatMap(({ score, stored: { message, conversation } }) => {
      if (seen.has(message)) return [];
      seen.add(message);
      return [{ message, conversation, score }];
    });
    return {
      id: question.id,
      category: question.category,
      unanswerable: question.isUnanswerable,
      ...this.#relevantTo(question),
      found,
      tokens: results.slice(0, USUAL_RESULTS).reduce((sum, { stored }) => sum + stored.tokens, 0),
      ms: Math.round(1000 * ms) / 1000,
    };
  }

  /** Removes everything of the user, and so what a run that was killed has left. */
  async remove(): Promise<void> {
    const { client } = this.#target;
    for await (const { id } of client.sessions.list({ user_id: this.#user })) await client.sessions.delete(id);
  }

  #relevantTo({ evidence, conversations, isUnanswerable }: Question): Pick<Answer, "relevant" | "relevant_conversations" | "missing"> {
    if (isUnanswerable) return { relevant: [], relevant_conversations: [], missing: [] };
    const relevant = evidence.filter((name) => this.#messages.has(name));
    const named = conversations.filter((name) => this.#conversations.has(name));
    return {
      relevant,
      relevant_conversations: Array.from(new Set([...named, ...relevant.map((name) => this.#messages.get(name)!)])),
      missing: [...evidence.filter((name) => !this.#messages.has(name)), ...conversations.filter((name) => !this.#conversations.has(name))],
    };
  }

  /** A memory of a message that is too long for one is several. A blank message is nothing to find. */
  #piecesOf(message: string, text: string): Piece[] {
    const whole = text.trim().toWellFormed();
    if (whole === "") return [];
    const pieces = this.#as === "memories" ? piecesOf(whole, LIMITS.memoryContentLengthMax) : [whole];
    return pieces.filter((piece) => piece.trim() !== "").map((piece) => ({ message, text: piece }));
  }

  /** @returns ids in the order of the pieces */
  async #add(session: string, pieces: readonly Piece[]): Promise<string[]> {
    const { client } = this.#target;
    if (this.#as === "memories") {
      const memories = pieces.map(({ text }) => ({ session_id: session, content: text }));
      return (await client.memories.addMany(memories)).data.map(({ id }) => id);
    }
    const turns = pieces.map(({ text }) => ({
      input: { type: "text" as const, content: text },
      output: { type: "text" as const, content: "" },
    }));
    return (await client.turns.addBatch(session, { turns })).data.map(({ id }) => id);
  }
}

function batchesOf(pieces: readonly Piece[]): Piece[][] {
  const batches: Piece[][] = [];
  let bytes = Infinity;
  for (const piece of pieces) {
    const length = Buffer.byteLength(piece.text);
    const isFull = bytes + length > BATCH_BYTES || batches.at(-1)!.length === BATCH_RECORDS;
    if (isFull) [bytes] = [0, batches.push([])];
    batches.at(-1)!.push(piece);
    bytes += length;
  }
  return batches;
}
