/**
 * `cairn health`: asks a server whether it is ready, for containers that have no other client.
 *
 * Without an address it asks the server of the data directory, or, if none has announced itself there, who listens where the settings
 * say: nobody gets a key.
 *
 * @module
 */
import { configOf, parseFlags } from "../config.ts";
import { systemReason } from "../lib/system-errors.ts";
import { ForeignFileError } from "./announcement.ts";
import { haveAddress, serverAt, serverOf, serverOfSettings, type LocalServer } from "./local-server.ts";
import { print } from "./print.ts";

const ANSWER_SHOWN_LENGTH = 200;

export async function health(args: readonly string[]): Promise<number> {
  const { flags } = parseFlags(args, { flags: ["url"] });
  const server = serverIn(flags);
  const problem = await problemOf(server);
  if (problem !== undefined) throw new Error(`${server.origin} is not ready: ${problem}`);
  await print("ready");
  return 0;
}

function serverIn(flags: ReturnType<typeof parseFlags>["flags"]): LocalServer {
  if (flags["url"] !== undefined) return serverAt(flags["url"]);
  const config = configOf(flags);
  return (haveAddress(flags) ? undefined : serverBeside(config.dataDirectory)) ?? serverOfSettings(config);
}

/** On the mounts of some containers all files are somebody else's. */
function serverBeside(dataDirectory: string): LocalServer | undefined {
  try {
    return serverOf(dataDirectory);
  } catch (error) {
    if (error instanceof ForeignFileError) return undefined;
    throw error;
  }
}

/** Reason why it is not ready; undefined when it is. */
async function problemOf(server: LocalServer): Promise<string | undefined> {
  try {
    const { status, body } = await server.ask("/health/ready");
    return status === 200 && saysReady(body) ? undefined : `it answered ${status} ${body.slice(0, ANSWER_SHOWN_LENGTH)}`;
  } catch (error) {
    return systemReason(error);
  }
}

function saysReady(body: string): boolean {
  try {
    return (JSON.parse(body) as { status?: unknown } | null)?.status === "ready";
  } catch {
    return false;
  }
}
