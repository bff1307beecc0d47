/**
 * Stands between a store and its PostgreSQL: it loses what one says to the other, or leads to another server after a failover.
 *
 * @module
 */
import type { Socket } from "bun";

interface Pipe {
  up: Socket | undefined;
  /** What came before there was a connection. */
  early: Buffer[];
}

export class PostgresProxy implements Disposable {
  /** What is lost next, with all connections: the answer to a commit, or the question. */
  fault: "answer" | "question" | undefined;
  /** Whether nothing can be connected to after that. */
  isDownAfterFault = false;
  /** How often something was sent after an answer: what is sent before that is part of the same question. */
  questions = 0;
  #isAnswered = true;
  readonly url: string;
  #target: URL;
  readonly #port: number;
  #listener: Bun.TCPSocketListener<Pipe> | undefined;
  readonly #sockets = new Set<{ terminate(): void }>();

  constructor(target: string) {
    this.#target = new URL(target);
    this.#port = this.start();
    const parts = new URL(target);
    parts.port = String(this.#port);
    this.url = parts.href;
  }

  /** Leads what connects from now on to another server, and ends what is connected. */
  leadTo(url: string): void {
    this.#target = new URL(url);
    for (const socket of this.#sockets) socket.terminate();
    this.#sockets.clear();
  }

  start(): number {
    this.#listener = Bun.listen<Pipe>({
      hostname: "127.0.0.1",
      port: this.#port ?? 0,
      socket: {
        open: (down) => {
          down.data = { up: undefined, early: [] };
          this.#sockets.add(down);
          const { hostname, port } = this.#target;
          void Bun.connect({
            hostname,
            port: Number(port),
            socket: {
              open: (up) => {
                this.#sockets.add(up);
                down.data.up = up;
                for (const data of down.data.early) up.write(data);
              },
              data: (_, data) => {
                this.#isAnswered = true;
                if (this.fault === "answer" && data.includes("COMMIT\0")) this.#fail();
                else down.write(data);
              },
              close: () => down.terminate(),
            },
          }).catch(() => down.terminate());
        },
        data: (down, data) => {
          if (this.#isAnswered) this.questions++;
          this.#isAnswered = false;
          if (this.fault === "question" && data.includes("cairn.commits")) this.#fail();
          else if (down.data.up === undefined) down.data.early.push(data);
          else down.data.up.write(data);
        },
        close: (down) => void down.data.up?.end(),
      },
    });
    return this.#listener.port;
  }

  stop(): void {
    this.#listener?.stop(true);
    for (const socket of this.#sockets) socket.terminate();
    this.#sockets.clear();
  }

  #fail(): void {
    this.fault = undefined;
    this.stop();
    if (!this.isDownAfterFault) this.start();
  }

  [Symbol.dispose](): void {
    this.stop();
  }
}
