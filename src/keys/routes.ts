/**
 * API keys: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf } from "../http/types.ts";
import { ApiError } from "../lib/errors.ts";
import { createKey, deleteKey, getKey, listKeys, rollKey, type KeyDeps } from "./keys.ts";
import { ApiKey, KeyDeletion, KeyRoll, NewKey, ROLLED_EXAMPLE } from "./schema.ts";

const keys = endpointGroup({ name: "API keys", description: "Who may do what, and how often." }, "admin");
const path = "/v1/api_keys/{key_id}";

export function keyEndpoints(deps: KeyDeps): Endpoint[] {
  return [
    keys.post("/v1/api_keys", {
      summary: "Create an API key",
      description: "The key itself is in this answer only, which a replay with the same Idempotency-Key gives again.",
      status: 201,
      body: NewKey,
      response: ApiKey,
      example: { key: "crn_9fK2mQ7vXc4Lw8Zs1Tb6Ny3R", last_used_at: null },
      run: ({ body, caller }) => {
        const { name = null, rateLimit: limit } = body;
        if (limit !== undefined && body.tier !== "enterprise") {
          throw new ApiError("invalid_request", "rate_limit is for keys of the tier enterprise.", { param: "rate_limit" });
        }
        return createKey(deps, caller, { ...body, name, rateLimit: limit && { perMinute: limit.per_minute, burst: limit.burst } });
      },
    }),
    keys.list("/v1/api_keys", {
      summary: "List API keys",
      cursor: Cursor("key"),
      response: ListOf(ApiKey, "A page of API keys."),
      run: ({ page }) => listKeys(deps, page),
    }),
    keys.get(path, {
      summary: "Get an API key",
      response: ApiKey,
      run: ({ params }) => getKey(deps, params.key_id),
    }),
    keys.post(`${path}/roll`, {
      summary: "Roll an API key",
      description:
        "Creates a key with the same name, scopes, tier, rate limit and expiry that replaces this one, which keeps working for " +
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
