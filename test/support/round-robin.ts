/**
 * A proxy that leads each request to the next of several servers, as a balancer does; a request whose server is gone is answered 502.
 *
 * @module
 */
export class RoundRobin implements AsyncDisposable {
  readonly #server: Bun.Server<undefined>;
  #requests = 0;

  /** @param addresses - of the servers */
  constructor(addresses: readonly string[]) {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      fetch: async (request) => {
        const { pathname, search } = new URL(request.url);
        const { method, headers } = request;
        const body = await request.arrayBuffer();
        const target = addresses[this.#requests++ % addresses.length];
        try {
          return await fetch(`${target}${pathname}${search}`, {
            method,
            headers,
            redirect: "manual",
            // What is compressed is passed on as it is, with its header.
            decompress: false,
            ...(method === "GET" ? {} : { body }),
          });
        } catch {
          return new Response("the server is gone", { status: 502 });
        }
      },
    });
  }

  get address(): string {
    return this.#server.url.origin;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}
