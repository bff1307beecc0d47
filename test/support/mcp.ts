/**
 * Clients of MCP: the official ones of both generations of the protocol, over HTTP or as the parent of a program.
 *
 * @module
 */
import { expect } from "bun:test";
import { Client as Client2026, StreamableHTTPClientTransport as Http2026 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2026 } from "@modelcontextprotocol/client/stdio";
import { Client as Client2025 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio2025 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http2025 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

/** Where a server is: at an address, or a program to start. */
export type Door =
  | { url: string; headers: Record<string, string> }
  | { command: string; args: readonly string[]; env: Record<string, string> };

export interface ToolResult {
  structuredContent?: any;
  content: { text: string }[];
  isError?: boolean;
}

/** What the clients of both generations have in common. */
interface AnyClient {
  connect(transport: unknown): Promise<void>;
  close(): Promise<void>;
  listTools(): Promise<{ tools: any[] }>;
  callTool(call: { name: string; arguments: unknown }): Promise<unknown>;
  listResources(): Promise<{ resources: any[] }>;
  readResource(request: { uri: string }): Promise<{ contents: any[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: any[] }>;
  listPrompts(): Promise<{ prompts: any[] }>;
  getPrompt(request: { name: string; arguments?: Record<string, string> }): Promise<{ messages: any[] }>;
  getServerVersion(): unknown;
  getServerCapabilities(): unknown;
  getInstructions(): string | undefined;
}

export class McpClient implements AsyncDisposable {
  readonly client: AnyClient;
  /** Of the program, where there is one. */
  readonly pid: number | undefined;

  constructor(client: AnyClient, pid?: number) {
    this.client = client;
    this.pid = pid;
  }

  async tools(): Promise<any[]> {
    return (await this.client.listTools()).tools;
  }

  async call(name: string, input: Record<string, unknown> = {}): Promise<ToolResult> {
    return (await this.client.callTool({ name, arguments: input })) as ToolResult;
  }

  /** What a tool answers; a refusal fails the test. The client has compared it with the tool's schema. */
  async use(name: string, input: Record<string, unknown> = {}): Promise<any> {
    const { structuredContent, content, isError } = await this.call(name, input);
    if (isError === true) throw new Error(`${name}: ${content[0]?.text}`);
    expect(JSON.parse(content[0]?.text ?? "")).toEqual(structuredContent);
    return structuredContent;
  }

  /** What a tool is refused with. */
  async refusal(name: string, input: Record<string, unknown> = {}): Promise<string> {
    const { structuredContent, content, isError } = await this.call(name, input);
    expect({ name, isError, structuredContent }).toEqual({ name, isError: true, structuredContent: undefined });
    return content[0]?.text ?? "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }
}

const CLIENT = { name: "test", version: "1" };

/** By the revision that each speaks. */
export const GENERATIONS: Readonly<Record<string, (door: Door) => Promise<McpClient>>> = {
  "2025-11-25": (door) => {
    const transport =
      "url" in door
        ? new Http2025(new URL(door.url), { requestInit: { headers: door.headers } })
        : new Stdio2025({ ...door, args: [...door.args], stderr: "ignore" });
    return connected(new Client2025(CLIENT) as unknown as AnyClient, transport);
  },
  "2026-07-28": (door) => {
    const transport =
      "url" in door
        ? new Http2026(new URL(door.url), { requestInit: { headers: door.headers } })
        : new Stdio2026({ ...door, args: [...door.args], stderr: "ignore" });
    const client = new Client2026(CLIENT, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
    return connected(client as unknown as AnyClient, transport);
  },
};

async function connected(client: AnyClient, transport: object): Promise<McpClient> {
  await client.connect(transport);
  return new McpClient(client, (transport as { pid?: number | null }).pid ?? undefined);
}

const FACT = "The customer prefers e-mail to phone calls.";

/** Uses every tool, the resources and the prompt, on a connection whose agent and user have no records yet. */
export async function useEverything(mcp: McpClient, user: string): Promise<void> {
  const used = new Set<string>();
  const use = (name: string, input: Record<string, unknown> = {}) => {
    used.add(name);
    return mcp.use(name, input);
  };
  // Reading makes no session.
  expect(await use("get_context", { query: "contact" })).toEqual({ session_id: null, state: {}, memories: [], recent_turns: [] });
  expect(await use("get_state")).toEqual({ session_id: null, version: 0, state: {} });
  expect(await use("list_versions")).toEqual({ session_id: null, data: [], has_more: false });
  expect(await use("list_sessions")).toMatchObject({ data: [], has_more: false });

  const memory = await use("add_memory", { content: FACT, type: "preference", tags: ["contact, first"], metadata: { from: "a form" } });
  expect(memory).toMatchObject({ content: FACT, type: "preference", tags: ["contact, first"], metadata: { from: "a form" } });
  // It is the user's: no session is made for it.
  expect(memory).toMatchObject({ session_id: null, user_id: user });
  expect(await use("list_sessions")).toMatchObject({ data: [] });
  expect((await use("search_memories", { query: "How should we contact the customer?" })).data).toMatchObject([{ id: memory.id }]);
  expect((await use("search_memories", { query: "the weather", threshold: 1 })).data).toEqual([]);
  expect(await use("update_memory", { memory_id: memory.id, tags: ["contact"] })).toMatchObject({ content: FACT, tags: ["contact"] });
  expect((await use("list_memories", { tags: ["contact", "a, b"], limit: 1 })).data).toMatchObject([{ id: memory.id }]);
  expect((await use("list_memories", { tags: ["con"] })).data).toEqual([]);

  const updated = await use("update_state", { changes: { step: 1, order: "A-17" }, reasoning: "It came." });
  expect(updated).toMatchObject({ version: 1 });
  const { session_id } = updated;
  expect(await use("list_sessions")).toMatchObject({ data: [{ id: session_id, user_id: user }] });
  expect(await use("add_memory", { content: "Of this session.", session_id })).toMatchObject({ session_id, user_id: user });
  expect(await use("update_state", { changes: { step: 2, order: null } })).toMatchObject({ session_id, version: 2, state: { step: 2 } });
  expect(await use("rollback_state")).toMatchObject({ session_id, version: 3, state: { step: 1, order: "A-17" } });
  expect(await use("get_state")).toMatchObject({ session_id, version: 3, state: { step: 1, order: "A-17" } });
  expect(await use("get_state", { version: 2 })).toMatchObject({ session_id, version: 2, state: { step: 2 } });
  expect(await use("list_versions", { limit: 2 })).toMatchObject({ session_id, data: [{ version: 3 }, { version: 2 }], has_more: true });

  expect(await use("add_turn", { input: "Where is it?", output: "On its way." })).toMatchObject({ session_id, turn_number: 1 });
  const said = await use("search_turns", { query: "on its way", filter: { session_id }, limit: 1 });
  expect(said).toMatchObject({ data: [{ session_id, passage: { text: "On its way.", field: "output" } }] });
  expect(await use("search_turns", { query: "Where", filter: { user_id: "nobody" } })).toEqual({ data: [] });
  expect(await use("get_context", { query: "How to contact the customer?" })).toMatchObject({
    session_id,
    state: { step: 1, order: "A-17" },
    memories: [{ id: memory.id }, { content: "Of this session." }],
    recent_turns: [{ input: { content: "Where is it?" }, output: { content: "On its way." } }],
  });
  const started = await use("start_session", { initial_state: { step: 9 }, metadata: { topic: "tea" } });
  expect(started).toMatchObject({ session_id: started.id, user_id: user, state: { step: 9 }, metadata: { topic: "tea" } });
  const fork = await use("start_session", { fork_of: session_id, version: 2 });
  expect(await use("get_state", { session_id: fork.session_id })).toMatchObject({ session_id: fork.id, version: 0, state: { step: 2 } });
  // Neither took the place of the session of this connection.
  expect(await use("get_state")).toMatchObject({ session_id });

  const { resources } = await mcp.client.listResources();
  expect(resources.map(({ uri }) => uri)).toEqual([fork.id, started.id, session_id].map((id) => `cairn://sessions/${id}`));
  for (const uri of [`cairn://sessions/${session_id}`, `cairn://memories/${memory.id}`]) {
    const [read] = (await mcp.client.readResource({ uri })).contents;
    expect(JSON.parse(read.text)).toMatchObject({ id: uri.split("/").at(-1) });
  }
  expect((await mcp.client.listResourceTemplates()).resourceTemplates).toHaveLength(2);
  expect(await mcp.client.listPrompts()).toMatchObject({ prompts: [{ name: "continue" }] });
  const { messages } = await mcp.client.getPrompt({ name: "continue", arguments: { about: "contact" } });
  expect(messages).toMatchObject([{ role: "user", content: { text: expect.stringContaining(FACT) } }]);

  expect(await use("delete_memory", { memory_id: memory.id, reason: "asked to" })).toMatchObject({ id: memory.id, deleted: true });
  expect((await use("list_memories")).data).toMatchObject([{ content: "Of this session." }]);
  expect(used).toEqual(new Set((await mcp.tools()).map(({ name }) => name)));
}
