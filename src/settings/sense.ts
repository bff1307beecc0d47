/**
 * What a schema cannot say of settings: whether their texts make sense.
 *
 * @module
 */
import { apiKeyProblem, baseUrlProblem } from "../embeddings/remote/openai.ts";
import { ApiError } from "../lib/errors.ts";
import { toJson } from "../lib/json.ts";
import { firstCodePoints } from "../lib/text.ts";
import { parseSchedule, parseTimeout, SCHEDULE_FORM, TIMEOUT_FORM } from "../webhooks/policy.ts";
import type { Changes } from "./settings.ts";

/** Characters of a refused name or value that are repeated. */
export const SHOWN_LENGTH = 80;

/** @throws {ApiError} `invalid_request` naming the setting; an empty text takes one back and is fine */
export function refuseSenseless({ values, webhooks, embedding }: Changes): void {
  const refuse = (param: string, expected: string, got: string) => {
    throw new ApiError("invalid_request", `${param} must be ${expected}; got ${toJson(firstCodePoints(got, SHOWN_LENGTH))}.`, { param });
  };
  const region = values?.region ?? "";
  if (/\p{Cc}|\p{Cs}/u.test(region)) refuse("region", "text without control characters", region);
  const timeout = webhooks?.timeout ?? "";
  if (timeout !== "" && parseTimeout(timeout) === undefined) refuse("webhooks.timeout", TIMEOUT_FORM, timeout);
  const schedule = webhooks?.retry_schedule ?? "";
  if (schedule !== "" && parseSchedule(schedule) === undefined) refuse("webhooks.retry_schedule", SCHEDULE_FORM, schedule);
  const { base_url: url, api_key: key } = embedding ?? {};
  refuseUnusable("embedding.base_url", url, baseUrlProblem);
  refuseUnusable("embedding.api_key", key, apiKeyProblem);
}

function refuseUnusable(param: string, text: string | null | undefined, problemOf: (text: string) => string | undefined): void {
  const problem = text === undefined || text === null || text === "" ? undefined : problemOf(text);
  if (problem !== undefined) throw new ApiError("invalid_request", `${param} cannot be used. ${problem}`, { param });
}
