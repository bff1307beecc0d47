/**
 * OAuth for `/mcp` as real clients go through it over sockets: discovery, consent, tools, refresh, and the end of the grant. Coding agents
 * take part with `scripts/test --all` alone: each is hundreds of MB.
 *
 * @module
 */
import { Client as Client2026, StreamableHTTPClientTransport as Http2026 } from "@modelcontextprotocol/client";
import { Client as Client2025 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Http2025 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { consentAt, consentingBrowser } from "./support/consent.ts";
import { CLAUDE_CODE, CODEX } from "./support/npm-agents.ts";
import { scratchDirectory, type Scratch } from "./support/process.ts";
import { onlyLong } from "./support/rounds.ts";
import { startServer } from "./support/server.ts";

const server = await startServer();
afterAll(() => server[Symbol.asyncDispose]());
const { cairn } = server;
const URL_OF_MCP = `http://127.0.0.1:${server.port}/mcp`;
const grants = () => cairn.list("/v1/api_keys?kind=oauth");

/** The ids of applications, and where they are sent back to. */
const WAYS = {
  registers: ["http://127.0.0.1:5000/callback", undefined],
  "has a document": ["http://localhost:5000/callback", "https://claude.ai/oauth/claude-code-client-metadata"],
} as const;
const GENERATIONS = { "2025": [Client2025, Http2025], "2026": [Client2026, Http2026] } as const;

for (const [year, [Client, Transport]] of Object.entries(GENERATIONS))
  for (const [way, [callback, document]] of Object.entries(WAYS))
    test(`a client of the SDK of ${year} that ${way} uses tools, gets new tokens, and asks again once its grant has ended`, async () => {
      const kept: { client?: any; tokens?: any; discovery?: any; verifier: string; location?: URL } = { verifier: "" };
      const provider = {
        redirectUrl: callback,
        clientMetadataUrl: document,
        clientMetadata: { client_name: "Notes", redirect_uris: [callback], grant_types: ["authorization_code", "refresh_token"] },
        clientInformation: () => kept.client,
        saveClientInformation: (client: any) => void (kept.client = client),
        tokens: () => kept.tokens,
        saveTokens: (tokens: any) => void (kept.tokens = tokens),
        redirectToAuthorization: (location: URL) => void (kept.location = location),
        saveCodeVerifier: (verifier: string) => void (kept.verifier = verifier),
        codeVerifier: () => kept.verifier,
        saveDiscoveryState: (state: any) => void (kept.discovery = state),
        discoveryState: () => kept.discovery,
        invalidateCredentials: () => void (kept.tokens = undefined),
        state: () => "state",
      };
      const connect = async () => {
        const transport = new Transport(new URL(URL_OF_MCP), { authProvider: provider as any });
        const client = new Client({ name: "test", version: "1" }) as unknown as Client2025;
        return { transport, client, connected: client.connect(transport) };
      };
      const first = await connect();
      expect((await first.connected.catch((error: unknown) => error)) as object).toBeInstanceOf(Error);
      const back = new URL(await consentAt(kept.location?.href ?? "", cairn.key));
      expect(back.origin + back.pathname).toBe(callback);
      await first.transport.finishAuth((year === "2026" ? back.searchParams : back.searchParams.get("code")) as any);
      expect(kept.client.client_id).toBe(document ?? kept.client.client_id);
      const { client, connected } = await connect();
      await connected;
      const call = () => client.callTool({ name: "list_sessions", arguments: {} });
      expect(await call()).toMatchObject({ structuredContent: { data: [] } });
      const { access_token } = kept.tokens;
      cairn.clock.advance({ hours: 1 });
      expect(await call()).toMatchObject({ structuredContent: { data: [] } });
      expect(kept.tokens.access_token).not.toBe(access_token);
      kept.location = undefined as never;
      const [grant] = (await grants()) as [any];
      await cairn.ok(cairn.delete(`/v1/api_keys/${grant.id}`));
      expect((await call().catch((error: unknown) => error)) as object).toBeInstanceOf(Error);
      expect(kept.location).toBeDefined();
      await client.close();
    });

/** A port that is free now. */
function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

test("the official conformance suite passes: all scenarios of authorization servers", async () => {
  const port = freePort();
  const metadata = { client_name: "Conformance", redirect_uris: [`http://127.0.0.1:${port}/callback`] };
  const { client_id } = (await cairn.post("/register", metadata, { key: null })).body;
  const program = join(import.meta.dir, "../node_modules/@modelcontextprotocol/conformance/dist/index.js");
  const where = ["--url", new URL(URL_OF_MCP).origin, "--resource", URL_OF_MCP, "--client-id", client_id, "--port", String(port)];
  const suite = Bun.spawn([process.execPath, program, "authorization", ...where], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const errors = new Response(suite.stderr).text();
  let said = "";
  let isOpened = false;
  const decoder = new TextDecoder();
  for await (const chunk of suite.stdout) {
    said += decoder.decode(chunk, { stream: true });
    const [url] = /^http\S+\/authorize\?\S+(?=\n)/m.exec(said) ?? [];
    if (isOpened || url === undefined) continue;
    isOpened = true;
    await fetch(await consentAt(url, cairn.key));
  }
  const isWhole = (await suite.exited) === 0 && /^Total: 3 passed, 0 failed$/m.test(said);
  expect(isWhole ? "" : said + (await errors)).toBe("");
}, 60_000);

/** Runs an agent on a terminal, with a browser that consents. */
async function run(home: Scratch, command: string, ...args: string[]): Promise<string> {
  let said = "";
  const env = { HOME: home.path, PATH: process.env["PATH"] ?? "", BROWSER: consentingBrowser(home, cairn.key), TERM: "xterm" };
  const decoder = new TextDecoder();
  const data = (_: unknown, chunk: Uint8Array) => void (said += decoder.decode(chunk, { stream: true }));
  const child = Bun.spawn([command, ...args], { cwd: home.path, env, terminal: { cols: 400, rows: 50, data } });
  const code = await child.exited;
  expect({ args, code, said }).toEqual({ args, code: 0, said });
  return said;
}

/** The grants of an application, by when they end: a refresh moves that on. */
const endsOf = async (application: string) =>
  (await grants()).filter(({ name }: any) => name === application).map(({ expires_at }: any) => expires_at);

onlyLong(CLAUDE_CODE)(
  "Claude Code logs in, is connected, refreshes, needs another login once its grant has ended, and ends it when it logs out",
  async () => {
    using home = scratchDirectory();
    const claude = (...args: string[]) => run(home, CLAUDE_CODE.command, "mcp", ...args);
    await claude("add", "--scope", "user", "--transport", "http", "cairn", URL_OF_MCP);
    expect(await claude("login", "cairn")).toContain('Authenticated with "cairn"');
    expect(await claude("list")).toContain("Connected");
    const [end] = await endsOf("Claude Code");
    cairn.clock.advance({ hours: 1 });
    expect(await claude("list")).toContain("Connected");
    const [later] = await endsOf("Claude Code");
    expect(Date.parse(later) - Date.parse(end)).toBe(3_600_000);
    const [grant] = (await grants()).filter(({ name }: any) => name === "Claude Code") as [any];
    await cairn.ok(cairn.delete(`/v1/api_keys/${grant.id}`));
    expect(await claude("list")).not.toContain("Connected");
    await claude("login", "cairn");
    expect(await claude("list")).toContain("Connected");
    await claude("logout", "cairn");
    expect(await endsOf("Claude Code")).toEqual([]);
  },
  240_000,
);

/** A model of OpenAI's that says nothing, and keeps what it was asked. */
function silentModel(): { url: string; asked: string[] } & Disposable {
  const asked: string[] = [];
  const listener = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      asked.push(`${new URL(request.url).pathname} ${await request.text()}`);
      const response = { id: "resp_1", usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } };
      const events = [
        { type: "response.created", response: { id: "resp_1" } },
        {
          type: "response.output_item.done",
          item: { type: "message", role: "assistant", id: "msg_1", content: [{ type: "output_text", text: "Yes." }] },
        },
        { type: "response.completed", response },
      ];
      const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
      return new Response(text, { headers: { "Content-Type": "text/event-stream" } });
    },
  });
  return { url: listener.url.origin, asked, [Symbol.dispose]: () => void listener.stop(true) };
}

