/**
 * Turns on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Filter } from "../filters/schema.ts";
import { AddedMemory, NewMemory, Score } from "../memories/schema.ts";
import { RetrievalId } from "../retrievals/schema.ts";
import { ExpectedVersion } from "../sessions/schema.ts";
import {
  Default,
  IN_BRACKETS,
  Limit,
  Metadata,
  NewOccurredAt,
  OccurredAt,
  OneOf,
  OrNull,
  RecordId,
  SCREENED,
  exampleOf,
  Text,
  Timestamp,
  UserObject,
} from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { TURN_INDEXES } from "../storage/tables.ts";
import { TURN_FIELDS } from "./indexed-text.ts";

const INPUT_TYPES = ["text", "audio", "image", "tool_call"] as const;
const OUTPUT_TYPES = ["text", "audio", "image", "tool_result", "error"] as const;
/** Another name of `tool_result` that clients send. */
export const TOOL_RESPONSE = "tool_response";

const Content = (example: string) =>
  Type.String({ description: "The text, a transcription, a description or what a tool was given or gave.", examples: [example] });

const Reasoning = (description: string) => Type.Optional(Type.String({ description, examples: ["The carrier says so."] }));

const Input = Type.Object(
  { type: OneOf(INPUT_TYPES, { description: "What came in." }), content: Content("Where is my order?") },
  { title: "TurnInput" },
);
const output = Content("It arrives tomorrow.");
const Output = Type.Object({ type: OneOf(OUTPUT_TYPES, { description: "What went out." }), content: output }, { title: "TurnOutput" });
const Snapshot = (when: string) => OrNull(UserObject({ description: `The state ${when} the turn, if given.` }));

const ExternalId = (description: string) => Text(1, LIMITS.externalIdLengthMax, { description });

export const Turn = Type.Object(
  {
    object: Type.Literal("turn"),
    id: RecordId("turn", "`turn_` and 12 characters."),
    session_id: RecordId("sess", "The session."),
    turn_number: Type.Integer({ description: "1, 2, 3 … in the order of the session.", examples: [1] }),
    state_version: Type.Integer({
      description:
        "Version of the session's state that was current when the turn was logged; 0 for one that a fork has from its parent. For one that a Cairn without this field has logged it follows from the versions that are kept.",
      examples: [0],
    }),
    forked_from: Type.Optional(
      Type.String({ description: "The session that this one was forked from, for a turn that it has from there; left out for others." }),
    ),
    rolled_back_at: Type.Optional(Timestamp("When a rollback hid the turn; left out for those that are shown.")),
    external_id: Type.Optional(ExternalId("The name that you gave it; left out if there is none.")),
    created_at: Timestamp("When the turn was logged."),
    occurred_at: Type.Optional(OccurredAt("When it happened, if that was given: for history that was moved in.")),
    input: Input,
    output: Output,
    reasoning: Reasoning("Left out when none was given."),
    metadata: Metadata("Custom metadata."),
    state_before: Snapshot("before"),
    state_after: Snapshot("after"),
    ...SCREENED,
  },
  { title: "Turn", description: "A turn: what came in and what went out." },
);

export const NewTurn = Type.Object(
  {
    input: Input,
    output: Type.Object({
      type: OneOf([...OUTPUT_TYPES, TOOL_RESPONSE], { description: "What went out; `tool_response` is read as `tool_result`." }),
      content: output,
    }),
    reasoning: Reasoning("Why the agent answered so."),
    metadata: Default(Metadata("Custom metadata; default `{}`."), {}),
    external_id: Type.Optional(
      ExternalId(
        "A name of your own, such as the id of a message, unique in its session: where a turn has it already that one is answered, as it is, with 200, and nothing is changed.",
      ),
    ),
    occurred_at: Type.Optional(
      NewOccurredAt("When it happened, for history that is moved in: contexts and timelines go by it, lists by `created_at`."),
    ),
    state_before: Type.Optional(UserObject({ description: "A snapshot; logging a turn never changes the state." })),
    state_after: Type.Optional(UserObject({ description: "A snapshot; logging a turn never changes the state." })),
  },
  { title: "NewTurn", description: "A turn to log." },
);

export const NewTurns = Type.Object(
  {
    turns: Type.Array(NewTurn, {
      minItems: 1,
      maxItems: LIMITS.turnsAtOnceMax,
      description: `1 to ${LIMITS.turnsAtOnceMax} turns, logged in this order, all of them or none.`,
      [IN_BRACKETS]: true,
    }),
  },
  { title: "NewTurns", description: "Turns to log together." },
);

export const AddedTurns = Type.Object(
  { object: Type.Literal("list"), data: Type.Array(Turn, { description: "In the order of the request." }), redacted: SCREENED.redacted },
  { title: "AddedTurns", description: "The turns of a batch." },
);

const { similar: _, ...newMemory } = NewMemory.properties;
const ofSession = (what: string, lengthMax?: number) =>
  Type.Optional(Text(1, lengthMax, { description: `${what} of the step, or left out.` }));
/** A memory of the session that the turn is logged in. */
export const StepMemory = Type.Object(
  {
    ...newMemory,
    session_id: ofSession("The session"),
    user_id: ofSession("The user of the session", LIMITS.userIdLengthMax),
    agent_id: ofSession("The agent of the session", LIMITS.agentIdLengthMax),
  },
  { title: "StepMemory", description: "A memory to add to the session." },
);

const STATE_PATCH = { step: 1 };

