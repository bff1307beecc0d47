/**
 * The context on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Default, OneOf, OrNull, RecordId, Text, Timestamp, UserObject } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import {
  AsOf,
  ImportanceWeight,
  Memory,
  MemoryExplanation,
  MemoryFilter,
  Partial,
  QUERY_EXAMPLE,
  RankingScore,
  Recency,
  Score,
} from "../memories/schema.ts";
import { RetrievalId } from "../retrievals/schema.ts";
import { Turn } from "../turns/schema.ts";
import { REPLAY_CHANGES, REPLAY_KINDS } from "./replay.ts";
import { CONTEXT_FORMATS, CONTEXT_PARTS, MEMORY_SCOPES } from "./request.ts";

const Limited = (records: string, maximum: number, fallback: number) =>
  Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum,
      description: `How many ${records} at most; default ${fallback}, with \`max_tokens\` ${maximum}.`,
    }),
  );

export const ContextRequest = Type.Object(
  {
    query: Type.Optional(
      Text(0, LIMITS.queryLengthMax, {
        description:
          "What the agent is about to do or was asked; finds memories by meaning. Without one, the newest are given, by when they happened.",
        examples: [QUERY_EXAMPLE],
      }),
    ),
    memory_limit: Limited("memories", LIMITS.contextMemoriesMax, LIMITS.contextMemoriesDefault),
    turn_limit: Limited("turns", LIMITS.contextTurnsMax, LIMITS.contextTurnsDefault),
    as_of: Type.Optional(AsOf("Show the memories that were current then, instead of now.")),
    max_tokens: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.contextTokensMax,
        description:
          "How many tokens the context may have as a block of text, counted from above: no more by the tokenizers of GPT (`o200k`) and Claude. What does not fit is left out and counted in `omitted`, but something of each kind is always there; too few for that are refused with the least.",
      }),
    ),
    format: Default(
      OneOf(CONTEXT_FORMATS, {
        description: "`text` adds a block for a prompt, `messages` messages for a chat API; default `json`, neither.",
      }),
      "json",
    ),
    memory_scope: Type.Optional(
      OneOf(MEMORY_SCOPES, {
        description:
          "Whose memories: those of the session alone, all of its user's (`user`, the default; of a session without a user its own), or of its `agent`: what belongs to no user, and what this user has with it.",
      }),
    ),
    include: Type.Optional(
      Type.Array(OneOf(CONTEXT_PARTS), {
        minItems: 1,
        maxItems: CONTEXT_PARTS.length,
        description:
          "What the context is to hold; everything unless given. What is left out is empty in the answer. `pinned` are the memories that are pinned, which come besides the `memory_limit`.",
      }),
    ),
    recency: Type.Optional(Recency),
    importance_weight: Type.Optional(ImportanceWeight),
    filter: Type.Optional(MemoryFilter),
    explain: Default(Type.Boolean({ description: "Add to each memory why it was found." }), false),
  },
  { title: "ContextRequest", description: "What the context should hold." },
);

const Truncated = Type.Optional(
  Type.Literal(true, { description: "Set where not all of it fitted: its text ends with `…`. Left out for others." }),
);
const Omitted = (records: string) => Type.Integer({ description: `How many ${records} did not fit.` });

const { id, content, type, source, created_at } = Memory.properties;
const recentTurn = Type.Pick(Turn, ["id", "input", "output", "created_at", "occurred_at"]).properties;
export const Context = Type.Object(
  {
    state: UserObject({ description: "The current state.", examples: [{ step: 1 }] }),
    memories: Type.Array(
      Type.Object({
        id,
        content,
        type,
        source,
        score: Score("0.0 to 1.0; 0.0 without a query, and of a pinned one that the query would not have found."),
        ranking_score: RankingScore,
        created_at,
        pinned: Type.Optional(Type.Literal(true, { description: "Set where it is pinned. Left out for others." })),
        truncated: Truncated,
        explanation: Type.Optional(MemoryExplanation),
      }),
      {
        description:
          "First those that are pinned, newest first, then the best; without a query the newest. What is new goes by `occurred_at`, or `created_at` without one.",
      },
    ),
    partial: Type.Optional(Partial),
    recent_turns: Type.Array(
      Type.Object({ ...recentTurn, truncated: Truncated }, { title: "RecentTurn", description: "A turn, in short." }),
      { description: "Newest first, by when they happened (`occurred_at`, or `created_at` without one)." },
    ),
    token_count: Type.Optional(
      Type.Integer({
        description:
          "How many tokens it has as a block of text, counted from above. Set with `max_tokens`, or another `format` than `json`.",
      }),
    ),
    omitted: Type.Optional(
      Type.Object(
        {
          memories: Omitted("memories"),
          pinned: Omitted("pinned memories"),
          turns: Omitted("turns"),
          state: Type.Integer({ description: "1 where the state did not fit; it stands whole or not at all." }),
        },
        { title: "Omitted", description: "What was found within the limits and did not fit. Set where `token_count` is." },
      ),
    ),
    text: Type.Optional(
      Type.String({
        description:
          'With `format: "text"`: all of it as a block for a prompt. Each text of yours is a JSON string within a line, so that none can pass for a heading or a role. The same records give the same text.',
      }),
    ),
    messages: Type.Optional(
      Type.Array(
        Type.Object(
          {
            role: OneOf(["user", "assistant"], { description: "Who says so.", examples: ["user"] }),
            content: Type.String({ description: "State and memories as a block, or a text of a turn as it is.", examples: ["Hello"] }),
          },
          { title: "ContextMessage", description: "A message for a chat API." },
        ),
        { description: 'With `format: "messages"`: state and memories in the first one, then the turns, oldest first.' },
      ),
    ),
    retrieval_id: RetrievalId,
  },
  { title: "Context", description: "All an agent needs for its next step." },
);

const ReplayChange = Type.Object(
  {
    kind: OneOf(REPLAY_KINDS, { description: "What has changed.", examples: ["memory"] }),
    id: OrNull(
      Type.String({
        description: "The memory or the turn; null for others, and for memories that are `hidden`.",
        examples: ["mem_4hTq2LxVb0Zs"],
      }),
    ),
    change: OneOf(REPLAY_CHANGES, {
      description:
        "`edited`: shown with the content that it had then. `rewritten`: that content is no longer kept, and the present one is shown. `rolled_back`: a turn that is hidden now, shown as it was. `gone`: deleted, expired, or no longer kept, and left out; of the `request`, which was too long to keep, `max_tokens` and `format` are. `hidden`: memories of other users or agents, which this key may not see, were there too.",
      examples: ["edited"],
    }),
  },
  { title: "ReplayChange", description: "Something that is not as it was." },
);

export const ContextReplay = Type.Object(
  {
    object: Type.Literal("context_replay"),
    retrieval_id: RecordId("ret", "Its entry in the log of retrievals."),
    exact: Type.Boolean({
      description: "True if nothing of it was edited or deleted since: then it is what the agent got, but for `explanation` and `partial`.",
      examples: [true],
    }),
    changes: Type.Array(ReplayChange, { description: "What was edited, hidden or deleted since.", examples: [[]] }),
    created_at: Timestamp("When the agent got it."),
    context: Context,
  },
  { title: "ContextReplay", description: "A context of before, built again from the log of retrievals." },
);
