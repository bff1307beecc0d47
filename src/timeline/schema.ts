/**
 * The timeline of a session on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Default, exampleOf, OneOf, RecordId, SomeOf, Timestamp } from "../http/types.ts";
import { Memory } from "../memories/schema.ts";
import { Retrieval } from "../retrievals/schema.ts";
import { ChangedVersion } from "../sessions/schema.ts";
import { Turn, TurnStatus } from "../turns/schema.ts";
import { TIMELINE_KINDS } from "./kinds.ts";

const Fork = Type.Object(
  {
    session_id: RecordId("sess", "The new session."),
    version: Type.Integer({ description: "The version of this session that it starts from.", examples: [1] }),
    created_at: Timestamp("When the session was forked."),
  },
  { title: "SessionFork", description: "Another session that starts from a version of this one." },
);

export const TimelineEntry = Type.Object(
  {
    object: Type.Literal("timeline_entry"),
    id: RecordId("entry", "`entry_` and 12 characters, which are those of the record's own id, if it has one."),
    kind: OneOf(TIMELINE_KINDS, { description: "What happened, and the name of the member that holds the record.", examples: ["version"] }),
    turn: Type.Optional(Turn),
    version: Type.Optional({ ...ChangedVersion, examples: [exampleOf(ChangedVersion)] }),
    memory: Type.Optional(Memory),
    retrieval: Type.Optional({ ...Retrieval, examples: [exampleOf(Retrieval)] }),
    fork: Type.Optional(Fork),
  },
  {
    title: "TimelineEntry",
    description: "Something that happened in a session: a turn, a version of its state, a memory, a retrieval or a fork.",
  },
);

export const TIMELINE_FILTER = {
  kinds: Type.Optional(
    SomeOf(TIMELINE_KINDS, { description: `Only entries of these kinds: ${TIMELINE_KINDS.join(", ")}, with commas between them.` }),
  ),
  status: TurnStatus,
  order: Default(OneOf(["asc", "desc"], { description: "`desc` (newest first) unless given." }), "desc"),
};
