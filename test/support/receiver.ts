/**
 * Receivers of webhooks on the loopback address.
 *
 * @module
 */
import type { Socket } from "bun";

export interface Received {
  method: string;
  path: string;
  headers: Record<string, string>;
  /** As it came. */
  body: string;
  event: any;
}

/** How a receiver answers the n-th request, counted from 1. */
export type Reply = (received: Received, count: number) => Response | Promise<Response>;

export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  reply: Reply;
  readonly #server: Bun.Server<undefined>;
  #looks: (() => void)[] = [];

  constructor(reply: Reply) {
    this.reply = reply;
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      fetch: async (request) => {
        const body = await request.text();
        const received: Received = {
          method: request.method,
          path: new URL(request.url).pathname,
          headers: Object.fromEntries(request.headers),
          body,
          event: JSON.parse(body),
        };
        this.received.push(received);
        for (const look of this.#looks) look();
        return this.reply(received, this.received.length);
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/hook`;
  }

  /** The records that came, in their order. */
  get events(): any[] {
    return this.received.map(({ event }) => event);
  }

  /** Resolves when this many requests have come. */
  async got(count: number): Promise<void> {
    while (this.received.length < count) await new Promise<void>((resolve) => this.#looks.push(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

/** Where a receiver seems to be to a Cairn that resolves this name to a public address and is led to this machine. */
export function publicUrl(url: string): string {
  return url.replace("127.0.0.1", "agents.example.com");
}

/** Leads every address to this machine. */
export const dialHere = (): string => "127.0.0.1";

export function startReceiver(reply: Reply = () => new Response("ok")): Receiver {
  return new Receiver(reply);
}

/** A receiver that answers with bytes of its own, and writes more when there is room. */
export function startRawReceiver(answer: (socket: Socket) => void, more: (socket: Socket) => void = () => undefined) {
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: answer, drain: more, error: () => undefined },
  });
  return {
    url: `http://127.0.0.1:${listener.port}/hook`,
    [Symbol.dispose]: () => listener.stop(true),
  };
}
