/**
 * The port through which tools reach the API: an operation by its method and path, in this process or over HTTP.
 *
 * @module
 */
import type { ApiCaller, Method } from "../http/endpoint.ts";
import type { Operation } from "../http/operation.ts";
import { ApiError, type ErrorCode } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";

/** An endpoint as in the table: `POST /v1/sessions/{session_id}/context`. */
export type Route = `${Method} /v1/${string}`;

/** Arguments that are undefined are left out. */
export interface ApiCall {
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | JsonObject | undefined>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

/**
 * Calls an operation and returns its answer.
 *
 * @throws {ApiError} what the API answers instead of a success
 */
export type Api = (route: Route, call?: ApiCall) => Promise<JsonObject>;

/** A request as it is sent to a server, and what came back. */
export interface HttpCall {
  readonly method: Method;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
  /** Set when it was sent before, and no answer came: that may have been done. */
  readonly isRepeated?: boolean;
}

/** Watches calls in this process. */
export interface Watcher {
  /** Called before each call. */
  onCall(operation: Operation, sessionId: unknown): void;
  /** Called with errors that are ours. */
  onFault(error: ApiError): void;
}

/** Calls operations in this process, as a request of this caller would. */
export function apiInProcess(operations: ReadonlyMap<string, Operation>, caller: ApiCaller, watcher: Watcher): Api {
  return async (route, { path = {}, query = {}, body } = {}) => {
    const operation = operations.get(route);
    if (operation === undefined) throw new ApiError("resource_not_found", `There is no ${route}.`);
    watcher.onCall(operation, path["session_id"] ?? body?.["session_id"]);
    try {
      const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
      const answer = await operation.call(caller, { path, query: given, body });
      return JSON.parse(answer.body) as JsonObject;
    } catch (error) {
      if (error instanceof ApiError && error.code === "internal_error") watcher.onFault(error);
      throw error;
    }
  };
}

/**
 * Calls operations of a server.
 *
 * @param send - sends a request, perhaps more than once: a change has the same `Idempotency-Key` in each attempt. A deletion takes
 *   none; one that is sent again and finds nothing has done what it was to do
 */
export function apiOverHttp(send: (call: HttpCall) => Promise<HttpAnswer>): Api {
  return async (route, { path = {}, query = {}, body } = {}) => {
    refuseChangedNumbers(body);
    const [method, template] = route.split(" ") as [Method, string];
    const headers: Record<string, string> = { Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (method === "POST" || method === "PATCH") headers["Idempotency-Key"] = crypto.randomUUID();
    const target = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name] ?? "").toWellFormed()));
    const search = searchOf(query);
    const sent = { method, target: `${target}${search === "" ? "" : `?${search}`}`, headers, body: body && JSON.stringify(body) };
    const answer = await send(sent);
    if (method === "DELETE" && answer.isRepeated === true && answer.status === 404)
      return { id: Object.values(path).at(-1)!, deleted: true };
    return valueOf(answer);
  };
}

/** As for a body that is sent: here the number has been read already, and nobody knows what was sent. */
function refuseChangedNumbers(value: unknown): void {
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new ApiError("invalid_request", `${value} is a whole number that cannot be kept exactly: send it as text.`);
  }
  if (typeof value === "object" && value !== null) for (const member of Object.values(value)) refuseChangedNumbers(member);
}

function searchOf(query: NonNullable<ApiCall["query"]>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of value === undefined ? [] : [value].flat())
      search.append(name, typeof one === "object" ? JSON.stringify(one) : String(one));
  }
  return search.toString();
}

const SHOWN_LENGTH = 200;

/** @throws {ApiError} of an answer that is no success */
function valueOf({ status, body }: HttpAnswer): JsonObject {
  const value = parsed(body);
  if (status >= 200 && status < 300 && value !== undefined) return value;
  const error = value?.["error"] as { code?: unknown; message?: unknown; param?: string } | undefined;
  if (typeof error?.code !== "string" || typeof error.message !== "string") {
    throw new ApiError("service_unavailable", `The server that answered is not Cairn: ${status} ${body.slice(0, SHOWN_LENGTH)}`);
  }
  throw new ApiError(error.code as ErrorCode, error.message, error.param === undefined ? {} : { param: error.param });
}

function parsed(body: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
