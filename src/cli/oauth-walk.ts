/**
 * The way of an application through OAuth, from the outside: what it asks, in its order, up to the first answer that stops it.
 *
 * Everything is asked at the one address that was given. Whatever leads elsewhere is what is wrong, and nothing is sent there.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { randomBase62 } from "../lib/base62.ts";
import { systemReason } from "../lib/system-errors.ts";
import { LOOPBACK_NAMES } from "../lib/urls.ts";
import type { Answered, HttpRequest } from "./http-client.ts";

export interface Step {
  readonly name: string;
  /** Reason why an application gets no further. */
  readonly problem?: string;
  /** Reason why this and what follows cannot be tried from here, though nothing is known to be wrong. */
  readonly untried?: string;
}

export type Ask = (url: URL, sent: Pick<HttpRequest, "method" | "headers" | "body">) => Promise<Answered>;

/** Problem that stops an application. */
class Break extends Error {}
/** Reason that stops this walk alone. */
class Untried extends Error {}

interface Walk {
  readonly origin: string;
  readonly ask: (path: string, sent?: Parameters<Ask>[1]) => Promise<Answered>;
  /** Key of an admin, who consents. */
  readonly key: string;
  readonly verifier: string;
  metadataPath: string;
  clientId: string;
  code: string;
  grantId: string;
  tokens: Record<string, unknown>;
}

type Part = readonly [name: string, run: (walk: Walk) => Promise<void>];

/** A client that has a document, for servers at which none can register. */
const KNOWN_CLIENT = "https://chatgpt.com/oauth/codex/client.json";
const CALLBACK = "http://127.0.0.1/callback";
const VERIFIER_LENGTH = 43;
const MCP_HEADERS = { Accept: "application/json, text/event-stream", "Content-Type": "application/json" };
const LIST_TOOLS = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
const SHOWN_LENGTH = 200;

const WITHOUT_KEY: readonly Part[] = [
  ["The address is one that clients accept", accepted],
  ["/mcp asks for a token, and says where to get one", challenged],
  ["The resource names this server", resourceNamed],
  ["This server says how to get a token", serverDescribed],
  ["An application says who it is", registered],
  ["The browser is led to the dashboard", ledToDashboard],
  ["The token endpoint answers", tokensRefused],
];
const WITH_KEY: readonly Part[] = [
  ["An admin consents", consented],
  ["The code becomes tokens", redeemed],
  ["/mcp lists its tools", toolsListed],
  ["The tokens are refreshed", refreshed],
  ["Revoked tokens open nothing", revoked],
];

/**
 * Takes the way of an application, step by step.
 *
 * @param key - key of an admin, to take it to its end; the grant is ended with it
 */
export async function* walkOAuth(address: URL, send: Ask, key: string | undefined): AsyncGenerator<Step> {
  const { origin } = address;
  const ask: Walk["ask"] = (path, sent = {}) => send(new URL(origin + path), sent);
  const verifier = randomBase62(VERIFIER_LENGTH);
  const walk: Walk = { origin, ask, key: key ?? "", verifier, metadataPath: "", clientId: "", code: "", grantId: "", tokens: {} };
  try {
    for (const [name, run] of key === undefined ? WITHOUT_KEY : [...WITHOUT_KEY, ...WITH_KEY]) {
      const end = await endOf(run(walk));
      yield { name, ...end };
      if (end !== undefined) return;
    }
  } finally {
    if (walk.grantId !== "") await endOf(endGrant(walk));
  }
}

async function endOf(part: Promise<void>): Promise<Omit<Step, "name"> | undefined> {
  try {
    await part;
    return undefined;
  } catch (error) {
    if (error instanceof Untried) return { untried: error.message };
    return { problem: error instanceof Break ? error.message : `There is no answer: ${systemReason(error)}.` };
  }
}

function accepted({ origin }: Walk): Promise<void> {
  const { protocol, hostname } = new URL(origin);
  if (protocol === "https:" || LOOPBACK_NAMES.has(hostname)) return Promise.resolve();
  return Promise.reject(new Break("Clients refuse http at other machines: put a proxy that speaks HTTPS in front, and give its address."));
}

