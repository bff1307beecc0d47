/**
 * The context on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { RecordId, Text, Timestamp, UserObject } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { Explanation } from "../memories/schema.ts";
import { Turn } from "../turns/schema.ts";

export const ContextRequest = Type.Object(
  {
    query: Type.Optional(
      Text(0, LIMITS.queryLengthMax, {
        description: "What the agent is about to do or was asked; finds memories by meaning. Without one the newest come.",
      }),
    ),
    memory_limit: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.contextMemoriesMax,
        default: LIMITS.contextMemoriesDefault,
        description: `How many memories at most; default ${LIMITS.contextMemoriesDefault}.`,
      }),
    ),
    turn_limit: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.contextTurnsMax,
        default: LIMITS.contextTurnsDefault,
        description: `How many turns at most; default ${LIMITS.contextTurnsDefault}.`,
      }),
    ),
    explain: Type.Optional(Type.Boolean({ default: false, description: "Add to each memory why it was found." })),
  },
  { title: "ContextRequest", description: "What the context should hold." },
);

export const Context = Type.Object(
  {
    state: UserObject({ description: "The current state." }),
    memories: Type.Array(
      Type.Object({
        id: RecordId("mem", "The memory."),
        content: Type.String(),
        type: Type.String(),
        score: Type.Number({ minimum: 0, maximum: 1, description: "0.0 to 1.0; 0.0 without a query." }),
        created_at: Timestamp("When the memory was added."),
        explanation: Type.Optional(Explanation),
      }),
      { description: "Best first; without a query newest first." },
    ),
    recent_turns: Type.Array(
      Type.Pick(Turn, ["id", "input", "output", "created_at"], { title: "RecentTurn", description: "A turn, in short." }),
      { description: "Newest first." },
    ),
  },
  { title: "Context", description: "All an agent needs for its next step." },
);
