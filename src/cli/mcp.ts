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
import { createLog, describeError } from "../lib/log.ts";
import { version } from "../lib/version.ts";
import { mcpServer, TOOL_SETS } from "../mcp/server.ts";
import { AGENT_DEFAULT } from "../mcp/tool-context.ts";
import { checkedName, reportRejections } from "./command-line.ts";
import { STORE_FAILED_EXIT_CODE } from "./exit-codes.ts";
import { doorTo } from "./door.ts";

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
  const { api } = door;
  const transport = new StdioServerTransport();
  const server = serveStdio(
    () => mcpServer({ api, identity, tools, mayWrite: true, mayRead: true, version, now: () => systemClock.now() }),
    {
      transport,
      onerror: (error) => log.debug("MCP", { error: describeError(error) }),
    },
  );
  // The answer to the first message goes first: clients wait for it. A call that needs the directory says why it cannot be opened.
  if (options.hooks) process.stdin.once("data", () => afterNextTurn(() => void door.open().catch(() => undefined)));
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
