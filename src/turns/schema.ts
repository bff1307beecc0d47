/**
 * Turns on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Default, Metadata, OneOf, OrNull, RecordId, Timestamp, UserObject } from "../http/types.ts";

const INPUT_TYPES = ["text", "audio", "image", "tool_call"] as const;
const OUTPUT_TYPES = ["text", "audio", "image", "tool_result", "error"] as const;
/** Another name of `tool_result` that clients send. */
export const TOOL_RESPONSE = "tool_response";

const Content = Type.String({ description: "The text, a transcription, a description or what a tool was given or gave." });

const Input = Type.Object({ type: OneOf(INPUT_TYPES, { description: "What came in." }), content: Content }, { title: "TurnInput" });
const Output = Type.Object({ type: OneOf(OUTPUT_TYPES, { description: "What went out." }), content: Content }, { title: "TurnOutput" });
const Snapshot = (when: string) => OrNull(UserObject({ description: `The state ${when} the turn, if given.` }));

const NEW_EXAMPLE = {
  input: { type: "text", content: "Where is my order?" },
  output: { type: "text", content: "It arrives tomorrow." },
  reasoning: "The carrier says so.",
};

export const Turn = Type.Object(
  {
    object: Type.Literal("turn"),
    id: RecordId("turn", "`turn_` and 12 characters."),
    session_id: RecordId("sess", "The session."),
    turn_number: Type.Integer({ description: "1, 2, 3 … in the order of the session." }),
    created_at: Timestamp("When the turn was logged."),
    input: Input,
    output: Output,
    reasoning: Type.Optional(Type.String({ description: "Left out when none was given." })),
    metadata: Metadata("Custom metadata."),
    state_before: Snapshot("before"),
    state_after: Snapshot("after"),
  },
  {
    title: "Turn",
    description: "A turn: what came in and what went out.",
    examples: [
      {
        object: "turn",
        id: "turn_0VQk3bD5c6Ef",
        session_id: "sess_0VQk3aB4x1Zq",
        turn_number: 1,
        created_at: "2026-05-07T08:00:05.000Z",
        ...NEW_EXAMPLE,
        metadata: {},
        state_before: null,
        state_after: null,
      },
    ],
  },
);

export const NewTurn = Type.Object(
  {
    input: Input,
    output: Type.Object({
      type: OneOf([...OUTPUT_TYPES, TOOL_RESPONSE], { description: "What went out; `tool_response` is read as `tool_result`." }),
      content: Content,
    }),
    reasoning: Type.Optional(Type.String({ description: "Why the agent answered so." })),
    metadata: Default(Metadata("Custom metadata; default `{}`."), {}),
    state_before: Type.Optional(UserObject({ description: "A snapshot; logging a turn never changes the state." })),
    state_after: Type.Optional(UserObject({ description: "A snapshot; logging a turn never changes the state." })),
  },
  { title: "NewTurn", description: "A turn to log.", examples: [NEW_EXAMPLE] },
);

export const TURN_ORDER = {
  order: Default(OneOf(["asc", "desc"], { description: "`desc` (newest first) unless given." }), "desc"),
};
