/**
 * `cairn dashboard`: prints a link that signs in to the dashboard of a running server, with all rights, once, within ten minutes.
 *
 * Who can read the data directory, or knows the password of the database, can make keys anyway. The link's key is made there and shown
 * to the server before it is printed, so that a link that another server would refuse is not.
 *
 * @module
 */
import { parseFlags } from "../config.ts";
import { createLink } from "../keys/sign-in.ts";
import { systemReason } from "../lib/system-errors.ts";
import { shownPlace, storeConfigOf } from "./command-line.ts";
import { withExistingRecords } from "./keys.ts";
import { ask, serverAt } from "./local-server.ts";
import { print } from "./print.ts";

/** The key of a link may do nothing but sign in. */
const KNOWN_STATUS = 403;

export async function dashboard(args: readonly string[]): Promise<number> {
  const { flags } = parseFlags(args, { flags: ["url"] });
  const config = storeConfigOf(flags);
  const server = serverAt(flags["url"], () => config);
  const { origin } = server.address;
  const answerOf = (path: string, headers?: Record<string, string>) =>
    ask(server, path, headers).catch((error: unknown) => {
      throw new Error(`No server answers at ${origin}: ${systemReason(error)}. Start it with cairn serve, or say where it is with --url.`, {
        cause: error,
      });
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

/** The address of the dashboard that signs in with a key: the part after # is sent to no server. */
export function dashboardLink(address: string, key: string): string {
  return `${address}/dashboard/#key=${key}`;
}
