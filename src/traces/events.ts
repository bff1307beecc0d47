/**
 * Which events follow from which trace.
 *
 * @module
 */
export const RECORD_ACTIONS = [
  "session.created",
  "session.updated",
  "session.deleted",
  "session.forked",
  "session.expired",
  "state.updated",
  "state.rolled_back",
  "turn.added",
  "memory.created",
  "memory.updated",
  "memory.deleted",
] as const;

/**
 * Changes of who may do what, and of how Cairn works. They concern no session, and only a key with the scope `admin` reads their
 * traces.
 */
export const ADMIN_ACTIONS = [
  "api_key.created",
  "api_key.rolled",
  "api_key.revoked",
  "settings.updated",
  "webhook.created",
  "webhook.updated",
  "webhook.disabled",
  "webhook.secret_rotated",
  "webhook.deleted",
] as const;
export type AdminAction = (typeof ADMIN_ACTIONS)[number];

export function isAdminAction(action: string | undefined): boolean {
  return (ADMIN_ACTIONS as readonly (string | undefined)[]).includes(action);
}

export const TRACE_ACTIONS = [...RECORD_ACTIONS, ...ADMIN_ACTIONS] as const;
export type TraceAction = (typeof TRACE_ACTIONS)[number];

export const EVENT_TYPES = [
  "session.created",
  "session.updated",
  "session.deleted",
  "session.expired",
  "turn.added",
  "memory.created",
  "trace.created",
  "trace.rollback",
  "trace.error",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

const RECORD_EVENT: Partial<Record<TraceAction, EventType>> = {
  "session.created": "session.created",
  "session.forked": "session.created",
  "session.updated": "session.updated",
  "state.updated": "session.updated",
  "state.rolled_back": "session.updated",
  "session.deleted": "session.deleted",
  "session.expired": "session.expired",
  "turn.added": "turn.added",
  "memory.created": "memory.created",
};

/** The event that carries the affected record, if the action has one. */
export function recordEventOf(action: TraceAction): EventType | undefined {
  return RECORD_EVENT[action];
}

/** The events that carry the trace itself. */
export function traceEventsOf(action: TraceAction, isError: boolean): EventType[] {
  const events: EventType[] = ["trace.created"];
  if (action === "state.rolled_back") events.push("trace.rollback");
  if (isError) events.push("trace.error");
  return events;
}
