/**
 * Records of a source as memories: one that is too long becomes several, each with its part.
 *
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import { LIMITS } from "../../lib/limits.ts";
import type { Found, Selection, SourceOwner, SourceSession } from "./found.ts";
import { boundedName, nonEmpty, occurredAt, piecesOf } from "./values.ts";

export interface NewSourceMemory {
  /** Name of the source. */
  readonly from: string;
  /** Name by which it is found again, before it is bounded. */
  readonly name: string;
  readonly content: string;
  readonly type: string;
  /** Unix milliseconds. */
  readonly at?: number | undefined;
  readonly owner: SourceOwner;
  readonly session?: SourceSession | undefined;
  readonly document?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  /** ISO 8601. */
  readonly expiresAt?: string | undefined;
}

const PART_NAME_LENGTH = 8;
const DOCUMENT_LENGTH_MAX = 4_096;

/** Gives the memories of a text that is not blank; none of before `since`, or of no time where that is given. */
export function* memoriesOf(memory: NewSourceMemory, { now, since }: Selection): Generator<Found> {
  const { from, name, content, type, at, owner, session, document, tags = [], metadata = {}, expiresAt } = memory;
  if (nonEmpty(content) === undefined) return;
  if (since !== undefined && (at === undefined || at < since)) return;
  const pieces = piecesOf(content.trim().toWellFormed(), LIMITS.memoryContentLengthMax);
  const bounded = boundedName(name, LIMITS.externalIdLengthMax - PART_NAME_LENGTH);
  for (const [i, piece] of pieces.entries())
    yield {
      kind: "memory",
      session,
      owner,
      from,
      document,
      memory: {
        external_id: i === 0 ? bounded : `${bounded}:${i + 1}`,
        content: piece,
        type: type.slice(0, LIMITS.memoryTypeLengthMax).toWellFormed(),
        tags: tagsOf(tags),
        metadata: {
          ...metadata,
          source: "import",
          imported_from: from,
          ...(document === undefined ? {} : { document: document.slice(0, DOCUMENT_LENGTH_MAX).toWellFormed() }),
          ...(pieces.length === 1 ? {} : { part: i + 1, parts: pieces.length }),
        },
        ...occurredAt(at, now),
        ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
      },
    };
}

function tagsOf(tags: readonly string[]): string[] {
  const bounded = tags.map((tag) => tag.trim().slice(0, LIMITS.tagLengthMax).toWellFormed()).filter((tag) => tag !== "");
  return [...new Set(bounded)].slice(0, LIMITS.tagsMax);
}
