/**
 * The context on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Default, Text, UserObject } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { AsOf, Explanation, Memory, QUERY_EXAMPLE, Score } from "../memories/schema.ts";
import { Turn } from "../turns/schema.ts";

const Limited = (records: string, maximum: number, fallback: number) =>
  Default(Type.Integer({ minimum: 0, maximum, description: `How many ${records} at most; default ${fallback}.` }), fallback);

export const ContextRequest = Type.Object(
  {
    query: Type.Optional(
      Text(0, LIMITS.queryLengthMax, {
        description: "What the agent is about to do or was asked; finds memories by meaning. Without one, the newest are given.",
        examples: [QUERY_EXAMPLE],
      }),
    ),
    memory_limit: Limited("memories", LIMITS.contextMemoriesMax, LIMITS.contextMemoriesDefault),
    turn_limit: Limited("turns", LIMITS.contextTurnsMax, LIMITS.contextTurnsDefault),
    as_of: Type.Optional(AsOf("Show the memories that were current then, instead of now.")),
    explain: Default(Type.Boolean({ description: "Add to each memory why it was found." }), false),
  },
  { title: "ContextRequest", description: "What the context should hold." },
);

const { id, content, type, source, created_at } = Memory.properties;
export const Context = Type.Object(
  {
    state: UserObject({ description: "The current state.", examples: [{ step: 1 }] }),
    memories: Type.Array(
      Type.Object({
        id,
        content,
        type,
        source,
        score: Score("0.0 to 1.0; 0.0 without a query."),
        created_at,
        explanation: Type.Optional(Explanation),
      }),
      { description: "Best first; without a query newest first." },
    ),
    recent_turns: Type.Array(
      Type.Pick(Turn, ["id", "input", "output", "created_at", "occurred_at"], { title: "RecentTurn", description: "A turn, in short." }),
      { description: "Newest first, by when they happened (`occurred_at`, or `created_at` without one)." },
    ),
  },
  { title: "Context", description: "All an agent needs for its next step." },
);
