/**
 * The trial of an embedding provider on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { Default, OrNull, Text } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { changeableGroup } from "../settings/schema.ts";

const QUERY = "How does the customer prefer to be contacted?";
const CONTENT = "The customer prefers e-mail to phone calls.";

export const EmbeddingTry = Type.Object(
  {
    embedding: changeableGroup("embedding"),
    query: Default(Text(1, LIMITS.queryLengthMax, { description: "What is looked for; default a question about the other text." }), QUERY),
    content: Default(Text(1, LIMITS.queryLengthMax, { description: "A memory; default one that answers the question." }), CONTENT),
  },
  {
    title: "EmbeddingTry",
    description: "The provider to try, and a pair of texts. What is left out of `embedding` is as it is set.",
    examples: [{ query: QUERY, content: CONTENT }],
  },
);

export const EmbeddingTrial = Type.Object(
  {
    object: Type.Literal("embedding_trial"),
    works: Type.Boolean({ description: "Whether it answers with vectors that can be used.", examples: [true] }),
    reason: OrNull(Type.String({ description: "Why it does not work." })),
    param: OrNull(Type.String({ description: "The setting that is most likely wrong." })),
    duration_ms: OrNull(Type.Number({ description: "Milliseconds that the vector of `query` took.", examples: [0.4] })),
    vector_length: OrNull(Type.Integer({ description: "Length of the provider's own vectors; null for the built-in one." })),
    separation: OrNull(Type.Number({ description: "Share of the probes that it puts on the right side; null for the built-in one." })),
    score: OrNull(
      Type.Number({ description: "The score that a search for `query` would give to `content`, 0.0 to 1.0.", examples: [0.86] }),
    ),
  },
  { title: "EmbeddingTrial", description: "Whether a provider works, and what it does with a pair of texts." },
);
