/**
 * Memories on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Filter } from "../filters/schema.ts";
import {
  Created,
  Default,
  exampleOf,
  IN_BRACKETS,
  Instant,
  Limit,
  Metadata,
  OneOf,
  OrNull,
  Parsed,
  RecordId,
  Redacted,
  SCREENED,
  Text,
  Timestamp,
  UserId,
} from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { parseInstantUp } from "../lib/time.ts";
import { MEMORY_SOURCES } from "../storage/tables.ts";
import { parseForgetToken } from "./forget-token.ts";
import { MEMORY_STATUSES } from "./status.ts";

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
const UserFilter = Text(1, LIMITS.userIdLengthMax, {
  description: "Only memories of this user, of sessions and without one.",
  examples: ["user-42"],
});
const AgentFilter = Text(1, LIMITS.agentIdLengthMax, { description: "Only memories of this agent." });
const OfType = MemoryType("Only memories of this type.");
const SessionFilter = Text(1, undefined, { description: "Only memories of this session." });

const ExternalId = (description: string) => Text(1, LIMITS.externalIdLengthMax, { description });
const Source = (description: string) => OneOf(MEMORY_SOURCES, { description, examples: ["agent"] });
const Importance = (description: string) => Type.Number({ minimum: 0, maximum: 1, description });
const Pinned = Type.Boolean({
  description: `Show it first in every context of its user, whatever the query: at most ${LIMITS.pinnedMemoriesMax} current ones of a user, more are 409 \`version_conflict\`. Of a session without a user, in that session's contexts.`,
});
const Reason = Text(0, LIMITS.reasonLengthMax, { description: "Why; for the history of the memory and the trace." });
const Ttl = Type.Integer({
  minimum: 1,
  maximum: LIMITS.memoryTtlSecondsMax,
  description: "Instead of `expires_at`: seconds until then, from now.",
});
/** A time that no example sends: most requests leave it out, and one to come is past some day. */
const Moment = (description: string) => Instant(`${description} ISO 8601, such as \`2027-05-07T08:00:00Z\`.`, { example: null });
const EXPIRES_AT = "When it expires: from that moment on nothing shows it, and it is removed with the event `memory.expired`.";

export const AsOf = (description: string) => Moment(`${description} Of records that still exist, whenever they were added.`);
const Status = OneOf(MEMORY_STATUSES, {
  description: "Only memories that are `current`, `past`, or still to come (`future`), now or at `as_of`; or `all`. Default `current`.",
});

const TagsMatch = OneOf(["any", "all"], { description: "Whether a memory must have any of the tags, or all of them. Default `any`." });
const FILTER_EXAMPLE = { "metadata.channel": { $in: ["chat", "mail"] } };
export const MemoryFilter = Filter(FILTER_EXAMPLE);
export const Partial = Type.Literal(true, {
  description: `Set where ${LIMITS.memoryRowsMax.toLocaleString("en")} memories were compared with the filter, and others were not: there may be better ones.`,
});

export const QUERY_EXAMPLE = "How does the customer prefer to be contacted?";

/** Members that `explain` adds to a result. */
const Explanation = Type.Object(
  {
    semantic: Type.Number({
      description: "Similarity in meaning, 0.0 to 1.0: half of the score, and up to three quarters with another provider.",
    }),
    lexical: Type.Number({ description: "The share of the query that the memory's words cover, 0.0 to 1.0: the rest of the score." }),
    matches: Type.Array(
      Type.Object({
        word: Type.String({ description: "A word of the query." }),
        matched_by: Type.String({ description: "`word`: the memory has the word." }),
        matched_word: Type.Optional(Type.String({ description: "The matching word of the memory." })),
        share: Type.Number({ description: "Share of the query that this word covers." }),
      }),
      {
        description: `At most ${LIMITS.explainedWordsMax} words, those that cover most of the query, in its order. A word is cut after ${LIMITS.explainedWordLengthMax} characters.`,
      },
    ),
    omitted: Type.Optional(Type.Integer({ description: "Number of further matching words, if there are any." })),
    passage: Type.Optional(
      Type.Object(
        {
          start: Type.Integer({ minimum: 0, description: "Its first character.", examples: [3120] }),
          end: Type.Integer({ minimum: 1, description: "The character behind its last one.", examples: [3330] }),
        },
        {
          description:
            "Of a content of more than about 100 words: the passage of it that is nearest in meaning, which `semantic` is of. Counted in Unicode code points.",
        },
      ),
    ),
  },
  { title: "Explanation", description: "Why this was found." },
);

