/**
 * Begins to link the traces of a process: which chains there are, and what of them a process before could not sign.
 *
 * @module
 */
import { bareIdTime, firstBareIdAt, NO_PARTITION, type BareId } from "../lib/ids.ts";
import { ApiError } from "../lib/errors.ts";
import { describeError, type Log } from "../lib/log.ts";
import { openAuditKey, type AuditKey } from "../storage/audit/audit-key.ts";
import type { AuditStart, Head } from "../storage/audit/chain.ts";
import {
  bytesOfText,
  HASH_BYTES,
  HASH_TEXT_LENGTH,
  headText,
  leafOf,
  namesDigest,
  nextDigest,
  parseLink,
  SEGMENT_TRACES,
  segmentKey,
  splitLink,
  startDigest,
  textOfBytes,
  type Link,
} from "../storage/audit/format.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { auditChains, auditRemovals, auditSegments, traces, type AuditChainRow, type AuditSegmentRow } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { actionCode, TRACE_ACTIONS } from "../traces/events.ts";

/** Interval at which a server signs. */
const SIGN_MS = 3_000;
/** A process has signed all but what it wrote in its last seconds. */
const UNSIGNED_MS_MAX = 60_000;
/** A chain names at most that many of those before it. */
const CHAINS_NAMED_MAX = 64;
const TRACES_AT_ONCE = 200;

/** A chain with the last row that signs it. */
interface OpenChain {
  readonly chain: string;
  readonly row: AuditChainRow;
  readonly signed: AuditSegmentRow | undefined;
}

/** Signs the end of a chain of a process before. */
type SignEnd = () => Promise<unknown>;

/**
 * @param isServer - whether this process alone serves from the directory: then nobody else with its key writes chains that are open
 * @returns what could not be signed on a full disk, for `auditTask`
 * @throws {StoreError} where the key cannot be read or made
 */
export async function startAudit(
  store: RecordStore,
  directory: string,
  { isServer }: { isServer: boolean },
  log?: Log,
): Promise<SignEnd[]> {
  const key = openAuditKey(directory);
  const after = await store.read(newestTrace);
  const open = await store.read(openChains);
  const isOwn = ({ row }: OpenChain) => isServer && row.publicKey === key.publicKey;
  const previous: Head[] = [];
  const unsigned: SignEnd[] = [];
  for (const one of open) {
    const end = isOwn(one) ? await endOf(store, one, after, log) : undefined;
    const last = end?.segments.at(-1)?.row ?? one.signed;
    if (last !== undefined) previous.push({ chain: one.chain, count: last.count, digest: last.digest });
    if (end === undefined) continue;
    const sign = () => signEnd(store, key, one.chain, end);
    await sign().catch((error: unknown) => {
      // A full disk holds up no start.
      if (!(error instanceof ApiError)) throw error;
      log?.warn("the end of a chain of traces cannot be signed yet", { chain: one.chain, error: describeError(error) });
      unsigned.push(sign);
    });
  }
  const start: AuditStart = { key, after, previous, closing: open.filter(isOwn) };
  store.useAudit(start);
  return unsigned;
}

/** Signs what has been linked, every few seconds. @param unsigned - what a start could not sign */
export function auditTask(store: RecordStore, unsigned: readonly SignEnd[]): Task {
  const left = [...unsigned];
  return {
    name: "signatures of traces",
    async run() {
      for (let sign = left[0]; sign !== undefined; sign = left[0]) {
        await sign();
        left.shift();
      }
      await store.signTraces();
      return SIGN_MS;
    },
  };
}

function newestTrace(reader: Reader): BareId {
  const last = reader.lastOfEach(traces, 1, { from: "", to: MAX_KEY, limit: TRACE_ACTIONS.length });
  return (
    last
      .map((key) => key.slice(1))
      .toSorted()
      .at(-1) ?? firstBareIdAt(0)
  );
}

/** Chains that none names yet that began after they had ended, oldest first. */
export function openChains(reader: Reader): OpenChain[] {
  const chains = reader.keys(auditChains.index.open, { from: "", to: MAX_KEY, limit: CHAINS_NAMED_MAX, descending: true }).toReversed();
  reader.ahead(auditChains, chains);
  return eachFetched(chains, (chain) => {
    const [last] = reader.keys(auditSegments, { from: chain, to: chain + MAX_KEY, limit: 1, descending: true });
    const signed = last === undefined ? undefined : unlessUnreadable(() => reader.get(auditSegments, last));
    const row = unlessUnreadable(() => reader.get(auditChains, chain));
    return row === undefined ? [] : [{ chain, row, signed }];
  }).flat();
}

