/**
 * Verification of chains of traces, of the rows of a store or of the lines of an export.
 *
 * All rows are added first, in any order; then each chain is walked from its beginning, segment by segment, and whatever is not as it
 * was signed is named.
 *
 * @module
 */
import { BARE_ID_LENGTH, bareIdTime, firstBareIdAt, withPrefix } from "../lib/ids.ts";
import { fromBase62 } from "../lib/base62.ts";
import { toIso } from "../lib/time.ts";
import { isSigned } from "../storage/audit/audit-key.ts";
import type { Head } from "../storage/audit/chain.ts";
import {
  HASH_BYTES,
  HASH_TEXT_LENGTH,
  headText,
  namesDigest,
  nextDigest,
  removalsText,
  SEGMENT_TRACES,
  segmentKey,
  startDigest,
  bytesOfText,
  textOfBytes,
} from "../storage/audit/format.ts";
import type { AuditChainRow, AuditRemoval, AuditRemovalsRow, AuditSegmentRow } from "../storage/tables.ts";
import { LinkedTraces, type TraceAt } from "./linked-traces.ts";

/** Something that is not as it was signed. */
export interface AuditFinding {
  /** Says where it is, and in which way it is wrong. */
  readonly text: string;
  /** The trace that it is about, where it is one. */
  readonly trace?: string;
}

export interface AuditReport {
  readonly findings: readonly AuditFinding[];
  /** Number of findings, of which the first are in `findings`. */
  readonly count: number;
  readonly chains: number;
  /** Traces that are as they were signed. */
  readonly signed: number;
  /** Traces of the last seconds, which are linked and not signed yet. */
  readonly unsigned: number;
  /** Traces of before the first chain. */
  readonly uncovered: number;
  readonly expired: number;
  readonly erased: number;
  /** Public keys with the number of chains that each has signed. */
  readonly keys: readonly { readonly publicKey: string; readonly chains: number; readonly isTrusted: boolean }[];
  /** Last signed head of each chain that none names. */
  readonly heads: readonly (Head & { readonly at: number })[];
}

export interface VerifyOptions {
  /** Public keys that are trusted; all, where none is given. */
  readonly publicKeys: readonly string[];
  /** Heads that were kept elsewhere. */
  readonly heads: readonly Head[];
  /** True if no process writes traces: then all have to be signed. */
  readonly isSettled: boolean;
}

const FINDINGS_MAX = 1_000;
const UNSIGNED_MS_MAX = 60_000;

/** Characters of the key of a trace. */
const KEY_LENGTH = 1 + BARE_ID_LENGTH;
const nameOf = (key: string): string => withPrefix("trace", key.slice(-BARE_ID_LENGTH));

export class Verification {
  readonly #chains = new Map<string, AuditChainRow>();
  readonly #segments = new Map<string, AuditSegmentRow>();
  readonly #removals = new Map<string, AuditRemovalsRow>();
  readonly #traces = new LinkedTraces();
  readonly #findings: AuditFinding[] = [];
  #count = 0;
  #signed = 0;
  #unsigned: string[] = [];
  readonly #counts = { expired: 0, erased: 0 };
  /** Rows that sign each chain, in order. */
  #signedOf = new Map<string, [key: string, row: AuditSegmentRow][]>();

  addChain(chain: string, row: AuditChainRow): void {
    this.#chains.set(chain, row);
  }

  addSegment(key: string, row: AuditSegmentRow): void {
    this.#segments.set(key, row);
  }

  addRemovals(key: string, row: AuditRemovalsRow): void {
    this.#removals.set(key, row);
  }

  /** @param json - of its row as an export has it, byte for byte */
  addTrace(key: string, json: string): void {
    this.#traces.add(key, json);
  }

  /** Names something that is wrong with a row, which is not added then. */
  found(text: string, trace?: string): void {
    this.#count++;
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push(trace === undefined ? { text } : { text, trace });
  }