const Factor = (description: string) => Type.Number({ minimum: 0, maximum: 1, description, examples: [0.85] });

/** Members that `explain` adds to a memory. */
export const MemoryExplanation = Type.Object(
  {
    ...Explanation.properties,
    filters: Type.Optional(
      Type.Array(Type.String(), {
        description: "The filters of the request, if it has any; the memory has passed them all.",
        examples: [["user_id", "tags"]],
      }),
    ),
    recency: Type.Optional(
      Type.Object(
        {
          age_days: Type.Number({ minimum: 0, description: "Since it happened, or was added; 0 for what is to come.", examples: [12.5] }),
          factor: Factor("By what its age multiplies the score."),
        },
        { description: "With `recency` or `importance_weight`." },
      ),
    ),
    importance: Type.Optional(
      Type.Object(
        {
          importance: OrNull(
            Type.Number({ minimum: 0, maximum: 1, description: "Its importance; null, which nobody has said, counts as 0.5." }),
          ),
          factor: Factor("By what its importance multiplies the score: `ranking_score` is the score times both factors, to six digits."),
        },
        { description: "With `recency` or `importance_weight`." },
      ),
    ),
  },
  { title: "MemoryExplanation", description: "Why a memory was found, and stands where it does." },
);

export const Recency = Type.Object(
  {
    half_life_days: Type.Number({
      minimum: 0,
      maximum: LIMITS.halfLifeDaysMax,
      description: "After how many days half of what depends on age is left; with 0 nothing is left of what is not of this moment.",
      examples: [30],
    }),
    weight: Type.Number({
      minimum: 0,
      maximum: 1,
      description: "How much depends on age: 0 nothing, 1 everything.",
      examples: [0.3],
    }),
  },
  {
    description:
      "Puts what is newer first: orders by `ranking_score`, which is the score × (1 − weight + weight × 2^(−age / half-life)). Ages count from `occurred_at`, or else `created_at`, to now or `as_of`. `score` and `threshold` stay as they are.",
  },
);
export const ImportanceWeight = Type.Number({
  minimum: 0,
  maximum: 1,
  description:
    "Puts what is more important first: orders by `ranking_score`, here × (1 − weight + weight × importance); an importance that nobody has said counts as 0.5.",
  examples: [0.2],
});

export const Memory = Type.Object(
  {
    object: Type.Literal("memory"),
    id: RecordId("mem", "`mem_` and 12 characters."),
    session_id: OrNull(RecordId("sess", "The session it was added to, which may have expired since; null without one.")),
    user_id: OrNull(Type.String({ description: "The user it belongs to; null for an agent's alone.", examples: ["user-42"] })),
    agent_id: OrNull(Type.String({ description: "The agent it belongs to; null for a user's alone.", examples: ["support-bot"] })),
    content: Content,
    type: MemoryType(TYPES_TEXT),
    tags: Tags("Tags."),
    metadata: Metadata("Custom metadata."),
    external_id: OrNull(ExternalId("The name that you gave it.")),
    source: Source("Who says so."),
    importance: OrNull(Importance("How important you said it is.")),
    pinned: Type.Boolean({ description: "Whether every context of its owner shows it.", examples: [false] }),
    occurred_at: OrNull(Timestamp("When it happened, if that was given.")),
    created_at: Timestamp("When the memory was added."),
    updated_at: Timestamp("When it was last changed."),
    expires_at: OrNull(Timestamp("When it expires; null: never.")),
    valid_from: OrNull(Timestamp("Since when it holds; null: since ever.")),
    valid_until: OrNull(Timestamp("Until when it holds; null: for ever.")),
    supersedes: Type.Array(Type.String(), { description: "Ids of the memories whose place it took; some may be gone.", examples: [[]] }),
    superseded_by: OrNull(RecordId("mem", "The memory that took its place.")),
    superseded_at: OrNull(Timestamp("When that one took it, or will.")),
    ...SCREENED,
    embedding_id: Type.Optional(RecordId("emb", "ID of the vector, which changes with the content; left out when there is none.")),
    vector_available: Type.Boolean({ description: "Whether it has a vector. Until one is made, its words find it.", examples: [true] }),
  },
  { title: "Memory", description: "A memory." },
);

