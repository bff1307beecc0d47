/**
 * What the indexes hold of each record, by which they are written, removed, checked and built again.
 *
 * Deliveries, idempotent answers and keys have their entries where their rows are written: those change with the row's state.
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import { bareIdTime, type BareId } from "../lib/ids.ts";
import { hashKey, numberKey } from "./keys.ts";
import {
  memoriesAhead,
  memoriesBySession,
  memoriesByTag,
  memoriesByType,
  memoriesByUser,
  sessionsAhead,
  sessionsByAgent,
  sessionsByExpiry,
  sessionsByUser,
  tracesAhead,
  tracesByAction,
  tracesByExpiry,
  tracesBySession,
  tracesByUser,
  type Index,
  type MemoryRow,
  type SessionRow,
  type TraceRow,
} from "./tables.ts";

/** An entry of an index that has no row of its own. */
export interface IndexKey {
  readonly table: Index;
  readonly key: string;
}

/** Whether a record's id is later than its time: the clock was set back since an earlier id was made. */
export function isIdAhead(id: BareId, createdAt: number): boolean {
  return bareIdTime(id) > createdAt;
}

export function sessionIndexKeys(session: BareId, row: SessionRow): IndexKey[] {
  return [
    { table: sessionsByAgent, key: hashKey(row.agentId) + session },
    ...(row.userId === null ? [] : [{ table: sessionsByUser, key: hashKey(row.userId) + session }]),
    { table: sessionsByExpiry, key: numberKey(row.expiresAt) + session },
    ...(isIdAhead(session, row.createdAt) ? [{ table: sessionsAhead, key: session }] : []),
  ];
}

export function memoryIndexKeys(memory: BareId, row: MemoryRow): IndexKey[] {
  return [
    { table: memoriesBySession, key: row.sessionId.slice("sess_".length) + memory },
    ...(row.userId === null ? [] : [{ table: memoriesByUser, key: hashKey(row.userId) + memory }]),
    { table: memoriesByType, key: hashKey(row.type) + memory },
    ...row.tags.map((tag) => ({ table: memoriesByTag, key: hashKey(tag) + memory })),
    ...(isIdAhead(memory, row.createdAt) ? [{ table: memoriesAhead, key: memory }] : []),
  ];
}

/** Members of a trace's body that indexes are of. */
interface TraceMembers {
  session_id: string | null;
  user_id?: string | undefined;
  action: string;
}

/** @param members - those of the row's body; parsed from it unless they are given */
export function traceIndexKeys(trace: BareId, row: TraceRow, members?: TraceMembers): IndexKey[] {
  const { session_id: session, user_id: user, action } = members ?? (JSON.parse(row.body) as TraceMembers);
  return [
    ...(session === null ? [] : [{ table: tracesBySession, key: session.slice("sess_".length) + trace }]),
    ...(user === undefined ? [] : [{ table: tracesByUser, key: hashKey(user) + trace }]),
    { table: tracesByAction, key: actionPrefix(action) + trace },
    { table: tracesByExpiry, key: expiryDayKey(row.expiresAt) + trace },
    ...(row.at === undefined ? [] : [{ table: tracesAhead, key: trace }]),
  ];
}

/** The slash ends the name, so that one action is never a prefix of another. */
export function actionPrefix(action: string): string {
  return `${action}/`;
}

/** The day at whose end a trace is certainly past its time. */
export function expiryDayKey(expiresAt: number): string {
  return numberKey(Math.floor(expiresAt / DAY_MS));
}
