/**
 * Reading the audit trail. Traces are written by `record.ts` alone and never change.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, bareIdTime, isId, nothingWithId, withPrefix, type BareId, type SessionId, type TraceId } from "../lib/ids.ts";
import { jsonWith, toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import type { Reader } from "../storage/access.ts";
import { hashKey, MAX_KEY, successor } from "../storage/keys.ts";
import { isErased } from "../storage/erasure.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import { isBound, mayBeOwned, narrowed, ownedPostings, type Owner } from "../storage/owner.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { traces, type Index, type TraceRow } from "../storage/tables.ts";
import { posting, type Posting } from "../storage/walk.ts";
import { actionCode, actionOf, isAdminAction, TRACE_ACTIONS, type TraceAction } from "./events.ts";
import type { Deps } from "./record.ts";

export interface TraceFilter extends CreatedFilter {
  sessionId?: string | undefined;
  userId?: string | undefined;
  action?: TraceAction | undefined;
}

/** Reader: traces for admin keys only do not exist for anybody else. */
export interface TraceReader {
  readonly isAdmin: boolean;
  readonly owner: Owner;
}

export interface FoundTrace {
  key: string;
  row: TraceRow;
}

export async function listTraces(
  { store, listProbesMax }: Deps,
  { isAdmin, owner }: TraceReader,
  filter: TraceFilter,
  page: Page<TraceId>,
): Promise<JsonText> {
  const { sessionId, userId, action } = filter;
  const narrow = narrowed(owner, { userId });
  if (narrow === undefined || (sessionId !== undefined && !isId("sess", sessionId))) return pageOf([], page.limit);
  const isOthers = sessionId !== undefined && isBound(owner) && !(await store.read((reader) => isOfOwner(reader, owner, bare(sessionId))));
  if (isOthers) return pageOf([], page.limit);
  if (!isAdmin && action !== undefined && isAdminAction(action)) return pageOf([], page.limit);
  const actions = action === undefined ? TRACE_ACTIONS.filter((one) => isAdmin || !isAdminAction(one)) : [action];
  const of: Posting[] = [
    ...(sessionId === undefined ? [] : [posting(traces.index.bySession, bare(sessionId))]),
    ...ownedPostings(narrow, traces.index),
  ];
  // Traces for admin keys alone are not even looked at: a page that ended there would show in its last_id that it exists.
  const postings = of.length > 0 && action === undefined ? of : [...of, posting(traces, ...actions.map(actionCode))];
  const listing = {
    prefix: "trace",
    table: traces,
    ahead: traces.index.ahead,
    filter: postings,
    owner,
    created: filter,
    probesMax: listProbesMax,
  } as const;
  return store.list(listing, page, (reader, id) => {
    const found = findTrace(reader, id, actions);
    return found !== undefined && isVisible(reader, found, isAdmin) && isBetween(found.row, filter) ? traceJson(found) : undefined;
  });
}

/** Checks whether a session's traces, which can outlive it, are the owner's: all of them are of one user and one agent. */
function isOfOwner(reader: Reader, owner: Owner, session: BareId): boolean {
  const { bySession } = traces.index;
  // More than one, as what an administrator did may be among them, and that is nobody's.
  const entries = reader.keys(bySession, { from: session, to: session + MAX_KEY, limit: 8 });
  return entries.some((entry) => mayBeOwned(reader, owner, traces.index, entry.slice(session.length)));
}

/** A trace without `at` has the time of its id, which the walk has checked. */
function isBetween({ at }: TraceRow, filter: TraceFilter): boolean {
  return at === undefined || isCreatedWithin(at, filter);
}

export function getTrace({ store }: Deps, { isAdmin, owner }: TraceReader, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => traceJson(visibleTrace(reader, { isAdmin, owner }, id, "trace_id")));
}

