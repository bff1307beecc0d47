/**
 * A request and its answer under a time limit, which is set again while a long answer is read.
 *
 * @module
 */
import { CairnError } from "./errors.ts";

export class Exchange {
  readonly #address: string;
  readonly #given: AbortSignal | undefined;
  readonly #controller = new AbortController();
  readonly #abort = () => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param address - of the server, for errors */
  constructor(address: string, signal: AbortSignal | undefined) {
    this.#address = address;
    this.#given = signal;
    signal?.throwIfAborted();
    signal?.addEventListener("abort", this.#abort);
  }

  /** Ends with the limit and with the signal that was given. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  limit(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#abort, ms);
  }

  /** Waits for a part of it. @throws {CairnError} when that does not come, or the reason of the signal that was given */
  async part<Result>(result: Promise<Result>): Promise<Result> {
    try {
      return await result;
    } catch (cause) {
      this.#given?.throwIfAborted();
      if (cause instanceof CairnError) throw cause;
      if (this.signal.aborted) throw new CairnError(`${this.#address} did not answer in time.`, { code: "timeout", cause });
      throw new CairnError(`${this.#address} cannot be reached.`, { code: "connection_failed", cause });
    }
  }

  /** Ends what is not read to its end. */
  close(): void {
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#abort);
    this.#abort();
  }
}
