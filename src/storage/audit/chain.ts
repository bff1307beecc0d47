/**
 * One chain of traces, as its writer extends it.
 *
 * A transaction links its traces, and then says whether it was committed. Where that is not known, nobody extends the chain any more:
 * its writer begins another.
 *
 * @module
 */
import { randomBase62, toBase62 } from "../../lib/base62.ts";
import type { BareId } from "../../lib/ids.ts";
import { auditChains, auditSegments, traces, type AuditChainRow, type AuditSegmentRow } from "../tables.ts";
import type { Write } from "../write-buffer.ts";
import type { AuditKey } from "./audit-key.ts";
import {
  HASH_BYTES,
  headText,
  leafOf,
  linkText,
  namesDigest,
  nextDigest,
  SALT_BYTES,
  SEGMENT_TRACES,
  segmentKey,
  startDigest,
  textOfBytes,
  withLink,
} from "./format.ts";

/** A signed end of a chain, as chains after it name it. */
export type Head = AuditChainRow["previous"][number];

/** Chains that there are when a process begins to write its own. */
export interface AuditStart {
  readonly key: AuditKey;
  /** The newest trace. */
  readonly after: BareId;
  readonly previous: readonly Head[];
  /** Chains of `previous` whose writers have ended, with their rows. */
  readonly closing: readonly { readonly chain: string; readonly row: AuditChainRow }[];
}

export type AuditWrite = Pick<Write, "table" | "key" | "value" | "isNew" | "row">;

/** Salts are drawn for that many traces at once. */
const SALTS_AT_ONCE = 256;
const ID_TIME_WIDTH = 7;
const ID_RANDOM_WIDTH = 5;

/** Traces of the segment that is being filled. */
interface Segment {
  readonly keys: string[];
  readonly leaves: Uint8Array;
}

const newSegment = (): Segment => ({ keys: [], leaves: new Uint8Array(SEGMENT_TRACES * HASH_BYTES) });

export class AuditChain {
  readonly id: string;
  readonly #row: AuditChainRow;
  readonly #start: AuditStart;
  /** Digest of the chain, and behind it space for the next leaf. */
  readonly #both = new Uint8Array(2 * HASH_BYTES);
  readonly #salts = new Uint8Array(SALTS_AT_ONCE * SALT_BYTES);
  #saltsUsed = SALTS_AT_ONCE;
  #segment = newSegment();
  #count = 0;
  #signedCount = 0;
  /** State when the last transaction was committed. */
  #committed = { count: 0, signedCount: 0, segment: this.#segment };
  readonly #committedDigest = new Uint8Array(HASH_BYTES);

  constructor(start: AuditStart, now: number) {
    this.id = toBase62(now, ID_TIME_WIDTH) + randomBase62(ID_RANDOM_WIDTH);
    this.#start = start;
    this.#row = { publicKey: start.key.publicKey, startedAt: now, after: start.after, previous: [...start.previous] };
    this.#both.set(startDigest(this.id, this.#row));
    this.#committedDigest.set(this.#digest);
  }

  get isUnsigned(): boolean {
    return this.#count !== this.#signedCount;
  }

  /** Start of the next chain, where nobody knows whether the last transaction was committed. */
  get successor(): AuditStart {
    const { count } = this.#committed;
    if (count === 0) return this.#start;
    const previous = [{ chain: this.id, count, digest: textOfBytes(this.#committedDigest) }];
    return { ...this.#start, previous, closing: [] };
  }

  /** Links a new trace. @returns its row, and what is written with it */
  link<Written extends AuditWrite>(write: Written, now: number): (Written | AuditWrite)[] {
    const begin = this.#count === 0 ? this.#begin() : [];
    const stored = write.value as string;
    const salt = this.#salt();
    const leaf = this.#both.subarray(HASH_BYTES);
    leafOf(salt, write.key, traces.toExport(stored), leaf);
    this.#segment.leaves.set(leaf, this.#segment.keys.length * HASH_BYTES);
    nextDigest(this.#both, this.#digest);
    this.#segment.keys.push(write.key);
    const link = linkText({ chain: this.id, place: this.#count++, salt, digest: textOfBytes(this.#digest) });
    const linked = [...begin, { ...write, value: withLink(stored, link) }];
    if (this.#count % SEGMENT_TRACES !== 0) return linked;
    linked.push(this.sign(now));
    this.#segment = newSegment();
    return linked;
  }

  /** The row that signs the chain as it is. */
  sign(now: number): AuditWrite {
    const { keys, leaves } = this.#segment;
    const names = keys.join("");
    const head = { count: this.#count, digest: textOfBytes(this.#digest), names: namesDigest(names), at: now };
    const hashes = Array.from(keys, (_, place) => textOfBytes(leaves.subarray(place * HASH_BYTES, (place + 1) * HASH_BYTES)));
    const row: AuditSegmentRow = {
      ...head,
      signature: this.#start.key.sign(headText(this.id, head)),
      traces: names,
      leaves: hashes.join(""),
    };
    this.#signedCount = this.#count;
    const key = segmentKey(this.id, Math.floor((this.#count - 1) / SEGMENT_TRACES));
    return { table: auditSegments.name, key, value: auditSegments.encode(row), isNew: false, row };
  }

  commit(): void {
    this.#committed.count = this.#count;
    this.#committed.signedCount = this.#signedCount;
    this.#committed.segment = this.#segment;
    this.#committedDigest.set(this.#digest);
  }

  rollback(): void {
    const { count, signedCount, segment } = this.#committed;
    segment.keys.length = count % SEGMENT_TRACES;
    [this.#count, this.#signedCount, this.#segment] = [count, signedCount, segment];
    this.#both.set(this.#committedDigest);
  }

  #begin(): AuditWrite[] {
    const put = (chain: string, row: AuditChainRow): AuditWrite[] => [
      { table: auditChains.index.open.name, key: chain, value: row.isClosed === true ? undefined : "", isNew: false, row: undefined },
      { table: auditChains.name, key: chain, value: auditChains.encode(row), isNew: false, row },
    ];
    return [...this.#start.closing.flatMap(({ chain, row }) => put(chain, { ...row, isClosed: true })), ...put(this.id, this.#row)];
  }

  get #digest(): Uint8Array {
    return this.#both.subarray(0, HASH_BYTES);
  }

  #salt(): string {
    if (this.#saltsUsed === SALTS_AT_ONCE) {
      crypto.getRandomValues(this.#salts);
      this.#saltsUsed = 0;
    }
    const at = this.#saltsUsed++ * SALT_BYTES;
    return textOfBytes(this.#salts.subarray(at, at + SALT_BYTES));
  }
}
