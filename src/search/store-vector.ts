/**
 * Stores the vector and the words of a record, inside a commit.
 *
 * @module
 */
import type { Embedding } from "../embeddings/embedder.ts";
import { bare, partitionOf, type BareId, type Id } from "../lib/ids.ts";
import type { Tx } from "../storage/access.ts";
import type { Collection, EmbeddedRow } from "../storage/collections.ts";
import { encodeVector } from "./encoding.ts";

/**
 * @param id - of the vector; one that is made with its record has the record's own
 * @returns what the record's row says of it
 */
export function storeVector(
  tx: Tx,
  { vectors }: Collection,
  record: BareId,
  generation: number,
  embedding: Embedding,
  id: Id<"emb"> = tx.id("emb", partitionOf(record)),
): NonNullable<EmbeddedRow["embedding"]> {
  tx.putVector(vectors, bare(id), encodeVector(embedding, { memory: record, generation }));
  return embedding.vector.length === 0 ? { id, generation, hasNoVector: true } : { id, generation };
}
