/**
 * Address of this server as clients of OAuth know it, and what it says there of itself (RFC 9728, RFC 8414). Pure.
 *
 * @module
 */
import { LOOPBACK_NAMES } from "../lib/urls.ts";
import { GRANT_TYPES } from "./clients.ts";

export const OAUTH_SCOPES = ["read", "write"] as const;
export const OFFLINE_ACCESS = "offline_access";

/** The origin at which a request reached this server: the configured one, or that of this machine; undefined where OAuth is off. */
export function issuerOf(request: Pick<Request, "url" | "headers">, publicUrl: string | undefined): string | undefined {
  if (publicUrl !== undefined) return new URL(publicUrl).origin;
  const { protocol, host } = URL.parse(request.url) ?? { protocol: "http:", host: "" };
  const url = URL.parse(`${protocol}//${request.headers.get("host") ?? host}`);
  return url !== null && LOOPBACK_NAMES.has(url.hostname) ? url.origin : undefined;
}

export const resourceOf = (issuer: string): string => `${issuer}/mcp`;

/** The one form of a resource: case of the host and a final slash are forgiven. */
export function canonicalResource(text: string): string {
  const url = URL.parse(text);
  return url === null || url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== ""
    ? text
    : url.origin + url.pathname.replace(/\/$/, "");
}

/** Checks whether tokens for a resource are any of this server's: it is the configured one, or that of this machine. */
export function isOwnResource(resource: string, publicUrl: string | undefined): boolean {
  const url = URL.parse(resource);
  if (url === null || resource !== resourceOf(url.origin)) return false;
  return publicUrl === undefined
    ? LOOPBACK_NAMES.has(url.hostname) && /^https?:$/.test(url.protocol)
    : url.origin === new URL(publicUrl).origin;
}

export function challengeOf(issuer: string, hasToken: boolean): string {
  const metadata = `${issuer}/.well-known/oauth-protected-resource/mcp`;
  return `Bearer resource_metadata="${metadata}", scope="${OAUTH_SCOPES.join(" ")}"${hasToken ? ', error="invalid_token"' : ""}`;
}

export function resourceMetadata(issuer: string): object {
  return {
    resource: resourceOf(issuer),
    authorization_servers: [issuer],
    scopes_supported: OAUTH_SCOPES,
    bearer_methods_supported: ["header"],
    resource_name: "Cairn",
    resource_documentation: `${issuer}/docs/guide/mcp`,
  };
}

/** @param registers - whether applications may register themselves */
export function serverMetadata(issuer: string, registers: boolean): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    ...(registers ? { registration_endpoint: `${issuer}/register` } : {}),
    revocation_endpoint: `${issuer}/revoke`,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: GRANT_TYPES,
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    scopes_supported: [...OAUTH_SCOPES, OFFLINE_ACCESS],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  };
}
