/**
 * Reading the audit trail. Traces are written by `record.ts` alone and never change.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, firstBareIdAt, isId, withPrefix, type TraceId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { listOf, pageOfSteps, type Page } from "../storage/page.ts";
import { hashKey } from "../storage/keys.ts";
import { traces, tracesByAction, tracesBySession, tracesByUser, type TraceRow } from "../storage/tables.ts";
import { posting, walkInSteps, type Filter } from "../storage/walk.ts";
import type { TraceAction } from "./events.ts";
import { actionPrefix, type Records } from "./record.ts";

export interface TraceFilter {
  sessionId?: string | undefined;
  userId?: string | undefined;
  action?: TraceAction | undefined;
  /** Unix milliseconds; both ends are excluded. */
  createdAfter?: number | undefined;
  createdBefore?: number | undefined;
}

/** Who reads: what is for admin keys only is not there for anybody else. */
export interface TraceReader {
  readonly isAdmin: boolean;
}

export async function listTraces(
  { store, clock }: Records,
  { isAdmin }: TraceReader,
  filter: TraceFilter,
  page: Page<TraceId>,
): Promise<JsonText> {
  const { sessionId, userId, action, createdAfter, createdBefore } = filter;
  if (sessionId !== undefined && !isId("sess", sessionId)) return listOf([], false);
  const postings: Filter = [
    ...(sessionId === undefined ? [] : [posting(tracesBySession, sessionId.slice("sess_".length))]),
    ...(userId === undefined ? [] : [posting(tracesByUser, hashKey(userId))]),
    ...(action === undefined ? [] : [posting(tracesByAction, actionPrefix(action))]),
  ];
  const from = createdAfter === undefined ? undefined : firstBareIdAt(createdAfter + 1);
  const until = createdBefore === undefined ? undefined : firstBareIdAt(createdBefore);
  const cursor = page.startingAfter === undefined ? undefined : bare(page.startingAfter);
  const before = cursor === undefined ? until : until === undefined || cursor < until ? cursor : until;
  const now = clock.now();
  const records = walkInSteps(store, traces, postings, { from, before }).flatMap((key) => {
    if (key === undefined) return [undefined];
    const row = store.get(traces, key);
    return row === undefined || !isVisible(row, isAdmin, now) ? [] : [{ id: withPrefix("trace", key), json: row.body }];
  });
  return pageOfSteps(records, page.limit);
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
