/**
 * Reading the audit trail. Traces are written by `record.ts` alone and never change.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, isId, withPrefix, type TraceId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { type Found, listOf, LOOKS_PER_HIDDEN_ROW, pageOfSteps, type Page } from "../storage/page.ts";
import { actionPrefix } from "../storage/indexes.ts";
import { hashKey } from "../storage/keys.ts";
import { traces, tracesAhead, tracesByAction, tracesBySession, tracesByUser, type TraceRow } from "../storage/tables.ts";
import { isCreatedWithin, walkCreated, type CreatedFilter } from "../storage/walk-created.ts";
import { posting, type Filter } from "../storage/walk.ts";
import type { TraceAction } from "./events.ts";
import type { Records } from "./record.ts";

export interface TraceFilter extends CreatedFilter {
  sessionId?: string | undefined;
  userId?: string | undefined;
  action?: TraceAction | undefined;
}

/** Who reads: what is for admin keys only is not there for anybody else. */
export interface TraceReader {
  readonly isAdmin: boolean;
}

export async function listTraces(
  { store, clock, listLooksMax }: Records,
  { isAdmin }: TraceReader,
  filter: TraceFilter,
  page: Page<TraceId>,
): Promise<JsonText> {
  const { sessionId, userId, action } = filter;
  if (sessionId !== undefined && !isId("sess", sessionId)) return listOf([], false);
  const postings: Filter = [
    ...(sessionId === undefined ? [] : [posting(tracesBySession, sessionId.slice("sess_".length))]),
    ...(userId === undefined ? [] : [posting(tracesByUser, hashKey(userId))]),
    ...(action === undefined ? [] : [posting(tracesByAction, actionPrefix(action))]),
  ];
  const now = clock.now();
  const cursor = page.startingAfter && bare(page.startingAfter);
  const found = walkCreated(store, traces, tracesAhead, postings, filter, cursor, listLooksMax);
  const records = found.map((key): Found => {
    if (typeof key !== "string") return { ...key, passed: withPrefix("trace", key.passed) };
    const id = withPrefix("trace", key);
    const row = store.get(traces, key);
    const isHidden = row === undefined || !isVisible(row, isAdmin, now) || !isBetween(row, filter);
    return isHidden ? { passed: id, looks: LOOKS_PER_HIDDEN_ROW } : { id, json: row.body };
  });
  return pageOfSteps(records, page.limit, listLooksMax);
}

/** Of a trace whose id has its time the walk has seen to it. */
function isBetween({ at }: TraceRow, filter: TraceFilter): boolean {
  return at === undefined || isCreatedWithin(at, filter);
}

export function getTrace({ store, clock }: Records, { isAdmin }: TraceReader, id: string): JsonText {
  const row = isId("trace", id) ? store.get(traces, bare(id)) : undefined;
  if (row === undefined || !isVisible(row, isAdmin, clock.now())) {
    throw new ApiError(
      "trace_not_found",
      `There is no trace ${id.slice(0, 64)}; it may have been kept for as long as its key's tier allows.`,
      {
        param: "trace_id",
      },
    );
  }
  return row.body;
}

function isVisible({ expiresAt, adminOnly }: TraceRow, isAdmin: boolean, now: number): boolean {
  return expiresAt > now && (isAdmin || adminOnly !== true);
}
