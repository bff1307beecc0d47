/**
 * Records that sources give: conversations as turns one after another, each with its session, memories, and those that cannot be read.
 *
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";

export interface SourceSession {
  /** The name by which it is found again. */
  readonly externalId: string;
  readonly agentId: string;
  /** Its user, where that is another one than the import's. */
  readonly user?: string | undefined;
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

/** A memory as the API takes it, without its owner. */
export interface SourceMemory {
  readonly external_id: string;
  readonly content: string;
  readonly type: string;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
  readonly occurred_at?: string;
  readonly expires_at?: string;
}

/** User and agent that a source names; without a user it is the import's. */
export interface SourceOwner {
  readonly user?: string | undefined;
  readonly agent?: string | undefined;
}

export interface FoundMemory {
  readonly kind: "memory";
  readonly memory: SourceMemory;
  readonly owner: SourceOwner;
  /** The session that it belongs to, with its user and agent. */
  readonly session: SourceSession | undefined;
  /** Name of the source. */
  readonly from: string;
  /** The text that it is a part of: an update takes away what that has no longer. */
  readonly document: string | undefined;
}

export type Found =
  | FoundMemory
  | { readonly kind: "turn"; readonly session: SourceSession; readonly turn: SourceTurn }
  /** A record that does not fit. */
  | { readonly kind: "skipped"; readonly place: string; readonly reason: string }
  /** A record that is right, and not for an import. */
  | { readonly kind: "left"; readonly place: string; readonly reason: string }
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
