/**
 * `cairn health`: asks a server whether it is ready, for containers that have no other client.
 *
 * Without `--url` it asks the server of the same settings on this machine.
 *
 * @module
 */
import { configOf, parseFlags } from "../config.ts";
import { systemReason } from "../lib/system-errors.ts";
import { ask, serverAt, type LocalServer } from "./local-server.ts";
import { print } from "./print.ts";

const ANSWER_SHOWN_LENGTH = 200;

export async function health(args: readonly string[]): Promise<number> {
  const { flags } = parseFlags(args, { flags: ["url"] });
  const server = serverAt(flags["url"], () => configOf(flags));
  const problem = await problemOf(server);
  if (problem !== undefined) throw new Error(`${server.address.origin} is not ready: ${problem}`);
  await print("ready");
  return 0;
}

/** Why it is not ready; undefined when it is. */
async function problemOf(server: LocalServer): Promise<string | undefined> {
  try {
    const { status, body } = await ask(server, "/health/ready");
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
