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

export const Turn = Type.Object(
  {
    object: Type.Literal("turn"),
    id: RecordId("turn", "`turn_` and 12 characters."),
    session_id: RecordId("sess", "The session."),
    turn_number: Type.Integer({ description: "1, 2, 3 … in the order of the session.", examples: [1] }),
    created_at: Timestamp("When the turn was logged."),
    input: Input,
    output: Output,
    reasoning: Reasoning("Left out when none was given."),
    metadata: Metadata("Custom metadata."),
    state_before: Snapshot("before"),
    state_after: Snapshot("after"),
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
    state_before: Type.Optional(UserObject({ description: "A snapshot; logging a turn never changes the state." })),
    state_after: Type.Optional(UserObject({ description: "A snapshot; logging a turn never changes the state." })),
  },
  { title: "NewTurn", description: "A turn to log." },
);

export const TURN_ORDER = {
  order: Default(OneOf(["asc", "desc"], { description: "`desc` (newest first) unless given." }), "desc"),
};
