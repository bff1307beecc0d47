/**
 * Memories on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Created, Default, Limit, Metadata, RecordId, Text, Timestamp } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";

/** The standard types; any other text is accepted too. */
const MEMORY_TYPES = ["fact", "preference", "event", "policy", "observation", "general"] as const;
const MEMORY_TYPE_DEFAULT = "general";

const Content = Text(1, undefined, {
  description: `What to remember: 1 to ${LIMITS.memoryContentLengthMax} characters; more is 413 \`content_too_large\`.`,
  examples: ["The customer prefers e-mail to phone calls."],
});
const MemoryType = (description: string) => Text(1, LIMITS.memoryTypeLengthMax, { description, examples: ["preference"] });
const TYPES_TEXT = `Standard types: ${MEMORY_TYPES.join(", ")}; others are accepted.`;
const Tag = Text(1, LIMITS.tagLengthMax);
const Tags = (description: string) => Type.Array(Tag, { maxItems: LIMITS.tagsMax, description, examples: [["contact"]] });
const UserId = Text(1, LIMITS.userIdLengthMax, { description: "Only memories of this user's sessions.", examples: ["user-42"] });
const OfType = MemoryType("Only memories of this type.");
const SessionFilter = Text(1, undefined, { description: "Only memories of this session." });

export const QUERY_EXAMPLE = "How does the customer prefer to be contacted?";

/** What `explain` adds to a result. */
export const Explanation = Type.Object(
  {
    semantic: Type.Number({
      description: "Similarity in meaning, 0.0 to 1.0: half of the score, and up to three quarters with another provider.",
    }),
    lexical: Type.Number({ description: "The share of the query that the memory's words cover, 0.0 to 1.0: the rest of the score." }),
    matches: Type.Array(
      Type.Object({
        word: Type.String({ description: "A word of the query." }),
        matched_by: Type.String({ description: "`word`: the memory has the word. `meaning`: it has one of similar meaning." }),
        matched_word: Type.Optional(Type.String({ description: "The matching word of the memory." })),
        share: Type.Number({ description: "Share of the query that this word covers." }),
      }),
      {
        description: `At most ${LIMITS.explainedWordsMax} words, those that cover most of the query, in its order. A word is cut after ${LIMITS.explainedWordLengthMax} characters.`,
      },
    ),
    omitted: Type.Optional(Type.Integer({ description: "Number of further matching words, if there are any." })),
  },
  { title: "Explanation", description: "Why this was found." },
);

export const Memory = Type.Object(
  {
    object: Type.Literal("memory"),
    id: RecordId("mem", "`mem_` and 12 characters."),
    session_id: RecordId("sess", "The session it was added to, which may have expired since."),
    content: Content,
    type: MemoryType(TYPES_TEXT),
    tags: Tags("Tags."),
    metadata: Metadata("Custom metadata."),
    created_at: Timestamp("When the memory was added."),
    embedding_id: Type.Optional(RecordId("emb", "ID of the vector, which changes with the content; left out when there is none.")),
    vector_available: Type.Boolean({
      description: "Whether it has a vector. While one is to be made, it is found by its words.",
      examples: [true],
    }),
  },
  { title: "Memory", description: "A memory." },
);

export const Score = (description: string) => Type.Number({ minimum: 0, maximum: 1, description, examples: [0.966349] });

const { id, session_id, content, type, tags, created_at } = Memory.properties;
const MemoryResult = Type.Object(
  {
    id,
    session_id,
    content,
    type,
    tags,
    score: Score("0.0 to 1.0, higher is more relevant; from 0.7 on it is about the query."),
    created_at,
    explanation: Type.Optional(Explanation),
  },
  { title: "MemoryResult", description: "A memory that a search found." },
);

export const SearchAnswer = Type.Object(
  {
    object: Type.Literal("list"),
    query: Type.String({ description: "The query, as it was sent.", examples: [QUERY_EXAMPLE] }),
    data: Type.Array(MemoryResult),
  },
  { title: "MemoryResults", description: "What a search found, best first." },
);

export const NewMemory = Type.Object(
  {
    session_id: Text(1, undefined, { description: "The session it belongs to.", examples: ["sess_0VQk3aB4x1Zq"] }),
    content: Content,
    type: Default(MemoryType(`${TYPES_TEXT} Default \`${MEMORY_TYPE_DEFAULT}\`.`), MEMORY_TYPE_DEFAULT),
    tags: Default(Tags("Tags, for filters."), []),
    metadata: Default(Metadata("Custom metadata; default `{}`."), {}),
    embed: Default(Type.Boolean({ description: "false: keep it out of semantic search." }), true),
  },
  { title: "NewMemory", description: "A memory to add." },
);

export const MemoryChanges = Type.Object(
  {
    content: Type.Optional(Content),
    type: Type.Optional(MemoryType(TYPES_TEXT)),
    tags: Type.Optional(Tags("Replaces the tags.")),
    metadata: Type.Optional(Metadata("Merged into what is there, key by key; a null removes the key.")),
  },
  { title: "MemoryChanges", description: "What changes; the rest stays." },
);

export const Search = Type.Object(
  {
    query: Text(0, LIMITS.queryLengthMax, {
      description: "What to look for, in words. Emoji and other symbols find the memories that contain them.",
      examples: [QUERY_EXAMPLE],
    }),
    session_id: Type.Optional(SessionFilter),
    user_id: Type.Optional(UserId),
    type: Type.Optional(OfType),
    types: Type.Optional(
      Type.Array(Text(1, LIMITS.memoryTypeLengthMax), {
        maxItems: LIMITS.memoryTypesMax,
        description: "Memories of ANY of these types; an empty array is no filter.",
      }),
    ),
    tags: Type.Optional(Tags("Memories with ANY of them.")),
    limit: Limit(LIMITS.searchMax, LIMITS.searchDefault),
    threshold: Default(
      Type.Number({ minimum: 0, maximum: 1, description: "Lowest score; default 0.7. With 0 nothing is left out." }),
      LIMITS.searchThresholdDefault,
    ),
    explain: Default(Type.Boolean({ description: "Add to each result why it was found." }), false),
  },
  { title: "MemorySearch", description: "What to look for." },
);

export const MEMORY_FILTER = {
  session_id: Type.Optional(SessionFilter),
  user_id: Type.Optional(UserId),
  type: Type.Optional(OfType),
  tags: Type.Optional(
    Type.Array(Type.String(), {
      description:
        "Memories with ANY of these tags: one value with commas between the tags, or the parameter once for each tag, which may then contain commas. " +
        "Empty values are ignored, so that `tags=a%2Cb&tags=` means the one tag `a,b`.",
      examples: [["contact"]],
    }),
  ),
  ...Created("memories"),
};
