/**
 * One worker from its start to its end, as promises: every call is answered or rejected, whatever becomes of it.
 *
 * The worker does not keep the process alive: who has nothing else to do may exit. It is never terminated, it ends by
 * itself: hnswlib-node aborts the whole process when its thread is taken away in the midst of a call (5 times of 25).
 *
 * @module
 */
import { unpack, type Candidate, type SlotTables } from "./candidates.ts";
import type { FromWorker, ToWorker } from "./protocol.ts";

/** Messages that answer no call. */
export type Notice = Extract<FromWorker, { kind: "ready" | "shared" | "status" | "warning" }>;

interface Call {
  resolve(candidates: Candidate[]): void;
  reject(error: Error): void;
}

export class Connection {
  /** Resolves when the worker can be asked; rejects when it never will. */
  readonly ready: Promise<void>;
  /** Resolves when the worker is gone: with what went wrong, or undefined after `close`. */
  readonly ended: Promise<string | undefined>;
  readonly #worker: Worker;
  readonly #tables: () => SlotTables | undefined;
  readonly #calls = new Map<number, Call>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<string | undefined>();
  #lastCall = 0;
  #isOver = false;

  /** @param tables - those of the last notice of them, in which answers name slots */
  constructor(
    worker: Worker,
    start: Extract<ToWorker, { kind: "start" }>,
    onNotice: (notice: Notice) => void,
    tables: () => SlotTables | undefined,
  ) {
    this.#worker = worker;
    this.#tables = tables;
    this.ready = this.#ready.promise;
    this.ended = this.#ended.promise;
    // Callers that wait get the error; there need not be any.
    this.ready.catch(() => undefined);
    worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => this.#receive(data, onNotice));
    worker.addEventListener("error", ({ message }) => this.#end(message));
    worker.addEventListener("close", () => this.#end("the worker has ended"));
    worker.unref();
    this.send(start);
  }

  send(message: ToWorker): void {
    if (!this.#isOver) this.#worker.postMessage(message);
  }

  async call(message: (call: number) => ToWorker): Promise<Candidate[]> {
    await this.ready;
    if (this.#isOver) throw new Error("the worker has ended");
    const call = ++this.#lastCall;
    return new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve, reject });
      this.send(message(call));
    });
  }

  /** Lets the worker finish: what is new in the graph is written to disk; what is being loaded is loaded no further. */
  async close(): Promise<void> {
    this.#worker.ref();
    this.send({ kind: "close" });
    await this.ended;
  }

  /** Waits for the worker no longer. It may still be at work, and ends with the process at the latest. */
  abandon(reason: string): void {
    this.#end(reason);
  }

  #receive(message: FromWorker, onNotice: (notice: Notice) => void): void {
    switch (message.kind) {
      case "ready":
        this.#ready.resolve();
        onNotice(message);
        break;
      case "shared":
      case "status":
      case "warning":
        onNotice(message);
        break;
      case "answer":
        this.#take(message.call)?.resolve(unpack(message, this.#tables()));
        break;
      case "saved":
        this.#take(message.call)?.resolve([]);
        break;
      case "error":
        this.#take(message.call)?.reject(new Error(message.reason));
        break;
      case "fatal":
        this.#end(message.reason);
        break;
      case "closed":
        this.#end(undefined);
        break;
    }
  }

  #take(call: number): Call | undefined {
    const found = this.#calls.get(call);
    this.#calls.delete(call);
    return found;
  }

  #end(reason: string | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#worker.unref();
    const error = new Error(reason ?? "the worker was closed");
    this.#ready.reject(error);
    for (const call of this.#calls.values()) call.reject(error);
    this.#calls.clear();
    this.#ended.resolve(reason);
  }
}
