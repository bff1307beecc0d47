/**
 * The port through which tools reach the API: an operation by its method and path, in this process or over HTTP.
 *
 * @module
 */
import type { ApiCaller, Method } from "../http/endpoint.ts";
import type { Operation } from "../http/operation.ts";
import { ApiError } from "../lib/errors.ts";
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
