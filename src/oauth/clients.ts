/**
 * Applications that ask for access, and how they say who they are.
 *
 * An application is a URL where its document is (Client ID Metadata Document), or a registration (RFC 7591). Anybody may register and
 * say anything, so that a registration proves nothing and the server keeps none: its id is the registration itself, in base64url. Who
 * consents sees where the answer goes, which is what counts.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { codePointLength, firstCodePoints } from "../lib/text.ts";
import { KNOWN, type OAuthClients } from "../settings/oauth-clients.ts";
import { knownDocument } from "./known-clients.ts";
import { isLoopbackUrl, redirectProblem, URI_LENGTH_MAX } from "./redirects.ts";

export interface Client {
  readonly id: string;
  readonly name: string;
  readonly redirectUris: readonly string[];
  /** True if it says that it can refresh tokens. */
  readonly refreshes: boolean;
}

const NAME_LENGTH_MAX = 100;
const REDIRECTS_MAX = 20;
/** A client sends its id with every request: one in a URL, too. */
export const CLIENT_ID_LENGTH_MAX = 2048;
const REGISTERED = "cairn_";

/** The documents of applications, by their URLs. */
export interface Documents {
  get(id: string): Promise<Client>;
}

/** @throws {ApiError} `invalid_request` for an id that leads to no application; `permission_denied` for one that may not ask */
export function clientOf(id: string, documents: Documents, allowed: OAuthClients): Client | Promise<Client> {
  const isRegistration = id.startsWith(REGISTERED);
  if (!isAllowed(id, allowed)) {
    const who = isRegistration ? "Applications that register themselves" : "This application";
    throw new ApiError("permission_denied", `${who} may not ask for access to this server (setting oauth_clients).`, {
      param: "client_id",
    });
  }
  if (isRegistration) return registeredClient(id);
  if (id.startsWith("https://")) return documents.get(id);
  throw unknownClient("is neither the https URL of a client's document nor the id of a registration here.");
}

function isAllowed(id: string, allowed: OAuthClients): boolean {
  const url = id.startsWith("https://") ? URL.parse(id) : null;
  if (allowed === "any") return true;
  return url !== null && (allowed.includes(url.hostname) || (allowed.includes(KNOWN) && knownDocument(id) !== undefined));
}

function registeredClient(id: string): Client {
  let metadata: unknown;
  try {
    metadata = JSON.parse(Buffer.from(id.slice(REGISTERED.length), "base64url").toString());
  } catch {
    throw unknownClient("is not the id of a registration.");
  }
  const client = clientIn(metadata, id);
  if ("problem" in client) throw unknownClient(`is not the id of a registration: ${client.problem}`);
  return client;
}

export function unknownClient(problem: string, cause?: unknown): ApiError {
  return new ApiError("invalid_request", `client_id ${problem}`, { param: "client_id", cause });
}

/** Registers an application: its answer, or what is wrong with what it said of itself. */
export function register(metadata: unknown): { client: Client } | { problem: string; isRedirect: boolean } {
  const client = clientIn(metadata, "");
  if ("problem" in client) return client;
  const { name, redirectUris, refreshes } = client;
  const said = { client_name: name, redirect_uris: redirectUris, ...(refreshes ? { grant_types: GRANT_TYPES } : {}) };
  const id = REGISTERED + Buffer.from(JSON.stringify(said)).toString("base64url");
  if (id.length > CLIENT_ID_LENGTH_MAX) return { problem: "redirect_uris are too long together.", isRedirect: true };
  return { client: { ...client, id } };
}

export const GRANT_TYPES = ["authorization_code", "refresh_token"] as const;

/** Reads what an application says of itself, in its document or when it registers. */
export function clientIn(metadata: unknown, id: string): Client | { problem: string; isRedirect: boolean } {
  if (typeof metadata !== "object" || metadata === null) return { problem: "it is not a JSON object.", isRedirect: false };
  const said = metadata as Record<string, unknown>;
  const saidUris = said["redirect_uris"];
  const [first] = isTexts(saidUris) ? saidUris : [];
  if (!isTexts(saidUris) || first === undefined || saidUris.length > REDIRECTS_MAX)
    return { problem: `redirect_uris must be 1 to ${REDIRECTS_MAX} texts.`, isRedirect: true };
  // Leaves out those of a scheme of an application's own, which any program can take.
  const redirectUris = saidUris.filter((uri) => redirectProblem(uri) === undefined);
  if (redirectUris.length === 0)
    return { problem: `redirect_uris: ${firstCodePoints(first, 100)} ${redirectProblem(first)}`, isRedirect: true };
  const method = said["token_endpoint_auth_method"] ?? "none";
  if (method !== "none" && id === "")
    return { problem: "token_endpoint_auth_method must be none: Cairn keeps no secrets of clients.", isRedirect: false };
  const grants = said["grant_types"] ?? ["authorization_code"];
  if (!isTexts(grants) || !grants.includes("authorization_code"))
    return { problem: "grant_types must include authorization_code.", isRedirect: false };
  return { id, name: nameOf(said["client_name"], redirectUris[0] ?? ""), redirectUris, refreshes: grants.includes("refresh_token") };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string" && one.length <= URI_LENGTH_MAX);
}

/** Characters that nobody sees, or that move what is around them: U+2800 is braille without a dot. */
const INVISIBLE = /[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800]/gu;

/** The name that the application gives itself, or the host that it is sent back to. */
function nameOf(said: unknown, redirectUri: string): string {
  const name = typeof said === "string" ? said.replaceAll(INVISIBLE, "").trim() : "";
  if (name === "") return isLoopbackUrl(new URL(redirectUri)) ? "A program on this machine" : new URL(redirectUri).host;
  return codePointLength(name) > NAME_LENGTH_MAX ? firstCodePoints(name, NAME_LENGTH_MAX) : name;
}
