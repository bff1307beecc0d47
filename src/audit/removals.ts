/**
 * Proof of what retention and erasure take from chains of traces: written in the commit that takes it, signed, and without content.
 *
 * @module
 */
import type { Tx } from "../storage/access.ts";
import type { AuditKey } from "../storage/audit/audit-key.ts";
import {
  HASH_TEXT_LENGTH,
  leafOf,
  linkText,
  nextSalt,
  parseLink,
  removalsText,
  SEGMENT_TRACES,
  segmentKey,
  textOfBytes,
} from "../storage/audit/format.ts";
import {
  auditRemovals,
  auditSegments,
  traces,
  type AuditRemoval,
  type AuditRemovalsRow,
  type RemovalCause,
  type TraceRow,
} from "../storage/tables.ts";

/** Removals of one commit, by segment. */
export class Removals {
  readonly #tx: Tx;
  readonly #key: AuditKey | undefined;
  readonly #segments = new Map<string, AuditRemoval[]>();

  constructor(tx: Tx, { auditKey }: { readonly auditKey: AuditKey | undefined }) {
    this.#tx = tx;
    this.#key = auditKey;
  }

  /** Removes a trace. */
  remove(key: string, row: TraceRow): void {
    this.#tx.remove(traces, key);
    this.#note(key, row, "expired", undefined);
  }

  /** Puts another body in the place of that of a trace. */
  erase(key: string, row: TraceRow, body: TraceRow["body"]): void {
    if (row.link === undefined) return this.#tx.put(traces, key, { ...row, body });
    const link = parseLink(row.link);
    const erased = { ...row, link: linkText({ ...link, salt: nextSalt(link.salt) }), body };
    this.#tx.put(traces, key, erased);
    this.#note(key, row, "erased", erased);
  }

  /** Writes what was noted. To be called once all are. */
  write(): void {
    for (const [segment, noted] of this.#segments) {
      const before = this.#tx.get(auditRemovals, segment)?.removed ?? [];
      const places = new Map(before.map((removal) => [removal.place, removal]));
      // A trace that was erased and is removed now keeps the leaf that it had first.
      for (const removal of noted) places.set(removal.place, { ...removal, leaf: places.get(removal.place)?.leaf ?? removal.leaf });
      const removed = Array.from(places.values()).toSorted((a, b) => a.place - b.place);
      const isAll = removed.length === SEGMENT_TRACES && removed.every(({ now }) => now === undefined);
      if (isAll) this.#empty(segment);
      this.#put(segment, isAll ? { all: countsOf(removed) } : { removed });
    }
  }

  #note(key: string, row: TraceRow, cause: RemovalCause, since: TraceRow | undefined): void {
    if (row.link === undefined || this.#key === undefined) return;
    const { chain, place } = parseLink(row.link);
    const segment = segmentKey(chain, Math.floor(place / SEGMENT_TRACES));
    const noted = this.#segments.get(segment) ?? [];
    this.#segments.set(segment, noted);
    const now = since === undefined ? {} : { now: leafOfRow(key, since) };
    noted.push({ place: place % SEGMENT_TRACES, cause, at: this.#tx.now, leaf: leafOfRow(key, row), ...now });
  }

  #put(segment: string, row: Pick<AuditRemovalsRow, "removed" | "all">): void {
    const key = this.#key!;
    this.#tx.put(auditRemovals, segment, { ...row, publicKey: key.publicKey, signature: key.sign(removalsText(segment, row)) });
  }

  /** Takes keys and hashes of a segment away of which nothing is left; what is signed stays. */
  #empty(segment: string): void {
    const row = this.#tx.get(auditSegments, segment);
    if (row?.leaves?.length !== SEGMENT_TRACES * HASH_TEXT_LENGTH) return;
    const { traces: _, leaves: __, ...rest } = row;
    this.#tx.put(auditSegments, segment, rest);
  }
}

function leafOfRow(key: string, { link = "", ...row }: TraceRow): string {
  return textOfBytes(leafOf(parseLink(link).salt, key, traces.toExport(traces.encode(row))));
}

function countsOf(removed: readonly AuditRemoval[]): NonNullable<AuditRemovalsRow["all"]> {
  const times = removed.map(({ at }) => at);
  const expired = removed.filter(({ cause }) => cause === "expired").length;
  return { expired, erased: removed.length - expired, firstAt: Math.min(...times), lastAt: Math.max(...times) };
}
