/**
 * Tables of embeddings: the provider that makes vectors, those that are pending, and the vectors of memories.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { BareIdText, Finite, IdText, Text, Uint32, Whole } from "../row-types.ts";
import { having, json, text } from "./codecs.ts";
import { CURRENT, table, type VectorTable } from "./table.ts";

export const Embedding = Type.Object({ id: IdText("emb"), generation: Uint32, hasNoVector: Type.Optional(Type.Literal(true)) });

/** Memories and indexed documents whose vector is still to be made. */
export const pendingEmbeddings = table("pending_embeddings", /^/, Text, text);

export const vectors: VectorTable = { name: "vectors", isOfBytes: true };

const ProviderRow = Type.Object({
  /** Everything that decides what a vector means. */
  identity: Text,
  /** Counts the changes of the provider. Vectors of other generations compare with nothing. */
  generation: Uint32,
  /** Set until no vector of an earlier generation is left: none has an id after this one. */
  replacesUntil: Type.Optional(BareIdText),
  /** The length of its vectors and what its cosines mean, once it has answered; never set for the built-in provider. */
  vectorLength: Type.Optional(Whole),
  measured: Type.Optional(Type.Object({ relevantCosine: Finite, cosineOfUnrelated: Finite, cosineOfSame: Finite, separation: Finite })),
});
export type ProviderRow = Static<typeof ProviderRow>;
export const provider = table(
  "provider",
  CURRENT,
  ProviderRow,
  having(json<ProviderRow>(), { cachedBytesMax: CACHE_BYTES_MAX.provider, isGlobal: true }),
);
export const PROVIDER_KEY = "current";