export const NewStep = Type.Object(
  {
    ...NewTurn.properties,
    state: Type.Optional(UserObject({ description: "Replaces the state, before the turn is logged.", examples: [STATE_PATCH] })),
    state_patch: Type.Optional(
      UserObject({
        description: "Laid over the state, key by key, before the turn is logged; a null removes a key. Not with `state`.",
        examples: [STATE_PATCH],
      }),
    ),
    expected_version: Type.Optional(ExpectedVersion),
    memories: Type.Optional(
      Type.Array(StepMemory, {
        maxItems: LIMITS.stepMemoriesMax,
        description: `Up to ${LIMITS.stepMemoriesMax} memories to add to the session, each as for \`POST /v1/memory\`. An error names the one that is wrong: \`memories[3].content\`.`,
        [IN_BRACKETS]: true,
      }),
    ),
  },
  {
    title: "NewStep",
    description: "A turn to log, and what else the step of the agent has changed.",
    // Of `state` and `state_patch` a step has one.
    examples: [{ ...(exampleOf(NewTurn) as object), state_patch: STATE_PATCH, memories: [exampleOf(StepMemory)] }],
  },
);

export const Step = Type.Object(
  {
    ...Turn.properties,
    memories: Type.Optional(
      Type.Array(AddedMemory, {
        description: "The memories of the step, in the order of the request.",
        examples: [[exampleOf(AddedMemory)]],
      }),
    ),
  },
  { title: "Step", description: "A turn that was logged, with the memories that were added with it." },
);

export const TurnStatus = Default(
  OneOf(["current", "all"], {
    description: "`all`: with turns that a rollback has hidden, which have `rolled_back_at`. Default `current`.",
  }),
  "current",
);

export const TURN_FILTER = {
  status: TurnStatus,
  order: Default(OneOf(["asc", "desc"], { description: "`desc` (newest first) unless given." }), "desc"),
};

const SESSION_OF_TURNS = Type.Optional(Text(1, undefined, { description: "Only turns that this session shows." }));
const USER_OF_TURNS = Type.Optional(
  Text(1, LIMITS.userIdLengthMax, { description: "Only turns of sessions of this user.", examples: ["user-42"] }),
);
const AGENT_OF_TURNS = Type.Optional(Text(1, LIMITS.agentIdLengthMax, { description: "Only turns of sessions of this agent." }));
const FilterOfTurns = Type.Optional(Filter({ "metadata.channel": "chat", created_at: { $gte: "2026-05-07T08:00:00Z" } }));
const QUERY_EXAMPLE = "When does the order arrive?";

export const TurnSearch = Type.Object(
  {
    query: Text(0, LIMITS.queryLengthMax, { description: "What to look for, in words.", examples: [QUERY_EXAMPLE] }),
    session_id: SESSION_OF_TURNS,
    user_id: USER_OF_TURNS,
    agent_id: AGENT_OF_TURNS,
    filter: FilterOfTurns,
    limit: Limit(LIMITS.searchMax, LIMITS.searchDefault),
    threshold: Default(
      Type.Number({ minimum: 0, maximum: 1, description: "Lowest score; default 0.7. With 0 nothing is left out." }),
      LIMITS.searchThresholdDefault,
    ),
  },
  { title: "TurnSearch", description: "What to look for." },
);

const Passage = Type.Object(
  {
    text: Type.String({ description: `At most ${LIMITS.turnPassageLengthMax} characters.`, examples: ["It arrives tomorrow."] }),
    field: OneOf(TURN_FIELDS, {
      description: "Where it stands: in the content of the input or of the output, or in the reasoning.",
      examples: ["output"],
    }),
    start: Type.Integer({ minimum: 0, description: "Its first character in that text, counted in Unicode code points.", examples: [0] }),
    end: Type.Integer({ minimum: 1, description: "The character behind its last one.", examples: [20] }),
  },
  { title: "TurnPassage", description: "The passage of a turn that was found." },
);

const TurnResult = Type.Object(
  {
    ...Turn.properties,
    score: Score("0.0 to 1.0, higher is more relevant; from 0.7 on it is about the query."),
    passage: OrNull({ ...Passage, description: "The passage that has most of what was asked; null where the turn has no text." }),
  },
  { title: "TurnResult", description: "A turn that a search found." },
);

export const TurnResults = Type.Object(
  {
    object: Type.Literal("list"),
    query: Type.String({ description: "The query, as it was sent.", examples: [QUERY_EXAMPLE] }),
    index_turns: OneOf(TURN_INDEXES, {
      description: "By what the turns were searched: as the session says, or else the setting. With `off` none is found.",
      examples: ["words"],
    }),
    data: Type.Array(TurnResult),
    partial: Type.Optional(
      Type.Literal(true, {
        description:
          "Others may be about the query too: there are more than 1,000 turns to search that are not all indexed yet (`turn_index` of `/v1/stats` says how far the index is), or more than one request compares with its filter.",
      }),
    ),
    retrieval_id: RetrievalId,
  },
  { title: "TurnResults", description: "What a search found, best first." },
);

export const WORD_FILTER = {
  q: Type.Optional(
    Text(1, LIMITS.queryLengthMax, {
      description: "Only turns that have all of these words, whatever their endings.",
      examples: ["order arrives"],
    }),
  ),
  session_id: SESSION_OF_TURNS,
  user_id: USER_OF_TURNS,
  agent_id: AGENT_OF_TURNS,
  filter: FilterOfTurns,
};
