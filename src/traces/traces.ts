/**
 * Reading the audit trail. Traces are written by `record.ts` alone and never change.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, isId, type TraceId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { actionPrefix } from "../storage/indexes.ts";
import { hashKey } from "../storage/keys.ts";
import { isCreatedWithin, listRecords, type CreatedFilter } from "../storage/list.ts";
import { listOf, type Page } from "../storage/page.ts";
import { traces, tracesAhead, tracesByAction, tracesBySession, tracesByUser, type TraceRow } from "../storage/tables.ts";
import { posting, type Posting } from "../storage/walk.ts";
import { isAdminAction, RECORD_ACTIONS, type TraceAction } from "./events.ts";
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

export async function listTraces(records: Records, { isAdmin }: TraceReader, filter: TraceFilter, page: Page<TraceId>): Promise<JsonText> {
  const { sessionId, userId, action } = filter;
  if (sessionId !== undefined && !isId("sess", sessionId)) return listOf([], false);
  if (!isAdmin && isAdminAction(action)) return listOf([], false);
  const postings: Posting[] = [
    ...(sessionId === undefined ? [] : [posting(tracesBySession, sessionId.slice("sess_".length))]),
    ...(userId === undefined ? [] : [posting(tracesByUser, hashKey(userId))]),
    ...(action === undefined ? [] : [posting(tracesByAction, actionPrefix(action))]),
  ];
  // What is for admin keys alone is not even looked at: a page that ended there would show in its last_id that it exists.
  if (!isAdmin && postings.length === 0) postings.push(posting(tracesByAction, ...RECORD_ACTIONS.map(actionPrefix)));
  const now = records.clock.now();
  return listRecords(records, { prefix: "trace", table: traces, ahead: tracesAhead }, postings, filter, page, () => (key) => {
    const row = records.store.get(traces, key);
    return row !== undefined && isVisible(row, isAdmin, now) && isBetween(row, filter) ? row.body : undefined;
  });
}

/** A trace without `at` has the time of its id, which the walk has checked. */
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