const HistoryEntry = Type.Object(
  {
    content: Content,
    written_at: Timestamp("When it was written."),
    actor: OrNull(
      Type.String({ description: "First characters of the API key that wrote it; null where that was not noted.", examples: ["crn_abcd"] }),
    ),
    reason: OrNull(Type.String({ description: "Why, as given with that change.", examples: ["A slip of the pen."] })),
  },
  { title: "MemoryContent", description: "A content that a memory has or had." },
);

export const MemoryHistory = Type.Object(
  {
    object: Type.Literal("list"),
    data: Type.Array(HistoryEntry, {
      description: "Newest first, beginning with the present one; of those before as many as the setting `memory_versions_kept` says.",
    }),
    supersedes: Memory.properties.supersedes,
    superseded_by: Memory.properties.superseded_by,
  },
  { title: "MemoryHistory", description: "What a memory said before, and its neighbours in time." },
);

export const Score = (description: string) => Type.Number({ minimum: 0, maximum: 1, description, examples: [0.949407] });
export const RankingScore = Type.Optional(
  Type.Number({
    minimum: 0,
    maximum: 1,
    description: "With `recency` or `importance_weight`: what it is ordered by, the score after both; never more than the score.",
    examples: [0.854466],
  }),
);

const { id, session_id, user_id, agent_id, content, type, source, tags, created_at } = Memory.properties;
export const MemoryResult = Type.Object(
  {
    id,
    session_id,
    user_id,
    agent_id,
    content,
    type,
    source,
    tags,
    score: Score("0.0 to 1.0, higher is more relevant; from 0.7 on it is about the query."),
    ranking_score: RankingScore,
    created_at,
    explanation: Type.Optional(MemoryExplanation),
  },
  { title: "MemoryResult", description: "A memory that a search found." },
);

/** Answer about a memory that was to be added. */
export const AddedMemory = Type.Object(
  {
    ...Memory.properties,
    duplicate: Type.Optional(
      Type.Literal(true, { description: "Set where the owner had said the same before (`on_duplicate`): then this is that memory." }),
    ),
    similar: Type.Optional(
      Type.Array(MemoryResult, {
        description: "With `similar`: the current memories of its owner that are like it, as they were before; best first.",
      }),
    ),
  },
  { title: "AddedMemory", description: "A memory that was added, or was there." },
);

