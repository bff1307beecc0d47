/**
 * Traces on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Created, OneOf, OrNull, RecordId, Text, Timestamp, UserObject } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { TRACE_ACTIONS, type TraceAction } from "./events.ts";

/** The fields of `details`, by action. */
const DETAILS: Record<TraceAction, readonly string[]> = {
  "session.created": ["agent_id", "user_id", "external_id", "initial_state"],
  "session.updated": ["metadata_diff", "ttl_seconds"],
  "session.deleted": ["session_id", "reason", "turn_count", "memory_count"],
  "session.forked": ["source_session_id", "source_session", "fork_version", "turns"],
  "session.expired": ["ttl_seconds", "last_activity"],
  "state.updated": ["reasoning", "state_diff", "version"],
  "state.rolled_back": ["from_version", "to_version", "reason", "turns"],
  "turn.added": ["turn_number", "input_type", "output_type", "reasoning"],
  "memory.created": ["memory_id", "content_preview", "type", "tags", "embedded"],
  "memory.updated": ["memory_id", "content_changed", "tags_changed"],
  "memory.deleted": ["memory_id", "content_preview", "reason"],
  "memory.expired": ["memory_id", "content_preview", "expires_at"],
  "retrieval.rated": ["retrieval_id", "useful", "not_useful", "unnamed_count"],
  "memory.superseded": ["memory_id", "content_preview", "superseded_by", "superseded_at"],
  "api_key.created": ["key_id", "kind", "prefix", "name", "scopes", "tier", "user_id", "agent_id", "source", "rate_limit", "expires_at"],
  "api_key.rolled": [
    "key_id",
    "kind",
    "prefix",
    "name",
    "scopes",
    "tier",
    "user_id",
    "agent_id",
    "rolled_to",
    "rolled_to_prefix",
    "ends_at",
    "expires_at",
  ],
  "api_key.revoked": ["key_id", "kind", "prefix", "name", "scopes", "tier", "user_id", "agent_id", "reason"],
  "backup.started": ["backup_id"],
  "backup.created": ["backup_id"],
  "backup.failed": ["backup_id", "reason"],
  "backup.copied": ["backup_id", "url"],
  "backup.copy_failed": ["backup_id", "url", "reason"],
  "backup.downloaded": ["backup_id"],
  "backup.deleted": ["backup_id", "reason"],
  "user.erased": [
    "user_id",
    "started_at",
    "freed_space",
    "sessions",
    "turns",
    "versions",
    "retrievals",
    "memories",
    "documents",
    "traces",
    "deliveries",
    "answers",
  ],
  "settings.updated": ["changes"],
  "webhook.created": ["webhook_id", "url", "events", "description", "enabled"],
  "webhook.updated": ["webhook_id", "changes"],
  "webhook.disabled": ["webhook_id", "url", "reason"],
  "webhook.secret_rotated": ["webhook_id", "url", "previous_valid_until"],
  "webhook.deleted": ["webhook_id", "url", "reason"],
};
const DETAILS_TEXT = [
  "Depends on the action; only `erased` for a user who was erased. A diff has `added`, `removed` and `modified`, which has `from` and `to` for each key; `changes` has `from` and `to` for each name. Secrets are left out: a webhook's URL is cut to its origin, a provider's key to whether one is set.\n",
  ...TRACE_ACTIONS.map((action) => `- \`${action}\`: ${DETAILS[action].join(", ")}`),
].join("\n");

const DETAILS_EXAMPLE = {
  reasoning: "The customer gave the order number.",
  state_diff: { added: {}, removed: {}, modified: { step: { from: 0, to: 1 } } },
  version: 1,
};

export const Trace = Type.Object(
  {
    object: Type.Literal("trace"),
    id: RecordId("trace", "`trace_` and 12 characters."),
    session_id: OrNull(RecordId("sess", "The session it concerns; null for traces of administration, and of memories without a session.")),
    user_id: Type.Optional(
      Type.String({ description: "The user whose record it concerns; left out when there is none.", examples: ["user-42"] }),
    ),
    action: OneOf(TRACE_ACTIONS, { description: "What happened.", examples: ["state.updated"] }),
    actor: Type.String({
      description:
        "First 8 characters of the API key that did it, `local` for programs of the server's own user such as `cairn mcp`, or `system`.",
      examples: ["crn_9fK2"],
    }),
    timestamp: Timestamp("When it happened."),
    details: UserObject({ description: DETAILS_TEXT, examples: [DETAILS_EXAMPLE] }),
    metadata: UserObject({
      description: "`request_id` and `latency_ms` of the request.",
      examples: [{ request_id: "req_0VQk3bD4w8Vu", latency_ms: 0.42 }],
    }),
  },
  { title: "Trace", description: "A trace: one change and who made it." },
);

export const EventStream = Type.String({
  title: "EventStream",
  description:
    "Server-sent events of the type `trace`: the data of each is a trace, and its id that of the trace. The stream begins with an event without data, whose id continues from there.",
  examples: [
    'retry: 2000\nid: trace_0VQk3aB3w000\n\nid: trace_0VQk3aB4x1Zq\nevent: trace\ndata: {"object":"trace","id":"trace_0VQk3aB4x1Zq","action":"turn.added","details":{}}\n\n:\n\n',
  ],
});

export const EVENT_FILTER = {
  session_id: Type.Optional(Text(1, undefined, { description: "Only traces of this session, which may be long gone." })),
  user_id: Type.Optional(Text(1, LIMITS.userIdLengthMax, { description: "Only traces of this user's records." })),
  action: Type.Optional(OneOf(TRACE_ACTIONS, { description: "Only traces of this action." })),
};

export const TRACE_FILTER = { ...EVENT_FILTER, ...Created("traces") };
