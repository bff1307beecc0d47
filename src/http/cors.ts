/**
 * CORS: which pages of other origins may call the API from a browser. None do, unless the operator names them. There are no
 * cookies: a page needs a key.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { LOOPBACK_NAMES } from "../lib/urls.ts";

const EXPOSED = "X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, Idempotency-Replayed";
const ACCEPTED =
  "X-API-Key, Authorization, Content-Type, Content-Encoding, Idempotency-Key, Last-Event-ID, X-Request-Id, " +
  "MCP-Protocol-Version, Mcp-Method, Mcp-Name, X-Cairn-User, X-Cairn-Agent, X-Cairn-Session";
const PREFLIGHT_SECONDS = 600;

/**
 * Returns the headers that let a page read an answer. Every answer says that it varies by origin.
 *
 * @param origins - such as `https://app.example.com`; `*` is any
 */
export function corsHeaders(origins: readonly string[], headers: Headers): Record<string, string> {
  const origin = headers.get("origin");
  if (origin === null || !(origins.includes(origin) || origins.includes("*"))) return {};
  return { "Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSED };
}

/** Returns the headers that answer a preflight request; undefined for any other request, and for an origin that may not call. */
export function preflightHeaders(origins: readonly string[], request: Request, allow: string): Record<string, string> | undefined {
  if (request.method !== "OPTIONS" || !request.headers.has("access-control-request-method")) return undefined;
  const allowed = corsHeaders(origins, request.headers);
  if (Object.keys(allowed).length === 0) return undefined;
  return {
    ...allowed,
    "Access-Control-Allow-Methods": allow,
    "Access-Control-Allow-Headers": ACCEPTED,
    "Access-Control-Max-Age": String(PREFLIGHT_SECONDS),
  };
}

/**
 * Refuses what a page of another origin sends: for requests that a browser sends without asking first, or after a name of the
 * page's own was given to this machine.
 *
 * @throws {ApiError} `permission_denied` unless the origin is on this machine or may call
 */
export function refuseForeignOrigin(headers: Headers, origins: readonly string[]): void {
  const origin = headers.get("origin");
  if (origin === null || origins.includes(origin) || origins.includes("*")) return;
  if (LOOPBACK_NAMES.has(URL.parse(origin)?.hostname ?? "")) return;
  throw new ApiError("permission_denied", "Pages of this origin may not call; its operator can allow it (CAIRN_CORS_ORIGINS).", {
    param: "Origin",
  });
}
