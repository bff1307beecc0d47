/**
 * Heads of chains of traces, and the proof of one trace.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, type TraceId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import {
  HASH_TEXT_LENGTH,
  headText,
  parseLink,
  removalsText,
  SEGMENT_TRACES,
  segmentKey,
  splitLink,
  startDigest,
  textOfBytes,
} from "../storage/audit/format.ts";
import type { Reader } from "../storage/access.ts";
import { isErased } from "../storage/erasure.ts";
import { auditChains, auditRemovals, auditSegments, traces, type AuditSegmentRow } from "../storage/tables.ts";
import type { Deps } from "../traces/record.ts";
import { visibleTrace, type TraceReader } from "../traces/traces.ts";
import { openChains } from "./start.ts";

const SIGNED_SOON_SECONDS = 5;

/** Signs what this server has linked, and answers the heads of all chains that none names. */
export async function auditHead({ store }: Deps): Promise<JsonText> {
  await store.signTraces();
  const chains = await store.readNewest((reader) =>
    openChains(reader).flatMap(({ chain, row, signed }) => (signed === undefined ? [] : [headJson(chain, row.publicKey, signed)])),
  );
  return toJson({ object: "audit_head", chains });
}

function headJson(chain: string, publicKey: string, row: AuditSegmentRow): object {
  const { count, digest, names, at, signature } = row;
  return { chain, public_key: publicKey, count, digest, names, signed_at: toIso(at), signed_text: headText(chain, row), signature };
}

/**
 * @throws {ApiError} `trace_not_found` for one that the caller may not see, `resource_not_found` for one in no chain,
 *   `service_unavailable` for one that is not signed yet
 */
export async function auditProof({ store }: Deps, caller: TraceReader, id: string): Promise<JsonText> {
  // A refused request signs nothing.
  await store.read((reader) => visibleTrace(reader, caller, id, "trace"));
  await store.signTraces();
  return store.readNewest((reader) => proofOf(reader, caller, id));
}

function proofOf(reader: Reader, caller: TraceReader, id: string): JsonText {
  const { key, row } = visibleTrace(reader, caller, id, "trace");
  if (row.link === undefined)
    throw new ApiError("resource_not_found", `The trace ${id} is of before its store linked traces: it has no proof.`, { param: "trace" });
  const { chain, place, salt } = parseLink(row.link);
  const segment = Math.floor(place / SEGMENT_TRACES);
  const [own, before] = [segmentKey(chain, segment), segmentKey(chain, Math.max(0, segment - 1))];
  reader.ahead(auditSegments, new Set([own, before]));
  const begun = reader.get(auditChains, chain);
  const signed = reader.get(auditSegments, own);
  const removals = reader.get(auditRemovals, own);
  const digestBefore = segment === 0 ? begun && textOfBytes(startDigest(chain, begun)) : reader.get(auditSegments, before)?.digest;
  if (
    begun === undefined ||
    signed?.leaves === undefined ||
    signed.count <= place ||
    digestBefore === undefined ||
    isErased(reader, row, bare(id as TraceId))
  )
    throw new ApiError("service_unavailable", `The trace ${id} is not signed yet, or is being erased.`, {
      retryAfterSeconds: SIGNED_SOON_SECONDS,
    });
  const erasure = removals?.removed?.some((one) => one.place === place % SEGMENT_TRACES) === true ? removals : undefined;
  return toJson({
    object: "audit_proof",
    trace_id: id,
    key,
    row: splitLink(traces.toExport(traces.encode(row)))!.rest,
    salt,
    place,
    before: digestBefore,
    leaves: signed.leaves.match(new RegExp(`.{${HASH_TEXT_LENGTH}}`, "g")),
    head: headJson(chain, begun.publicKey, signed),
    erasure:
      erasure === undefined
        ? null
        : { public_key: erasure.publicKey, signed_text: removalsText(own, erasure), signature: erasure.signature },
  });
}
