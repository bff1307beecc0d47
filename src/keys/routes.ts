/**
 * API keys: the table of URLs.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpoint, type Endpoint } from "../http/endpoint.ts";
import { Deleted, ListOf } from "../http/types.ts";
import { cursorOf, instantOf } from "../http/validate.ts";
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import { createKey, deleteKey, getKey, listKeys, rollKey, type KeyParts } from "./keys.ts";
import { SCOPES } from "../lib/scopes.ts";
import { ApiKey, KeyDeletion, KeyPage, KeyRoll, NewKey } from "./schema.ts";

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
const ROLLED = {
  ...EXAMPLE,
  id: "key_0VQmTz3aXbR2",
  prefix: "crn_4hT9",
  key: "crn_4hT9pW2mXs8Kd1Vn6Rb3Jc7Q",
  created_at: "2026-05-08T09:00:00.000Z",
  last_used_at: null,
  rolled_from: EXAMPLE.id,
};
const tag = "API keys";
const path = "/v1/api_keys/{key_id}";

export function keyEndpoints(records: KeyParts): Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/v1/api_keys",
      tag,
      scope: "admin",
      status: 201,
      summary: "Create an API key",
      description: "The key itself is in this answer only, which a replay with the same Idempotency-Key gives again.",
      query: Type.Object({}),
      body: NewKey,
      response: ApiKey,
      errors: [],
      example: {
        request: { name: "support agent", scopes: ["read", "write"], tier: "pro" },
        response: { ...EXAMPLE, key: "crn_9fK2mQ7vXc4Lw8Zs1Tb6Ny3R", last_used_at: null },
      },
      run: ({ body, caller }) => {
        if (body.rate_limit !== undefined && body.tier !== "enterprise") {
          throw new ApiError("invalid_request", "rate_limit is for keys of the tier enterprise.", { param: "rate_limit" });
        }
        return createKey(records, caller, {
          name: body.name ?? null,
          scopes: body.scopes ?? SCOPES.filter((scope) => scope !== "admin"),
          tier: body.tier ?? "free",
          rateLimit: body.rate_limit === undefined ? undefined : { perMinute: body.rate_limit.per_minute, burst: body.rate_limit.burst },
          expiresAt: instantOf(body.expires_at, "expires_at"),
        });
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/api_keys",
      tag,
      scope: "admin",
      status: 200,
      summary: "List API keys",
      query: KeyPage,
      body: null,
      response: ListOf(ApiKey, "A page of API keys."),
      errors: [],
      example: { response: { object: "list", data: [EXAMPLE], has_more: false, first_id: EXAMPLE.id, last_id: EXAMPLE.id } },
      run: ({ query }) =>
        listKeys(records, { limit: query.limit ?? LIMITS.listDefault, startingAfter: cursorOf("key", query.starting_after) }),
    }),
    endpoint({
      method: "GET",
      path,
      tag,
      scope: "admin",
      status: 200,
      summary: "Get an API key",
      query: Type.Object({}),
      body: null,
      response: ApiKey,
      errors: ["resource_not_found"],
      example: { response: EXAMPLE },
      run: ({ params }) => getKey(records, params.key_id),
    }),
    endpoint({
      method: "POST",
      path: `${path}/roll`,
      tag,
      scope: "admin",
      status: 201,
      summary: "Roll an API key",
      description:
        "Makes a key with the same name, scopes, tier, rate limit and end in the place of this one, which keeps working for " +
        "`overlap_seconds`, and never longer than it would have. The new key is in this answer only, which a replay with the same " +
        "Idempotency-Key gives again. A key is rolled once: a second time is 400 `invalid_request`. One that has ended is 404.",
      query: Type.Object({}),
      body: KeyRoll,
      response: ApiKey,
      errors: ["resource_not_found"],
      example: { request: { overlap_seconds: 3600 }, response: ROLLED },
      run: ({ params, body, caller }) =>
        rollKey(records, caller, params.key_id, {
          overlapMs: (body.overlap_seconds ?? LIMITS.keyOverlapSecondsDefault) * 1000,
          expiresAt: instantOf(body.expires_at, "expires_at"),
          force: body.force,
        }),
    }),
    endpoint({
      method: "DELETE",
      path,
      tag,
      scope: "admin",
      status: 200,
      summary: "Revoke an API key",
      description:
        "From this answer on, no request with the key passes. The last admin key that works is refused with 400 `invalid_request` unless " +
        "`force` is true.",
      query: KeyDeletion,
      body: null,
      response: Deleted("api_key"),
      errors: ["resource_not_found"],
      example: { response: { object: "api_key", id: EXAMPLE.id, deleted: true } },
      run: ({ params, query, caller }) => deleteKey(records, caller, params.key_id, query),
    }),
  ];
}
