/**
 * Errors of a call.
 *
 * @module
 */
import type { ErrorAnswer } from "./types.ts";

/** Codes of the API; `connection_failed` and `timeout` without an answer, `unexpected_answer` for one that is not Cairn's. */
export type ErrorCode = ErrorAnswer["error"]["code"] | "connection_failed" | "timeout" | "unexpected_answer";

interface ErrorDetails {
  readonly code: ErrorCode;
  readonly status?: number | undefined;
  readonly param?: string | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/** A request that the server refused, or did not answer. */
export class CairnError extends Error {
  override readonly name = "CairnError";
  /** `session_not_found`, `version_conflict` … */
  readonly code: ErrorCode;
  /** The HTTP status; undefined without an answer. */
  readonly status: number | undefined;
  /** The field at fault. */
  readonly param: string | undefined;
  /** The id of the request, as in the server's log. */
  readonly requestId: string | undefined;
  /** Number of seconds that the server asks to wait. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, { code, status, param, requestId, retryAfterSeconds, cause }: ErrorDetails) {
    super(message, cause === undefined ? {} : { cause });
    this.code = code;
    this.status = status;
    this.param = param;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Returns the error of an answer that is no success. */
export async function refusal(response: Response, now: number): Promise<CairnError> {
  const { error } = (parsed(await response.text()) ?? {}) as Partial<ErrorAnswer>;
  if (typeof error?.code !== "string") return unexpected(response);
  const { code, message, param } = error;
  const { status, headers } = response;
  const requestId = headers.get("x-request-id") ?? undefined;
  return new CairnError(message, { code, status, param, requestId, retryAfterSeconds: secondsUntil(headers.get("retry-after"), now) });
}

/** Returns the error for what does not come from Cairn: a proxy's page, another service. */
export function unexpected({ status, url, headers }: Response): CairnError {
  const type = headers.get("content-type") ?? "no content type";
  return new CairnError(`${url === "" ? "The server" : new URL(url).origin} answered ${status} with ${type}, which is not Cairn's JSON.`, {
    code: "unexpected_answer",
    status,
  });
}

/** Returns the JSON in a text; undefined when it has none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** A proxy may name a date instead of seconds. */
function secondsUntil(retryAfter: string | null, now: number): number | undefined {
  if (retryAfter === null) return undefined;
  const seconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) : (Date.parse(retryAfter) - now) / 1000;
  return seconds >= 0 ? seconds : undefined;
}
