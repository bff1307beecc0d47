/**
 * The steps of an application that is connected by OAuth: registration, consent, tokens.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { Answer, Cairn, Options } from "./cairn.ts";

export const ISSUER = "https://cairn.example.com";
export const MCP = `${ISSUER}/mcp`;
export const CALLBACK = "http://127.0.0.1:5000/callback";
export const VERIFIER = "v".repeat(43);
export const CHALLENGE = createHash("sha256").update(VERIFIER).digest("base64url");
export const PUBLIC: Options = { publicUrl: ISSUER };

export const form = (to: Cairn, path: string, fields: Record<string, string>): Promise<Answer> =>
  to.post(path, undefined, {
    key: null,
    raw: new URLSearchParams(fields).toString(),
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
  });
export const registration = async (to: Cairn, more: object = {}) =>
  (
    await to.post(
      "/register",
      { client_name: "Notes", redirect_uris: [CALLBACK], grant_types: ["authorization_code", "refresh_token"], ...more },
      { key: null },
    )
  ).body;

export interface Asked {
  client_id: string;
  redirect_uri: string;
  [name: string]: unknown;
}
export const asking = (client_id: string, more: object = {}): Asked => ({
  client_id,
  redirect_uri: CALLBACK,
  response_type: "code",
  code_challenge: CHALLENGE,
  code_challenge_method: "S256",
  state: "s t&te",
  resource: MCP,
  ...more,
});
export const consent = (to: Cairn, asked: Asked, more: object = {}) => to.ok(to.post("/v1/oauth/grants", { ...asked, ...more }));
export const codeIn = ({ redirect_to }: { redirect_to: string }) => new URL(redirect_to).searchParams.get("code") ?? "";

/** Consents for a new registration. */
export async function connect(to: Cairn, more: object = {}, registered: object = {}) {
  const { client_id } = await registration(to, registered);
  const grant = await consent(to, asking(client_id), more);
  const redeem = (fields: object = {}) =>
    form(to, "/token", {
      grant_type: "authorization_code",
      client_id,
      code: codeIn(grant),
      redirect_uri: CALLBACK,
      code_verifier: VERIFIER,
      ...fields,
    });
  const refresh = (refresh_token: string, fields: object = {}) =>
    form(to, "/token", { grant_type: "refresh_token", client_id, refresh_token, ...fields });
  return { client_id, grant, redeem, refresh };
}
export const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
export const MCP_HEADERS = { Accept: "application/json, text/event-stream", "Content-Type": "application/json" };
export const tools = (to: Cairn, token: string) =>
  to.post("/mcp", LIST, { key: null, headers: { ...MCP_HEADERS, Authorization: `Bearer ${token}` } });
export const statusOf = async (to: Cairn, token: string) => (await tools(to, token)).status;
