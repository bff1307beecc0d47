/**
 * Sessions on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { LIMITS } from "../lib/limits.ts";
import {
  Created,
  Default,
  exampleOf,
  IntegerOr,
  Metadata,
  NewOccurredAt,
  OccurredAt,
  OneOf,
  OrNull,
  RecordId,
  SCREENED,
  SomeOf,
  Text,
  Timestamp,
  UserId,
  UserObject,
} from "../http/types.ts";
import { TURN_INDEXES } from "../storage/tables.ts";

const AgentId = Text(1, LIMITS.agentIdLengthMax, { description: "Identifies the agent.", examples: ["support-bot"] });
const SessionUser = UserId({
  description: "The user the agent acts for. Lists, searches and keys can be limited to a user.",
  examples: ["user-42"],
});
const IndexTurns = (description: string) => OneOf(TURN_INDEXES, { description });
const ExternalId = (description: string) => Text(1, LIMITS.externalIdLengthMax, { description });
const REASONING_EXAMPLE = "The customer gave the order number.";
const State = (description: string, step: number) => UserObject({ description, examples: [{ step }] });
const TtlSeconds = (description: string) => IntegerOr(["never"], { minimum: 1, maximum: LIMITS.ttlSecondsMax }, { description });
export const ExpectedVersion = Type.Integer({
  minimum: 0,
  description: "Change nothing unless this is the current version (409 `version_conflict` otherwise).",
});

/** Members that a list of sessions adds on request. */
export const SESSION_PARTS = ["first_input", "rollback_count"] as const;
export const FIRST_INPUT_LENGTH_MAX = 200;

export const Session = Type.Object(
  {
    object: Type.Literal("session"),
    id: RecordId("sess", "`sess_` and 12 characters."),
    agent_id: AgentId,
    user_id: OrNull(Type.String({ description: "The user the agent acts for; null if none was given.", examples: ["user-42"] })),
    external_id: Type.Optional(ExternalId("The name that you gave it; left out if there is none.")),
    created_at: Timestamp("When the session was created."),
    occurred_at: Type.Optional(OccurredAt("When the conversation began, if that was given: for history that was moved in.")),
    updated_at: Timestamp("When its state, metadata, turns or memories last changed."),
    state: State("The current state.", 0),
    state_version: Type.Integer({ description: "Version of `state`; 0 is the initial state.", examples: [0] }),
    metadata: Metadata("Custom metadata. A fork has `forked_from` and `forked_version` here."),
    memory_count: Type.Integer({
      description: "Memories that were added to the session, without those that a fork shows of the session it was forked from.",
      examples: [0],
    }),
    turn_count: Type.Integer({
      description:
        "Turns in the session that are shown: with those of the session it was forked from, without those that a rollback has hidden.",
      examples: [0],
    }),
    index_turns: Type.Optional(
      IndexTurns("By what its turns are found, if that was given; left out where the setting `index_turns` says it."),
    ),
    ...SCREENED,
    ttl_expires_at: OrNull(Timestamp("When the session expires; null if it does not.", "2026-05-08T08:00:00.000Z")),
    first_input: Type.Optional(
      Type.String({
        description: `In a list with \`include\` \`first_input\`: the input of the first turn that was logged in the session, at most ${FIRST_INPUT_LENGTH_MAX} characters of it; left out where there is none. Turns that a fork shows of the session it was forked from do not count; those that a rollback has hidden do.`,
      }),
    ),
    rollback_count: Type.Optional(
      Type.Integer({
        description: "In a list with `include` `rollback_count`: how often the session was rolled back, since Cairn counts it.",
      }),
    ),
  },
  { title: "Session", description: "A session." },
);

