/**
 * Grants of applications: consent, tokens, refreshing, revocation.
 *
 * ```
 * consent ─► grant with a code, 60 s ─► access token 1 h, refresh token 30 days ─► rotated at each refresh ─► revoked, unused or a year old
 * ```
 * A grant is an API key of the kind `oauth`, so that it is seen, bound and revoked where keys are, and ends with the key that consented. A
 * second use of a code, or a refresh token that was rotated away more than a minute ago, ends it: somebody else may have the tokens.
 *
 * @module
 */
import { randomBase62 } from "../lib/base62.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { NO_PARTITION, type KeyId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { toJson } from "../lib/json.ts";
import { addTracedGrant, findById, hasEnded, keyJson, keysFrom, removeKey } from "../keys/keys.ts";
import type { Reader } from "../storage/access.ts";
import { apiKeys, type ApiKeyRow, type OAuthGrant } from "../storage/tables.ts";
import { commitSecret, type Caller, type Deps } from "../traces/record.ts";
import { canonicalResource } from "./issuer.ts";
import { redirectWith } from "./redirects.ts";
import { grantKeyOf, isVerified, parseToken, tokenOf, type Token, type TokenKind } from "./tokens.ts";

const CODE_MS = 60 * SECOND_MS;
const ACCESS_MS = HOUR_MS;
const UNUSED_MS = 30 * DAY_MS;
/** Time in which a refresh token that was used gets the same answer, for a reply that was lost. */
const SAME_ANSWER_MS = MINUTE_MS;
const SALT_LENGTH = 32;
const FAMILY_LENGTH = 24;

/** A grant as somebody consents to it. */
export interface Consent {
  clientId: string;
  name: string;
  redirectUri: string;
  resource: string;
  challenge: string;
  state: string | undefined;
  scopes: readonly ("read" | "write")[];
  isRefreshable: boolean;
  userId?: string | undefined;
  agentId?: string | undefined;
  days: number;
}

/** Connects an application. The answer leads back to it, with a code for its tokens. */
export function createGrant(deps: Deps, caller: Caller & { keyId: KeyId }, consent: Consent): Promise<JsonText> {
  const family = randomBase62(FAMILY_LENGTH);
  const code = tokenOf("ac", family, randomBase62(SALT_LENGTH), "");
  const { hash } = tokenIn(code, "ac");
  const { clientId, name, redirectUri, resource, challenge, isRefreshable, userId, agentId, scopes } = consent;
  return commitSecret(deps, caller, (tx) => {
    const { row: presented } = findById(tx, caller.keyId);
    // A link's session came from no key that stays: its grants end by themselves.
    const source = presented.source ?? (presented.kind === "key" ? presented.id : undefined);
    if (source !== undefined)
      for (const oldest of keysFrom(tx, source, "oauth").slice(0, 1 - LIMITS.oauthGrantsMax))
        removeKey(tx, caller, oldest, `${LIMITS.oauthGrantsMax} applications were connected with its key since.`);
    const sourceEndsAt = source === undefined ? null : findById(tx, source).row.expiresAt;
    const endsAt = Math.min(tx.now + consent.days * DAY_MS, sourceEndsAt ?? Infinity);
    const grant = { clientId, redirectUri, resource, challenge, code: hash, isRedeemed: false, isRefreshable };
    const row = addTracedGrant(tx, caller, grantKeyOf({ family }), `crn_${family.slice(0, 4)}`, {
      kind: "oauth",
      ...(source === undefined ? {} : { source }),
      name,
      scopes: [...scopes],
      tier: presented.tier,
      ...(userId === undefined ? {} : { userId }),
      ...(agentId === undefined ? {} : { agentId }),
      perMinute: presented.perMinute,
      burst: presented.burst,
      expiresAt: Math.min(tx.now + CODE_MS, endsAt),
      oauth: { ...grant, endsAt, access: [] },
    });
    const redirect = redirectWith(redirectUri, { code, state: consent.state, iss: new URL(resource).origin });
    return toJson({ object: "oauth_grant", key: JSON.parse(keyJson(row, null)) as object, redirect_to: redirect });
  });
}

function tokenIn(text: string, kind: TokenKind): Token {
  const token = parseToken(text);
  if (token?.kind !== kind) throw new ApiError("internal_error", "A token has not its form.");
  return token;
}

