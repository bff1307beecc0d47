/**
 * The encoder's queue without an encoder: it counts whose layers are taken, and every text has the same vector.
 *
 * @module
 */
import type { FromEncoder, ToEncoder } from "../../src/embeddings/builtin/protocol.ts";
import { EncoderQueue, type Queued } from "../../src/embeddings/builtin/queue.ts";
import { PASSAGE_DIMENSION } from "../../src/embeddings/embedder.ts";

const LAYERS = 12;

interface Text extends Queued {
  readonly call: number;
  /** Characters of layers of each owner by then. */
  readonly since: ReadonlyMap<string, number>;
  layers: number;
}

export interface Counted extends Pick<Queued, "owner" | "isQuery" | "length"> {
  /** Characters of layers that others had from when it came until it was done. */
  readonly others: number;
}

export class CountingEncoder extends EventTarget {
  readonly #queue = new EncoderQueue<Text>();
  readonly #taken = new Map<string, number>();
  readonly #texts = new Map<number, Text>();
  #isWorking = false;
  readonly done: Counted[] = [];
  /** The longest layer there was. */
  longest = 0;

  /** For the options of a Cairn. */
  readonly newEncoder = (): Worker => {
    queueMicrotask(() => this.#post({ kind: "ready" }));
    return this as unknown as Worker;
  };

  ref(): void {
    // There is no thread.
  }

  unref(): void {
    // There is no thread.
  }

  postMessage(message: ToEncoder): void {
    if (message.kind === "close") this.#post({ kind: "closed" });
    if (message.kind === "cancel") this.#drop(this.#texts.get(message.call));
    if (message.kind !== "encode") return;
    const { call, owner, isQuery, text } = message;
    const added = { call, owner, isQuery, length: text.length, since: new Map(this.#taken), layers: LAYERS };
    this.#texts.set(call, added);
    this.#queue.add(added);
    if (this.#isWorking) return;
    this.#isWorking = true;
    setImmediate(() => this.#takeLayer());
  }

  /** Others are answered between two layers, as the thread looks for messages. */
  #takeLayer(): void {
    const text = this.#queue.next();
    this.#isWorking = text !== undefined;
    if (text === undefined) return;
    const { owner, isQuery, length } = text;
    this.longest = Math.max(this.longest, length);
    this.#taken.set(owner, (this.#taken.get(owner) ?? 0) + length);
    if (--text.layers === 0) {
      const others = this.#taken.entries().filter(([other]) => other !== owner);
      this.done.push({ owner, isQuery, length, others: others.reduce((sum, [other, all]) => sum + all - (text.since.get(other) ?? 0), 0) });
      this.#drop(text);
      const vector = new Float32Array(PASSAGE_DIMENSION).fill(1 / Math.sqrt(PASSAGE_DIMENSION));
      this.#post({ kind: "vector", call: text.call, vector });
    }
    setImmediate(() => this.#takeLayer());
  }

  #drop(text: Text | undefined): void {
    if (text === undefined) return;
    this.#queue.remove(text);
    this.#texts.delete(text.call);
  }

  #post(data: FromEncoder): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }
}