async function challenged(walk: Walk): Promise<void> {
  for (const method of ["POST", "GET"]) {
    const answer = await walk.ask("/mcp", { method, headers: MCP_HEADERS, ...(method === "POST" ? { body: LIST_TOOLS } : {}) });
    expectStatus(answer, 401, `${method} /mcp`, {
      200: "Something in front of Cairn adds a key.",
      403: `Cairn does not answer to this name: set CAIRN_PUBLIC_URL=${walk.origin}, or add the name to CAIRN_ALLOWED_HOSTS.`,
      404: "The proxy has to pass on /mcp.",
    });
    const [, url] = /resource_metadata="([^"]+)"/.exec(answer.headers["www-authenticate"] ?? "") ?? [];
    if (url === undefined)
      throw new Break(
        `${method} /mcp has no WWW-Authenticate with resource_metadata: set CAIRN_PUBLIC_URL=${walk.origin}, or let the proxy pass that header on.`,
      );
    walk.metadataPath = ownPath(walk, url, "WWW-Authenticate");
  }
}

async function resourceNamed(walk: Walk): Promise<void> {
  const { resource, authorization_servers } = await json(walk, walk.metadataPath);
  if (resource !== `${walk.origin}/mcp`) throw leadsElsewhere(walk, "resource", resource);
  const [server] = Array.isArray(authorization_servers) ? (authorization_servers as unknown[]) : [];
  if (server !== walk.origin) throw leadsElsewhere(walk, "authorization_servers", server);
}

const ENDPOINTS = { authorization_endpoint: "/authorize", token_endpoint: "/token", revocation_endpoint: "/revoke" };

async function serverDescribed(walk: Walk): Promise<void> {
  const metadata = await json(walk, "/.well-known/oauth-authorization-server");
  if (metadata["issuer"] !== walk.origin) throw leadsElsewhere(walk, "issuer", metadata["issuer"]);
  for (const [name, path] of Object.entries(ENDPOINTS))
    if (metadata[name] !== walk.origin + path) throw leadsElsewhere(walk, name, metadata[name]);
  walk.clientId = metadata["registration_endpoint"] === undefined ? KNOWN_CLIENT : "";
}

