/**
 * Reading the audit trail. Traces are written by `record.ts` alone and never change.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, firstBareIdAt, isId, withPrefix, type BareId, type TraceId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { type Found, listOf, LOOKS_PER_HIDDEN_ROW, pageOfSteps, type Page } from "../storage/page.ts";
import { hashKey } from "../storage/keys.ts";
import { traces, tracesAhead, tracesByAction, tracesBySession, tracesByUser, type TraceRow } from "../storage/tables.ts";
import { posting, walkInSteps, type Filter, type Pause } from "../storage/walk.ts";
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
  const found = idsBetween({ store, listLooksMax }, postings, filter, page.startingAfter && bare(page.startingAfter));
  const records = found.map((key): Found => {
    if (typeof key !== "string") return { ...key, passed: withPrefix("trace", key.passed) };
    const id = withPrefix("trace", key);
    const row = store.get(traces, key);
    const isHidden = row === undefined || !isVisible(row, isAdmin, now) || !isBetween(row, filter);
    return isHidden ? { passed: id, looks: LOOKS_PER_HIDDEN_ROW } : { id, json: row.body };
  });
  return pageOfSteps(records, page.limit, listLooksMax);
}

/**
 * The ids of all traces between two times, newest first, and perhaps of others that `isBetween` tells apart.
 *
 * The time of an id is that of its trace, or later. So none that is sought is below the lower bound, and those above the
 * upper one are in `tracesAhead`, which is empty unless the clock was set back.
 */
function* idsBetween(
  { store, listLooksMax }: Pick<Records, "store" | "listLooksMax">,
  postings: Filter,
  { createdAfter, createdBefore }: TraceFilter,
  cursor: BareId | undefined,
): Generator<BareId | Pause, void, undefined> {
  const from = createdAfter === undefined ? undefined : firstBareIdAt(createdAfter + 1);
  let before = cursor;
  if (createdBefore !== undefined) {
    const until = firstBareIdAt(createdBefore);
    const lowest = from === undefined || until > from ? until : from;
    yield* walkInSteps(store, traces, [...postings, posting(tracesAhead, "")], { from: lowest, before: cursor }, listLooksMax);
    if (cursor === undefined || until < cursor) before = until;
  }
  yield* walkInSteps(store, traces, postings, { from, before }, listLooksMax);
}

/** Of a trace whose id has its time the walk has seen to it. */
function isBetween({ at }: TraceRow, { createdAfter, createdBefore }: TraceFilter): boolean {
  return at === undefined || ((createdAfter === undefined || at > createdAfter) && (createdBefore === undefined || at < createdBefore));
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
