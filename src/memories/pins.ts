/**
 * Pinned memories: what every context of their owner shows first, whatever it is asked for.
 *
 * Its owner decides which contexts these are: its user's, or else its session's, or else its agent's. The index has them by
 * owner and by when they are past for good, so that what is pinned now is read without what was pinned before.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, type BareId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import { eachFetched, type Reader, type Span } from "../storage/access.ts";
import { MAX_KEY, pinKey, timeKey, type OwnerOfMemory } from "../storage/keys.ts";
import { isOwned, type Owner } from "../storage/owner.ts";
import { memories, type MemoryRow } from "../storage/tables.ts";
import { placeOfId } from "../turns/order.ts";
import { ownerNames, visibleMemories } from "./record.ts";
import type { Shown } from "./status.ts";
import { shownMemories } from "./validity.ts";

/** Leaves room for those that are hidden, or not current at the moment that is asked for. Those that end last come first. */
const PINS_LOOKED_AT_MAX = 5 * LIMITS.pinnedMemoriesMax;

function pinsAt(owner: OwnerOfMemory, at: number): Span {
  const pinned = pinKey(owner);
  return { from: pinned + timeKey(at + 1), to: pinned + MAX_KEY, limit: PINS_LOOKED_AT_MAX, descending: true };
}

function keysOf(reader: Reader, span: Span): BareId[] {
  const { pinned } = memories.index;
  return reader.keys(pinned, span).map((entry) => pinned.recordOf(entry) as BareId);
}

/**
 * The pinned memories of some owners, newest first by when they happened.
 *
 * @param caller - whose memories the caller sees
 * @param shown - with ranges those of their sessions alone
 */
export function pinnedMemories(
  reader: Reader,
  caller: Owner,
  owners: readonly OwnerOfMemory[],
  shown: Shown,
): { key: BareId; row: MemoryRow }[] {
  const { asOf = reader.now, ranges } = shown;
  const keys = eachFetched(owners, (owner) => keysOf(reader, pinsAt(owner, asOf))).flat();
  if (keys.length === 0) return [];
  reader.ahead(memories, keys);
  const find = shownMemories(reader, shown);
  const rows = eachFetched(keys, (key) => ({ key, row: find(key) }));
  const isAsked = ({ sessionId }: MemoryRow) =>
    ranges === undefined || ranges.some(({ session }) => session === (sessionId && bare(sessionId)));
  return rows
    .flatMap(({ key, row }) => (row !== undefined && isAsked(row) && isOwned(caller, ownerNames(row)) ? [{ key, row }] : []))
    .sort((a, b) => (placeOf(a) < placeOf(b) ? 1 : -1))
    .slice(0, LIMITS.pinnedMemoriesMax);
}

function placeOf({ key, row: { occurredAt } }: { key: BareId; row: MemoryRow }): string {
  return occurredAt === undefined ? placeOfId(key) : timeKey(occurredAt) + key;
}

/**
 * To be called once a memory is written that was not pinned, or past, before.
 *
 * @throws {ApiError} `version_conflict` where its owner has more pinned ones now than there may be
 */
export function refuseManyPins(tx: Reader, row: MemoryRow): void {
  if (row.pinned !== true) return;
  const keys = keysOf(tx, pinsAt(row, tx.now));
  if (keys.length <= LIMITS.pinnedMemoriesMax) return;
  tx.ahead(memories, keys);
  const find = visibleMemories(tx);
  const there = eachFetched(keys, find).filter((one) => one !== undefined);
  if (there.length <= LIMITS.pinnedMemoriesMax) return;
  const message = `The owner of the memory has ${LIMITS.pinnedMemoriesMax} pinned memories already; take the pin from one of them first. Nothing was changed.`;
  throw new ApiError("version_conflict", message, { param: "pinned" });
}