  report({ publicKeys, heads, isSettled }: VerifyOptions): AuditReport {
    const trust = new Trust(this.#chains, publicKeys);
    const chainOf = (key: string) => key.slice(0, BARE_ID_LENGTH);
    this.#signedOf = Map.groupBy(
      Array.from(this.#segments).sort(([a], [b]) => (a < b ? -1 : 1)),
      ([key]) => chainOf(key),
    );
    const named = [...this.#removals.keys().map(chainOf), ...trust.vouched.keys(), ...heads.map(({ chain }) => chain)];
    const all = new Set([...this.#chains.keys(), ...this.#traces.chains(), ...this.#signedOf.keys(), ...named]);
    for (const chain of Array.from(all).sort()) {
      const row = this.#chains.get(chain);
      if (row?.isClosed === true && !trust.vouched.has(chain)) this.found(`The chain ${chain} is closed, and none names it.`);
      const pins = [...(trust.vouched.get(chain) ?? []), ...heads.filter((head) => head.chain === chain)];
      if (row === undefined) this.#withoutRow(chain);
      else this.#walk(chain, row, trust, pins);
    }
    this.#uncoveredSince(trust);
    const newest = this.#traces.newest;
    const limit = isSettled ? undefined : firstBareIdAt((newest === undefined ? 0 : bareIdTime(newest)) - UNSIGNED_MS_MAX);
    const late = this.#unsigned.filter((key) => limit === undefined || key.slice(1) < limit);
    for (const key of late) this.found("is linked, but not signed: what wrote it was killed, or signatures were removed", nameOf(key));
    return {
      findings: this.#findings,
      count: this.#count,
      chains: this.#chains.size,
      signed: this.#signed,
      unsigned: this.#unsigned.length - late.length,
      uncovered: this.#traces.unlinked,
      ...this.#counts,
      keys: trust.keys(),
      heads: this.#heads(),
    };
  }

  #withoutRow(chain: string): void {
    const traces = this.#traces.of(chain);
    for (const { key } of traces) this.found(`was added, or its chain ${chain} was removed`, nameOf(key));
    if (traces.length === 0) this.found(`The chain ${chain} is missing.`);
  }

  #walk(chain: string, row: AuditChainRow, trust: Trust, pins: readonly Head[]): void {
    if (!trust.accepts(chain, row)) this.found(`The chain ${chain} is signed by a key that is not trusted: ${row.publicKey}.`);
    const traces = this.#traces.of(chain);
    const walk = new ChainWalk(this, chain, row, pins);
    const pinned = Math.max(0, ...pins.map(({ count }) => count));
    const last = Math.max(pinned, (traces.at(-1)?.place ?? -1) + 1, this.#countOf(chain));
    if (last === 0) this.found(`The chain ${chain} was added, or all of it was removed: it has no traces.`);
    this.#foundBehind(chain, last);
    for (let segment = 0, at = 0; segment * SEGMENT_TRACES < last; segment++) {
      const key = segmentKey(chain, segment);
      const end = Math.min(last, (segment + 1) * SEGMENT_TRACES);
      const here: TraceAt[] = [];
      while (at < traces.length && traces[at]!.place < end) here.push(traces[at++]!);
      const signed = this.#segments.get(key);
      if (row.isClosed === true && (signed?.count ?? 0) < Math.min(end, pinned))
        this.found(`The signature of the chain ${chain} at ${Math.min(end, pinned)} is missing.`);
      walk.segment({ segment, end, traces: here, signed, removals: this.#removalsOf(key, trust) });
    }
    this.#signed += walk.signed;
    this.#unsigned.push(...walk.unsigned);
  }

  /** Names rows of segments that a chain does not have. */
  #foundBehind(chain: string, last: number): void {
    for (const [table, rows] of [
      ["audit_segments", this.#segments],
      ["audit_removals", this.#removals],
    ] as const)
      for (const key of rows.keys())
        if (key.startsWith(chain) && endOf(key) - SEGMENT_TRACES >= last)
          this.found(`The row ${key} of ${table} was added: its chain has no such segment.`);
  }

  /** Number of traces of a chain that its segments say. */
  #countOf(chain: string): number {
    return Math.max(0, ...(this.#signedOf.get(chain) ?? []).map(([key, { count }]) => Math.min(count, endOf(key))));
  }

  #removalsOf(key: string, trust: Trust): AuditRemovalsRow | undefined {
    const row = this.#removals.get(key);
    if (row === undefined) return undefined;
    if (!trust.isKeyAccepted(row.publicKey) || !isSigned(row.publicKey, removalsText(key, row), row.signature)) {
      this.found(`What says that traces were removed (audit_removals ${key}) is not signed as it is.`);
      return undefined;
    }
    this.#counts.expired += row.all?.expired ?? row.removed?.filter(({ cause }) => cause === "expired").length ?? 0;
    this.#counts.erased += row.all?.erased ?? row.removed?.filter(({ cause }) => cause === "erased").length ?? 0;
    return row;
  }

  /** Traces without a place in a chain are of before the first one. */
  #uncoveredSince(trust: Trust): void {
    const trusted = Array.from(this.#chains).filter(([chain, row]) => trust.accepts(chain, row));
    if (trusted.length === 0) return;
    const first = trusted.map(([, { after }]) => after).toSorted()[0]!;
    for (const key of this.#traces.takeUnlinkedAfter(first)) this.found("was added: it is in no chain", nameOf(key));
  }

  #heads(): (Head & { at: number })[] {
    return Array.from(this.#chains).flatMap(([chain, { isClosed }]) => {
      const row = isClosed === true ? undefined : this.#signedOf.get(chain)?.at(-1)?.[1];
      return row === undefined ? [] : [{ chain, count: row.count, digest: row.digest, at: row.at }];
    });
  }
}

/** Place behind the last trace that the segment with a key can have. */
const endOf = (key: string): number => (fromBase62(key.slice(BARE_ID_LENGTH)) + 1) * SEGMENT_TRACES;

/** The keys that are trusted, and the chains that those of trusted keys name. */
class Trust {
  readonly vouched = new Map<string, Head[]>();
  readonly #chains: ReadonlyMap<string, AuditChainRow>;
  readonly #keys: ReadonlySet<string>;
  readonly #accepted = new Set<string>();

  constructor(chains: ReadonlyMap<string, AuditChainRow>, keys: readonly string[]) {
    this.#chains = chains;
    this.#keys = new Set(keys.length > 0 ? keys : Array.from(chains.values(), ({ publicKey }) => publicKey));
    const waiting = Array.from(chains).filter(([, { publicKey }]) => this.#keys.has(publicKey));
    const seen = new Set<string>();
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [chain, { publicKey, previous }] = next;
      if (seen.has(chain)) continue;
      seen.add(chain);
      this.#accepted.add(publicKey);
      for (const head of previous) {
        this.vouched.set(head.chain, [...(this.vouched.get(head.chain) ?? []), head]);
        const row = chains.get(head.chain);
        if (row !== undefined) waiting.push([head.chain, row]);
      }
    }
  }

  accepts(chain: string, { publicKey }: AuditChainRow): boolean {
    return this.#keys.has(publicKey) || this.vouched.has(chain);
  }

  isKeyAccepted(publicKey: string): boolean {
    return this.#keys.has(publicKey) || this.#accepted.has(publicKey);
  }

  keys(): AuditReport["keys"] {
    const byKey = Map.groupBy(this.#chains.values(), ({ publicKey }) => publicKey);
    return Array.from(byKey, ([publicKey, rows]) => ({ publicKey, chains: rows.length, isTrusted: this.isKeyAccepted(publicKey) }));
  }
}

interface SegmentParts {
  readonly segment: number;
  /** Place behind the last trace that it has, or had. */
  readonly end: number;
  readonly traces: readonly TraceAt[];
  readonly signed: AuditSegmentRow | undefined;
  readonly removals: AuditRemovalsRow | undefined;
}

/** A place of a chain, with what there is of it. */
interface Place {
  readonly place: number;
  /** As signed, with the key of the trace; undefined behind what is signed. */
  readonly leaf: Uint8Array | undefined;
  readonly key: string | undefined;
  readonly removal: AuditRemoval | undefined;
  readonly traces: readonly TraceAt[];
}

/** A walk along one chain. */
class ChainWalk {
  signed = 0;
  readonly unsigned: string[] = [];
  readonly #report: Verification;
  readonly #chain: string;
  readonly #row: AuditChainRow;
  readonly #pins: readonly Head[];
  /** Digest so far; undefined where a trace is missing that nothing says anything of. */
  #digest: Uint8Array | undefined;

  constructor(report: Verification, chain: string, row: AuditChainRow, pins: readonly Head[]) {
    this.#report = report;
    this.#chain = chain;
    this.#row = row;
    this.#pins = pins;
    this.#digest = startDigest(chain, row);
  }

  segment(parts: SegmentParts): void {
    const { segment, end, traces, signed, removals } = parts;
    const isSignedRight = signed !== undefined && this.#isRight(signed, segment);
    if (removals?.all !== undefined) {
      for (const { key } of traces) this.#report.found("was added: all traces of its segment were removed", nameOf(key));
      if (signed === undefined) this.#report.found(`The signature of a segment that was removed is missing: ${this.#chain} ${segment}.`);
      this.#digest = signed === undefined ? undefined : bytesOfText(signed.digest);
      this.#checkPins(end);
      return;
    }
    const removed = new Map((removals?.removed ?? []).map((removal) => [segment * SEGMENT_TRACES + removal.place, removal]));
    const byPlace = Map.groupBy(traces, ({ place }) => place);
    for (let place = segment * SEGMENT_TRACES; place < end; place++) {
      const inSegment = place - segment * SEGMENT_TRACES;
      const leaf = isSignedRight && place < signed.count ? leafAt(signed, inSegment) : undefined;
      const key = leaf === undefined ? undefined : signed?.traces?.slice(inSegment * KEY_LENGTH, (inSegment + 1) * KEY_LENGTH);
      this.#place({ place, leaf, key, removal: removed.get(place), traces: byPlace.get(place) ?? [] });
      this.#checkPins(place + 1);
    }
  }

  /** Checks a row that signs the end of a segment. */
  #isRight(signed: AuditSegmentRow, segment: number): boolean {
    const at = `${this.#chain} at ${signed.count}`;
    if (!isSigned(this.#row.publicKey, headText(this.#chain, signed), signed.signature)) {
      this.#report.found(`The signature of the chain ${at} is wrong: it, the digest or the beginning of the chain was changed.`);
      return false;
    }
    const size = signed.count - segment * SEGMENT_TRACES;
    const { traces, leaves } = signed;
    if (size < 1 || size > SEGMENT_TRACES) {
      this.#report.found(`What signs the chain ${at} was moved: it is of another segment.`);
      return false;
    }
    if (traces === undefined || leaves === undefined) return true;
    let digest = this.#digest;
    for (let place = 0; place < size; place++) digest &&= joined(digest, leafAt(signed, place) ?? new Uint8Array(HASH_BYTES));
    const areWhole = traces.length === size * KEY_LENGTH && leaves.length === size * HASH_TEXT_LENGTH && isCanonical(leaves);
    if (areWhole && namesDigest(traces) === signed.names && (digest === undefined || textOfBytes(digest) === signed.digest)) return true;
    this.#report.found(`The hashes of the chain ${at} do not lead to the digest that is signed there.`);
    return false;
  }

  #place(at: Place): void {
    const { place, leaf, key, removal, traces } = at;
    const expected = removal?.now ?? (removal === undefined ? leaf && textOfBytes(leaf) : undefined);
    const isThere = traces.find((trace) => expected === undefined || textOfBytes(trace.leaf) === expected) ?? traces[0];
    for (const other of traces)
      if (other !== isThere)
        this.#report.found(`was added: another trace has its place ${place} of the chain ${this.#chain}`, nameOf(other.key));
    if (removal !== undefined && leaf !== undefined && textOfBytes(leaf) !== removal.leaf)
      this.#report.found(`What says that a trace was removed has another hash than the chain ${this.#chain} at ${place}.`);
    const known = leaf ?? (removal === undefined ? isThere?.leaf : bytesOfText(removal.leaf));
    if (isThere === undefined && (removal === undefined || removal.now !== undefined)) this.#missing(place, key);
    else if (isThere !== undefined) this.#present(isThere, at, expected);
    const before = this.#digest;
    this.#digest = before === undefined || known === undefined ? isThere && bytesOfText(isThere.digest) : joined(before, known);
    if (isThere !== undefined && this.#digest !== undefined && textOfBytes(this.#digest) !== isThere.digest) {
      this.#report.found(`was changed: it does not follow what is before it in the chain ${this.#chain} at ${place}`, nameOf(isThere.key));
      if (leaf === undefined) this.#digest = bytesOfText(isThere.digest);
    }
  }

  #present(trace: TraceAt, { place, leaf, key, removal }: Place, expected: string | undefined): void {
    if (removal !== undefined && removal.now === undefined)
      this.#report.found(`was added: the one at its place was removed (${removal.cause}, ${toIso(removal.at)})`, nameOf(trace.key));
    else if (expected !== undefined && textOfBytes(trace.leaf) !== expected)
      this.#report.found(
        key === undefined || key === trace.key ? "was changed" : `was moved, or put in the place of ${nameOf(key)}`,
        nameOf(trace.key),
      );
    else if (leaf !== undefined || this.#pins.some((pin) => pin.count > place)) this.signed++;
    else this.unsigned.push(trace.key);
  }

  #missing(place: number, key: string | undefined): void {
    const where = `the place ${place} of the chain ${this.#chain}`;
    if (key === undefined) this.#report.found(`A trace is missing: ${where} is empty.`);
    else this.#report.found(`is missing: ${where} is empty`, nameOf(key));
  }

  #checkPins(count: number): void {
    for (const pin of this.#pins)
      if (pin.count === count && this.#digest !== undefined && textOfBytes(this.#digest) !== pin.digest)
        this.#report.found(`The chain ${this.#chain} had another digest at ${count}, as a later chain or the given head says.`);
  }
}

function joined(digest: Uint8Array, leaf: Uint8Array): Uint8Array {
  const both = new Uint8Array(2 * HASH_BYTES);
  both.set(digest);
  both.set(leaf, HASH_BYTES);
  return nextDigest(both);
}

/** Checks whether each hash is the text that its bytes give. */
function isCanonical(leaves: string): boolean {
  return (leaves.match(/.{43}/g) ?? []).every((text) => textOfBytes(bytesOfText(text)) === text);
}

function leafAt({ leaves = "" }: AuditSegmentRow, place: number): Uint8Array | undefined {
  const text = leaves.slice(place * HASH_TEXT_LENGTH, (place + 1) * HASH_TEXT_LENGTH);
  return text.length === HASH_TEXT_LENGTH ? bytesOfText(text) : undefined;
}
