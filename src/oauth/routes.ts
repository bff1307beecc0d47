/**
 * OAuth 2.1 for `/mcp`: the table of URLs of the API, and what RFC 6749 and its kin have at the root.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import type { Answer } from "../http/exchange.ts";
import { toJson } from "../lib/json.ts";
import type { OAuthClients } from "../settings/oauth-clients.ts";
import type { Caller } from "../traces/record.ts";
import { register } from "./clients.ts";
import { redeemCode, refreshTokens, revokeToken, type Refusal, type Tokens } from "./grants.ts";
import { resourceMetadata, serverMetadata } from "./issuer.ts";
import { consentTo, describeRequest, type OAuthDeps } from "./requests.ts";
import { OAuthAsked, OAuthConsent, OAuthGrant, OAuthRequest } from "./schema.ts";

const oauth = endpointGroup({ name: "OAuth", description: "Applications that ask for access to `/mcp`." }, "admin");

export function oauthEndpoints(deps: OAuthDeps): Endpoint[] {
  return [
    oauth.post("/v1/oauth/requests", {
      summary: "Describe an OAuth request",
      description:
        "Says who asks for what, for the person who decides. The document of an application is fetched from its URL, from public addresses alone. Nothing is saved.",
      body: OAuthAsked,
      response: OAuthRequest,
      run: ({ body }) => describeRequest(deps, body),
    }),
    oauth.post("/v1/oauth/grants", {
      summary: "Create an OAuth grant",
      description:
        "Consents to a request. The grant is an API key of the kind `oauth`, which opens `/mcp` alone, is never an admin's, and is revoked like any other key. It ends with the key that consents.",
      status: 201,
      body: OAuthConsent,
      response: OAuthGrant,
      run: ({ body: { scopes, userId, agentId, expiresInDays, ...asked }, caller }) =>
        consentTo(deps, caller, asked, { scopes, userId, agentId, expiresInDays }),
    }),
  ];
}

export const METADATA: Readonly<Record<string, (issuer: string, registers: boolean) => object>> = {
  "/.well-known/oauth-protected-resource": resourceMetadata,
  "/.well-known/oauth-protected-resource/mcp": resourceMetadata,
  "/.well-known/oauth-authorization-server": serverMetadata,
};

/** Any page may ask: there are no cookies, and nothing that a stranger could not ask for. */
const OPEN = { "Access-Control-Allow-Origin": "*" };

export function metadataAnswer(path: string, issuer: string, registers: boolean): Answer {
  return { status: 200, body: toJson(METADATA[path]?.(issuer, registers) ?? {}), headers: OPEN };
}

export function preflightAnswer(methods: string): Answer {
  const headers = {
    ...OPEN,
    "Access-Control-Allow-Methods": methods,
    "Access-Control-Allow-Headers": "Content-Type, Authorization, MCP-Protocol-Version",
  };
  return { status: 204, body: "", headers };
}

const PARAMETERS = ["client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method", "scope", "state", "resource"];

/** Hands a request on to the dashboard, in the part of the URL that no server and no log gets to see. */
export function authorizeAnswer(asked: URLSearchParams): Answer {
  const known = new URLSearchParams();
  for (const name of PARAMETERS) {
    const value = asked.get(name);
    if (value !== null) known.set(name, value);
  }
  return { status: 302, body: "", headers: { Location: `/dashboard/authorize#${known.toString()}` } };
}

export function registerAnswer(metadata: Record<string, unknown>, clients: OAuthClients, now: number): Answer {
  if (clients !== "any") {
    const error_description = "Applications cannot register themselves with this server (setting oauth_clients).";
    return { status: 403, body: toJson({ error: "access_denied", error_description }), headers: OPEN };
  }
  const made = register(metadata);
  if ("problem" in made) {
    const error = made.isRedirect ? "invalid_redirect_uri" : "invalid_client_metadata";
    return { status: 400, body: toJson({ error, error_description: made.problem }), headers: OPEN };
  }
  const { id, name, redirectUris, refreshes } = made.client;
  const body = {
    client_id: id,
    client_id_issued_at: Math.floor(now / 1000),
    client_name: name,
    redirect_uris: redirectUris,
    grant_types: refreshes ? ["authorization_code", "refresh_token"] : ["authorization_code"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  return { status: 201, body: toJson(body), headers: OPEN };
}

export async function tokenAnswer(deps: OAuthDeps, system: Caller, form: URLSearchParams): Promise<Answer> {
  const given = await tokensFor(deps, system, form);
  return { status: "error" in given ? 400 : 200, body: toJson(given), headers: { ...OPEN, Pragma: "no-cache" } };
}

function tokensFor(deps: OAuthDeps, system: Caller, form: URLSearchParams): Promise<Tokens | Refusal> {
  const value = (name: string) => form.get(name) ?? undefined;
  const type = value("grant_type");
  if (type !== "authorization_code" && type !== "refresh_token")
    return Promise.resolve({
      error: "unsupported_grant_type",
      error_description: "grant_type must be authorization_code or refresh_token.",
    });
  const needed = ["client_id", ...(type === "refresh_token" ? ["refresh_token"] : ["code", "code_verifier"])];
  const missing = needed.find((name) => !value(name));
  const seen = new Set<string>();
  const twice = [...form.keys()].find((name) => seen.size === seen.add(name).size);
  const problem = missing === undefined ? twice && `${twice.slice(0, 64)} is given twice.` : `${missing} is missing.`;
  if (problem !== undefined) return Promise.resolve({ error: "invalid_request", error_description: problem });
  const [clientId = "", code = "", verifier = "", refreshToken = ""] = ["client_id", "code", "code_verifier", "refresh_token"].map(value);
  const resource = value("resource");
  return type === "refresh_token"
    ? refreshTokens(deps, system, { refreshToken, clientId, scope: value("scope"), resource })
    : redeemCode(deps, system, { code, clientId, redirectUri: value("redirect_uri"), verifier, resource });
}

export async function revokeAnswer(deps: OAuthDeps, system: Caller, form: URLSearchParams): Promise<Answer> {
  const token = form.get("token");
  if (!token) return { status: 400, body: toJson({ error: "invalid_request", error_description: "token is missing." }), headers: OPEN };
  await revokeToken(deps, system, token, form.get("client_id") ?? undefined);
  return { status: 200, body: "{}", headers: OPEN };
}
