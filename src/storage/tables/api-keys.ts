/**
 * Tables of API keys: those that are valid, and those that were deleted.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { bare } from "../../lib/ids.ts";
import { SCOPES } from "../../lib/scopes.ts";
import { numberKey } from "../keys.ts";
import { IdText, Instant, OneOf, OrNull, Positive, Text, Truth, Whole } from "../row-types.ts";
import { having, json, parsedOnce } from "./codecs.ts";
import { SHA256, SHA256_LENGTH, table } from "./table.ts";

/** Each with one character of the keys of `byKind`. */
const KIND_CODES = { key: "k", session: "s", link: "l", oauth: "o" } as const;
export type KeyKind = keyof typeof KIND_CODES;
export const KEY_KINDS = Object.keys(KIND_CODES) as KeyKind[];
/** Prefix of the entries of a kind. */
export const kindCode = (kind: KeyKind): string => KIND_CODES[kind];

const Scopes = Type.Array(OneOf(SCOPES));
const Sha256 = Type.String({ pattern: SHA256.source, description: "a SHA-256 in hex" });

/** Grant of an application: what it asked for, and the tokens that it holds, by their hashes. The row's key is that of their family. */
const OAuthGrant = Type.Object({
  /** URL of its document, or the registration itself. */
  clientId: Text,
  redirectUri: Text,
  /** The one resource that its tokens are for: the URL of `/mcp`. */
  resource: Text,
  /** PKCE: base64url of the SHA-256 of the verifier. */
  challenge: Text,
  code: Sha256,
  /** Set once the code was redeemed: another use of it ends the grant. */
  isRedeemed: Truth,
  isRefreshable: Truth,
  /** The latest that refreshing can prolong it to. */
  endsAt: Whole,
  /** The newest access token, and the one before, which may be in use still. One with fewer scopes than the grant says which. */
  access: Type.Array(Type.Object({ hash: Sha256, endsAt: Whole, scopes: Type.Optional(Scopes) })),
  refresh: Type.Optional(Sha256),
  /** The refresh token before: until then it gets the same answer again, for a reply that was lost. */
  former: Type.Optional(Type.Object({ hash: Sha256, salt: Text, until: Whole })),
});
export type OAuthGrant = Static<typeof OAuthGrant>;

const ApiKeyRow = Type.Object({
  id: IdText("key"),
  /** `link`: good for signing in once; `session`: what signing in gives; `oauth`: an application's grant. They end by themselves. */
  kind: OneOf(KEY_KINDS),
  /** The key that a session key or a grant came from: it ends with that one. Left out where a link signed in. */
  source: Type.Optional(IdText("key")),
  name: OrNull(Text),
  /** First 8 characters of the key: the actor in traces. */
  prefix: Text,
  scopes: Scopes,
  tier: OneOf(["free", "pro", "enterprise"]),
  /** Set for a key that sees and changes nothing but records of this user or this agent. */
  userId: Type.Optional(Text),
  agentId: Type.Optional(Text),
  perMinute: Positive,
  burst: Positive,
  createdAt: Whole,
  /** Any time that a caller names: no key of the store is made of it. */
  expiresAt: OrNull(Instant),
  /** Up to a minute behind while a server runs; left out until the key is used. */
  lastUsedAt: Type.Optional(Whole),
  /** The key this one replaced, and the one that replaced it. */
  rolledFrom: Type.Optional(IdText("key")),
  rolledTo: Type.Optional(IdText("key")),
  /** Set for the kind `oauth` alone. */
  oauth: Type.Optional(OAuthGrant),
});
export type ApiKeyRow = Static<typeof ApiKeyRow>;
/** Grants stand apart in `byEnd`: they may last longer than a key that a wrong clock made. */
export const GRANT_ENDS = "|";
const endPrefix = (kind: KeyKind): string => (kind === "oauth" ? GRANT_ENDS : "");
const hashIn = (entry: string): string => entry.slice(-SHA256_LENGTH);
export const apiKeys = table("api_keys", SHA256, ApiKeyRow, having(parsedOnce(json<ApiKeyRow>()), { isGlobal: true }), {
  byId: { of: (hash, row) => bare(row.id) + hash, record: hashIn },
  byKind: { of: (hash, row) => kindCode(row.kind) + bare(row.id) + hash, record: hashIn },
  bySource: { of: (hash, row) => (row.source === undefined ? undefined : bare(row.source) + bare(row.id) + hash), record: hashIn },
  byEnd: {
    of: (hash, row) => (row.kind === "key" || row.expiresAt === null ? undefined : endPrefix(row.kind) + numberKey(row.expiresAt) + hash),
    record: hashIn,
  },
});

const DeletedKeyRow = Type.Object({ deletedAt: Whole });
export type DeletedKeyRow = Static<typeof DeletedKeyRow>;
export const deletedKeys = table("deleted_keys", SHA256, DeletedKeyRow, json<DeletedKeyRow>());
