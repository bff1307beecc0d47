/**
 * Proofs of traces: the table of URLs.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import type { Deps } from "../traces/record.ts";
import { readerOf } from "../traces/traces.ts";
import { auditHead, auditProof } from "./proof.ts";
import { AuditHead, AuditProof, PROOF_QUERY } from "./schema.ts";

const audit = endpointGroup({
  name: "Audit",
  description: "Proof that traces are as they were written: chains of hashes, with signed heads.",
});

export function auditEndpoints(deps: Deps): Endpoint[] {
  return [
    audit.get("/v1/audit/head", {
      summary: "Get the signed heads",
      description:
        "Signs what this server has written, and answers the heads of the chains. Keep them elsewhere: `cairn audit verify --head FILE` shows later whether traces up to them were changed, removed or added.",
      scope: "admin",
      response: AuditHead,
      run: () => auditHead(deps),
    }),
    audit.get("/v1/audit/proof", {
      summary: "Get the proof of a trace",
      description:
        "What leads from the trace to a signed head: its row, the hashes of its segment of at most 256 traces, and the signature. 503 while another server has not signed it yet, which takes seconds.",
      query: Type.Object(PROOF_QUERY),
      errors: ["trace_not_found", "resource_not_found"],
      response: AuditProof,
      run: ({ query, caller }) => auditProof(deps, readerOf(caller), query.trace),
    }),
  ];
}