export const StateVersion = Type.Object(
  {
    object: Type.Literal("version"),
    version: Type.Integer({
      description: "0, 1, 2 … without gaps. Version 0 and the newest are kept (the setting `state_versions_kept`).",
      examples: [1],
    }),
    created_at: Timestamp("When the version was made."),
    reasoning: Type.Optional(Type.String({ description: "Why the state changed, if that was given.", examples: [REASONING_EXAMPLE] })),
    actor: Type.String({
      description: "First 8 characters of the API key that made it, or `local`, as in traces.",
      examples: ["crn_9fK2"],
    }),
    source: OneOf(["initial", "update", "rollback"], { description: "What made it.", examples: ["update"] }),
    restored_from_version: Type.Optional(
      Type.Integer({
        description: "The version whose state a rollback restored; left out where there was no rollback, and for one of an earlier Cairn.",
        examples: [3],
      }),
    ),
    secrets: SCREENED.secrets,
    state: Type.Optional(State("The state; left out in lists.", 1)),
  },
  { title: "StateVersion", description: "A version of a session's state." },
);

export const SessionState = Type.Object(
  {
    object: Type.Literal("state"),
    session_id: RecordId("sess", "The session."),
    version: Type.Integer({ description: "Version of `state`; 0 is the initial state.", examples: [1] }),
    state: State("The current state.", 1),
    created_at: Timestamp("When the session was created."),
    updated_at: Timestamp("When this version was made."),
    ...SCREENED,
  },
  { title: "State", description: "The current state of a session." },
);

const { state: _, ...versionHead } = StateVersion.properties;
export const ChangedVersion = Type.Object(
  {
    ...versionHead,
    state_diff: OrNull(
      Type.Object(
        {
          added: UserObject({ description: "Keys that the version before did not have, with their values." }),
          removed: UserObject({ description: "Keys that only the version before had, with their values." }),
          modified: UserObject({
            description: "Keys whose values differ, each with `from` and `to`.",
            examples: [{ step: { from: 0, to: 1 } }],
          }),
        },
        {
          description: "What changed from the version before, from `{}` for version 0; null when that version is not kept any more.",
          examples: [{ added: {}, removed: {}, modified: { step: { from: 0, to: 1 } } }],
        },
      ),
    ),
  },
  { title: "ChangedVersion", description: "A version of a session's state, with what changed in it." },
);

export const NewSession = Type.Object(
  {
    agent_id: AgentId,
    user_id: Type.Optional(SessionUser),
    external_id: Type.Optional(
      ExternalId(
        "A name of your own, such as the id of a thread. No two live sessions of a `user_id`, or without one, have the same; it is free again once its session is deleted or has expired. A fork does not take it over.",
      ),
    ),
    if_exists: Default(
      OneOf(["error", "return"], {
        description:
          "What happens when a live session of the same `user_id`, or of none, has the `external_id`: `error` is 409 `already_exists`, `return` answers 200 with that session, as it is. Sessions of other users, or without the `user_id` of the request, do not matter. Default `error`.",
      }),
      "error",
    ),
    initial_state: Default(State("Becomes version 0; default `{}`.", 0), {}),
    metadata: Default(Metadata("Custom metadata; default `{}`."), {}),
    ttl_seconds: Default(
      TtlSeconds(
        `Seconds until the session expires, at most 30 days, or \`never\`; default ${LIMITS.ttlSecondsDefault}. Activity does not extend it. A session that never expires stays until it is deleted.`,
      ),
      LIMITS.ttlSecondsDefault,
    ),
    index_turns: Type.Optional(
      IndexTurns(
        "By what searches find its turns, instead of what the setting `index_turns` says: `off`, by their `words`, or by `meaning` too. It stays so for the session and its forks.",
      ),
    ),
    occurred_at: Type.Optional(
      NewOccurredAt("When the conversation began, for history that is moved in; `created_at` is the time of this request."),
    ),
  },
  { title: "NewSession", description: "A session to create." },
);

export const SessionChanges = Type.Object(
  {
    metadata: Type.Optional(Metadata("Merged into what is there, key by key; a null removes the key.")),
    ttl_seconds: Type.Optional({ ...TtlSeconds("A new time to live, counted from now; `never`: it does not expire."), examples: [86_400] }),
  },
  { title: "SessionChanges", description: "What changes; the rest stays." },
);

