/**
 * Errors as the wire has them.
 *
 * @module
 */
import { ERRORS, type ApiError } from "../lib/errors.ts";
import { toJson, type JsonText } from "../lib/json.ts";

export function statusOf(error: ApiError): number {
  return ERRORS[error.code].status;
}

export function errorJson({ code, message, detail }: ApiError, requestId: string): JsonText {
  const known = ERRORS[code];
  return toJson({
    error: {
      code: "code" in known ? known.code : code,
      message,
      type: known.type,
      param: detail.param === "" ? undefined : detail.param,
      retry_after: detail.retryAfterSeconds,
      request_id: requestId,
    },
  });
}
