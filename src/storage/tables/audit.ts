/**
 * Tables that prove what traces there were: chains, their segments with signatures, and what was removed.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { BareIdText, OneOf, Truth, Whole } from "../row-types.ts";
import { json } from "./codecs.ts";
import { ID, table } from "./table.ts";

/** 32 bytes in base64url: a SHA-256, or a public key. */
const Bytes32 = Type.String({ pattern: "^[\\w-]{43}$", description: "32 bytes in base64url" });
const Signature = Type.String({ pattern: "^[\\w-]{86}$", description: "64 bytes in base64url" });

const AuditChainRow = Type.Object({
  /** Ed25519. */
  publicKey: Bytes32,
  startedAt: Whole,
  /** Newest trace when it began: those up to it that have no place in a chain are of before, or were imported. */
  after: BareIdText,
  /** Last signed heads of the chains before it. */
  previous: Type.Array(Type.Object({ chain: BareIdText, count: Whole, digest: Bytes32 })),
  /** Set once a chain names it that began after its writer had ended. */
  isClosed: Type.Optional(Truth),
});
export type AuditChainRow = Static<typeof AuditChainRow>;
export const auditChains = table("audit_chains", ID, AuditChainRow, json<AuditChainRow>(), {
  open: { of: (chain, { isClosed }) => (isClosed === true ? undefined : chain) },
});

const SEGMENT_KEY = /^[0-9A-Za-z]{19}$/;

const AuditSegmentRow = Type.Object({
  /** Number of traces of the chain up to its end. */
  count: Whole,
  /** Digest of the chain there. */
  digest: Bytes32,
  /** SHA-256 of the keys of its traces. */
  names: Bytes32,
  at: Whole,
  signature: Signature,
  /** Keys of its traces and their leaves, side by side; left out once all of them are removed. */
  traces: Type.Optional(Type.String({ pattern: "^([0-9A-Za-z]{13})*$", description: "keys of traces" })),
  leaves: Type.Optional(Type.String({ pattern: "^([\\w-]{43})*$", description: "32 bytes each in base64url" })),
});
export type AuditSegmentRow = Static<typeof AuditSegmentRow>;
export const auditSegments = table("audit_segments", SEGMENT_KEY, AuditSegmentRow, json<AuditSegmentRow>());

export const REMOVAL_CAUSES = ["expired", "erased"] as const;
export type RemovalCause = (typeof REMOVAL_CAUSES)[number];

const AuditRemoval = Type.Object({
  /** Place in the segment. */
  place: Whole,
  cause: OneOf(REMOVAL_CAUSES),
  at: Whole,
  /** Leaf of the trace as it was. */
  leaf: Bytes32,
  /** Leaf of the trace as it is since; left out where the trace is gone. */
  now: Type.Optional(Bytes32),
});
export type AuditRemoval = Static<typeof AuditRemoval>;

const AuditRemovalsRow = Type.Object({
  publicKey: Bytes32,
  signature: Signature,
  removed: Type.Optional(Type.Array(AuditRemoval)),
  /** Once all traces of the segment are gone, how many by cause, and when. */
  all: Type.Optional(Type.Object({ expired: Whole, erased: Whole, firstAt: Whole, lastAt: Whole })),
});
export type AuditRemovalsRow = Static<typeof AuditRemovalsRow>;
export const auditRemovals = table("audit_removals", SEGMENT_KEY, AuditRemovalsRow, json<AuditRemovalsRow>());