export const StateUpdate = Type.Object(
  {
    state: State("Replaces the current state entirely.", 1),
    reasoning: Type.Optional(Type.String({ description: "Why, for the trace.", examples: [REASONING_EXAMPLE] })),
    expected_version: Type.Optional(ExpectedVersion),
  },
  { title: "StateUpdate", description: "A new state." },
);

export const StateChanges = Type.Object(
  {
    ...StateUpdate.properties,
    state: State("Laid over the current state, key by key at the top level; a null removes the key.", 1),
  },
  { title: "StateChanges", description: "Keys of the state to change; the others stay." },
);

export const Rollback = Type.Object(
  {
    version: Type.Integer({
      description: "The version whose state comes back; 0 is the initial state, -1 the previous one.",
      examples: [0],
    }),
    reason: Type.Optional(Text(0, LIMITS.reasonLengthMax, { description: "Why, for the trace." })),
    turns: Default(
      OneOf(["keep", "hide"], {
        description:
          "`hide`: contexts, lists and timelines show the turns that they showed when that version was current, and no later ones, unless they are asked for `status=all`. A later rollback with `hide` to a version before this one shows those again. Default `keep`.",
      }),
      "keep",
    ),
    expected_version: Type.Optional(ExpectedVersion),
  },
  { title: "Rollback", description: "Where to go back to." },
);

export const Fork = Type.Object(
  {
    version: Type.Optional(
      Type.Integer({
        description: "The version to start from; default the current one. A negative one counts back from it.",
        examples: [0],
      }),
    ),
    turns: Default(
      IntegerOr(
        ["none", "all"],
        { minimum: 0, maximum: LIMITS.forkTurnsMax },
        {
          description: `Which turns the fork begins with, of those that were shown when that version was current: \`all\`, the newest of them up to ${LIMITS.forkTurnsMax}, or \`none\` (default). They are not copied, and stay when this session is deleted or expires.`,
        },
      ),
      "none",
    ),
    memories: Default(
      OneOf(["none", "session"], {
        description:
          "`session`: lists, searches and contexts of the fork show the memories that this session has now, besides its own. They are the same memories, not copies: `session_id` says where each was added, and they stay when this session is deleted or expires. Memories of a user are in the contexts of all of the user's sessions anyway. Default `none`.",
      }),
      "none",
    ),
  },
  { title: "Fork", description: "Where to fork." },
);

/** Differences of a page of versions from other pages: no states, and numbers for ids. */
export const VERSION_LIST_EXAMPLE = {
  data: [{ ...(exampleOf(StateVersion) as object), state: undefined }],
  first_id: "1",
  last_id: "1",
};

export const SESSION_FILTER = {
  agent_id: Type.Optional(Text(1, LIMITS.agentIdLengthMax, { description: "Only sessions of this agent.", examples: ["support-bot"] })),
  user_id: Type.Optional(SessionUser),
  external_id: Type.Optional(ExternalId("Only sessions of this name, of which each user can have one.")),
  exact_user: Type.Optional(
    Type.Boolean({
      description:
        "`true`: without `user_id` only sessions without a user, instead of those of all users; a key that is bound to a user lists its user's. With `external_id` it is a look-up: at most the one session that `if_exists`: `return` gives the same key for that `user_id` and `agent_id`, which may be another agent's. Default false.",
    }),
  ),
  has_secrets: Type.Optional(
    Type.Boolean({
      description:
        "`true`: only sessions whose state or metadata is marked with `secrets` (the setting `secrets` at `tag`); `false`: only others.",
    }),
  ),
  forked_from: Type.Optional(Text(1, undefined, { description: "Only forks of this session, which may be gone." })),
  ...Created("sessions"),
  include: Type.Optional(SomeOf(SESSION_PARTS, { description: `Members to add: ${SESSION_PARTS.join(", ")}, with commas between them.` })),
};

export const VersionNumber = Type.Integer({ minimum: 0, description: "The last version of the previous page." });