/** Error of the token endpoint, as RFC 6749 has them. */
export interface Refusal {
  error: "invalid_request" | "invalid_grant" | "invalid_scope" | "invalid_target" | "unsupported_grant_type";
  error_description: string;
}

/** Answer of the token endpoint. */
export interface Tokens {
  access_token: string;
  token_type: "Bearer";
  expires_in: number;
  refresh_token?: string;
  scope: string;
}

const invalid = (error_description: string): Refusal => ({ error: "invalid_grant", error_description });

export interface Redemption {
  code: string;
  clientId: string;
  redirectUri: string | undefined;
  verifier: string;
  resource: string | undefined;
}

/** Redeems a code for tokens, once. */
export function redeemCode(deps: Deps, system: Caller, asked: Redemption): Promise<Tokens | Refusal> {
  const token = parseToken(asked.code);
  const salt = randomBase62(SALT_LENGTH);
  if (token?.kind !== "ac") return Promise.resolve(invalid("The code is not valid."));
  return deps.store.commit(NO_PARTITION, (tx) => {
    const hash = grantKeyOf(token);
    const row = grantOf(tx, hash);
    if (row?.oauth.code !== token.hash) return invalid("The code is not valid or has expired.");
    if (row.oauth.isRedeemed) {
      removeKey(tx, system, { hash, row }, "its code was used twice");
      return invalid("The code was used before. All tokens of its grant have ended.");
    }
    if (row.oauth.clientId !== asked.clientId) return invalid("The code was given to another client_id.");
    if (row.oauth.redirectUri !== (asked.redirectUri ?? row.oauth.redirectUri)) return invalid("redirect_uri is not that of the request.");
    if (!isVerified(asked.verifier, row.oauth.challenge)) return invalid("code_verifier does not match the code_challenge.");
    const target = targetProblem(row.oauth, asked.resource);
    if (target !== undefined) return target;
    const { grant, expiresAt, tokens } = issue(row, token, salt, tx.now);
    tx.put(apiKeys, hash, { ...row, expiresAt, oauth: { ...grant, isRedeemed: true } });
    return tokens;
  });
}

export interface Refresh {
  refreshToken: string;
  clientId: string;
  scope: string | undefined;
  resource: string | undefined;
}

/** Gives new tokens for a refresh token, which is good no more from then on. */
export function refreshTokens(deps: Deps, system: Caller, asked: Refresh): Promise<Tokens | Refusal> {
  const token = parseToken(asked.refreshToken);
  const salt = randomBase62(SALT_LENGTH);
  if (token?.kind !== "rt") return Promise.resolve(invalid("The refresh token is not valid."));
  return deps.store.commit(NO_PARTITION, (tx) => {
    const hash = grantKeyOf(token);
    const row = grantOf(tx, hash);
    if (row === undefined) return invalid("The refresh token is not valid, has expired or was revoked.");
    const { clientId, refresh, former } = row.oauth;
    if (clientId !== asked.clientId) return invalid("The refresh token was given to another client_id.");
    const target = targetProblem(row.oauth, asked.resource) ?? scopeProblem(row, asked.scope);
    if (target !== undefined) return target;
    if (former?.hash === token.hash && former.until > tx.now) return answerOf(row, token, former.salt, tx.now);
    if (refresh !== token.hash) {
      removeKey(tx, system, { hash, row }, "a refresh token that had been replaced was used");
      return invalid("The refresh token was used before. All tokens of its grant have ended.");
    }
    const { grant, expiresAt, tokens } = issue(row, token, salt, tx.now, narrowedTo(asked.scope, row));
    const kept = { hash: token.hash, salt, until: tx.now + SAME_ANSWER_MS };
    tx.put(apiKeys, hash, { ...row, expiresAt, oauth: { ...grant, former: kept } });
    return tokens;
  });
}

type GrantRow = ApiKeyRow & { oauth: OAuthGrant };

function grantOf(reader: Reader, hash: string): GrantRow | undefined {
  const row = reader.get(apiKeys, hash);
  return row?.oauth === undefined || hasEnded(row, reader.now) ? undefined : (row as GrantRow);
}

function targetProblem(grant: OAuthGrant, resource: string | undefined): Refusal | undefined {
  if (resource === undefined || canonicalResource(resource) === grant.resource) return undefined;
  return { error: "invalid_target", error_description: `resource must be ${grant.resource}, for which consent was given.` };
}