/** A trace as a reader sees it. @throws {ApiError} `trace_not_found` where there is none for it */
export function visibleTrace(reader: Reader, { isAdmin, owner }: TraceReader, id: string, param: string): FoundTrace {
  const found = isId("trace", id) ? findTrace(reader, bare(id), actionsOf(reader, owner, bare(id))) : undefined;
  if (found !== undefined && isVisible(reader, found, isAdmin)) return found;
  const message = nothingWithId("trace", "trace", id, "; it may be older than the tier of its key keeps traces");
  throw new ApiError("trace_not_found", message, { param });
}

export function readerOf({ scopes, owner }: { scopes: readonly string[]; owner: Owner }): TraceReader {
  return { isAdmin: scopes.includes("admin"), owner };
}

/** The actions under which a trace may be stored: for a bound key the one that its entry names, if the trace is its owner's. */
function actionsOf(reader: Reader, owner: Owner, id: BareId): readonly TraceAction[] {
  return isBound(owner)
    ? TRACE_ACTIONS.filter((action) => mayBeOwned(reader, owner, traces.index, id + actionCode(action)))
    : TRACE_ACTIONS;
}

/** A trace is stored under its action; there are few of these. */
function findTrace(reader: Reader, id: BareId, actions: readonly TraceAction[]): FoundTrace | undefined {
  reader.ahead(
    traces,
    actions.values().map((action) => actionCode(action) + id),
  );
  for (const action of actions) {
    const key = actionCode(action) + id;
    const row = reader.get(traces, key);
    if (row !== undefined) return shownTrace(reader, { key, row });
  }
  return undefined;
}

/** `details` of a trace whose user was erased. */
export const ERASED_DETAILS = toJson({ erased: true });

/** A trace as readers see it: without content while that is still being erased. */
export function shownTrace(reader: Reader, { key, row }: FoundTrace): FoundTrace {
  return isErased(reader, row, key.slice(1)) ? { key, row: { ...row, body: ERASED_DETAILS } } : { key, row };
}

/** The action decides, whatever else the row says: rows can come from an import. */
function isVisible({ now }: Reader, { key, row: { expiresAt, sessionId, userId, agentId } }: FoundTrace, isAdmin: boolean): boolean {
  const action = actionOf(key);
  const isSomebodys = (sessionId ?? userId ?? agentId) !== undefined;
  return expiresAt > now && (isAdmin || (isSomebodys && action !== undefined && !isAdminAction(action)));
}

/** A trace as the wire has it. */
export function traceJson({ key, row }: FoundTrace): JsonText {
  const id = key.slice(1);
  const { requestId, latencyMs } = row;
  return jsonWith(
    {
      object: "trace",
      id: withPrefix("trace", id),
      session_id: row.sessionId ?? null,
      user_id: row.userId,
      action: actionOf(key),
      actor: row.actor,
      timestamp: toIso(row.at ?? bareIdTime(id)),
    },
    { details: row.body },
    { metadata: requestId === undefined ? {} : { request_id: requestId, latency_ms: latencyMs } },
  );
}

/** Keys of the next traces after an id, in the order of ids: those of an owner, of a session, or else of some actions. */
export function keysAfter(
  reader: Reader,
  { owner: { userId, agentId }, sessionId, actions }: { owner: Owner; sessionId: string | undefined; actions: readonly TraceAction[] },
  after: string,
  limit: number,
): string[] {
  const { byUser, byAgent, bySession } = traces.index;
  const keysIn = (index: Index<TraceRow>, of: string) =>
    // Entries end with the action, which comes before what sorts behind all of them.
    reader.keys(index, { from: `${of}${after}${MAX_KEY}`, to: of + MAX_KEY, limit }).map((entry) => index.recordOf(entry));
  if (userId !== undefined) return keysIn(byUser, hashKey(userId));
  if (agentId !== undefined) return keysIn(byAgent, hashKey(agentId));
  if (sessionId !== undefined) return keysIn(bySession, bare(sessionId as SessionId));
  return actions
    .flatMap((action) => reader.keys(traces, { from: successor(actionCode(action) + after), to: actionCode(action) + MAX_KEY, limit }))
    .toSorted((a, b) => (a.slice(1) < b.slice(1) ? -1 : 1))
    .slice(0, limit);
}
