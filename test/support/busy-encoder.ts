/**
 * An encoder that does nothing for as long as a test says: what is to be encoded meanwhile waits.
 *
 * @module
 */
import type { ToEncoder } from "../../src/embeddings/builtin/protocol.ts";
import type { Cairn } from "./cairn.ts";

/** So long that no write waits for its own vector behind it. */
const LONG_QUESTION = "Is it raining, or is it not? ".repeat(40);

export class BusyEncoder {
  #isHeld = false;
  /** How many more are encoded before it does nothing. */
  #left = Number.POSITIVE_INFINITY;
  readonly #held: (() => void)[] = [];
  #asked = 0;
  #arrived = Promise.withResolvers<void>();

  /** For the options of a Cairn. */
  readonly newEncoder = (): Worker => {
    const worker = new Worker(new URL("../../src/embeddings/builtin/encoder-worker.ts", import.meta.url).href);
    const post = worker.postMessage.bind(worker);
    worker.postMessage = (message: ToEncoder) => {
      if (message.kind !== "encode" || (!this.#isHeld && this.#left-- > 0)) return post(message);
      this.#held.push(() => post(message));
      this.#arrived.resolve();
    };
    return worker;
  };

  /** Resolves once so many more texts were encoded and another one waits: it does nothing from then on. */
  async holdAfter(count: number): Promise<void> {
    this.#arrived = Promise.withResolvers();
    this.#left = count;
    await this.#arrived.promise;
  }

  release(): void {
    this.#left = Number.POSITIVE_INFINITY;
    for (const post of this.#held.splice(0)) post();
  }

  /** Does something while a long question waits for its turn, which every text comes behind. */
  async during<Result>(cairn: Cairn, work: () => Promise<Result>): Promise<Result> {
    this.#isHeld = true;
    this.#arrived = Promise.withResolvers();
    // One that was asked before is in the cache.
    const asked = cairn.search(`${LONG_QUESTION} ${++this.#asked}`);
    try {
      await this.#arrived.promise;
      return await work();
    } finally {
      this.#isHeld = false;
      this.release();
      await asked;
    }
  }
}
