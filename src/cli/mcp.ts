/**
 * `cairn mcp`: the tools of MCP over standard input and output, for clients that start a program.
 *
 * It serves a data directory of this machine together with others of its kind, or asks a server. `initialize` and the lists are
 * answered before anything is opened, since clients wait for them no longer than a few seconds. Standard output is for MCP alone.
 *
 * @module
 */
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { readMcpConfig, UsageError, type McpConfig } from "../config.ts";
import { afterNextTurn, systemClock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { createLog, describeError, type Log } from "../lib/log.ts";
import { systemReason } from "../lib/system-errors.ts";
import { version } from "../lib/version.ts";
import { apiOverHttp, type HttpAnswer, type HttpCall } from "../mcp/api.ts";
import { mcpServer, TOOL_SETS } from "../mcp/server.ts";
import { AGENT_DEFAULT } from "../mcp/tool-context.ts";
import { checkedName, prepare, reportRejections } from "./command-line.ts";
import { STORE_FAILED_EXIT_CODE } from "./exit-codes.ts";
import { send } from "./http-client.ts";
import type { DirectoryServer } from "./directory-server.ts";

const CALL_TIMEOUT_MS = 60_000;
/** A server that is being restarted is back by then. */
const RETRY_MS = 5_000;
const RETRY_EVERY_MS = 250;

/** Opens the data directory. A call that needs it says why that failed. */
const LIVENESS: HttpCall = { method: "GET", target: "/health/live", headers: {}, body: undefined };

interface Door {
  send(call: HttpCall): Promise<HttpAnswer>;
  close(): Promise<void>;
}

export async function mcp(args: readonly string[]): Promise<number> {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const options = readMcpConfig(args);
  const tools = toolsOf(options);
  const { user, agent = AGENT_DEFAULT, session } = options;
  const identity = { userId: checkedName("user", user), agentId: checkedName("agent", agent), sessionId: session };
  const log = createLog({
    level: options.config.logLevel,
    pretty: false,
    now: () => systemClock.now(),
    write: (line) => process.stderr.write(line),
  });
  reportRejections(log);
  const end = Promise.withResolvers<number>();
  const door = doorTo(options, log, () => end.resolve(STORE_FAILED_EXIT_CODE));
  const api = apiOverHttp((call) => door.send(call));
  const transport = new StdioServerTransport();
  const server = serveStdio(
    () => mcpServer({ api, identity, tools, mayWrite: true, mayRead: true, version, now: () => systemClock.now() }),
    {
      transport,
      onerror: (error) => log.debug("MCP", { error: describeError(error) }),
    },
  );
  // The answer to the first message goes first: clients wait for it.
  if (options.hooks) process.stdin.once("data", () => afterNextTurn(() => void door.send(LIVENESS).catch(() => undefined)));
  // Happens when the client has closed its end, and when it has sent a message of more than 10 MB.
  const { onclose } = transport;
  transport.onclose = () => {
    onclose?.();
    end.resolve(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => end.resolve(0));
  const code = await end.promise;
  await server.close();
  await door.close();
  return code;
}

function toolsOf({ tools = "all" }: McpConfig): (typeof TOOL_SETS)[number] {
  const found = TOOL_SETS.find((name) => name === tools);
  if (found === undefined) throw new UsageError(`--tools must be one of ${TOOL_SETS.join(", ")}; got ${tools}`);
  return found;
}

function doorTo({ server, config }: McpConfig, log: Log, onFailure: () => void): Door {
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
async function askServer({ url, key }: NonNullable<McpConfig["server"]>, { target, headers, ...call }: HttpCall): Promise<HttpAnswer> {
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
