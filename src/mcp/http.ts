/**
 * MCP over HTTP, without sessions or streams: a request is all there is, in the revisions before 2026 and in that of 2026.
 *
 * `app.ts` loads this with the first request, since the package takes a tenth of a second and 10 MB.
 *
 * @module
 */
import { createMcpHandler, isLegacyRequest, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { Type } from "@sinclair/typebox";
import { fieldNamesOf, refuseNearMiss } from "../http/near-misses.ts";
import { parametersOf } from "../http/query.ts";
import { OneOf, Text, UserId } from "../http/types.ts";
import { validator } from "../http/validate.ts";
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Owner } from "../storage/owner.ts";
import { mcpServer, TOOL_SETS, type McpOptions } from "./server.ts";
import { AGENT_DEFAULT } from "./tool-context.ts";

/** Settings of a connection, sent with each request: as a header, or in the query of its URL. */
const HEADERS = { user_id: "X-Cairn-User", agent_id: "X-Cairn-Agent", session_id: "X-Cairn-Session" };
const Connection = Type.Object({
  user_id: Type.Optional(UserId()),
  agent_id: Type.Optional(Text(1, LIMITS.agentIdLengthMax)),
  session_id: Type.Optional(Text(1, undefined)),
  tools: Type.Optional(OneOf(TOOL_SETS)),
});
const checkConnection = validator(Connection);
const CONNECTION_NAMES = fieldNamesOf(Connection);

/**
 * The package looks at each member several times, some of them for microseconds: half a megabyte of them takes a second. What an argument
 * of a tool holds is left to Cairn, and may be as wide as a body can be.
 */
function refuseWideMessage({ params, ...envelope }: Record<string, unknown>): void {
  const { arguments: given, ...others } = objectOf(params);
  const members = membersOf(envelope) + membersOf(others) + Object.keys(objectOf(given)).length;
  if (members <= LIMITS.mcpMembersMax) return;
  throw new ApiError(
    "invalid_request",
    `A message must have at most ${LIMITS.mcpMembersMax} members besides what the arguments of a tool hold; got ${members}.`,
  );
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** Number of members and items, with those of its members. */
function membersOf(value: unknown): number {
  const members = Object.values(objectOf(value));
  return members.reduce((sum: number, member) => sum + membersOf(member), members.length);
}

type Connection = Pick<McpOptions, "identity" | "tools">;

/** A bound key speaks for its user and its agent without naming them. */
function connectionOf({ headers, url }: Request, owner: Owner): Connection {
  const query = parametersOf(url);
  for (const name of query.keys())
    refuseNearMiss(
      name,
      CONNECTION_NAMES,
      "",
      (other) => query.has(other),
      () => false,
    );
  const given: Record<string, unknown> = { tools: query.get("tools") };
  for (const [name, header] of Object.entries(HEADERS)) {
    const value = headers.get(header);
    if (value !== null && !/^[\x20-\x7e]*$/.test(value)) {
      throw new ApiError("invalid_request", `${header} must be ASCII: give other names in the URL, as ?${name}=…`, { param: header });
    }
    given[name] = value ?? query.get(name);
  }
  const { user_id, agent_id, session_id, tools } = checkConnection(given) as Partial<Record<string, string>>;
  return {
    identity: { userId: user_id ?? owner.userId, agentId: agent_id ?? owner.agentId ?? AGENT_DEFAULT, sessionId: session_id },
    tools: (tools as Connection["tools"] | undefined) ?? "all",
  };
}

/** Facts of the request that need no reading: what the key is bound to, and all that the server needs. */
type RequestOptions = Omit<McpOptions, keyof Connection> & { owner: Owner };

export type McpHandler = (request: Request, body: Record<string, unknown>, options: RequestOptions) => Promise<Response>;

/** Returns what answers requests whose key and body are checked. */
export function mcpHandler(): McpHandler {
  const servers = new WeakMap<Request, McpOptions>();
  const serverFor = (request: Request | undefined) => {
    const options = request && servers.get(request);
    if (options === undefined) throw new Error("MCP lost the request that it answers");
    return mcpServer(options);
  };
  // A subscription is acknowledged and ends at once: of what the server declares nothing changes, so that none is ever open.
  const modern = createMcpHandler(({ requestInfo }) => serverFor(requestInfo), { legacy: "reject", maxSubscriptions: 1 });
  return async (request, parsedBody, { owner, ...options }) => {
    refuseWideMessage(parsedBody);
    servers.set(request, { ...options, ...connectionOf(request, owner) });
    if (!(await isLegacyRequest(request, parsedBody))) return modern.fetch(request, { parsedBody });
    // The package's own handler answers these with a stream.
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    const server = serverFor(request);
    await server.connect(transport);
    try {
      return await transport.handleRequest(request, { parsedBody });
    } finally {
      await server.close();
    }
  };
}
