/**
 * Tables of memories, and of the contents that they had before.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { bare } from "../../lib/ids.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { contentKey, hashKey, NOBODY, ownNameKey, pinKey, timeKey, userTimeKey } from "../keys.ts";
import { metadataPrefixes } from "../metadata-index.ts";
import { AnyObject, Fraction, IdText, Instant, OneOf, OrNull, Positive, Text, Truth, Whole } from "../row-types.ts";
import { changedAt, having, json } from "./codecs.ts";
import { Embedding } from "./embeddings.ts";
import { ahead, FILL_ROWS, ID, table } from "./table.ts";

export const MEMORY_SOURCES = ["user", "agent", "tool", "import"] as const;

const MemoryRow = Type.Object({
  /** Left out for one that belongs to a user or an agent alone. */
  sessionId: Type.Optional(IdText("sess")),
  /** User and agent of its session, where it has one; else one of them can be null. */
  userId: OrNull(Text),
  agentId: OrNull(Text),
  content: Text,
  type: Text,
  tags: Type.Array(Text),
  metadata: AnyObject,
  createdAt: Whole,
  updatedAt: Type.Optional(Whole),
  /** The caller's own name of it, and within what that is unique: its user or else agent, or that agent of the user. */
  externalId: Type.Optional(Text),
  namedWithin: Type.Optional(OneOf(["owner", "agent"])),
  /** Origin of the statement; an agent, where it is left out. */
  source: Type.Optional(OneOf(MEMORY_SOURCES)),
  importance: Type.Optional(Fraction),
  /** Set where every context of its owner shows it. */
  pinned: Type.Optional(Type.Literal(true)),
  /** Time at which it happened. */
  occurredAt: Type.Optional(Instant),
  expiresAt: Type.Optional(Instant),
  /** Validity: since ever and for ever, where they are left out. */
  validFrom: Type.Optional(Instant),
  validUntil: Type.Optional(Instant),
  /** Memories that it superseded. Some may have been deleted since. */
  supersedes: Type.Optional(Type.Array(IdText("mem"))),
  /** The one that has taken its place, from when on, and when that one expires. */
  supersededBy: Type.Optional(IdText("mem")),
  supersededAt: Type.Optional(Instant),
  supersededUntil: Type.Optional(Instant),
  /** Author of its content, and the reason; left out by a Cairn that did not note it. */
  actor: Type.Optional(Text),
  reason: Type.Optional(Text),
  /** Time of that content, where it is not the first one, and number of those before. */
  writtenAt: Type.Optional(Whole),
  edits: Type.Optional(Positive),
  /** Tokens of its content in a context (`token-count.ts`); left out by a Cairn that did not count. */
  tokens: Type.Optional(Whole),
  /** Kinds of secrets in it, where it was to be marked with them. */
  secrets: Type.Optional(Type.Array(Text)),
  /** false when the caller asked for none: then a new content gets none either. */
  embed: Truth,
  /** Set while there is a vector: its id, which without the prefix is its key, and its generation. */
  embedding: Type.Optional(Embedding),
});
export type MemoryRow = Static<typeof MemoryRow>;

/** True if time alone will not make a memory current again: it was past when its row was written last, and only a change can end that. */
type Ending = "createdAt" | "updatedAt" | "validUntil" | "supersededBy" | "supersededAt" | "supersededUntil";
function isPastForGood({
  createdAt,
  updatedAt = createdAt,
  validUntil,
  supersededBy,
  supersededAt = 0,
  supersededUntil,
}: Pick<MemoryRow, Ending>): boolean {
  if (validUntil !== undefined && validUntil <= updatedAt) return true;
  return supersededBy !== undefined && supersededUntil === undefined && supersededAt <= updatedAt;
}

/** Time at which a pinned memory is past or gone, as far as its row says; one that comes back once another expires is not. */
function endOfPin({ validUntil, expiresAt, supersededAt, supersededUntil }: Partial<MemoryRow>): number {
  const superseded = supersededUntil === undefined ? supersededAt : undefined;
  return Math.min(...[validUntil, expiresAt, superseded].map((end) => end ?? Number.POSITIVE_INFINITY));
}

export const memories = table(
  "memories",
  ID,
  MemoryRow,
  having(json<MemoryRow>(), { changedAt, cachedBytesMax: CACHE_BYTES_MAX.memories }),
  {
    bySession: (memory, row) => (row.sessionId === undefined ? undefined : bare(row.sessionId) + memory),
    byUser: { of: (memory, { userId }) => (userId === null ? NOBODY : hashKey(userId)) + memory, fillRows: FILL_ROWS },
    byAgent: (memory, row) => (row.agentId === null ? undefined : hashKey(row.agentId) + memory),
    byType: (memory, row) => hashKey(row.type) + memory,
    byTag: { of: (memory, row) => row.tags.map((tag) => hashKey(tag) + memory), hasMany: true },
    byMetadata: {
      of: (memory, { metadata }) => metadataPrefixes(metadata).map((prefix) => prefix + memory),
      hasMany: true,
      fillRows: FILL_ROWS,
    },
    byExternalId: {
      of: (memory, { externalId, namedWithin, userId, agentId }) => {
        if (externalId === undefined) return undefined;
        const names = [ownNameKey(externalId, userId, agentId ?? undefined)];
        if (namedWithin !== "agent" && userId !== null) names.push(ownNameKey(externalId, userId));
        return [...new Set(names)].map((name) => name + memory);
      },
      hasMany: true,
    },
    byContent: { of: (memory, row) => contentKey(row, row.type, row.content) + memory, fillRows: FILL_ROWS },
    byExpiry: (memory, { expiresAt }) => (expiresAt === undefined ? undefined : timeKey(expiresAt) + memory),
    pinned: (memory, row) => (row.pinned === true ? pinKey(row) + timeKey(endOfPin(row)) + memory : undefined),
    past: { of: (memory, row) => (isPastForGood(row) ? memory : undefined), fillRows: FILL_ROWS },
    timed: { of: (memory, { occurredAt }) => (occurredAt === undefined ? undefined : memory), fillRows: FILL_ROWS },
    byTime: {
      of: (memory, { occurredAt, sessionId, userId, agentId }) => {
        if (occurredAt === undefined) return undefined;
        const owners = [userTimeKey(userId, agentId), ...(sessionId === undefined ? [] : [bare(sessionId)])];
        return owners.map((owner) => owner + timeKey(occurredAt) + memory);
      },
      hasMany: true,
      fillRows: FILL_ROWS,
    },
    ahead: (memory, row) => ahead(memory, row.createdAt),
  },
  // A row is put again for its vector, its links and its times, and its text need not be hashed for that.
  [
    ...([
      "sessionId",
      "userId",
      "agentId",
      "content",
      "type",
      "tags",
      "metadata",
      "createdAt",
      "occurredAt",
      "externalId",
      "namedWithin",
      "expiresAt",
      "pinned",
    ] as const),
    ...(["updatedAt", "validUntil", "supersededBy", "supersededAt", "supersededUntil"] as const),
  ],
);

const MemoryVersionRow = Type.Object({
  content: Text,
  writtenAt: Whole,
  /** Left out for one that a Cairn wrote that did not note it. */
  actor: Type.Optional(Text),
  reason: Type.Optional(Text),
});
export type MemoryVersionRow = Static<typeof MemoryVersionRow>;
/** Key of a content: its memory, and how many that had before it. */
export const memoryVersions = table("memory_versions", /^[0-9A-Za-z]{19}$/, MemoryVersionRow, json<MemoryVersionRow>());
