/**
 * Users, agents and erasures on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Default, OneOf, OrNull, RecordId, Text, Timestamp } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";

const LastSession = OrNull(Timestamp("When the newest session was created; null when none is left."));
const Named = <Kind extends "user" | "agent">(object: Kind, example: string) => ({
  object: Type.Literal(object),
  id: Type.String({ description: `The \`${object}_id\` of sessions.`, examples: [example] }),
  last_session_at: LastSession,
});

export const Agent = Type.Object(Named("agent", "support-bot"), {
  title: "Agent",
  description: "An agent that sessions or memories name.",
});

const count = (description: string, example: number) => Type.Integer({ description, examples: [example] });
const COUNTED = `At most ${LIMITS.listedUserRecordsCountedMax} are counted in a list, and ${LIMITS.userRecordsCountedMax} of one user.`;
export const User = Type.Object(
  {
    ...Named("user", "user-42"),
    last_seen_at: OrNull(
      Timestamp("When the newest session was created, to the minute, also if it is gone by now; null where that is not known."),
    ),
    sessions: count(`Sessions. ${COUNTED}`, 3),
    memories: count(`Memories. ${COUNTED}`, 12),
    documents: count("Documents of the user, those kept with an agent too, but not those that go with a session.", 5),
    more: Type.Boolean({ description: "Whether one of the counts stopped before all were counted.", examples: [false] }),
  },
  { title: "User", description: "A user that sessions, memories or documents name, with how much there is." },
);

export const USER_FILTER = {
  order: Default(
    OneOf(["name", "last_seen"], {
      description:
        "`name` (by code points; unless given), or `last_seen`: by when their newest session was created, the latest first. Turns, states, memories and documents change nothing in it.",
    }),
    "name",
  ),
  prefix: Type.Optional(
    Text(1, LIMITS.userIdLengthMax, {
      description: "Only users whose names begin with this, upper and lower case as given. Only by `name`.",
    }),
  ),
};

export const UserDetails = Type.Object(
  {
    ...User.properties,
    last_session_id: OrNull(RecordId("sess", "The newest session.")),
    traces: count(`Traces, at most ${LIMITS.userRecordsCountedMax}.`, 57),
  },
  { title: "UserDetails", description: "A user with how much there is of them, be it documents or traces alone." },
);

export const Erasure = Type.Object(
  {
    object: Type.Literal("user_erasure"),
    user_id: Type.String({ examples: ["user-42"] }),
    status: OneOf(["running", "done"], {
      description: "`running`: nothing of the user is shown any more, and the rest is being removed.",
      examples: ["done"],
    }),
    started_at: Timestamp("When the erasure began."),
    freed_space: Type.Optional(
      OneOf(["pending", "overwritten", "vacuum"], {
        description:
          "What becomes of the space in the store's files that the removed rows have left. `overwritten`: with a `done`, no page of the data file holds any of it; until then `pending`. `vacuum`, on PostgreSQL: the database keeps it in its files until it has vacuumed them and used the space again; `VACUUM FULL` of the schema `cairn` rewrites them at once. Left out of what a Cairn did that overwrote nothing.",
        examples: ["overwritten"],
      }),
    ),
    sessions: count("Sessions removed so far.", 3),
    turns: count("Turns removed with them.", 40),
    versions: count("Versions of states removed with them.", 21),
    retrievals: count("Retrievals removed with them.", 8),
    memories: count("Memories removed, with their vectors.", 12),
    documents: count("Documents removed, but those that a session brought with it.", 5),
    traces: count("Traces that have lost their content.", 57),
    deliveries: count("Deliveries and events removed.", 4),
    answers: count("Answers removed that were kept for an Idempotency-Key.", 2),
  },
  { title: "UserErasure", description: "What an erasure has removed." },
);

/** `starting_after` of a list of names. */
export const NameCursor = (max: number) => Text(1, max, { description: "The last id of the previous page." });
