/**
 * `cairn doctor --oauth URL`: goes the way of an application that asks for access, and says where it ends.
 *
 * @module
 */
import { readOAuthWalk } from "../config.ts";
import { send } from "./http-client.ts";
import { walkOAuth } from "./oauth-walk.ts";
import { escaped, print } from "./print.ts";

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 1024 * 1024;

export async function doctorOAuth(args: readonly string[]): Promise<number> {
  const { address, key } = readOAuthWalk(args);
  for await (const { name, problem, untried } of walkOAuth(
    address,
    (url, sent) => send(url, { ...sent, signal: AbortSignal.timeout(TIMEOUT_MS), bytesMax: ANSWER_BYTES_MAX, anyCertificate: false }),
    key,
  )) {
    if (untried !== undefined) {
      await print(`untried ${name}\n        ${untried}`);
      return 0;
    }
    await print(problem === undefined ? `ok      ${name}` : `BROKEN  ${name}\n        ${escaped(problem)}`);
    if (problem !== undefined) return 1;
  }
  await print(
    key === undefined
      ? "As far as applications get without consent. With an admin key of that server in CAIRN_API_KEY the rest is tried, too."
      : "Applications can be connected.",
  );
  return 0;
}
