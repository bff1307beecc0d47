/**
 * The context on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Default, RecordId, Text, Timestamp, UserObject } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { Explanation } from "../memories/schema.ts";
import { Turn } from "../turns/schema.ts";

const Limited = (records: string, maximum: number, fallback: number) =>
  Default(Type.Integer({ minimum: 0, maximum, description: `How many ${records} at most; default ${fallback}.` }), fallback);

export const ContextRequest = Type.Object(
  {
    query: Type.Optional(
      Text(0, LIMITS.queryLengthMax, {
        description: "What the agent is about to do or was asked; finds memories by meaning. Without one, the newest are given.",
      }),
    ),
    memory_limit: Limited("memories", LIMITS.contextMemoriesMax, LIMITS.contextMemoriesDefault),
    turn_limit: Limited("turns", LIMITS.contextTurnsMax, LIMITS.contextTurnsDefault),
    explain: Default(Type.Boolean({ description: "Add to each memory why it was found." }), false),
  },
  {
    title: "ContextRequest",
    description: "What the context should hold.",
    examples: [{ query: "How does the customer prefer to be contacted?", memory_limit: 5 }],
  },
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
  {
    title: "Context",
    description: "All an agent needs for its next step.",
    examples: [
      {
        state: { step: 1 },
        memories: [
          {
            id: "mem_0VQk3cF8g9Hi",
            content: "The customer prefers e-mail to phone calls.",
            type: "preference",
            score: 0.857357,
            created_at: "2026-05-07T08:00:07.000Z",
          },
        ],
        recent_turns: [
          {
            id: "turn_0VQk3bD5c6Ef",
            input: { type: "text", content: "Where is my order?" },
            output: { type: "text", content: "It arrives tomorrow." },
            created_at: "2026-05-07T08:00:05.000Z",
          },
        ],
      },
    ],
  },
);
