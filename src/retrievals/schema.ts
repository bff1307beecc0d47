/**
 * Retrievals on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Created, OneOf, OrNull, RecordId, Timestamp } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { RETRIEVAL_OPERATIONS } from "../storage/tables.ts";
import { QUERY_EXAMPLE, Score } from "../memories/schema.ts";

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
  },
  { title: "RetrievedMemory", description: "A memory that was found." },
);

export const Retrieval = Type.Object(
  {
    object: Type.Literal("retrieval"),
    id: RecordId("ret", "`ret_` and 12 characters."),
    session_id: RecordId("sess", "The session that the search or the context was of."),
    operation: OneOf(RETRIEVAL_OPERATIONS, { description: "What was asked for.", examples: ["context"] }),
    query: Type.String({
      description: `The query, its first ${LIMITS.retrievalQueryLengthMax} characters.`,
      examples: [QUERY_EXAMPLE],
    }),
    limit: Type.Integer({ description: "How many memories were asked for.", examples: [5] }),
    threshold: Type.Number({ description: "The lowest score that was asked for; 0 for a context.", examples: [0] }),
    filtered: Type.Boolean({ description: "Whether only some types or tags were looked for.", examples: [false] }),
    memories: Type.Array(RetrievedMemory, {
      description: "What was found, best first. For a key that is bound to an agent, only memories of that agent.",
    }),
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
