/**
 * API keys on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Default, Instant, OneOf, OrNull, Reason, RecordId, Text, Timestamp } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { SCOPES } from "../lib/scopes.ts";
import { RATE_LIMIT_MAX, TIERS } from "./tiers.ts";

const RateLimit = Type.Object(
  {
    per_minute: Type.Integer({ minimum: 1, maximum: RATE_LIMIT_MAX, description: "Requests per minute." }),
    burst: Type.Integer({ minimum: 1, maximum: RATE_LIMIT_MAX, description: "Requests allowed at once after a pause." }),
  },
  { title: "RateLimit", description: "How often the key may be used." },
);
const Scopes = Type.Array(OneOf(SCOPES), {
  minItems: 1,
  maxItems: SCOPES.length,
  description: "`read`: all GET, search and context. `write`: all other record calls. `admin`: keys and settings too; implies the others.",
  examples: [["read", "write"]],
});

const EXAMPLE = {
  object: "api_key",
  id: "key_0VQk39zYxWvU",
  name: "support agent",
  prefix: "crn_9fK2",
  scopes: ["read", "write"],
  tier: "pro",
  rate_limit: { per_minute: 1000, burst: 2000 },
  created_at: "2026-05-07T07:59:00.000Z",
  expires_at: null,
  last_used_at: "2026-05-07T08:00:03.000Z",
  rolled_from: null,
  rolled_to: null,
};
/** How a key that replaces the example differs from it. */
export const ROLLED_EXAMPLE = {
  id: "key_0VQmTz3aXbR2",
  prefix: "crn_4hT9",
  key: "crn_4hT9pW2mXs8Kd1Vn6Rb3Jc7Q",
  created_at: "2026-05-08T09:00:00.000Z",
  last_used_at: null,
  rolled_from: EXAMPLE.id,
};

export const ApiKey = Type.Object(
  {
    object: Type.Literal("api_key"),
    id: RecordId("key", "`key_` and 12 characters."),
    name: OrNull(Type.String()),
    prefix: Type.String({ description: "First 8 characters of the key: the actor in traces." }),
    key: Type.Optional(Type.String({ description: "The key itself; only in the answer that created it." })),
    scopes: Scopes,
    tier: OneOf(TIERS),
    rate_limit: RateLimit,
    created_at: Timestamp("When the key was created."),
    expires_at: OrNull(Timestamp("When it stops working.")),
    last_used_at: OrNull(Timestamp("When the key was last used; null: never. A crash of the server loses at most the last minute.")),
    rolled_from: OrNull(Type.String({ description: "ID of the key this one replaced." })),
    rolled_to: OrNull(Type.String({ description: "ID of the key that replaced this one." })),
  },
  { title: "ApiKey", description: "An API key, without its secret.", examples: [EXAMPLE] },
);

export const NewKey = Type.Object(
  {
    name: Type.Optional(Text(1, LIMITS.keyNameLengthMax, { description: "What the key is for." })),
    scopes: Default(
      Scopes,
      SCOPES.filter((scope) => scope !== "admin"),
    ),
    tier: Default(OneOf(TIERS, { description: "Decides rate limit and trace retention; default `free`." }), "free"),
    rate_limit: Type.Optional(RateLimit),
    expires_at: Type.Optional(Instant("When it stops working; default never.")),
  },
  {
    title: "NewApiKey",
    description: "An API key to create.",
    examples: [{ name: "support agent", scopes: ["read", "write"], tier: "pro" }],
  },
);

export const KeyRoll = Type.Object(
  {
    overlap_seconds: Default(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.keyOverlapSecondsMax,
        description: `How long the previous key keeps working; 0 ends it at once. Default ${LIMITS.keyOverlapSecondsDefault}, a day.`,
      }),
      LIMITS.keyOverlapSecondsDefault,
    ),
    expires_at: Type.Optional(Instant("When the new key stops working; unless given, when the previous one would have.")),
    force: Default(
      Type.Boolean({ description: "Allow the new key to expire, or expire sooner, although no other admin key is valid. Default false." }),
      false,
    ),
  },
  { title: "ApiKeyRoll", description: "How a key is replaced.", examples: [{ overlap_seconds: 3600 }] },
);

export const KeyDeletion = Type.Object({
  ...Reason.properties,
  force: Default(Type.Boolean({ description: "Revoke the key even if it is the last valid admin key. Default false." }), false),
});
