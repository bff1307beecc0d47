/**
 * `cairn dashboard`: prints a link that signs in to the dashboard of a running server, with all rights, once, within ten minutes.
 *
 * A reader of the data directory, or of the database's password, can create keys anyway. The link's key is made there and shown
 * to the server before it is printed, so that a link that another server would refuse is not. That server is the one of the data
 * directory, which proves it, or one that the operator names.
 *
 * @module
 */
import { parseFlags, type Config } from "../config.ts";
import { createLink } from "../keys/sign-in.ts";
import { systemReason } from "../lib/system-errors.ts";
import { assertPlace, shownPlace, storeConfigOf } from "./command-line.ts";
import { withExistingRecords } from "./keys.ts";
import { addressOf, haveAddress, serverAt, serverOf, type LocalServer } from "./local-server.ts";
import { print } from "./print.ts";

/** The key of a link may do nothing but sign in. */
const KNOWN_STATUS = 403;
const ADVICE = "Start it with cairn serve, or say where it is with --url.";

export async function dashboard(args: readonly string[]): Promise<number> {
  const { flags } = parseFlags(args, { flags: ["url"] });
  const config = storeConfigOf(flags);
  const address = flags["url"] === undefined && haveAddress(flags) ? addressOf(config) : undefined;
  const server = flags["url"] === undefined ? serverBeside(config, address) : serverAt(flags["url"]);
  const { origin } = server;
  const answerOf = (path: string, headers?: Record<string, string>) =>
    server.ask(path, headers).catch((error: unknown) => {
      throw new Error(`No server answers at ${origin}: ${systemReason(error)}. ${ADVICE}`, { cause: error });
    });
  await answerOf("/health/live");
  await withExistingRecords(config, async (records) => {
    const key = await createLink(records, records.operator);
    const { status } = await answerOf("/v1/api_keys/current", { "X-API-Key": key });
    if (status !== KNOWN_STATUS) {
      const [what, flag] = config.database === undefined ? ["data directory", "--data-dir"] : ["database", "--store"];
      throw new Error(`The server at ${origin} uses another ${what} than ${shownPlace(config)}: say which with ${flag}.`);
    }
    await print(dashboardLink(origin, key));
  });
  return 0;
}

/** @throws {Error} where there is none that a browser can reach */
function serverBeside(config: Config, address: URL | undefined): LocalServer {
  const { dataDirectory } = config;
  assertPlace(config);
  const server = serverOf(dataDirectory, address);
  if (server === undefined) throw new Error(`No server runs in the data directory ${dataDirectory}. ${ADVICE}`);
  if (server.origin.startsWith("unix:"))
    throw new Error(`A cairn mcp serves the data directory ${dataDirectory}, on no port that a browser could open. ${ADVICE}`);
  return server;
}

/** The address of the dashboard that signs in with a key: the part after # is sent to no server. */
export function dashboardLink(address: string, key: string): string {
  return `${address}/dashboard/#key=${key}`;
}
