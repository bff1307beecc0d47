/**
 * Tables of sessions: what is known of each, its states, its branches, and what is left of a removed one.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { bare, BARE_ID_LENGTH } from "../../lib/ids.ts";
import type { JsonText } from "../../lib/json.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { NUMBER_KEY_LENGTH, externalIdKey, hashKey, numberKey, ownNameKey } from "../keys.ts";
import { AnyObject, BareIdText, IdText, Instant, ObjectText, OneOf, OrNull, Text, Truth, Whole } from "../row-types.ts";
import { rowsOfTable } from "../unreadable.ts";
import { bodyOf, changedAt, having, json, withBody } from "./codecs.ts";
import { TURN_INDEXES } from "./indexed-turns.ts";
import { ahead, ID, type Readable, sessionOf, table } from "./table.ts";

const SessionRow = Type.Object({
  agentId: Text,
  userId: OrNull(Text),
  /** The caller's own name of it, if it has one. */
  externalId: Type.Optional(Text),
  /** Within what its name is unique: its user, or, named by a key that is bound to an agent, that agent of the user. */
  namedWithin: Type.Optional(OneOf(["user", "agent"])),
  createdAt: Whole,
  /** Beginning of the conversation, of history that was moved in. */
  occurredAt: Type.Optional(Instant),
  updatedAt: Whole,
  metadata: AnyObject,
  memoryCount: Whole,
  turnCount: Whole,
  /** The first turn with a time of its own: from it on turns are found by when they happened. */
  timedFrom: Type.Optional(BareIdText),
  /** The last number that a turn was given, where it is not the count of those that are shown. */
  turnNumber: Type.Optional(Whole),
  /** The branch that is current, where the session has any. */
  branch: Type.Optional(Whole),
  /** Length the session was given, for forks and the trace of its expiry; 0 for one that does not expire. */
  ttlSeconds: Whole,
  expiresAt: Whole,
  /** Number of the current state version. */
  version: Whole,
  /** Number of rollbacks; rows of before count from the next one on. */
  rollbackCount: Type.Optional(Whole),
  /** By what its turns are found, where that is not what the setting `index_turns` says. */
  indexTurns: Type.Optional(OneOf(TURN_INDEXES)),
  /** Kinds of secrets in its current state and its metadata, where these were to be marked. */
  secrets: Type.Optional(Type.Array(Text)),
  /** The session and the version that it was forked from. Its metadata says so too, but that can be changed. */
  forkedFrom: Type.Optional(Type.Object({ sessionId: IdText("sess"), version: Whole })),
});
export type SessionRow = Static<typeof SessionRow>;
export const sessions = table(
  "sessions",
  ID,
  SessionRow,
  having(json<SessionRow>(), { changedAt, cachedBytesMax: CACHE_BYTES_MAX.sessions, keepsCommitted: true }),
  {
    byAgent: (session, row) => hashKey(row.agentId) + session,
    byUser: (session, row) => (row.userId === null ? undefined : hashKey(row.userId) + session),
    byExternalId: {
      of: (session, { externalId, namedWithin, userId, agentId }) => {
        if (externalId === undefined) return undefined;
        const users = userId === null ? [undefined] : [undefined, userId];
        const listed = users.flatMap((user) => [undefined, agentId].map((agent) => externalIdKey(externalId, user, agent)));
        const own = namedWithin === undefined ? [] : [ownNameKey(externalId, userId, agentId)];
        if (namedWithin === "user") own.push(ownNameKey(externalId, userId));
        return [...listed, ...own].map((key) => key + session);
      },
      hasMany: true,
    },
    byForkedFrom: (session, { forkedFrom }) => (forkedFrom === undefined ? undefined : bare(forkedFrom.sessionId) + session),
    byExpiry: (session, row) => numberKey(row.expiresAt) + session,
    ahead: (session, row) => ahead(session, row.createdAt),
  },
  // Nearly every change puts the session it is in, with other counters.
  ["agentId", "userId", "externalId", "namedWithin", "createdAt", "expiresAt", "forkedFrom"],
);

const VersionRow = Type.Object({
  /** Its place among the other records of its session: version 0 has the session's own. */
  id: BareIdText,
  /** The id of version 1, in the row of version 0 once that one is not kept any more. */
  until: Type.Optional(BareIdText),
  createdAt: Whole,
  reasoning: Type.Optional(Text),
  actor: Text,
  source: OneOf(["initial", "update", "rollback"]),
  /** The version whose state a rollback has restored; rows of before are without it. */
  restoredFrom: Type.Optional(Whole),
  /** Kinds of secrets in it, where it was to be marked with them. */
  secrets: Type.Optional(Type.Array(Text)),
  /** The state, as it goes over the wire. */
  body: ObjectText,
});
export type VersionRow = Static<typeof VersionRow>;
export const versions = table("versions", /^[0-9A-Za-z]{19}$/, VersionRow, withBody<VersionRow>());
/** The same table, for callers that want the states alone, … */
export const states: Readable<JsonText> = {
  name: versions.name,
  decode: rowsOfTable(versions.name, bodyOf),
};
/** … or all but them. */
export const versionHeads: Readable<Omit<VersionRow, "body">> = {
  name: versions.name,
  decode: rowsOfTable(versions.name, (value) => JSON.parse(value.slice(0, value.indexOf("\n"))) as VersionRow),
};

const BranchRow = Type.Object({
  /** The branch has the turns of its session from this id on. */
  start: BareIdText,
  /** Before them come those of another branch before an id, and what comes before that one; left out where nothing does. */
  before: Type.Optional(Type.Object({ session: BareIdText, branch: Whole, until: BareIdText })),
  /** The first of those before that are shown; left out where all are. */
  from: Type.Optional(BareIdText),
  /** Number of turns shown before it, and the last number that was given before it. */
  count: Whole,
  number: Whole,
  /** Time at which a rollback began it, and the branch that was current until then. */
  at: Type.Optional(Whole),
  was: Type.Optional(Whole),
  /** The sessions whose memories a fork shows besides its own, each with an id that these are before; in its first branch. */
  memories: Type.Optional(Type.Array(Type.Object({ session: BareIdText, until: BareIdText }))),
  /** Set in the first branch of a session that was deleted, whose memories are there only because forks show them. */
  isDeleted: Type.Optional(Type.Literal(true)),
});
export type BranchRow = Static<typeof BranchRow>;
/** Key of a branch: its session, and the version that a rollback made when it began; 0 for that of a fork. */
const BRANCH_KEY_LENGTH = BARE_ID_LENGTH + NUMBER_KEY_LENGTH;
export const branches = table("branches", /^[0-9A-Za-z]{19}$/, BranchRow, json<BranchRow>(), {
  byParent: {
    of: (key, { before }) => (before === undefined || before.session === sessionOf(key) ? undefined : before.session + before.until + key),
    record: (entry) => entry.slice(-BRANCH_KEY_LENGTH),
  },
  byMemorySession: {
    of: (key, row) => row.memories?.map(({ session, until }) => session + until + key),
    hasMany: true,
    record: (entry) => entry.slice(-BRANCH_KEY_LENGTH),
  },
});

const RemovalRow = Type.Object({
  /** True if the memories go too. */
  memories: Truth,
  /** Set where its user is being erased: what forks show goes, too, which are of the same user. */
  ofUser: Type.Optional(Type.Literal(true)),
});
export type RemovalRow = Static<typeof RemovalRow>;
export const removals = table(
  "removals",
  ID,
  RemovalRow,
  having(json<RemovalRow>(), { cachedBytesMax: CACHE_BYTES_MAX.removals, isGlobal: true }),
);
