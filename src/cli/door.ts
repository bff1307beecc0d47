/**
 * The API as commands call it: of a server that the operator named, or of a data directory, which the command serves itself where no
 * other process does.
 *
 * @module
 */
import type { ApiTarget } from "../config.ts";
import { ApiError } from "../lib/errors.ts";
import { describeError, type Log } from "../lib/log.ts";
import { systemReason } from "../lib/system-errors.ts";
import type { Api } from "../mcp/api.ts";
import { apiOverHttp } from "./api-over-http.ts";
import { prepare } from "./command-line.ts";
import type { DirectoryServer } from "./directory-server.ts";
import { fetchBy } from "./http-client.ts";

/** A server that is being restarted is back after 5 s. */
const RESTART = { pauseMs: 250, pausesMax: 20 };
/** A process that takes a directory over has opened its store after 15 s. A client waits for a tool a minute, as a rule. */
const TAKE_OVER = { pauseMs: 25, pausesMax: 600 };

/** Takes the place of the key, which the server of the directory announces. */
const KEY_OF_ANNOUNCEMENT = "announced";

export interface Door {
  readonly api: Api;
  /** Opens what the first call would. @throws {ApiError} */
  open(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens nothing before the first call.
 *
 * @param onFailure - called when this process serves the directory and its store can no longer be used in it
 */
export function doorTo({ server, config }: ApiTarget, log: Log, onFailure: () => void): Door {
  if (server !== undefined) return doorOf(server);
  let opening: Promise<DirectoryServer> | undefined;
  const load = async () => {
    prepare(config);
    // Its imports load native parts, which by now know where to unpack.
    const { DirectoryServer } = await import("./directory-server.ts");
    return new DirectoryServer(config, log, onFailure);
  };
  const loaded = async () => {
    try {
      return await (opening ??= load());
    } catch (error) {
      opening = undefined;
      log.error("could not open the data directory", { error: describeError(error) });
      throw new ApiError("service_unavailable", systemReason(error), { cause: error });
    }
  };
  const logged = async <Result>(result: Promise<Result>): Promise<Result> => {
    try {
      return await result;
    } catch (error) {
      if (error instanceof ApiError && error.detail.cause !== undefined) log.error(error.message);
      throw error;
    }
  };
  const answer = async (request: Request) => (await loaded()).answer(request);
  const name = `The server of ${config.dataDirectory}`;
  return {
    api: apiOverHttp({
      name,
      apiKey: KEY_OF_ANNOUNCEMENT,
      baseUrl: "http://localhost",
      fetch: (request) => logged(answer(request)),
      ...TAKE_OVER,
    }),
    open: async () => void (await (await loaded()).open()),
    close: async () => (await opening?.catch(() => undefined))?.close(),
  };
}

function doorOf({ url, key }: NonNullable<ApiTarget["server"]>): Door {
  return {
    api: apiOverHttp({ name: url.origin, apiKey: key, baseUrl: url.href, fetch: (request) => fetchBy(request, false), ...RESTART }),
    open: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