export const NewMemory = Type.Object(
  {
    session_id: Type.Optional(
      Text(1, undefined, {
        description:
          "The session it belongs to, and with it that session's user and agent: it goes when the session is deleted. Without one, `user_id` or `agent_id` is required, unless the API key is bound to one.",
        examples: ["sess_0VQk3aB4x1Zq"],
      }),
    ),
    user_id: Type.Optional(UserId({ description: "Whose memory it is. With `session_id` it is the user of that session, or left out." })),
    agent_id: Type.Optional(
      Text(1, LIMITS.agentIdLengthMax, {
        description: "The agent whose memory it is. With `session_id` it is the agent of that session, or left out.",
      }),
    ),
    content: Content,
    type: Default(MemoryType(`${TYPES_TEXT} Default \`${MEMORY_TYPE_DEFAULT}\`.`), MEMORY_TYPE_DEFAULT),
    tags: Default(Tags("Tags, for filters."), []),
    metadata: Default(Metadata("Custom metadata; default `{}`."), {}),
    embed: Default(Type.Boolean({ description: "false: keep it out of semantic search." }), true),
    external_id: Type.Optional(
      ExternalId(
        "A name of your own, such as the id of a row. No two memories of a user have the same, or of an agent where there is no user; it is free again once its memory is deleted or has expired.",
      ),
    ),
    if_exists: Default(
      OneOf(["error", "update", "return"], {
        description:
          "What happens when the owner has a memory of that `external_id`: `error` is 409 `already_exists`; `return` answers 200 with it, as it is; `update` answers 200 once its content, and what else is sent, has taken the place of what was there. Default `error`.",
      }),
      "error",
    ),
    on_duplicate: Default(
      OneOf(["allow", "return", "update"], {
        description:
          "What happens when the owner has a current memory of the same type that says the same, whatever its case, spaces and forms of characters: `return` answers 200 with it, as it is, and `duplicate: true`; `update` gives it the tags, metadata, times and what else is sent before. A memory of that `external_id` comes first. Of a session without a user the memories of that session are compared. Default `allow`.",
      }),
      "allow",
    ),
    source: Type.Optional(Source("Who says so; `agent` unless given. A context shows it.")),
    importance: Type.Optional(Importance("How important it is to you, 0.0 to 1.0.")),
    pinned: Type.Optional(Pinned),
    occurred_at: Type.Optional(Moment("When it happened, for history that is moved in: at most a day ahead.")),
    expires_at: Type.Optional(Moment(EXPIRES_AT)),
    ttl_seconds: Type.Optional(Ttl),
    valid_from: Type.Optional(Moment("Since when it holds; since ever unless given, or since now where it supersedes another one.")),
    valid_until: Type.Optional(Moment("Until when it holds: from then on it is past, and stays.")),
    supersedes: Type.Optional(
      Type.Array(Text(1, undefined), {
        maxItems: LIMITS.supersededMax,
        description:
          "Ids of memories of the same owner whose place it takes: each is past from `valid_from` on, and current again if this one is deleted or expires. One that is superseded already is 409 `version_conflict`.",
      }),
    ),
    reason: Type.Optional(Reason),
    similar: Type.Optional(
      Type.Object(
        {
          limit: Type.Optional(
            Type.Integer({ minimum: 1, maximum: LIMITS.similarMax, description: `How many; default ${LIMITS.similarDefault}.` }),
          ),
          threshold: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: "Lowest score; default 0.7." })),
        },
        {
          description:
            "Have the answer list the owner's current memories that are nearest in meaning, as they were before: one that says otherwise by now can be superseded with the next call. Needs a key with the scope `read`.",
          examples: [{ limit: 3, threshold: 0.7 }],
        },
      ),
    ),
  },
  { title: "NewMemory", description: "A memory to add." },
);

export const MemoryBatch = Type.Object(
  {
    memories: Type.Array(NewMemory, {
      [IN_BRACKETS]: true,
      minItems: 1,
      maxItems: LIMITS.memoryBatchMax,
      description: "Each as for `POST /v1/memory`. An error names the one that is wrong: `memories[3].content`.",
      examples: [[{ user_id: "user-42", content: "The customer prefers e-mail to phone calls.", external_id: "crm-4711" }]],
    }),
  },
  { title: "MemoryBatch", description: "Memories to add together." },
);

const inOrder = { description: "In the order of the request." };
export const AddedMemories = Type.Object(
  { object: Type.Literal("list"), data: Type.Array(AddedMemory, inOrder), redacted: Redacted },
  { title: "AddedMemories", description: "The memories of a batch." },
);