async function registered(walk: Walk): Promise<void> {
  if (walk.clientId !== "") return;
  const body = JSON.stringify({
    client_name: "cairn doctor",
    redirect_uris: [CALLBACK],
    grant_types: ["authorization_code", "refresh_token"],
  });
  const answer = await walk.ask("/register", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  expectStatus(answer, 201, "POST /register", { 404: "The proxy has to pass on /register." });
  walk.clientId = textIn(parsed(answer, "POST /register"), "client_id", "POST /register");
}

function request({ origin, clientId, verifier }: Walk): Record<string, string> {
  return {
    response_type: "code",
    client_id: clientId,
    redirect_uri: CALLBACK,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    scope: "read offline_access",
    resource: `${origin}/mcp`,
  };
}

async function ledToDashboard(walk: Walk): Promise<void> {
  const answer = await walk.ask(`/authorize?${new URLSearchParams(request(walk)).toString()}`);
  expectStatus(answer, 302, "GET /authorize", { 404: "The proxy has to pass on /authorize." });
  const path = ownPath(walk, URL.parse(String(answer.headers.location), walk.origin)?.href, "Location of /authorize");
  const page = await walk.ask(path);
  expectStatus(page, 200, "GET /dashboard/authorize", { 404: "The proxy has to pass on /dashboard." });
}

async function tokensRefused(walk: Walk): Promise<void> {
  const fields = { grant_type: "authorization_code", code: "crn_ac_made_up", code_verifier: walk.verifier };
  const answer = await post(walk, "/token", fields);
  expectStatus(answer, 400, "POST /token", { 404: "The proxy has to pass on /token." });
  const error = parsed(answer, "POST /token")["error"];
  if (error !== "invalid_grant") throw new Break(`POST /token refused a code that was made up with ${shown(error)}, not invalid_grant.`);
}

async function consented(walk: Walk): Promise<void> {
  const headers = { "Content-Type": "application/json", "X-API-Key": walk.key };
  const body = JSON.stringify({ ...request(walk), expires_in_days: 1 });
  const answer = await walk.ask("/v1/oauth/grants", { method: "POST", headers, body });
  if (answer.status === 403 && isOfClient(answer))
    throw new Untried(
      "The setting oauth_clients names hosts alone, and this command asks as one of the applications that are built in: add known to try the rest.",
    );
  expectStatus(answer, 201, "POST /v1/oauth/grants", {
    401: "CAIRN_API_KEY is no key of this server.",
    403: "CAIRN_API_KEY is no admin's.",
  });
  const { key, redirect_to } = parsed(answer, "POST /v1/oauth/grants") as { key?: { id?: string }; redirect_to?: string };
  walk.grantId = key?.id ?? "";
  const back = URL.parse(redirect_to ?? "")?.searchParams;
  if (back?.get("iss") !== walk.origin) throw leadsElsewhere(walk, "iss", back?.get("iss"));
  walk.code = back.get("code") ?? "";
}

/** Checks whether an error is about who asks, and not about the key. */
function isOfClient(answer: Answered): boolean {
  const { error } = parsed(answer, "POST /v1/oauth/grants") as { error?: { param?: string } };
  return error?.param === "client_id";
}

async function redeemed(walk: Walk): Promise<void> {
  const fields = { grant_type: "authorization_code", code: walk.code, code_verifier: walk.verifier, redirect_uri: CALLBACK };
  await takeTokens(walk, fields);
}

async function toolsListed(walk: Walk): Promise<void> {
  const answer = await withToken(walk);
  expectStatus(answer, 200, "POST /mcp with the token", {
    401: "The proxy has to pass on the header Authorization, and has to hand the name on in Host, or CAIRN_PUBLIC_URL has to be set.",
  });
}

async function refreshed(walk: Walk): Promise<void> {
  await takeTokens(walk, { grant_type: "refresh_token", refresh_token: textIn(walk.tokens, "refresh_token", "POST /token") });
}

async function revoked(walk: Walk): Promise<void> {
  expectStatus(await post(walk, "/revoke", { token: textIn(walk.tokens, "refresh_token", "POST /token") }), 200, "POST /revoke");
  walk.grantId = "";
  expectStatus(await withToken(walk), 401, "POST /mcp with a revoked token");
}

async function endGrant({ ask, key, grantId }: Walk): Promise<void> {
  await ask(`/v1/api_keys/${encodeURIComponent(grantId)}`, { method: "DELETE", headers: { "X-API-Key": key } });
}

async function takeTokens(walk: Walk, fields: Record<string, string>): Promise<void> {
  const answer = await post(walk, "/token", { ...fields, resource: `${walk.origin}/mcp` });
  expectStatus(answer, 200, "POST /token");
  walk.tokens = parsed(answer, "POST /token");
}

function withToken(walk: Walk): Promise<Answered> {
  const Authorization = `Bearer ${textIn(walk.tokens, "access_token", "POST /token")}`;
  return walk.ask("/mcp", { method: "POST", headers: { ...MCP_HEADERS, Authorization }, body: LIST_TOOLS });
}

function post({ ask, clientId }: Walk, path: string, fields: Record<string, string>): Promise<Answered> {
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  return ask(path, { method: "POST", headers, body: new URLSearchParams({ client_id: clientId, ...fields }).toString() });
}

async function json(walk: Walk, path: string): Promise<Record<string, unknown>> {
  const answer = await walk.ask(path);
  expectStatus(answer, 200, `GET ${path}`, { 404: "The proxy has to pass on /.well-known/." });
  return parsed(answer, `GET ${path}`);
}

function parsed({ body }: Answered, from: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // Said below, as for other values.
  }
  throw new Break(`${from} answered with ${shown(body)}, which is no JSON object: something else answers there.`);
}

function textIn(value: Record<string, unknown>, name: string, from: string): string {
  const text = value[name];
  if (typeof text !== "string") throw new Break(`${from} answered without ${name}.`);
  return text;
}

/** @param hints - what to do, by the status that came instead */
function expectStatus(
  { status, headers, body }: Answered,
  wanted: number,
  from: string,
  hints: Readonly<Record<number, string>> = {},
): void {
  if (status === wanted) return;
  const to = headers.location === undefined ? "" : ` to ${shown(headers.location)}, and clients do not follow`;
  throw new Break(`${from} answered ${status}${to}, not ${wanted}. ${hints[status] ?? shown(body)}`.trim());
}

/** The path of a URL that has to be one of this server. */
function ownPath(walk: Walk, text: string | undefined, where: string): string {
  const url = URL.parse(text ?? "");
  if (url?.origin !== walk.origin) throw leadsElsewhere(walk, where, text);
  return url.pathname + url.search;
}

function leadsElsewhere({ origin }: Walk, where: string, to: unknown): Break {
  return new Break(`${where} names ${shown(to)}, not ${origin}: set CAIRN_PUBLIC_URL=${origin}, the address that clients are given.`);
}

function shown(value: unknown): string {
  return (typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing")).slice(0, SHOWN_LENGTH);
}
