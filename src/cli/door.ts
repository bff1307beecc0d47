/**
 * Requests of a command to the API: of a server that the operator named, or of a data directory, which the command serves itself where no
 * other process does.
 *
 * @module
 */
import type { ApiTarget } from "../config.ts";
import { systemClock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { describeError, type Log } from "../lib/log.ts";
import { systemReason } from "../lib/system-errors.ts";
import type { HttpAnswer, HttpCall } from "../mcp/api.ts";
import { prepare } from "./command-line.ts";
import type { DirectoryServer } from "./directory-server.ts";
import { send } from "./http-client.ts";

const CALL_TIMEOUT_MS = 60_000;
/** A server that is being restarted is back by then. */
const RETRY_MS = 5_000;
const RETRY_EVERY_MS = 250;

export interface Door {
  send(call: HttpCall): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/**
 * Opens nothing before the first call.
 *
 * @param onFailure - called when this process serves the directory and its store can no longer be used in it
 */
export function doorTo({ server, config }: ApiTarget, log: Log, onFailure: () => void): Door {
  if (server !== undefined) return { send: (call) => askServer(server, call), close: () => Promise.resolve() };
  let opening: Promise<DirectoryServer> | undefined;
  const open = async () => {
    prepare(config);
    // Its imports load native parts, which by now know where to unpack.
    const server = await import("./directory-server.ts");
    return new server.DirectoryServer(config, log, onFailure);
  };
  return {
    async send(call) {
      try {
        opening ??= open();
        return await (await opening).send(call);
      } catch (error) {
        if (error instanceof ApiError) {
          if (error.detail.cause !== undefined) log.error(error.message);
          throw error;
        }
        opening = undefined;
        log.error("could not open the data directory", { error: describeError(error) });
        throw new ApiError("service_unavailable", systemReason(error), { cause: error });
      }
    },
    close: async () => (await opening?.catch(() => undefined))?.close(),
  };
}

/** Sends again for a while when no answer comes: each attempt has the same `Idempotency-Key`. */
async function askServer({ url, key }: NonNullable<ApiTarget["server"]>, { target, headers, ...call }: HttpCall): Promise<HttpAnswer> {
  const to = new URL(`${url.pathname.replace(/\/$/, "")}${target}`, url);
  const sent = { ...call, headers: { ...headers, "X-API-Key": key }, timeoutMs: CALL_TIMEOUT_MS, anyCertificate: false, keepAlive: true };
  const end = systemClock.elapsed() + RETRY_MS;
  for (let isRepeated = false; ; isRepeated = true) {
    try {
      return { ...(await send(to, sent)), isRepeated };
    } catch (error) {
      if (systemClock.elapsed() > end) throw new ApiError("service_unavailable", `${url.origin} does not answer: ${systemReason(error)}.`);
    }
    await systemClock.sleep(RETRY_EVERY_MS);
  }
}
