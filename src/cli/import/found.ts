/**
 * Records that sources give: conversations as turns one after another, each with its session, and those that cannot be read.
 *
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";

export interface SourceSession {
  /** The name by which it is found again. */
  readonly externalId: string;
  readonly agentId: string;
  readonly metadata: JsonObject;
}

/** A turn as the API takes it. */
export interface SourceTurn {
  readonly external_id: string;
  readonly input: { readonly type: string; readonly content: string };
  readonly output: { readonly type: string; readonly content: string };
  readonly occurred_at?: string;
  readonly metadata: object;
}

export type Found =
  | { readonly kind: "turn"; readonly session: SourceSession; readonly turn: SourceTurn }
  /** A record that does not fit. */
  | { readonly kind: "skipped"; readonly place: string; readonly reason: string }
  /** A turn whose answer may not be finished. */
  | { readonly kind: "open"; readonly place: string };

/** Limits of what is read of a source. */
export interface Selection {
  /** Unix milliseconds. */
  readonly now: number;
  readonly since: number | undefined;
  /** Only conversations in one of these directories, or below. */
  readonly projects: readonly string[] | undefined;
}

/** Returns a time as the API takes it; undefined for one that is none, or is still to come. */
export function pastTime(ms: number, now: number): string | undefined {
  return ms >= 0 && ms <= now ? new Date(ms).toISOString() : undefined;
}