export const MemoryChanges = Type.Object(
  {
    content: Type.Optional(Content),
    type: Type.Optional(MemoryType(TYPES_TEXT)),
    tags: Type.Optional(Tags("Replaces the tags.")),
    metadata: Type.Optional(Metadata("Merged into what is there, key by key; a null removes the key.")),
    external_id: Type.Optional(OrNull(ExternalId("A name of your own; null takes it away."))),
    source: Type.Optional(Source("Who says so.")),
    importance: Type.Optional(OrNull(Importance("How important it is to you; null: unknown."))),
    pinned: Type.Optional(Pinned),
    expires_at: Type.Optional(OrNull(Moment(`${EXPIRES_AT} null: never.`))),
    ttl_seconds: Type.Optional(Ttl),
    valid_from: Type.Optional(
      OrNull(Moment("Since when it holds; null: since ever, or since it was added where it supersedes another one.")),
    ),
    valid_until: Type.Optional(OrNull(Moment("Until when it holds; null: for ever."))),
    reason: Type.Optional(Reason),
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
    user_id: Type.Optional(UserFilter),
    agent_id: Type.Optional(AgentFilter),
    type: Type.Optional(OfType),
    types: Type.Optional(
      Type.Array(Text(1, LIMITS.memoryTypeLengthMax), {
        maxItems: LIMITS.memoryTypesMax,
        description: "Memories of ANY of these types; an empty array is no filter.",
      }),
    ),
    tags: Type.Optional(Tags("Memories with ANY of them, unless `tags_match` says otherwise.")),
    tags_match: Type.Optional(TagsMatch),
    filter: Type.Optional(MemoryFilter),
    created_after: Type.Optional(Moment("Only memories that were added after this time.")),
    created_before: Type.Optional(Instant("Only memories that were added before this time.", { parse: parseInstantUp, example: null })),
    status: Type.Optional(Status),
    as_of: Type.Optional(AsOf("The moment at which memories have that status, instead of now.")),
    limit: Limit(LIMITS.searchMax, LIMITS.searchDefault),
    threshold: Default(
      Type.Number({ minimum: 0, maximum: 1, description: "Lowest score; default 0.7. With 0 nothing is left out." }),
      LIMITS.searchThresholdDefault,
    ),
    recency: Type.Optional(Recency),
    importance_weight: Type.Optional(ImportanceWeight),
    explain: Default(Type.Boolean({ description: "Add to each result why it was found." }), false),
  },
  { title: "MemorySearch", description: "What to look for." },
);

export const MEMORY_FILTER = {
  session_id: Type.Optional(SessionFilter),
  user_id: Type.Optional(UserFilter),
  agent_id: Type.Optional(AgentFilter),
  type: Type.Optional(OfType),
  tags: Type.Optional(
    Type.Array(Type.String(), {
      description:
        "Memories with ANY of these tags: one value with commas between the tags, or the parameter once for each tag, which may then contain commas. " +
        "Empty values are ignored, so that `tags=a%2Cb&tags=` means the one tag `a,b`.",
      examples: [["contact"]],
    }),
  ),
  tags_match: Type.Optional(TagsMatch),
  filter: Type.Optional(MemoryFilter),
  status: Type.Optional(Status),
  as_of: Type.Optional(AsOf("The moment at which memories have that status, instead of now.")),
  ...Created("memories"),
};

const FORGET_TOKEN =
  "Token of a dry run. With the same filter and `dry_run: false` exactly those go that it counted: if one was changed or is gone since, it is 409 `version_conflict` and nothing goes.";
export const Forgetting = Type.Object(
  {
    filter: Filter({ "metadata.source": "crm", created_at: { $lt: "2026-05-07T08:00:00Z" } }),
    dry_run: Default(Type.Boolean({ description: "Delete nothing, and say what would go." }), true),
    limit: Limit(LIMITS.forgottenMax, LIMITS.forgottenDefault),
    reason: Type.Optional(Reason),
    token: Type.Optional(Parsed("the token of a dry run", parseForgetToken, { description: FORGET_TOKEN })),
  },
  { title: "Forgetting", description: "Memories to delete." },
);

const shown = { description: `Up to ${LIMITS.forgottenShown} of them, newest first; of a dry run alone.`, examples: [[exampleOf(Memory)]] };
const token = { description: FORGET_TOKEN, examples: ["0VQk3aB4x1Zq.1.Q9d3kPqm0RzWcT5yLh2uVA"] };
export const Forgotten = Type.Object(
  {
    object: Type.Literal("forget_result"),
    dry_run: Type.Boolean({ description: "true where nothing was deleted.", examples: [true] }),
    count: Type.Integer({ minimum: 0, description: "How many memories were deleted, or would be.", examples: [1] }),
    examples: Type.Optional(Type.Array(Memory, shown)),
    token: Type.Optional(Type.String(token)),
    has_more: Type.Boolean({ description: "true where more pass: ask again for these.", examples: [false] }),
    partial: Type.Optional(Partial),
    redacted: Redacted,
  },
  { title: "ForgetResult", description: "What was forgotten, or would be." },
);
