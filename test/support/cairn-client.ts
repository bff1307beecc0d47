/**
 * A Cairn that listens, and a client of it.
 *
 * @module
 */
import type { SessionOptions } from "../../src/adapters/shared/sessions.ts";
import { Cairn } from "../../src/client/index.ts";
import { startServer, type Server } from "./server.ts";

export interface ServedClient extends AsyncDisposable {
  readonly server: Server;
  readonly cairn: Cairn;
}

export async function startClient(): Promise<ServedClient> {
  const server = await startServer();
  const cairn = new Cairn({ apiKey: server.cairn.key, baseUrl: `http://127.0.0.1:${server.port}` });
  return { server, cairn, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** Options of adapters, by chance with a session of Cairn for each conversation. */
export function sessionsBy(seed: number, { cairn }: ServedClient): { session?: SessionOptions } {
  return seed % 2 === 0 ? {} : { session: { cairn, agent_id: `agent-${seed % 3}`, logTurns: seed % 3 === 0 } };
}

/** A client of the same Cairn for which something happens before each batch or query of documents is sent; when that throws, it is not sent. */
export function clientBefore({ server }: ServedClient, kind: "batch" | "query", before: (count: number, body: string) => unknown): Cairn {
  let count = 0;
  return new Cairn({
    apiKey: server.cairn.key,
    baseUrl: `http://127.0.0.1:${server.port}`,
    retries: 0,
    fetch: async (request) => {
      if (request.url.endsWith(`/${kind}`)) await before(++count, await request.clone().text());
      return fetch(request);
    },
  });
}
