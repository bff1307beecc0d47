/**
 * Proofs of traces on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { OrNull, RecordId, Text, Timestamp } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";

const Hash = (description: string, example: string) =>
  Type.String({ description: `${description} 32 bytes in base64url.`, examples: [example] });

const CHAIN = Type.String({ description: "Id of the chain.", examples: ["0VQk3aB4x1Zq"] });

const HEAD = {
  chain: CHAIN,
  public_key: Hash("Public key of Ed25519 that signs the chain.", "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"),
  count: Type.Integer({ minimum: 0, description: "Number of traces of the chain up to here.", examples: [1042] }),
  digest: Hash("Digest of the chain here.", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"),
  names: Hash("SHA-256 of the keys of the last segment's traces.", "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"),
  signed_at: Timestamp("When it was signed."),
  signed_text: Type.String({
    description: "The text that is signed, in UTF-8.",
    examples: [
      "cairn audit head 1\n0VQk3aB4x1Zq\n1042\n47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU\nn4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg\n1700000000000",
    ],
  }),
  signature: Type.String({ description: "Its signature. 64 bytes in base64url.", examples: ["A".repeat(86)] }),
};

const SignedHead = Type.Object(HEAD, { title: "SignedHead", description: "The signed end of a chain of traces." });

export const AuditHead = Type.Object(
  {
    object: Type.Literal("audit_head"),
    chains: Type.Array(SignedHead, { description: "The heads of the chains that no later one names, oldest first." }),
  },
  { title: "AuditHead", description: "What all traces lead to. Kept elsewhere, it shows later that none of them was changed or cut off." },
);

export const AuditProof = Type.Object(
  {
    object: Type.Literal("audit_proof"),
    trace_id: RecordId("trace", "The trace."),
    key: Type.String({ description: "Key of its row: the code of its action and the id.", examples: ["s0VQk3aB4x1Zq"] }),
    row: Type.String({
      description: "Its row as an export has it, without `link`, byte for byte.",
      examples: ['{"expiresAt":1707776000000,"actor":"crn_9fK2","body":{}}'],
    }),
    salt: Type.String({
      description: "Salt of its hash: SHA-256 of salt, line feed, key, line feed, row is the leaf.",
      examples: ["b2xkIHNhbHQgb2YgMTYgYg"],
    }),
    place: Type.Integer({ minimum: 0, description: "Number of the trace in the chain, from 0.", examples: [1041] }),
    before: Hash("Digest of the chain before the first of `leaves`.", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"),
    leaves: Type.Array(Hash("A leaf.", "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"), {
      description:
        "Leaves of its segment: SHA-256 of digest and leaf is the next digest, and the last of them that of `head`. The one of the trace is at `place` modulo 256.",
    }),
    head: SignedHead,
    erasure: OrNull(
      Type.Object(
        {
          public_key: HEAD.public_key,
          signed_text: Type.String({ description: "The text that is signed.", examples: ["cairn audit removals 1\n…"] }),
          signature: HEAD.signature,
        },
        {
          title: "SignedErasure",
          description:
            "Set where the content of the trace was erased: its leaf in the chain is then `leaf` of its place in the signed text, and that of its row `now`.",
        },
      ),
    ),
  },
  { title: "AuditProof", description: "What leads from a trace to a signed head." },
);

export const PROOF_QUERY = {
  trace: Text(1, LIMITS.agentIdLengthMax, { description: "Id of the trace.", examples: ["trace_0VQk3aB4x1Zq"] }),
};
