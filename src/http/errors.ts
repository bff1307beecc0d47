/**
 * Turns errors into answers.
 *
 * @module
 */
import { ApiError, ERRORS } from "../lib/errors.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { UnreadableRow } from "../storage/unreadable.ts";

/** Returns the error that the caller gets. What LMDB throws and a row that cannot be read are failures of the store, others bugs. */
export function apiErrorOf(thrown: unknown, store: FailingStore): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof UnreadableRow) {
    return new ApiError(
      "service_unavailable",
      "A stored record that this needs is damaged. Nothing was changed; cairn doctor says which one.",
      {
        cause: thrown,
      },
    );
  }
  return (
    store.health.readFailure(thrown) ??
    new ApiError("internal_error", "Something went wrong on our side; the operator's log has the request id.", { cause: thrown })
  );
}

export interface FailingStore {
  readonly health: { readFailure(thrown: unknown): ApiError | undefined };
}

export function statusOf(error: ApiError): number {
  return ERRORS[error.code].status;
}

export function errorJson({ code, message, detail }: ApiError, requestId: string): JsonText {
  const known = ERRORS[code];
  if (detail.oauthError !== undefined) return toJson({ error: detail.oauthError, error_description: message });
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
