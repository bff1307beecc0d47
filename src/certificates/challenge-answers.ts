/**
 * Answers to the challenges of HTTP-01: a certificate authority asks any of the servers for them, over plain HTTP.
 *
 * Strangers can ask for them too. What one server has alone costs them a look into a map; what servers share one small query, of which
 * one is under way at a time, for all who ask.
 *
 * @see https://www.rfc-editor.org/rfc/rfc8555#section-8.3
 * @module
 */
import type { SharedAnswers } from "../storage/certificate-store.ts";

const PATH = "/.well-known/acme-challenge/";
const TOKEN = /^[\w-]{1,200}$/;

/** The token that a path asks for; undefined for other paths. */
export function tokenIn(path: string): string | undefined {
  const token = path.startsWith(PATH) ? path.slice(PATH.length) : "";
  return TOKEN.test(token) ? token : undefined;
}

export class ChallengeAnswers {
  readonly #shared: SharedAnswers | undefined;
  readonly #own = new Map<string, string>();
  /** The last read of what is shared, and the one that begins after it. */
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<ReadonlyMap<string, string>> | undefined;

  constructor(shared: SharedAnswers | undefined) {
    this.#shared = shared;
  }

  /** @throws {Error} for a token that no path could have */
  async publish(token: string, answer: string): Promise<void> {
    if (!TOKEN.test(token)) throw new Error("The token of the challenge is none.");
    this.#own.set(token, answer);
    await this.#shared?.put(token, answer);
  }

  /** Withdraws all, those of an order that a killed server left included. */
  async withdraw(): Promise<void> {
    this.#own.clear();
    await this.#shared?.clear();
  }

  async find(token: string): Promise<string | undefined> {
    return this.#own.get(token) ?? (this.#shared === undefined ? undefined : (await this.#read(this.#shared)).get(token));
  }

  /** Reads what is shared as it is after this call. */
  #read(shared: SharedAnswers): Promise<ReadonlyMap<string, string>> {
    this.#next ??= this.#last.then(() => {
      this.#next = undefined;
      const read = shared.all();
      this.#last = read.catch(() => undefined);
      return read;
    });
    return this.#next;
  }
}
