/**
 * Actions, and the events that follow from them.
 *
 * @module
 */
interface Action {
  /** One character of the keys of its traces. Stored: never changed, and never given to another. */
  readonly code: string;
  /** The event that carries the affected record, if there is one. */
  readonly event?: string;
  /** A change of who may do what, or of how Cairn works: it concerns no session, and only a key with the scope `admin` reads its traces. */
  readonly isAdmin?: true;
}

/** The most frequent first: a trace is looked for by its id under one after the other. */
const ACTIONS = {
  "turn.added": { code: "t", event: "turn.added" },
  "state.updated": { code: "s", event: "session.updated" },
  "memory.created": { code: "m", event: "memory.created" },
  "session.created": { code: "c", event: "session.created" },
  "session.expired": { code: "x", event: "session.expired" },
  "session.updated": { code: "u", event: "session.updated" },
  "session.deleted": { code: "d", event: "session.deleted" },
  "session.forked": { code: "f", event: "session.created" },
  "state.rolled_back": { code: "r", event: "session.updated" },
  "memory.updated": { code: "n" },
  "memory.deleted": { code: "o" },
  "memory.superseded": { code: "v", event: "memory.superseded" },
  "memory.expired": { code: "e", event: "memory.expired" },
  "retrieval.rated": { code: "q" },
  "api_key.created": { code: "A", isAdmin: true },
  "api_key.rolled": { code: "B", isAdmin: true },
  "api_key.revoked": { code: "C", isAdmin: true },
  "backup.started": { code: "F", isAdmin: true },
  "backup.created": { code: "G", event: "backup.created", isAdmin: true },
  "backup.failed": { code: "H", event: "backup.failed", isAdmin: true },
  "backup.copied": { code: "K", isAdmin: true },
  "backup.copy_failed": { code: "L", event: "backup.failed", isAdmin: true },
  "backup.downloaded": { code: "I", isAdmin: true },
  "backup.deleted": { code: "J", isAdmin: true },
  "user.erased": { code: "E", isAdmin: true },
  "settings.updated": { code: "S", isAdmin: true },
  "webhook.created": { code: "V", isAdmin: true },
  "webhook.updated": { code: "W", isAdmin: true },
  "webhook.disabled": { code: "X", isAdmin: true },
  "webhook.secret_rotated": { code: "Y", isAdmin: true },
  "webhook.deleted": { code: "Z", isAdmin: true },
} as const satisfies Record<string, Action>;

export type TraceAction = keyof typeof ACTIONS;
export type AdminAction = { [Name in TraceAction]: (typeof ACTIONS)[Name] extends { isAdmin: true } ? Name : never }[TraceAction];

const declared: Record<TraceAction, Action> = ACTIONS;
export const TRACE_ACTIONS = Object.keys(ACTIONS) as TraceAction[];
const ACTION_OF = new Map(TRACE_ACTIONS.map((action) => [declared[action].code, action]));

export function isAdminAction(action: TraceAction): boolean {
  return declared[action].isAdmin === true;
}

/** Prefix of the keys of an action's traces. */
export function actionCode(action: TraceAction): string {
  return declared[action].code;
}

/** The action of a trace's key. */
export function actionOf(key: string): TraceAction | undefined {
  return ACTION_OF.get(key.slice(0, 1));
}

export const EVENT_TYPES = [
  "session.created",
  "session.updated",
  "session.deleted",
  "session.expired",
  "turn.added",
  "memory.created",
  "memory.superseded",
  "memory.expired",
  "backup.created",
  "backup.failed",
  "trace.created",
  "trace.rollback",
  "trace.error",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
/** The type of the event that the test of a webhook sends; nobody subscribes to it. */
export const TEST_EVENT = "webhook.test";

/** The event that carries the affected record, if the action has one. */
export function recordEventOf(action: TraceAction): EventType | undefined {
  return declared[action].event as EventType | undefined;
}

/** The events that carry the trace itself. */
export function traceEventsOf(action: TraceAction, isError: boolean): EventType[] {
  const events: EventType[] = ["trace.created"];
  if (action === "state.rolled_back") events.push("trace.rollback");
  if (isError) events.push("trace.error");
  return events;
}
