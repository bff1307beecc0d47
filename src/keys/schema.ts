/**
 * API keys on the wire.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { Default, Instant, NeverNull, OneOf, OrNull, Reason, RecordId, Text, Timestamp, UserId } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { SCOPES } from "../lib/scopes.ts";
import { KEY_KINDS } from "../storage/tables.ts";
import { DEFAULT_TIER, RATE_LIMIT_MAX, TIERS } from "./tiers.ts";

const RateLimit = Type.Object(
  {
    per_minute: Type.Integer({ minimum: 1, maximum: RATE_LIMIT_MAX, description: "Requests per minute.", examples: [1_000] }),
    burst: Type.Integer({ minimum: 1, maximum: RATE_LIMIT_MAX, description: "Requests allowed at once after a pause.", examples: [2_000] }),
  },
  { title: "RateLimit", description: "How often the key may be used." },
);
const Scopes = Type.Array(OneOf(SCOPES), {
  minItems: 1,
  maxItems: SCOPES.length,
  description:
    "`read`: every GET, search and context. `write`: changes of records. `admin`: also keys, settings, webhooks, backups and erasures; implies the others.",
  examples: [["read", "write"]],
});

const EXPIRY_EXAMPLE = "2027-05-07T08:00:00.000Z";
/** Differences of a key that replaces the example. */
export const ROLLED_EXAMPLE = {
  id: "key_0VQmTz3aXbR2",
  prefix: "crn_4hT9",
  key: "crn_4hT9pW2mXs8Kd1Vn6Rb3Jc7Q",
  created_at: "2026-05-08T09:00:00.000Z",
  last_used_at: null,
  rolled_from: "key_0VQk3aB4x1Zq",
};

const KIND_TEXT =
  `\`key\`: made to be kept. \`session\`: made by signing in, for at most ${LIMITS.sessionKeyHours} hours. ` +
  `\`link\`: good for signing in once, within ${LIMITS.linkKeyMinutes} minutes, and for nothing else. ` +
  "`oauth`: an application that was connected by OAuth, whose tokens open `/mcp` alone.";

export const KEY_FILTER = { kind: Type.Optional(OneOf(KEY_KINDS, { description: "Only keys of this kind." })) };

export const ApiKey = Type.Object(
  {
    object: Type.Literal("api_key"),
    id: RecordId("key", "`key_` and 12 characters."),
    kind: OneOf(KEY_KINDS, { description: KIND_TEXT, examples: ["key"] }),
    name: OrNull(Type.String({ examples: ["support agent"] })),
    prefix: Type.String({ description: "First 8 characters of the key: the actor in traces.", examples: ["crn_9fK2"] }),
    key: Type.Optional(Type.String({ description: "The key itself: only in the answer to the request that created it." })),
    scopes: Scopes,
    tier: OneOf(TIERS, { examples: ["pro"] }),
    user_id: OrNull(Type.String({ description: "The key is bound to this user; null: to none." })),
    agent_id: OrNull(Type.String({ description: "The key is bound to this agent; null: to none." })),
    rate_limit: RateLimit,
    created_at: Timestamp("When the key was created."),
    expires_at: OrNull(Timestamp("When it stops working.", EXPIRY_EXAMPLE)),
    last_used_at: OrNull(Timestamp("When the key was last used; null: never. A crash of the server loses at most the last minute.")),
    rolled_from: OrNull(Type.String({ description: "ID of the key this one replaced." })),
    rolled_to: OrNull(Type.String({ description: "ID of the key that replaced this one." })),
    source: OrNull(
      Type.String({
        description:
          "ID of the key that a session key, or the consent to an application, came from, and ends with; null where a link signed in, and for other kinds.",
      }),
    ),
    client_id: Type.Optional(Type.String({ description: "`client_id` of the application: only of a key of the kind `oauth`." })),
  },
  { title: "ApiKey", description: "An API key." },
);
export type ApiKey = Static<typeof ApiKey>;

export const SignIn = Type.Object(
  {
    name: Type.Optional(
      Text(1, LIMITS.keyNameLengthMax, {
        description: "Name of the session key, for the list of keys.",
        examples: ["Dashboard in Firefox"],
      }),
    ),
  },
  { title: "SignIn", description: "A session key to create." },
);

/** Differences of the session key from the example. */
export const SESSION_EXAMPLE = {
  id: "key_0VQnUz4bYcS3",
  kind: "session" as const,
  name: "Dashboard in Firefox",
  prefix: "crn_7mQ2",
  key: "crn_7mQ2vXc4Lw8Zs1Tb6Ny3R9fK",
  expires_at: "2026-05-07T20:00:00.000Z",
  last_used_at: null,
  source: "key_0VQk3aB4x1Zq",
};

export const NewKey = Type.Object(
  {
    name: Type.Optional(Text(1, LIMITS.keyNameLengthMax, { description: "What the key is for.", examples: ["support agent"] })),
    scopes: Default(
      Scopes,
      SCOPES.filter((scope) => scope !== "admin"),
    ),
    tier: Default(
      OneOf(TIERS, { description: "Decides rate limit and trace retention; default `enterprise`.", examples: ["pro"] }),
      DEFAULT_TIER,
    ),
    user_id: NeverNull(
      UserId({
        description:
          "Binds the key to this user: it sees and changes nothing but the records of this user's sessions. Not with the scope `admin`. Leave it out for all users: null is refused.",
      }),
      "leave it out for a key to the records of all users.",
    ),
    agent_id: NeverNull(
      Text(1, LIMITS.agentIdLengthMax, {
        description: "Binds the key to this agent in the same way; with both, to this agent for this user. Null is refused.",
      }),
      "leave it out for a key to the records of all agents.",
    ),
    rate_limit: Type.Optional(RateLimit),
    expires_at: Type.Optional(Instant("When it stops working; default never.", { example: EXPIRY_EXAMPLE })),
  },
  { title: "NewApiKey", description: "An API key to create." },
);

export const KeyRoll = Type.Object(
  {
    overlap_seconds: Default(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.keyOverlapSecondsMax,
        description: `How long the previous key keeps working; 0 ends it at once. Default ${LIMITS.keyOverlapSecondsDefault}, a day.`,
        examples: [3_600],
      }),
      LIMITS.keyOverlapSecondsDefault,
    ),
    expires_at: Type.Optional(
      Instant("When the new key stops working; unless given, when the previous one would have.", { example: EXPIRY_EXAMPLE }),
    ),
    force: Default(
      Type.Boolean({ description: "Allow the new key to expire, or expire sooner, although no other admin key is valid. Default false." }),
      false,
    ),
  },
  { title: "ApiKeyRoll", description: "How a key is replaced." },
);

export const KeyDeletion = Type.Object({
  ...Reason.properties,
  force: Default(Type.Boolean({ description: "Revoke the key even if it is the last valid admin key. Default false." }), false),
});