/** Finds the traces at the end of a chain that its writer could not sign; undefined where it has signed all. */
async function endOf(store: RecordStore, { chain, row, signed }: OpenChain, newest: BareId, log?: Log): Promise<ChainEnd | undefined> {
  const oldest = [signed?.traces?.slice(-newest.length) ?? row.after, firstBareIdAt(bareIdTime(newest) - UNSIGNED_MS_MAX)]
    .toSorted()
    .at(-1)!;
  const tail = (await tracesOf(store, chain, oldest)).filter(({ link }) => link.place >= (signed?.count ?? 0));
  if (tail.length === 0) return undefined;
  const end = new ChainEnd(chain, row, signed);
  for (const trace of tail.toSorted((a, b) => a.link.place - b.link.place)) {
    if (await store.read((reader) => end.add(reader, trace))) continue;
    log?.warn("a trace at the end of a chain is not as it was linked: cairn audit verify says more", { trace: trace.key, chain });
    break;
  }
  return end;
}

function signEnd(store: RecordStore, key: AuditKey, chain: string, { segments }: ChainEnd): Promise<void> {
  return store.commit(NO_PARTITION, (tx) => {
    for (const { key: segment, row: unsigned } of segments) {
      const head = { ...unsigned, names: namesDigest(unsigned.traces), at: tx.now };
      tx.put(auditSegments, segment, { ...head, signature: key.sign(headText(chain, head)) });
    }
  });
}

interface LinkedTrace {
  readonly key: string;
  readonly link: Link;
  /** JSON of its row in an export, without its link. */
  readonly json: string;
}

/** The traces of a chain after one. */
async function tracesOf(store: RecordStore, chain: string, after: BareId): Promise<LinkedTrace[]> {
  const found: LinkedTrace[] = [];
  for (const code of TRACE_ACTIONS.map(actionCode)) {
    for (let from = successor(code + after); ;) {
      const rows = await store.read((reader) => {
        const keys = reader.keys(traces, { from, to: code + MAX_KEY, limit: TRACES_AT_ONCE });
        reader.ahead(traces, keys);
        return keys.map((key) => ({ key, row: unlessUnreadable(() => reader.get(traces, key)) }));
      });
      for (const { key, row } of rows) {
        const split = row?.link?.startsWith(chain) === true ? splitLink(traces.toExport(traces.encode(row))) : undefined;
        if (split !== undefined) found.push({ key, link: parseLink(split.link), json: split.rest });
      }
      if (rows.length < TRACES_AT_ONCE) break;
      from = successor(rows.at(-1)!.key);
    }
  }
  return found;
}

type UnsignedSegment = Pick<AuditSegmentRow, "count" | "digest"> & { readonly traces: string; readonly leaves: string };

/** The end of a chain, from the last row that signs it on. */
class ChainEnd {
  readonly segments: { key: string; row: UnsignedSegment }[] = [];
  readonly #chain: string;
  readonly #both = new Uint8Array(2 * HASH_BYTES);
  #count: number;
  #keys: string;
  #leaves: string;

  constructor(chain: string, row: AuditChainRow, signed: AuditSegmentRow | undefined) {
    this.#chain = chain;
    this.#both.set(signed === undefined ? startDigest(chain, row) : bytesOfText(signed.digest));
    this.#count = signed?.count ?? 0;
    const isFull = this.#count % SEGMENT_TRACES === 0;
    [this.#keys, this.#leaves] = isFull ? ["", ""] : [signed?.traces ?? "", signed?.leaves ?? ""];
  }

  /** @returns whether the trace is the next of the chain */
  add(reader: Reader, { key, link, json }: LinkedTrace): boolean {
    const segment = segmentKey(this.#chain, Math.floor(this.#count / SEGMENT_TRACES));
    const erased = reader.get(auditRemovals, segment)?.removed?.find(({ place }) => place === this.#count % SEGMENT_TRACES);
    const leaf = erased === undefined ? leafOf(link.salt, key, json) : bytesOfText(erased.leaf);
    const both = this.#both.slice();
    both.set(leaf, HASH_BYTES);
    const digest = nextDigest(both);
    if (link.place !== this.#count || textOfBytes(digest) !== link.digest) return false;
    this.#both.set(digest);
    this.#keys += key;
    this.#leaves += textOfBytes(leaf);
    this.#count++;
    const row = { count: this.#count, digest: link.digest, traces: this.#keys, leaves: this.#leaves };
    if (this.segments.at(-1)?.key === segment) this.segments.pop();
    this.segments.push({ key: segment, row });
    if (this.#leaves.length === SEGMENT_TRACES * HASH_TEXT_LENGTH) [this.#keys, this.#leaves] = ["", ""];
    return true;
  }
}
