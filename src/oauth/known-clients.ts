/**
 * Documents of well-known applications as they were published in November 2026: for a server that cannot reach them, and for operators who
 * let nobody else ask. A document that can be fetched counts, whatever stands here. Pure.
 *
 * @module
 */

/** Name and redirect URIs by the URL of the document. */
const KNOWN: Readonly<Record<string, readonly [name: string, ...redirectUris: string[]]>> = {
  "https://claude.ai/oauth/mcp-oauth-client-metadata": [
    "Claude",
    "https://claude.ai/api/mcp/auth_callback",
    "https://claude.com/api/mcp/auth_callback",
  ],
  "https://claude.ai/oauth/claude-code-client-metadata": ["Claude Code", "http://localhost/callback", "http://127.0.0.1/callback"],
  "https://chatgpt.com/oauth/client.json": ["ChatGPT", "https://chatgpt.com/connector_platform_oauth_redirect"],
  "https://chatgpt.com/oauth/codex/client.json": ["Codex", "http://127.0.0.1/callback", "http://localhost/callback"],
  "https://opencode.ai/oauth/opencode/client.json": ["OpenCode", "http://127.0.0.1/callback", "http://localhost/callback"],
  "https://cursor.com/oauth/mcp-client.json": [
    "Cursor",
    "https://www.cursor.com/agents/mcp/oauth/callback",
    "http://localhost/callback",
    "http://127.0.0.1/callback",
  ],
  "https://vscode.dev/oauth/client-metadata.json": ["Visual Studio Code", "http://127.0.0.1/", "https://vscode.dev/redirect"],
};

/** A connector of ChatGPT has a document and a redirect URI of its own. */
const CHATGPT_CONNECTOR = /^https:\/\/chatgpt\.com\/oauth\/([\w-]{1,100})\/client\.json$/;

/** The document of a well-known application; undefined for any other URL. */
export function knownDocument(id: string): object | undefined {
  const connector = CHATGPT_CONNECTOR.exec(id)?.[1];
  const own = Object.hasOwn(KNOWN, id) ? KNOWN[id] : undefined;
  const [client_name, ...redirect_uris] =
    own ?? (connector === undefined ? [] : ["ChatGPT", `https://chatgpt.com/connector/oauth/${connector}`]);
  if (client_name === undefined) return undefined;
  return { client_id: id, client_name, redirect_uris, grant_types: ["authorization_code", "refresh_token"] };
}
