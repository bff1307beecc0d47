/**
 * API keys on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Cursor, Limit, OneOf, Reason, RecordId, Text, Timestamp } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { SCOPES } from "../lib/scopes.ts";
import { RATE_LIMIT_MAX, TIERS } from "./tiers.ts";

const RateLimit = Type.Object(
  {
    per_minute: Type.Integer({ minimum: 1, maximum: RATE_LIMIT_MAX, description: "Requests per minute." }),
    burst: Type.Integer({ minimum: 1, maximum: RATE_LIMIT_MAX, description: "How many may come at once after a pause." }),
  },
  { title: "RateLimit", description: "Requests that the key may make." },
);
const Scopes = Type.Array(OneOf(SCOPES), {
  minItems: 1,
  maxItems: SCOPES.length,
  description: "`read`: all GET, search and context. `write`: all other record calls. `admin`: keys and settings too; implies the others.",
  examples: [["read", "write"]],
});

export const ApiKey = Type.Object(
  {
    object: Type.Literal("api_key"),
    id: RecordId("key", "`key_` and 12 characters."),
    name: Type.Unsafe<string | null>({ type: "string", nullable: true }),
    prefix: Type.String({ description: "First 8 characters of the key: the actor in traces." }),
    key: Type.Optional(Type.String({ description: "The key itself; only in the answer that made it." })),
    scopes: Scopes,
    tier: OneOf(TIERS),
    rate_limit: RateLimit,
    created_at: Timestamp("When the key was made."),
    expires_at: Type.Unsafe<string | null>({ type: "string", format: "date-time", nullable: true, description: "When it stops working." }),
    last_used_at: Type.Unsafe<string | null>({
      type: "string",
      format: "date-time",
      nullable: true,
      description: "When a request last came with it; null: never. A crash of the server forgets the last minute at most.",
    }),
    rolled_from: Type.Unsafe<string | null>({ type: "string", nullable: true, description: "The key in whose place this one came." }),
    rolled_to: Type.Unsafe<string | null>({ type: "string", nullable: true, description: "The key that came in the place of this one." }),
  },
  { title: "ApiKey", description: "An API key, without its secret." },
);

export const NewKey = Type.Object(
  {
    name: Type.Optional(Text(1, LIMITS.keyNameLengthMax, { description: "What it is for." })),
    scopes: Type.Optional(Scopes),
    tier: Type.Optional(OneOf(TIERS, { description: "Decides rate limit and trace retention; default `free`.", default: "free" })),
    rate_limit: Type.Optional(RateLimit),
    expires_at: Type.Optional(Timestamp("When it stops working; default never.")),
  },
  { title: "NewApiKey", description: "An API key to make." },
);

export const KeyRoll = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.keyOverlapSecondsMax,
        default: LIMITS.keyOverlapSecondsDefault,
        description: `How long the previous key keeps working; 0 ends it at once. Default ${LIMITS.keyOverlapSecondsDefault}, a day.`,
      }),
    ),
    expires_at: Type.Optional(Timestamp("When the new key stops working; unless given, when the one before would have.")),
    force: Type.Optional(
      Type.Boolean({ default: false, description: "Let the new key end, or end sooner, though no other admin key works. Default false." }),
    ),
  },
  { title: "ApiKeyRoll", description: "How a key is replaced." },
);

export const KeyDeletion = Type.Object({
  ...Reason.properties,
  force: Type.Optional(Type.Boolean({ default: false, description: "Revoke the last admin key that works, too. Default false." })),
});

export const KeyPage = Type.Object({ limit: Limit(), starting_after: Cursor("key") });
