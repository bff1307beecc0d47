/**
 * Every error a client can get: its code, its HTTP status and its type. `http/errors.ts` turns one into a response.
 *
 * @module
 */
export const ERRORS = {
  invalid_request: { status: 400, type: "invalid_request_error" },
  method_not_allowed: { status: 405, type: "invalid_request_error", code: "invalid_request" },
  authentication_failed: { status: 401, type: "authentication_error" },
  permission_denied: { status: 403, type: "permission_error" },
  resource_not_found: { status: 404, type: "invalid_request_error" },
  request_timeout: { status: 408, type: "invalid_request_error" },
  session_not_found: { status: 404, type: "invalid_request_error" },
  memory_not_found: { status: 404, type: "invalid_request_error" },
  turn_not_found: { status: 404, type: "invalid_request_error" },
  trace_not_found: { status: 404, type: "invalid_request_error" },
  version_not_found: { status: 404, type: "invalid_request_error" },
  already_exists: { status: 409, type: "invalid_request_error" },
  version_conflict: { status: 409, type: "invalid_request_error" },
  payload_too_large: { status: 413, type: "invalid_request_error" },
  content_too_large: { status: 413, type: "invalid_request_error" },
  rate_limit_exceeded: { status: 429, type: "rate_limit_error" },
  internal_error: { status: 500, type: "api_error" },
  service_unavailable: { status: 503, type: "api_error" },
} as const satisfies Record<string, { status: number; type: string; code?: string }>;

export type ErrorCode = keyof typeof ERRORS;
/** Codes that clients see: for them, a method that is not allowed is `invalid_request`. */
export type WireCode = Exclude<ErrorCode, "method_not_allowed">;

export interface ErrorDetail {
  /** The field, parameter or header that is at fault, as the caller wrote it: `input.type`. */
  param?: string;
  /** Seconds to wait, on 429 and 503. */
  retryAfterSeconds?: number;
  /** Set when what the client is still sending would be taken for its next request. */
  closesConnection?: true;
  /** The methods that a path knows, on 405. */
  allow?: string;
  /** Says where to get a token, on 401: the header `WWW-Authenticate`. */
  challenge?: string;
  /** Name of the error in RFC 6749 or 7591, where an application of OAuth gets it. */
  oauthError?: string;
  /** For the operator's log; never sent. */
  cause?: unknown;
}

/** An error of the caller's, raised where it is known. The message is for the caller. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly code: ErrorCode;
  readonly detail: ErrorDetail;

  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}) {
    super(message, { cause: detail.cause });
    this.code = code;
    this.detail = detail;
  }
}

/** Returns the message of a thrown value, whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Checks whether a call of the system failed with this code: `ENOENT`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
