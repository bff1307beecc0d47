/**
 * An MCP server over the table of tools. It keeps nothing between requests.
 *
 * @module
 */
import { McpServer, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { HOUR_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { toJson, type JsonObject } from "../lib/json.ts";
import { namesIn } from "../http/near-misses.ts";
import { validator } from "../http/validate.ts";
import type { Api } from "./api.ts";
import { contextOf } from "./context.ts";
import { inputSchemaOf, outputSchemaOf } from "./json-schema.ts";
import { ECHOING_TOOLS, MEMORY_TOOLS, TOOLS, type Tool } from "./tools.ts";
import { ToolContext, type Identity } from "./tool-context.ts";

/** Tools that a connection shows. */
export const TOOL_SETS = ["all", "memory"] as const;

export interface McpOptions {
  readonly api: Api;
  readonly identity: Identity;
  readonly tools: (typeof TOOL_SETS)[number];
  /** True if the key may change anything; without this only tools that read are there. */
  readonly mayWrite: boolean;
  /** True if the key may read anything; without this only tools that answer with what they were given are there. */
  readonly mayRead: boolean;
  readonly version: string;
  readonly now: () => number;
}

const INSTRUCTIONS =
  "Cairn keeps what you know and do between conversations: memories, a versioned state, and the turns of a session. " +
  "Start a task with get_context. Keep what will matter later with add_memory, one fact each; correct a wrong one with update_memory. " +
  "Save progress with update_state; rollback_state undoes it. The session is chosen for you: pass session_id only to use another one.";

const LISTED = new Map(
  TOOLS.map(({ name, title, description, input, output, hints }) => {
    const schemas = { inputSchema: inputSchemaOf(input), outputSchema: outputSchemaOf(output) };
    return [name, { name, title, description, ...schemas, annotations: hints }];
  }),
);
/** Names that any tool takes or shows: no near misses for another one. */
const NAMES = namesIn(TOOLS.flatMap(({ input, output }) => [input, output]));
const CHECKED = new Map(TOOLS.map((tool) => [tool.name, { tool, check: validator(tool.input, (name) => NAMES.has(name)) }]));

const RESOURCES_LISTED = 20;
const JSON_TYPE = "application/json";
const TEMPLATES = [
  { uriTemplate: "cairn://sessions/{session_id}", name: "session", title: "A session with its state", mimeType: JSON_TYPE },
  { uriTemplate: "cairn://memories/{memory_id}", name: "memory", title: "A memory", mimeType: JSON_TYPE },
];
const CONTINUE = {
  name: "continue",
  title: "Continue where we left off",
  description: "Loads the session's state, what is known, and the latest turns.",
  arguments: [{ name: "about", description: "What to continue with.", required: false }],
};
/** Lists that change only with the version, or with the scopes of the key. */
const FOR_AN_HOUR = { ttlMs: HOUR_MS, cacheScope: "private" } as const;

/** The server without the layer that wants schemas of zod: tools have plain JSON Schema. */
type Server = McpServer["server"];

const NEVER_CHANGES = { listChanged: false };

export function mcpServer(options: McpOptions): McpServer {
  const mcp = new McpServer(
    { name: "cairn", title: "Cairn", version: options.version },
    {
      // Nothing to subscribe to: what is listed changes with the version, or with what is asked for.
      capabilities: { tools: NEVER_CHANGES, resources: NEVER_CHANGES, prompts: NEVER_CHANGES },
      instructions: INSTRUCTIONS,
      cacheHints: {
        "server/discover": FOR_AN_HOUR,
        "tools/list": FOR_AN_HOUR,
        "prompts/list": FOR_AN_HOUR,
        "resources/templates/list": FOR_AN_HOUR,
      },
    },
  );
  const { server } = mcp;
  const isShown = ({ name, hints }: Tool) =>
    (options.mayWrite || hints.readOnlyHint) &&
    (options.mayRead || ECHOING_TOOLS.has(name)) &&
    (options.tools === "all" || MEMORY_TOOLS.has(name));
  const shown = TOOLS.filter(isShown);
  server.setRequestHandler("tools/list", () => ({ tools: shown.map(({ name }) => LISTED.get(name)) }) as never);
  server.setRequestHandler("tools/call", async ({ params }) => (await callTool(options, isShown, params)) as never);
  setResources(server, options);
  setPrompts(server, options);
  return mcp;
}

const toolContext = ({ api, identity, now }: McpOptions) => new ToolContext(api, identity, now);

/** A refusal is a result that the model reads; only a tool that is not there is an error of the protocol. */
async function callTool(
  options: McpOptions,
  isShown: (tool: Tool) => boolean,
  { name, arguments: given = {} }: { name: string; arguments?: Record<string, unknown> | undefined },
): Promise<JsonObject> {
  const found = CHECKED.get(name);
  if (found === undefined || !isShown(found.tool)) throw noSuch("tool", name);
  try {
    const value = await found.tool.run(toolContext(options), found.check(given) as never);
    return { content: [{ type: "text", text: toJson(value) }], structuredContent: value };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { content: [{ type: "text", text: `${error.code}: ${error.message}` }], isError: true };
  }
}

function setResources(server: Server, options: McpOptions): void {
  server.setRequestHandler("resources/list", async () => {
    const { userId } = options.identity;
    const { data } = await asProtocol(options.api("GET /v1/sessions", { query: { limit: RESOURCES_LISTED, user_id: userId } }));
    const resources = (data as JsonObject[]).map((session) => {
      const id = session["id"] as string;
      return { uri: `cairn://sessions/${id}`, name: id, title: `Session of ${session["agent_id"] as string}`, mimeType: JSON_TYPE };
    });
    return { resources };
  });
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: TEMPLATES }));
  server.setRequestHandler("resources/read", async ({ params: { uri } }) => {
    const value = await readResource(options.api, uri);
    return { contents: [{ uri, mimeType: JSON_TYPE, text: toJson(value) }] };
  });
}

