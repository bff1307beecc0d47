/**
 * Table of what the servers of a store have seen: counts of parts of the last hour, day and week, and nothing of whom.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { HOUR_MS, MINUTE_MS } from "../../lib/duration.ts";
import { numberKey } from "../keys.ts";
import { Whole } from "../row-types.ts";
import { json } from "./codecs.ts";
import { table } from "./table.ts";

const ActivityRow = Type.Object({
  requests: Whole,
  /** Requests answered with a status of 500 or more. */
  errors: Whole,
  changes: Whole,
  memories: Whole,
  searches: Whole,
  /** Requests by latency, up to the last bin that has any (`stats/latency-bins.ts`). */
  bins: Type.Array(Whole),
});
export type ActivityRow = Static<typeof ActivityRow>;

/** Spans of time, each in parts of its own length, and the character that the keys of its parts begin with. */
export const ACTIVITY_SPANS = {
  "1h": { code: "h", partMs: MINUTE_MS, parts: 60 },
  "24h": { code: "d", partMs: 15 * MINUTE_MS, parts: 96 },
  "7d": { code: "w", partMs: 2 * HOUR_MS, parts: 84 },
} as const;
export type ActivitySpan = keyof typeof ACTIVITY_SPANS;

export const activity = table("activity", /^[hdw][0-9A-Za-z]{7}$/, ActivityRow, json<ActivityRow>());

/** Key of the part of a span that a time is in. @param ms - Unix milliseconds */
export function activityKey(span: ActivitySpan, ms: number): string {
  const { code, partMs } = ACTIVITY_SPANS[span];
  return code + numberKey(Math.floor(ms / partMs) * partMs);
}
