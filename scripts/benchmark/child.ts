/**
 * Processes beside this one that do one thing when told: each thing measured has a processor and a heap of its own.
 *
 * @module
 */
import { join } from "node:path";

interface Told<Order> {
  call: number;
  order: Order;
}

interface Done<Result> {
  call: number;
  result?: Result;
  failure?: string;
}

/** The side that tells. */
export class Child<Order, Result> {
  readonly #process: Bun.Subprocess;
  readonly #waiting = new Map<number, { resolve: (result: Result) => void; reject: (error: Error) => void }>();
  #calls = 0;

  /** @param script - a file beside this one that calls `obey` */
  constructor(script: string) {
    this.#process = Bun.spawn([process.execPath, join(import.meta.dir, script)], {
      stdin: "ignore",
      stdout: "inherit",
      stderr: "inherit",
      serialization: "advanced",
      ipc: (message) => this.#receive(message as Done<Result>),
      onExit: (_, code) => {
        for (const { reject } of this.#waiting.values()) reject(new Error(`${script} ended with code ${code}`));
      },
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  tell(order: Order): Promise<Result> {
    const call = ++this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
      this.#process.send({ call, order } satisfies Told<Order>);
    });
  }

  end(): void {
    this.#waiting.clear();
    this.#process.kill();
  }

  #receive({ call, result, failure }: Done<Result>): void {
    const waiting = this.#waiting.get(call);
    this.#waiting.delete(call);
    if (failure === undefined) waiting?.resolve(result as Result);
    else waiting?.reject(new Error(failure));
  }
}

/** The side that is told, one thing at a time. */
export function obey(carryOut: (order: never) => Promise<unknown>): void {
  const done = (message: Done<unknown>) => process.send?.(message);
  process.on("message", ({ call, order }: Told<never>) => {
    carryOut(order).then(
      (result) => done({ call, result }),
      (error: unknown) => done({ call, failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    );
  });
}