onlyLong(CODEX)(
  "Codex logs in, gives its model the tools, refreshes, and needs another login once its grant has ended",
  async () => {
    using home = scratchDirectory();
    using model = silentModel();
    const provider = `model_providers.silent={name="silent",base_url="${model.url}/v1",wire_api="responses"}`;
    const settings = ['mcp_oauth_credentials_store="file"', provider, 'model_provider="silent"', 'model="m"'];
    const codex = (...args: string[]) => run(home, CODEX.command, ...settings.flatMap((one) => ["-c", one]), ...args);
    expect(await codex("mcp", "add", "cairn", "--url", URL_OF_MCP)).toContain("Successfully logged in");
    expect(await endsOf("Codex")).toHaveLength(1);
    const hasTools = async () => {
      await codex("exec", "--skip-git-repo-check", "Hello");
      return model.asked.pop()?.includes("list_sessions");
    };
    expect(await hasTools()).toBe(true);
    const [end] = await endsOf("Codex");
    cairn.clock.advance({ hours: 1 });
    expect(await hasTools()).toBe(true);
    const [later] = await endsOf("Codex");
    expect(Date.parse(later) - Date.parse(end)).toBe(3_600_000);
    const [grant] = (await grants()).filter(({ name }: any) => name === "Codex") as [any];
    await cairn.ok(cairn.delete(`/v1/api_keys/${grant.id}`));
    expect(await hasTools()).toBe(false);
    expect(await codex("mcp", "login", "cairn")).toContain("Successfully logged in");
    expect(await hasTools()).toBe(true);
  },
  240_000,
);
