/**
 * The documentation of each error: when it occurs, with an example.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { ApiError, ERRORS, type ErrorDetail, type WireCode } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Endpoint } from "./endpoint.ts";
import { errorJson } from "./errors.ts";
import { OneOf } from "./types.ts";

interface ErrorDoc {
  when: string;
  /** The message of the example. */
  message: string;
  detail?: ErrorDetail;
}

const ERROR_DOCS: Record<WireCode, ErrorDoc> = {
  invalid_request: {
    when: "a parameter or a field is missing or not valid; `param` says which.",
    message: "limit must be an integer from 1 to 100; got 500.",
    detail: { param: "limit" },
  },
  authentication_failed: {
    when: "the request has no API key, or one that is not valid, has expired or was revoked.",
    message: "The API key is not valid, has expired or was revoked.",
  },
  permission_denied: {
    when: "the key lacks the scope or is bound to another user or agent than the request names, or the server does not answer to the name in `Host`.",
    message: "This needs a key with the scope write; this one has read.",
  },
  resource_not_found: { when: "there is no such record.", message: "There is no API key key_0VQk39zYxWvU.", detail: { param: "key_id" } },
  request_timeout: {
    when: `the body did not arrive within ${LIMITS.bodySecondsMax} s, and at less than ${LIMITS.bodyBytesPerSecondMin / 1024} KiB a second; the connection is closed.`,
    message: "The body took too long to arrive: it has 30 s, and a long one as long as 32 KiB a second take.",
  },
  session_not_found: {
    when: "there is no such session: it never existed, has expired or was deleted.",
    message: "There is no session sess_0VQk3aB4x1Zq; it may have expired or been deleted.",
    detail: { param: "session_id" },
  },
  memory_not_found: {
    when: "there is no such memory.",
    message: "There is no memory mem_0VQk3cF8g9Hi.",
    detail: { param: "memory_id" },
  },
  turn_not_found: {
    when: "the session has no such turn.",
    message: "Session sess_0VQk3aB4x1Zq has no turn turn_0VQk3bD5c6Ef.",
    detail: { param: "turn_id" },
  },
  trace_not_found: {
    when: "there is no such trace: it never existed, is older than the tier of its key keeps traces, or is only for keys with the scope `admin`.",
    message: "There is no trace trace_0VQk3bD4z9Xw; it may be older than the tier of its key keeps traces.",
  },
  version_not_found: {
    when: "the session has no such version, or no longer: only the newest (the setting `state_versions_kept`) and version 0 are kept.",
    message: "Session sess_0VQk3aB4x1Zq has no version 7; its versions are 0 to 2.",
    detail: { param: "version" },
  },
  already_exists: {
    when: "a live session of the same user, or of none, has this `external_id`; nothing was changed.",
    message: 'Session sess_0VQk3aB4x1Zq has the external_id "thread-7" already. Nothing was changed.',
    detail: { param: "external_id" },
  },
  version_conflict: {
    when: "the session is not at `expected_version`, or a document not at `if_version`; a memory is superseded already, or its owner has too many pinned ones. Nothing was changed.",
    message: "Session sess_0VQk3aB4x1Zq is at version 2, not 1. Nothing was changed.",
    detail: { param: "expected_version" },
  },
  payload_too_large: {
    when: `the body is larger than ${LIMITS.bodyBytesMax} bytes, or than the setting \`max_body_bytes\` says instead.`,
    message: `The body must be at most ${LIMITS.bodyBytesMax} bytes.`,
  },
  content_too_large: {
    when: `\`content\` has more than ${LIMITS.memoryContentLengthMax} characters.`,
    message: `content must be at most ${LIMITS.memoryContentLengthMax} characters; it has 12345.`,
    detail: { param: "content" },
  },
  rate_limit_exceeded: {
    when: "the key has made more requests than its rate allows; wait for `retry_after` seconds.",
    message: "Too many requests: 100 per minute. Try again in 1 s.",
    detail: { retryAfterSeconds: 1 },
  },
  internal_error: {
    when: "a fault of the server; its log has the request id.",
    message: "Something went wrong on our side; the operator's log has the request id.",
  },
  service_unavailable: {
    when: "the server cannot do this at the moment, as when the disk is full or the store has reached `max_store_bytes`, and nothing was changed, unless the message says that this is not known. Try again, waiting longer each time.",
    message: "The disk is full. Nothing was changed; reading still works.",
  },
};

/** Errors of every endpoint. */
const COMMON_ERRORS = [
  "authentication_failed",
  "permission_denied",
  "payload_too_large",
  "rate_limit_exceeded",
  "internal_error",
  "service_unavailable",
] as const satisfies readonly WireCode[];

/** Returns the errors of an endpoint: only one with a body can time out, only one with a body or a query can be called wrongly. */
export function errorsOf({ query, body, errors }: Pick<Endpoint, "query" | "body" | "errors">): WireCode[] {
  const ofBody: WireCode[] = body === null ? [] : ["request_timeout"];
  const ofInput: WireCode[] = body === null && Object.keys(query.properties).length === 0 ? [] : ["invalid_request"];
  return [...ofInput, ...ofBody, ...COMMON_ERRORS, ...errors];
}

const CODES = Object.keys(ERROR_DOCS);
const TYPES = [...new Set(Object.values(ERRORS).map(({ type }) => type))];

export const ErrorBody = Type.Object(
  {
    error: Type.Object({
      code: OneOf(CODES, { description: "What went wrong, for a program." }),
      message: Type.String({ description: "What went wrong, for a person." }),
      type: OneOf(TYPES, { description: "The kind of error." }),
      param: Type.Optional(Type.String({ description: "The parameter, field or header at fault: `input.type`." })),
      retry_after: Type.Optional(Type.Integer({ minimum: 1, description: "With status 429, and with some of 503: seconds to wait." })),
      request_id: Type.String({ description: "The header `X-Request-Id` of this response." }),
    }),
  },
  { title: "Error", description: "An error." },
);

export function errorDescription(code: WireCode): string {
  return `\`${code}\`: ${ERROR_DOCS[code].when}`;
}

/** Returns an answer with the error, as the server writes it. */
export function errorExample(code: WireCode): JsonObject {
  const { message, detail } = ERROR_DOCS[code];
  return JSON.parse(errorJson(new ApiError(code, message, detail), "req_0VQk3bD4w8Vu")) as JsonObject;
}
