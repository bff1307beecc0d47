/**
 * Operations of a server by the client of the API, for tools of MCP and imports.
 *
 * @module
 */
import { CairnError } from "../client/errors.ts";
import { Http, type Policy } from "../client/http.ts";
import type { Method } from "../http/endpoint.ts";
import { systemClock } from "../lib/clock.ts";
import { ApiError, type ErrorCode } from "../lib/errors.ts";
import { systemReason } from "../lib/system-errors.ts";
import type { Api } from "../mcp/api.ts";

/** A provider of embeddings may take half of it. */
const CALL_TIMEOUT_MS = 60_000;

/** Address of requests, and what becomes of those that get no answer. */
export interface Destination {
  readonly apiKey: string;
  readonly baseUrl: string;
  /** Named in errors. */
  readonly name: string;
  /** @throws {ApiError} where no other attempt would help */
  readonly fetch: (request: Request) => Promise<Response>;
  /** A request whose answer did not come is sent again after this long, and this often. */
  readonly pauseMs: number;
  readonly pausesMax: number;
}

/** Calls operations of a server; a change has the same `Idempotency-Key` in each attempt. */
export function apiOverHttp({ name, pauseMs, pausesMax, ...options }: Destination): Api {
  const near: Policy = {
    // An answer is passed on, whatever it says.
    pauseMs: ({ code, cause }, attempt) =>
      code === "connection_failed" && !(cause instanceof ApiError) && attempt < pausesMax ? pauseMs : undefined,
    compresses: false,
  };
  const wait = (ms: number) => systemClock.sleep(ms);
  const runtime = { now: () => systemClock.now(), random: () => 0, wait };
  const http = new Http({ ...options, timeoutMs: CALL_TIMEOUT_MS }, runtime, near);
  return async (route, { path = {}, query, body } = {}) => {
    refuseChangedNumbers(body);
    const [method, template] = route.split(" ") as [Method, string];
    const at = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name] ?? "").toWellFormed()));
    const gone = method === "DELETE" ? { id: Object.values(path).at(-1), deleted: true } : undefined;
    try {
      return await http.call({ method, path: at, query, body, gone });
    } catch (error) {
      throw asApiError(error, name);
    }
  };
}

/** Checks a body as a server would: here the number has been read already, and nobody knows what was sent. @throws {ApiError} */
function refuseChangedNumbers(value: unknown): void {
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new ApiError("invalid_request", `${value} is a whole number that cannot be kept exactly: send it as text.`);
  }
  if (typeof value === "object" && value !== null) for (const member of Object.values(value)) refuseChangedNumbers(member);
}

function asApiError(error: unknown, name: string): unknown {
  if (!(error instanceof CairnError)) return error;
  const { code, cause, param, message } = error;
  if (cause instanceof ApiError) return cause;
  if (code === "timeout") return new ApiError("service_unavailable", `${name} did not answer within ${CALL_TIMEOUT_MS / 1_000} s.`);
  if (code === "connection_failed") return new ApiError("service_unavailable", `${name} does not answer: ${systemReason(cause)}.`);
  if (code === "unexpected_answer") return new ApiError("service_unavailable", message);
  return new ApiError(code satisfies ErrorCode, message, param === undefined ? {} : { param });
}
