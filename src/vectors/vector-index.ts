/**
 * The request thread's side of the vector index.
 *
 * A set of a few vectors is compared right here, which is exact and quicker than asking. For anything larger there is a
 * worker with a graph, started when there are enough vectors to need it. The index is derived: the store knows every
 * vector, and whatever the worker's state, a memory is found as soon as its commit is on disk.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../storage/store.ts";
import { labels, memories } from "../storage/tables.ts";
import { walk, type Filter } from "../storage/walk.ts";
import { Nearest, scan, type Neighbour } from "./exact.ts";
import type { IndexStatus } from "./indexer.ts";
import type { FromWorker, ToWorker } from "./protocol.ts";

/** So many are compared on the request thread: about 0.2 ms. */
const SCAN_HERE_MAX = 100;
/** The worker hears of changes in bunches. */
const WAKE_MS = 20;

const NO_STATUS: IndexStatus = { indexed: 0, pending: 0, deleted: 0, unsaved: 0 };

interface Call {
  resolve(neighbours: Neighbour[]): void;
  reject(error: unknown): void;
}

export class VectorIndex {
  readonly #store: Store;
  readonly #log: Log;
  readonly #calls = new Map<number, Call>();
  #worker: Worker | undefined;
  #ready: Promise<void> | undefined;
  #closed: (() => void) | undefined;
  #lastCall = 0;
  #status = NO_STATUS;
  #wakeTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  /** Loads the graph if there are vectors enough to need one. */
  async open(): Promise<void> {
    if (this.#needsWorker()) await this.#started();
  }

  /** Where the graph stands, as the worker last said. */
  get status(): IndexStatus & { vectors: number } {
    return { ...this.#status, vectors: this.#store.count(labels) };
  }

  /**
   * The memories nearest to a query among those that pass the filter, best first. Every vector committed before the call
   * is taken into account.
   *
   * @throws {ApiError} `service_unavailable` when the worker has failed; the next call starts a new one
   */
  async nearest(query: Float32Array, filter: Filter, limit: number): Promise<Neighbour[]> {
    const few: string[] = [];
    for (const memory of walk(this.#store, memories, filter)) {
      few.push(memory);
      if (few.length > SCAN_HERE_MAX) return this.#ask(query, filter, limit);
    }
    const nearest = new Nearest(limit);
    scan(this.#store, few, query, nearest);
    return nearest.best();
  }

  /** To be called after a commit that stored or removed vectors. */
  changed(): void {
    this.#wakeTimer ??= setTimeout(() => {
      this.#wakeTimer = undefined;
      if (this.#worker !== undefined) this.#send({ kind: "changed" });
      else if (this.#needsWorker()) this.#started().catch(() => undefined);
    }, WAKE_MS);
  }

  /** Has the graph written to disk. */
  async save(): Promise<void> {
    if (this.#worker === undefined) return;
    await this.#ready;
    await this.#call((call) => ({ kind: "save", call }));
  }

  /** Ends the worker; what is new in the graph is written to disk first. */
  async close(): Promise<void> {
    clearTimeout(this.#wakeTimer);
    const worker = this.#worker;
    if (worker === undefined) return;
    await this.#ready?.catch(() => undefined);
    await new Promise<void>((resolve) => {
      this.#closed = resolve;
      this.#send({ kind: "close" });
    });
    worker.terminate();
    this.#worker = undefined;
  }

  #needsWorker(): boolean {
    return this.#store.count(labels) > SCAN_HERE_MAX;
  }

  async #ask(query: Float32Array, filter: Filter, limit: number): Promise<Neighbour[]> {
    await this.#started();
    return this.#call((call) => ({ kind: "nearest", call, query, filter, limit }));
  }

  #call(message: (call: number) => ToWorker): Promise<Neighbour[]> {
    const call = ++this.#lastCall;
    return new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve, reject });
      this.#send(message(call));
    });
  }

  #send(message: ToWorker): void {
    this.#worker?.postMessage(message);
  }

  #started(): Promise<void> {
    this.#ready ??= new Promise((resolve, reject) => {
      const worker = new Worker(new URL("./worker.ts", import.meta.url).href);
      this.#worker = worker;
      worker.addEventListener("message", (event: MessageEvent<FromWorker>) => {
        const { data } = event;
        if (data.kind === "ready") resolve();
        if (data.kind === "failed" && data.call === 0) reject(unavailable(data.reason));
        this.#receive(data);
      });
      worker.addEventListener("error", (event) => {
        reject(unavailable(event.message));
        this.#fail(event.message);
      });
      this.#send({ kind: "start", dataDirectory: this.#store.directory });
    });
    return this.#ready;
  }

  #receive(message: FromWorker): void {
    switch (message.kind) {
      case "ready":
        this.#status = message.status;
        this.#log.info("vector index ready", { vectors: message.status.indexed, pending: message.status.pending, rebuilding: message.rebuilding });
        break;
      case "status":
        this.#status = message.status;
        break;
      case "answer":
        this.#take(message.call)?.resolve(message.neighbours);
        break;
      case "saved":
        this.#take(message.call)?.resolve([]);
        break;
      case "failed":
        if (message.call === 0) this.#fail(message.reason);
        else this.#take(message.call)?.reject(unavailable(message.reason));
        break;
      case "warning":
        this.#log.warn(message.message);
        break;
      case "closed":
        this.#closed?.();
        break;
    }
  }

  #take(call: number): Call | undefined {
    const found = this.#calls.get(call);
    this.#calls.delete(call);
    return found;
  }

  /** Gives up on this worker: whoever waits is told, and the next who needs one starts it. */
  #fail(reason: string): void {
    this.#log.error("vector index failed", { reason });
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#ready = undefined;
    this.#closed?.();
    for (const call of this.#calls.values()) call.reject(unavailable(reason));
    this.#calls.clear();
  }
}

function unavailable(reason: string): ApiError {
  return new ApiError("service_unavailable", "The vector index could not answer. Try again in a moment.", { cause: reason });
}
