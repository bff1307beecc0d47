/**
 * Authorization requests: what an application asks for, checked before anybody is asked for consent, and again when they give it.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import type { KeyId } from "../lib/ids.ts";
import type { OAuthClients } from "../settings/oauth-clients.ts";
import type { Caller, Deps } from "../traces/record.ts";
import { clientOf, type Client, type Documents } from "./clients.ts";
import { createGrant } from "./grants.ts";
import { canonicalResource, isOwnResource, OAUTH_SCOPES, OFFLINE_ACCESS } from "./issuer.ts";
import { isLoopbackUrl, isRegistered, redirectWith } from "./redirects.ts";

export interface OAuthDeps extends Deps {
  readonly oauth: {
    readonly documents: Documents;
    readonly publicUrl: string | undefined;
    /** Applications that may ask, at present. */
    readonly clients: () => OAuthClients;
  };
}

/** The parameters of `GET /authorize`. */
export interface AuthorizationRequest {
  clientId: string;
  redirectUri: string;
  responseType: string;
  codeChallenge: string;
  codeChallengeMethod: string;
  scope?: string | undefined;
  state?: string | undefined;
  resource: string;
}

interface Checked {
  client: Client;
  resource: string;
  scopes: ("read" | "write")[];
  isRefreshable: boolean;
}

/** @throws {ApiError} `invalid_request` that names the parameter at fault */
async function checked({ oauth }: OAuthDeps, asked: AuthorizationRequest): Promise<Checked> {
  const client = await clientOf(asked.clientId, oauth.documents, oauth.clients());
  if (!isRegistered(asked.redirectUri, client.redirectUris))
    throw wrong("redirect_uri", "is not one that the application has registered: nothing is sent there.");
  if (asked.responseType !== "code") throw wrong("response_type", "must be code.");
  if (asked.codeChallengeMethod !== "S256") throw wrong("code_challenge_method", "must be S256.");
  if (!/^[\w-]{43}$/.test(asked.codeChallenge)) throw wrong("code_challenge", "must be the 43 characters of a SHA-256 in base64url.");
  const resource = canonicalResource(asked.resource);
  if (!isOwnResource(resource, oauth.publicUrl)) throw wrong("resource", "must be the URL of /mcp of this server.");
  const words = (asked.scope ?? "").split(" ");
  const known = OAUTH_SCOPES.filter((scope) => words.includes(scope));
  return {
    client,
    resource,
    scopes: known.length === 0 ? [...OAUTH_SCOPES] : known,
    isRefreshable: client.refreshes || words.includes(OFFLINE_ACCESS),
  };
}

function wrong(param: string, problem: string): ApiError {
  return new ApiError("invalid_request", `${param} ${problem}`, { param });
}

/** Says who asks for what, for the person who is to decide. */
export async function describeRequest(deps: OAuthDeps, asked: AuthorizationRequest): Promise<JsonText> {
  const { client, resource, scopes, isRefreshable } = await checked(deps, asked);
  const redirect = new URL(asked.redirectUri);
  return toJson({
    object: "oauth_request",
    client_id: client.id,
    client_name: client.name,
    client_host: client.id.startsWith("https://") ? new URL(client.id).host : null,
    redirect_host: redirect.host,
    redirects_to_this_machine: isLoopbackUrl(redirect),
    resource,
    scopes,
    refreshes: isRefreshable,
    denial: redirectWith(asked.redirectUri, { error: "access_denied", state: asked.state, iss: new URL(resource).origin }),
  });
}

export interface Decision {
  scopes?: ("read" | "write")[] | undefined;
  userId?: string | undefined;
  agentId?: string | undefined;
  expiresInDays: number;
}

/** Connects an application that asked. Of its scopes the person may leave some out. */
export async function consentTo(
  deps: OAuthDeps,
  caller: Caller & { keyId: KeyId },
  asked: AuthorizationRequest,
  decision: Decision,
): Promise<JsonText> {
  const { client, resource, scopes, isRefreshable } = await checked(deps, asked);
  const given = decision.scopes ?? scopes;
  const excess = given.find((scope) => !scopes.includes(scope));
  if (excess !== undefined) throw wrong("scopes", `has ${excess}, which the application did not ask for.`);
  return createGrant(deps, caller, {
    clientId: client.id,
    name: client.name,
    redirectUri: asked.redirectUri,
    resource,
    challenge: asked.codeChallenge,
    state: asked.state,
    scopes: OAUTH_SCOPES.filter((scope) => given.includes(scope)),
    isRefreshable,
    userId: decision.userId,
    agentId: decision.agentId,
    days: decision.expiresInDays,
  });
}
