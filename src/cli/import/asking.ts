/**
 * Requests of an import, which can wait.
 *
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import { ApiError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Api, ApiCall, Route } from "../../mcp/api.ts";

export type Ask = (route: Route, call: ApiCall) => Promise<JsonObject>;

const PAUSE_MS = 1_000;
const PAUSES_MAX = 120;
/** Errors of a request that the server will never take, as one of its records does not fit. */
const UNFIT = ["invalid_request", "payload_too_large", "content_too_large"];

/** Asks again where it is only too early. @param api - undefined where there is no store yet, of a dry run: nothing is there */
export function patiently(api: Api | undefined, clock: Clock): Ask {
  return async (route, call) => {
    if (api === undefined) return { data: [] };
    for (let pauses = 0; ; pauses++) {
      try {
        return await api(route, call);
      } catch (error) {
        if (pauses === PAUSES_MAX || !(error instanceof ApiError) || error.code !== "rate_limit_exceeded") throw error;
      }
      await clock.sleep(PAUSE_MS);
    }
  };
}

export function isUnfit(error: unknown): error is ApiError {
  return error instanceof ApiError && UNFIT.includes(error.code);
}
