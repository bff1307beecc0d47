/**
 * Turns errors into answers.
 *
 * @module
 */
import { ApiError, ERRORS } from "../lib/errors.ts";
import { toJson, type JsonText } from "../lib/json.ts";

/** Returns the error that the caller gets: a thrown value of LMDB's is a failure of the store, any other a bug. */
export function apiErrorOf(thrown: unknown, store: FailingStore): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return (
    store.health.refusalOfRead(thrown) ??
    new ApiError("internal_error", "Something went wrong on our side; the operator's log has the request id.", { cause: thrown })
  );
}

export interface FailingStore {
  readonly health: { refusalOfRead(thrown: unknown): ApiError | undefined };
}

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
