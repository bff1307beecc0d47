/**
 * Traces on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Cursor, Limit, OneOf, RecordId, Text, Timestamp, UserObject } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { TRACE_ACTIONS } from "./events.ts";

export const Trace = Type.Object(
  {
    object: Type.Literal("trace"),
    id: RecordId("trace", "`trace_` and 12 characters."),
    session_id: Type.Optional(RecordId("sess", "The session it concerns.")),
    user_id: Type.Optional(Type.String({ description: "That session's user; left out when it has none." })),
    action: OneOf(TRACE_ACTIONS, { description: "What happened." }),
    actor: Type.String({ description: "First 8 characters of the API key that did it, or `system`." }),
    timestamp: Timestamp("When it happened."),
    details: UserObject({ description: "Depends on the action." }),
    metadata: UserObject({ description: "`request_id` and `latency_ms` of the request." }),
  },
  { description: "A trace: one change and who made it." },
);

export const TraceFilter = Type.Object({
  limit: Limit(),
  starting_after: Cursor("trace"),
  session_id: Type.Optional(Text(1, undefined, { description: "Only traces of this session, which may be long gone." })),
  user_id: Type.Optional(Text(1, LIMITS.userIdLengthMax, { description: "Only traces of this user's sessions." })),
  action: Type.Optional(OneOf(TRACE_ACTIONS, { description: "Only traces of this action." })),
  created_after: Type.Optional(Timestamp("Only traces after this time (ISO 8601; without an offset it is UTC).")),
  created_before: Type.Optional(Timestamp("Only traces before this time.")),
});