function scopeProblem({ scopes }: ApiKeyRow, asked: string | undefined): Refusal | undefined {
  const known: readonly string[] = [...scopes, "offline_access"];
  const excess = (asked ?? "").split(" ").find((scope) => scope !== "" && !known.includes(scope));
  return excess === undefined ? undefined : { error: "invalid_scope", error_description: "scope has more than consent was given for." };
}

/** The scopes that a refresh asks for (RFC 6749, 6): all where it names none of them. */
function narrowedTo(asked: string | undefined, { scopes }: ApiKeyRow): Pick<ApiKeyRow, "scopes"> | undefined {
  const words = (asked ?? "").split(" ");
  const narrower = scopes.filter((scope) => words.includes(scope));
  return narrower.length === 0 || narrower.length === scopes.length ? undefined : { scopes: narrower };
}

/** Makes the tokens that follow from one that was presented. @param narrowed - fewer scopes than consent was given for */
function issue(row: GrantRow, token: Token, salt: string, now: number, narrowed?: Pick<ApiKeyRow, "scopes">) {
  const { oauth } = row;
  const expiresAt = Math.min(oauth.endsAt, now + (oauth.isRefreshable ? UNUSED_MS : ACCESS_MS));
  const { hash } = tokenIn(tokenOf("at", token.family, token.text, salt), "at");
  const access = { hash, endsAt: Math.min(expiresAt, now + ACCESS_MS), ...narrowed };
  const grant: OAuthGrant = {
    ...oauth,
    access: [access, ...oauth.access.slice(0, 1)],
    ...(oauth.isRefreshable ? { refresh: tokenIn(tokenOf("rt", token.family, token.text, salt), "rt").hash } : {}),
  };
  return { grant, expiresAt, tokens: answerOf({ ...row, oauth: grant }, token, salt, now) };
}

function answerOf({ scopes, oauth }: GrantRow, { family, text }: Token, salt: string, now: number): Tokens {
  const { endsAt = now, scopes: narrower } = oauth.access[0] ?? {};
  return {
    access_token: tokenOf("at", family, text, salt),
    token_type: "Bearer",
    expires_in: Math.max(0, Math.floor((endsAt - now) / SECOND_MS)),
    ...(oauth.isRefreshable ? { refresh_token: tokenOf("rt", family, text, salt) } : {}),
    scope: [...(narrower ?? scopes), ...(oauth.isRefreshable ? ["offline_access"] : [])].join(" "),
  };
}

/** Ends the grant of a token that is valid (RFC 7009); any other is nothing to revoke. */
export async function revokeToken(deps: Deps, system: Caller, text: string, clientId: string | undefined): Promise<void> {
  const token = parseToken(text);
  if (token === undefined || token.kind === "ac") return;
  await deps.store.commit(NO_PARTITION, (tx) => {
    const hash = grantKeyOf(token);
    const row = grantOf(tx, hash);
    if (row === undefined || (clientId !== undefined && row.oauth.clientId !== clientId)) return;
    const { access, refresh, former } = row.oauth;
    const isIssued = [refresh, former?.hash, ...access.map((one) => one.hash)].includes(token.hash);
    if (isIssued) removeKey(tx, system, { hash, row }, "revoked by the application");
  });
}

/** The grant of an access token for this resource, while it is valid, with the scopes of that token. */
export function findGrant(reader: Reader, presented: string, resource: string): ApiKeyRow | undefined {
  const token = parseToken(presented);
  if (token?.kind !== "at") return undefined;
  const row = grantOf(reader, grantKeyOf(token));
  if (row?.oauth.resource !== resource) return undefined;
  const access = row.oauth.access.find(({ hash, endsAt }) => hash === token.hash && endsAt > reader.now);
  return access && { ...row, scopes: access.scopes ?? row.scopes };
}

/** The grant whose family a code or a token in a form has: nobody else knows it. */
export function grantNamedIn(reader: Reader, form: URLSearchParams): ApiKeyRow | undefined {
  const token = parseToken(form.get("refresh_token") ?? form.get("code") ?? form.get("token") ?? "");
  return token && grantOf(reader, grantKeyOf(token));
}

/** Checks the form alone: an API key has another. */
export function isAccessToken(presented: string): boolean {
  return presented.startsWith("crn_at_");
}
