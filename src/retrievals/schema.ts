/**
 * Retrievals on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Created, Default, OneOf, OrNull, RecordId, Redacted, Text, Timestamp, UserObject } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { RETRIEVAL_OPERATIONS } from "../storage/tables.ts";
import { MemoryResult, Partial, QUERY_EXAMPLE, Score } from "../memories/schema.ts";

export const RetrievalId = Type.Optional(
  Type.String({
    description: "Where it is logged (`retrieval_log`): for `GET /v1/retrievals/{retrieval_id}` and feedback. Left out where it is not.",
  }),
);

export const SearchAnswer = Type.Object(
  {
    object: Type.Literal("list"),
    query: Type.String({ description: "The query, as it was sent.", examples: [QUERY_EXAMPLE] }),
    data: Type.Array(MemoryResult),
    partial: Type.Optional(Partial),
    retrieval_id: RetrievalId,
  },
  { title: "MemoryResults", description: "What a search found, best first." },
);

const RetrievedMemory = Type.Object(
  {
    id: RecordId("mem", "The memory, which may have been deleted since."),
    score: Score("Its score in the answer, 0.0 to 1.0."),
    content_preview: OrNull(
      Type.String({
        description: `The first ${LIMITS.contentPreviewLength} characters of what the memory says now; null when it is gone.`,
        examples: ["The customer prefers e-mail to phone calls."],
      }),
    ),
    status: OneOf(["unchanged", "changed", "gone"], {
      description: "`unchanged` since, `changed`, or `gone`: deleted, expired or erased.",
      examples: ["unchanged"],
    }),
  },
  { title: "RetrievedMemory", description: "A memory that was found." },
);

/** A context may show as many. */
const RATED_MAX = LIMITS.contextMemoriesMax + LIMITS.pinnedMemoriesMax + LIMITS.contextTurnsMax;
const FoundIds = (description: string) => Type.Array(Text(1, undefined), { maxItems: RATED_MAX, description, examples: [[]] });
const feedbackMembers = {
  useful: FoundIds("Ids of memories and turns of the retrieval that helped."),
  not_useful: FoundIds("Ids of those that did not."),
};

export const NewFeedback = Type.Object(
  {
    useful: Default(feedbackMembers.useful, []),
    not_useful: Default(feedbackMembers.not_useful, []),
    note: Type.Optional(
      Text(0, LIMITS.retrievalNoteLengthMax, { description: "A note of yours.", examples: ["The second one is out of date."] }),
    ),
  },
  { title: "NewFeedback", description: "What helped. It takes the place of what was said before." },
);

export const Retrieval = Type.Object(
  {
    object: Type.Literal("retrieval"),
    id: RecordId("ret", "`ret_` and 12 characters."),
    session_id: OrNull(RecordId("sess", "The session that the search or the context was of; null for a search that named none.")),
    user_id: OrNull(Type.String({ description: "The user of the session, or of a search that named none.", examples: ["user-42"] })),
    agent_id: OrNull(Type.String({ description: "The agent of the session, or of a search that named none.", examples: ["support"] })),
    operation: OneOf(RETRIEVAL_OPERATIONS, { description: "What was asked for: `search` is one of memories.", examples: ["context"] }),
    query: Type.String({
      description: `The query, its first ${LIMITS.retrievalQueryLengthMax} characters.`,
      examples: [QUERY_EXAMPLE],
    }),
    limit: Type.Integer({ description: "How many memories were asked for, or turns.", examples: [5] }),
    threshold: Type.Number({ description: "The lowest score that was asked for; 0 for a context.", examples: [0] }),
    filtered: Type.Boolean({
      description: "Whether a filter narrowed what was looked for: `type`, `types`, `tags`, `filter`, or times.",
      examples: [false],
    }),
    request: OrNull(
      UserObject({
        description: `What else was asked for, as it was sent; null where that has more than ${LIMITS.retrievalRequestLengthMax} characters, or was not kept.`,
        examples: [{ max_tokens: 4000, format: "text" }],
      }),
    ),
    memories: Type.Array(RetrievedMemory, {
      description: "What was found, best first; for a bound key, only memories of its user and agent.",
    }),
    state_version: OrNull(
      Type.Integer({ description: "The version of the state that a context showed; null for a search.", examples: [3] }),
    ),
    turns: Type.Array(Type.String(), {
      description:
        "Ids of the turns of a context, newest first, before a budget left any out, or of those that a search in turns found, best first.",
      examples: [["turn_0VQk3aB9r7Ts"]],
    }),
    feedback: OrNull(
      Type.Object(
        { ...feedbackMembers, note: OrNull(Type.String({ description: "The note." })), created_at: Timestamp("When it was given.") },
        { title: "RetrievalFeedback", description: "What was said of it last; null until then." },
      ),
    ),
    redacted: Redacted,
    actor: Type.String({ description: "First 8 characters of the API key that asked.", examples: ["crn_9fK2"] }),
    turn_id: OrNull(RecordId("turn", "The turn that came of it: the next one of the session; null while there is none.")),
    created_at: Timestamp("When it was found, give or take a tenth of a second."),
  },
  { title: "Retrieval", description: "What a search or a context found for a query." },
);

export const RETRIEVAL_FILTER = {
  operation: Type.Optional(
    OneOf(RETRIEVAL_OPERATIONS, { description: `Only those of a \`${RETRIEVAL_OPERATIONS.join("` or of a `")}\`.` }),
  ),
  ...Created("retrievals"),
};

export const SEARCH_FILTER = {
  user_id: Type.Optional(Type.String({ description: "Only searches of this user." })),
  agent_id: Type.Optional(Type.String({ description: "Only searches of this agent." })),
  ...Created("searches"),
};
