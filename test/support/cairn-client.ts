/**
 * A Cairn that listens, and a client of it.
 *
 * @module
 */
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