async function readResource(api: Api, uri: string): Promise<JsonObject> {
  const [, kind, id = ""] = /^cairn:\/\/(sessions|memories)\/(\w{1,64})$/.exec(uri) ?? [];
  const missing = noSuch("resource", uri, { uri });
  if (kind === undefined) throw missing;
  const read =
    kind === "sessions"
      ? api("GET /v1/sessions/{session_id}", { path: { session_id: id } })
      : api("GET /v1/memory/{memory_id}", { path: { memory_id: id } });
  return asProtocol(read, missing);
}

function setPrompts(server: Server, options: McpOptions): void {
  server.setRequestHandler("prompts/list", () => ({ prompts: [CONTINUE] }));
  server.setRequestHandler("prompts/get", async ({ params }) => {
    if (params.name !== CONTINUE.name) throw noSuch("prompt", params.name);
    const about = params.arguments?.["about"];
    const context = await asProtocol(contextOf(toolContext(options), undefined, about === undefined ? {} : { query: about }));
    const text = `Continue where we left off${about === undefined ? "" : `: ${about}`}. What Cairn knows so far:\n${toJson(context)}`;
    return { description: CONTINUE.description, messages: [{ role: "user", content: { type: "text", text } }] };
  });
}

/** Turns a refusal into an error of the protocol, where there is no result that could say it. */
async function asProtocol(call: Promise<JsonObject>, ifMissing?: ProtocolError): Promise<JsonObject> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (ifMissing !== undefined && error.code.endsWith("_not_found")) throw ifMissing;
    const isOurs = error.code === "internal_error" || error.code === "service_unavailable";
    throw new ProtocolError(isOurs ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams, `${error.code}: ${error.message}`);
  }
}

const NAME_SHOWN_LENGTH = 200;

function noSuch(kind: string, name: string, data?: JsonObject): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no ${kind} ${name.slice(0, NAME_SHOWN_LENGTH)}.`, data);
}
