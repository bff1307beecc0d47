/**
 * Status of memories at a time: current, past or still to come (pure).
 *
 * @module
 */
import type { MemoryRange } from "../sessions/shared-memories.ts";
import type { MemoryRow } from "../storage/tables.ts";
import type { RowFilter } from "./filter.ts";

export const MEMORY_STATUSES = ["current", "past", "future", "all"] as const;

/** Memories that a read shows: those with a status at a time; those current now where that is left out. */
export interface Shown {
  status?: (typeof MEMORY_STATUSES)[number] | undefined;
  /** Unix milliseconds; the moment of the read unless given. */
  asOf?: number | undefined;
  /** Leaves out what the sessions before a fork got later; nothing unless given. */
  ranges?: readonly MemoryRange[] | undefined;
  /** Leaves out the rows that do not pass. */
  rowFilter?: RowFilter | undefined;
}

type Validity = Pick<MemoryRow, "validFrom" | "validUntil" | "supersededBy" | "supersededAt" | "supersededUntil" | "expiresAt">;

/** @param now - the moment of the read: what has ended by then does not exist any more at whatever moment is asked for */
export function statusAt(row: Validity, at: number, now: number): "current" | "past" | "future" {
  const { validFrom = Number.NEGATIVE_INFINITY, validUntil = Number.POSITIVE_INFINITY, expiresAt = Number.POSITIVE_INFINITY } = row;
  if (at < validFrom) return "future";
  return at < validUntil && at < expiresAt && !isSuperseded(row, at, now) ? "current" : "past";
}

/** Checks whether another memory has taken the place of one, and exists. */
function isSuperseded(
  { supersededBy, supersededAt = 0, supersededUntil = Number.POSITIVE_INFINITY }: Validity,
  at: number,
  now: number,
): boolean {
  return supersededBy !== undefined && at >= supersededAt && Math.max(at, now) < supersededUntil;
}
