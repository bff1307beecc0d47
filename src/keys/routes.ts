/**
 * API keys: the table of URLs.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { RateLimiter } from "../http/rate-limit.ts";
import { Cursor, ListOf } from "../http/types.ts";
import { ApiError } from "../lib/errors.ts";
import { createKey, deleteKey, getKey, listKeys, rollKey, type KeyDeps } from "./keys.ts";
import { LIMITS } from "../lib/limits.ts";
import { ApiKey, KEY_FILTER, KeyDeletion, KeyRoll, NewKey, ROLLED_EXAMPLE, SESSION_EXAMPLE, SignIn } from "./schema.ts";
import { signIn, signOut } from "./sign-in.ts";

const keys = endpointGroup({ name: "API keys", description: "Who may do what, and how often." }, "admin");
const path = "/v1/api_keys/{key_id}";
const current = "/v1/api_keys/current";

/** A key that may only read can sign in as well, and each time leaves a trace. */
const SIGN_IN_RATE = { perMinute: LIMITS.signInsPerMinute, burst: LIMITS.signInsAtOnceMax };

export function keyEndpoints(deps: KeyDeps): Endpoint[] {
  const signIns = new RateLimiter(deps.clock);
  return [
    keys.post("/v1/sign_in", {
      summary: "Sign in",
      description:
        `Creates a session key for a page in a browser: with the scopes, tier and limits of the key that is presented, for ${LIMITS.sessionKeyHours} hours, but never longer than that key, and revoked with it. ` +
        `The link that \`cairn dashboard\` prints holds a key for this call alone, good once within ${LIMITS.linkKeyMinutes} minutes. ` +
        `A key has at most ${LIMITS.sessionKeysMax} session keys; one more ends the oldest. It can sign in ${LIMITS.signInsPerMinute} times a minute, after a pause ${LIMITS.signInsAtOnceMax} times at once.`,
      scope: "sign_in",
      status: 201,
      body: SignIn,
      response: ApiKey,
      example: SESSION_EXAMPLE,
      run: ({ body, caller }) => {
        const { allowed, nextInMs } = signIns.takeOfKey(caller.limitsId, SIGN_IN_RATE);
        if (!allowed) {
          const retryAfterSeconds = Math.max(1, Math.ceil(nextInMs / 1000));
          throw new ApiError("rate_limit_exceeded", `This key has signed in too often. Try again in ${retryAfterSeconds} s.`, {
            retryAfterSeconds,
          });
        }
        return signIn(deps, caller, body.name ?? null);
      },
    }),
    keys.get(current, {
      summary: "Get the current API key",
      description: "The key that is presented.",
      scope: "any",
      response: ApiKey,
      run: ({ caller }) => getKey(deps, caller.keyId),
    }),
    keys.delete(current, {
      summary: "Sign out",
      description: "Ends the session key that is presented. Any other key is refused with 400 `invalid_request`.",
      scope: "any",
      query: Type.Object({}),
      deletes: ApiKey,
      errors: ["invalid_request"],
      run: ({ caller }) => signOut(deps, caller),
    }),
    keys.post("/v1/api_keys", {
      summary: "Create an API key",
      description:
        "The key itself is in this answer only, which a replay with the same Idempotency-Key gives again. A key with a `user_id` or an " +
        "`agent_id` sees and changes nothing but records of that user and that agent: all others are not found, and what it creates is theirs.",
      status: 201,
      body: NewKey,
      response: ApiKey,
      example: { key: "crn_9fK2mQ7vXc4Lw8Zs1Tb6Ny3R", last_used_at: null },
      run: ({ body, caller }) => {
        const { name = null, rateLimit: limit, userId, agentId } = body;
        if (limit !== undefined && body.tier !== "enterprise") {
          throw new ApiError("invalid_request", "rate_limit is for keys of the tier enterprise.", { param: "rate_limit" });
        }
        const rateLimit = limit && { perMinute: limit.per_minute, burst: limit.burst };
        return createKey(deps, caller, { ...body, name, owner: { userId, agentId }, rateLimit });
      },
    }),
    keys.list("/v1/api_keys", {
      summary: "List API keys",
      filter: KEY_FILTER,
      cursor: Cursor("key"),
      response: ListOf(ApiKey, "A page of API keys."),
      run: ({ filter, page }) => listKeys(deps, filter, page),
    }),
    keys.get(path, {
      summary: "Get an API key",
      response: ApiKey,
      run: ({ params }) => getKey(deps, params.key_id),
    }),
    keys.post(`${path}/roll`, {
      summary: "Roll an API key",
      description:
        "Creates a key with the same name, scopes, user, agent, tier, rate limit and expiry that replaces this one, which keeps working for " +
        "`overlap_seconds`, but not beyond its own expiry. The new key is in this answer only, which a replay with the same " +
        "Idempotency-Key gives again. A key can be rolled once: a second time is 400 `invalid_request`. An expired one is 404.",
      status: 201,
      body: KeyRoll,
      response: ApiKey,
      example: ROLLED_EXAMPLE,
      run: ({ params, body: { overlapSeconds, ...roll }, caller }) =>
        rollKey(deps, caller, params.key_id, { ...roll, overlapMs: overlapSeconds * 1000 }),
    }),
    keys.delete(path, {
      summary: "Revoke an API key",
      description:
        "From this answer on, no request with the key passes. The last valid admin key is refused with 400 `invalid_request` unless " +
        "`force` is true.",
      query: KeyDeletion,
      deletes: ApiKey,
      run: ({ params, query, caller }) => deleteKey(deps, caller, params.key_id, query),
    }),
  ];
}
