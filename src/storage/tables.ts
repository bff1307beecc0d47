/**
 * Every table of the store: its key, its row, and its indexes, whose entries follow from the rows and are written with them.
 *
 * ```
 * table                key                          row
 * meta                 name                         text: schema, backupNumber, tracesMark, filled.INDEX (`fills.ts`)
 * sessions             session                      SessionRow
 *   byAgent            #agent session
 *   byUser             #user session
 *   byExternalId       #(external, owner) session   for each owner who lists it or looks it up, if it has an external id
 *   byForkedFrom       session session              of a fork: the session it was forked from, and its own
 *   byExpiry           ms session
 *   ahead              session                      if its id is later than its time
 * versions             session number               VersionRow: one of the session's states
 * turns                session turn                 TurnRow
 *   byExternalId       session #external turn       if it has an external id
 *   byTime             session ms turn              from the first turn of the session on that has a time of its own
 * branches             session version              BranchRow: which turns are shown from a rollback, or a fork, on
 *   byParent           session turn session version if it begins in another session, where its turns end before that id
 *   byMemorySession    session memory session version  for each session whose memories before that id it shows
 * memories             memory                       MemoryRow
 *   bySession          session memory               if it has one
 *   byUser             #user memory
 *   byAgent            #agent memory
 *   byType             #type memory
 *   byTag              #tag memory
 *   byExternalId       #(external, owner) memory    for each owner who looks it up, if it has an external id
 *   byContent          #(owner, type, content) memory
 *   byExpiry           ms memory                    if it expires
 *   pinned             #(owner) ms memory           if it is pinned, with when it is past for good
 *   past               memory                       if it is past for good
 *   ahead              memory                       if its id is later than its time
 * memory_versions      memory number                MemoryVersionRow: a content that a memory had
 * retrievals           retrieval                    RetrievalRow: what a search or a context found
 *   bySession          session retrieval
 *   byExpiry           ms retrieval
 *   ahead              retrieval                    if its id is later than its time
 * vectors              embedding                    bytes: numbers, terms, generation, memory (`vectors/encoding.ts`)
 * pendingEmbeddings    memory or document           text: empty, or the generation of the provider that refuses it
 * provider             current                      ProviderRow: what makes the vectors
 * traces               action trace                 TraceRow; one character for each action
 *   bySession          session trace action
 *   byUser             #user trace action
 *   byAgent            #agent trace action
 *   ahead              trace action                 if its id is later than its time
 * outbox               event                        OutboxRow: what is not yet handed to the webhooks that want it
 * webhooks             webhook                      WebhookRow: who wants which events
 * webhook_failures     webhook                      WebhookFailuresRow: its attempts that failed in the last day
 * payloads             payload                      what is posted to receivers, as text
 * deliveries           webhook delivery             DeliveryRow: one event for one webhook
 *   due                webhook ms delivery          while it is pending and the first of its line
 *   inLine             webhook line delivery        while it is pending; a line is a session, or the delivery itself
 *   byStatus           webhook status delivery      one character for each status
 *   byType             webhook #type delivery
 *   failed             delivery webhook             while it has failed
 *   byUser             #user webhook delivery       of an event that shows content of a user's
 *   ahead              delivery webhook             if its id is later than its time
 * idempotency          #(key hash, idempotency key) IdempotencyRow
 *   byTime             ms #(...)
 *   byUser             #user #(...)                 for each user whose content the answer shows
 * apiKeys              SHA-256 of the key, hex      ApiKeyRow
 *   byId               key SHA-256
 *   byKind             kind key SHA-256             one character for each kind
 *   bySource           source key SHA-256           of a session key: the key that signed in
 *   byEnd              ms SHA-256                   of a session or link key
 * deletedKeys          SHA-256 of the key, hex      DeletedKeyRow: a tombstone, so that it is never a key again
 * removals             session                      RemovalRow: what is left of a removed session
 * documents            #user #agent namespace . key DocumentRow; the texts in hex, `!` after each part of a namespace
 *   bySession          session document             if it goes with a session
 *   byExpiry           ms document                  if it expires
 *   byChange           #user #agent namespace . change key; a change is the id that it gave the document
 * indexed_documents    document                     IndexedDocumentRow: one that is found by meaning
 *   inNamespace        #(user agent namespace) document  of its namespace, and of each one above
 * document_vectors     embedding                    bytes, as of vectors
 * namespaces           #user #agent namespace       NamespaceRow: how many documents are in it and below it, or a user has
 * document_removals    #user #agent namespace       DocumentRemovalRow: what is left of a namespace that was emptied
 * last_document_id     partition                    text: the last id of that partition in these three, whose keys do not tell
 * users                #user                        UserRow: whom a session or a memory names
 *   byName             name !#user                  the name in hex, of its UTF-8
 *   bySeen             ms #user
 * erasures             #user                        ErasureRow: a user whose records are being erased
 * settings             current                      SettingsRow
 * ```
 * Ids have no prefix here (12 characters), `#x` is `hashKey(x)`, `ms` and numbers are `numberKey`.
 *
 * @module
 */
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { bare, bareIdTime, BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { CACHE_BYTES_MAX } from "../lib/limits.ts";
import { memoize } from "../lib/memoize.ts";
import { SCOPES } from "../lib/scopes.ts";
import {
  changeKey,
  documentOfChange,
  HASH_KEY_LENGTH,
  NUMBER_KEY_LENGTH,
  contentKey,
  externalIdKey,
  hashKey,
  nameKey,
  namespaceOfDocument,
  namespacesAbove,
  numberKey,
  ownNameKey,
  pinKey,
  timeKey,
  turnNameKey,
} from "./keys.ts";
import {
  AnyObject,
  BareIdText,
  Finite,
  Fraction,
  IdText,
  Instant,
  IsoTime,
  ObjectText,
  OneOf,
  OrNull,
  Positive,
  Text,
  Truth,
  Uint32,
  Whole,
} from "./row-types.ts";
import { rowsOfTable } from "./unreadable.ts";

/** The stored form of every row. A change of any is another version, and a migration. */
export const SCHEMA_VERSION = 1;

/** Any table or index, for what concerns keys alone. */
export interface AnyTable {
  readonly name: string;
}

/** Keys that follow from the rows of a table. */
export interface Index<Row = unknown> extends AnyTable {
  /** True if a row can have more than one entry. */
  readonly hasMany: boolean;
  /** True if entries of new rows are written some time after them (`lmdb/change-buffer.ts`). */
  readonly isBuffered: boolean;
  /** Number of rows that a start takes into it in one commit, where stores of before lack it (`fills.ts`); undefined where none does. */
  readonly fillRows: number | undefined;
  /** The entries of a row. */
  entriesOf(key: string, row: Row): readonly string[];
  /** The key of the row that an entry is of. */
  recordOf(entry: string): string;
}

/** Part of a table that reading its rows needs. */
export interface Readable<Row> extends AnyTable, RowTimes<Row> {
  decode(text: string): Row;
}

/** Time that new ids and times have to follow where another server, whose clock is ahead, has written the row. */
interface RowTimes<Row> {
  /** Time of the row's last change. */
  changedAt?(row: Row): number | undefined;
  /** The id up to which the row says that records are being taken away. */
  takenUntil?(row: Row): BareId;
}

/** Duties of a store for the rows of a table besides keeping them. */
interface Traits<Row> extends RowTimes<Row> {
  /** Announcement of each new row once it is committed: its key, to those who follow traces, or that there are events. */
  readonly notifies?: "traces" | "events";
  /** Bytes of rows that the embedded store caches, if any. */
  readonly cachedBytesMax?: number;
  /** True if it caches what was committed, and not read since: each change reads such a row, and is most often followed by others. */
  readonly keepsCommitted?: true;
  /** True if a server on a database builds commits on what it has read of it: commits read a row again and again, and few change it. */
  readonly keepsRead?: true;
  /** True if it has few rows, of which nearly every commit reads some and hardly any changes one. */
  readonly isGlobal?: true;
}

/** A table and how its rows become text. */
export interface Table<Row, IndexName extends string = string> extends Readable<Row>, Traits<Row> {
  encode(row: Row): string;
  readonly index: Readonly<Record<IndexName, Index<Row>>>;
  readonly indexes: readonly Index<Row>[];
  /** Checks whether two rows of a key certainly have the same entries. */
  hasSameEntries(before: Row, row: Row): boolean;
  /** Shape of keys. */
  readonly key: RegExp;
  /** Shape of rows in an export. */
  readonly schema: TSchema;
  /** JSON of a stored text, for an export. */
  toExport(stored: string): string;
  /** The stored text of a parsed JSON value of an export. */
  fromExport(value: unknown): string;
}

type Codec<Row> = Pick<Table<Row>, "encode" | "decode" | "toExport" | "fromExport"> & Traits<Row>;
/** The entry of a row, if it has one, or all of them. */
type EntryOf<Row> = (key: string, row: Row) => string | undefined;
type IndexDeclaration<Row> = { readonly record?: (entry: string) => string; readonly isBuffered?: true; readonly fillRows?: number } & (
  | { readonly of: EntryOf<Row>; readonly hasMany?: never }
  | { readonly of: (key: string, row: Row) => readonly string[] | undefined; readonly hasMany: true }
);

const lastId = (entry: string) => entry.slice(-BARE_ID_LENGTH);
const sessionOf = (key: string): BareId => key.slice(0, BARE_ID_LENGTH);
/** The key of the turn that an entry is of. */
const turnOf = (entry: string): string => sessionOf(entry) + lastId(entry);

/** @param indexed - the fields that decide the entries of a row; left out where any may */
function table<Row, Name extends string = never, Indexed extends keyof Row = keyof Row>(
  name: string,
  key: RegExp,
  schema: TSchema,
  codec: Codec<Row>,
  declared: Record<Name, IndexDeclaration<Pick<Row, Indexed>> | EntryOf<Pick<Row, Indexed>>> = {} as never,
  indexed?: readonly Indexed[],
): Table<Row, Name> {
  const index = Object.fromEntries(
    Object.entries<IndexDeclaration<Pick<Row, Indexed>> | EntryOf<Pick<Row, Indexed>>>(declared).map(([indexName, declaration]) => {
      const {
        of,
        record = lastId,
        hasMany = false,
        isBuffered = false,
        fillRows,
      } = typeof declaration === "function" ? { of: declaration } : declaration;
      const entriesOf = (recordKey: string, row: Row) => {
        const entries = of(recordKey, row);
        return entries === undefined ? [] : typeof entries === "string" ? [entries] : entries;
      };
      return [indexName, { name: `${name}.${indexName}`, entriesOf, recordOf: record, hasMany, isBuffered, fillRows }];
    }),
  ) as Record<Name, Index<Row>>;
  const hasSameEntries = (before: Row, row: Row) => indexed?.every((field) => before[field] === row[field]) === true;
  return { name, key, schema, ...codec, decode: rowsOfTable(name, codec.decode), index, indexes: Object.values(index), hasSameEntries };
}

const json = <Row>(): Codec<Row> => ({
  encode: (row) => JSON.stringify(row),
  decode: (value) => JSON.parse(value) as Row,
  toExport: (stored) => stored,
  fromExport: (value) => JSON.stringify(value),
});
/**
 * For rows that every request reads and nothing changes in place, and other processes write: a text that was parsed before is not parsed
 * again, which saves 3 % of a GET.
 */
const parsedOnce = <Row>(codec: Codec<Row>): Codec<Row> => ({ ...codec, decode: memoize((stored: string) => codec.decode(stored)) });
/** Rows of this form, of which a store does more than keep them. */
const having = <Row>(codec: Codec<Row>, traits: Traits<NoInfer<Row>>): Codec<Row> => ({ ...codec, ...traits });
const changedAt = ({ updatedAt }: { updatedAt?: number }) => updatedAt;
const takenUntil = ({ until }: { until: BareId }) => until;
const text: Codec<string> = {
  encode: (row) => row,
  decode: (value) => value,
  toExport: (stored) => JSON.stringify(stored),
  fromExport: (value) => value as string,
};
/** A row that is JSON text of its own. */
const jsonText: Codec<string> = { ...text, toExport: (stored) => stored, fromExport: (value) => JSON.stringify(value) };
/**
 * A row of which a part is ready JSON: first line the rest of the row, then that part as it is; in an export the part is a member
 * `body`. `JSON.stringify` writes no line feed.
 */
const withBody = <Row extends { body: JsonText }>(): Codec<Row> => ({
  encode: ({ body, ...head }) => `${JSON.stringify(head)}\n${body}`,
  decode: (value) => {
    const body = bodyOf(value);
    return { ...JSON.parse(value.slice(0, value.length - body.length)), body } as Row;
  },
  toExport: (stored) => {
    const end = stored.indexOf("\n");
    return `${stored.slice(0, end - 1)},"body":${stored.slice(end + 1)}}`;
  },
  fromExport: (value) => {
    const { body, ...head } = value as { body: unknown };
    return `${JSON.stringify(head)}\n${JSON.stringify(body)}`;
  },
});
/** The part of such a row that is answered as it is. */
function bodyOf(stored: string): JsonText {
  const body = stored.slice(stored.indexOf("\n") + 1);
  assertObject(body);
  return body as JsonText;
}
/** Looks at both ends alone, where a text that is cut off or is another one shows it. */
function assertObject(stored: string): void {
  if ((!stored.startsWith("{") || !stored.endsWith("}")) && stored !== "null") throw new Error("the text is no object");
}
/** Two halves of one JSON object, each without its braces, and perhaps JSON of more; a line each. */
const halves: Codec<TurnRow> = {
  encode: ({ shown, rest, more }) => `${shown}\n${rest}${more === undefined ? "" : `\n${JSON.stringify(more)}`}`,
  decode: (value) => {
    const [shown, rest, more] = value.split("\n", 3);
    if (shown === undefined || rest === undefined) throw new Error("the text is no turn");
    return { shown, rest, ...(more === undefined ? {} : { more: JSON.parse(more) as NonNullable<TurnRow["more"]> }) };
  },
  toExport: (stored) => {
    const [shown, rest, more] = stored.split("\n", 3);
    return `{"shown":{${shown}},"rest":{${rest}}${more === undefined ? "" : `,"more":${more}`}}`;
  },
  fromExport: (value) => {
    const { shown, rest, more } = value as { shown: object; rest: object; more?: object };
    const halves = `${JSON.stringify(shown).slice(1, -1)}\n${JSON.stringify(rest).slice(1, -1)}`;
    return more === undefined ? halves : `${halves}\n${JSON.stringify(more)}`;
  },
};

/** Number of rows taken into a new index in one commit: small ones, … */
const FILL_ROWS = 500;
/** … and those that can be a megabyte. */
const FILL_ROWS_LARGE = 25;

const ID = /^[0-9A-Za-z]{12}$/;
const TWO_IDS = /^[0-9A-Za-z]{24}$/;
const HASH = /^[\w-]{22}$/;
const SHA256 = /^[0-9a-f]{64}$/;
const SHA256_LENGTH = 64;
const CURRENT = /^current$/;

/** An id that is later than its record's time: the clock was set back since an earlier id was made. */
function ahead(id: BareId, createdAt: number, entry: string = id): string | undefined {
  return bareIdTime(id) > createdAt ? entry : undefined;
}

export const meta = table(
  "meta",
  // The other marks are of a Cairn of before.
  /^(schema|backupNumber|tracesMark|filled\.[A-Za-z_.]{1,64}|(names|users|documents|contents)Mark)$/,
  Type.String({
    pattern: "^(0|[1-9][0-9]{0,9}|[0-9A-Za-z]{12}|all|from .*)$",
    description: "the text of a whole number below 2^32, an id, or how far an index is filled",
  }),
  text,
);
/** Key of a random number below 2^32 that no other store has: a restored or imported one gets another. */
export const BACKUP_NUMBER = "backupNumber";
/** Key of an id: traces up to it have all their entries, those of later ones may be missing (`lmdb/change-buffer.ts`). */
export const TRACES_WATERMARK = "tracesMark";
/** Key of how far rows of before have been completed by a fill (`fills.ts`): all, or up to a key. */
export const fillMark = (fill: string): string => `filled.${fill}`;
export const ALL_FILLED = "all";
export const FILLED_FROM = "from ";

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
  /** The state, as it goes over the wire. */
  body: ObjectText,
});
export type VersionRow = Static<typeof VersionRow>;
export const versions = table("versions", /^[0-9A-Za-z]{19}$/, VersionRow, withBody<VersionRow>());
/** The same table, for who wants the states alone, … */
export const states: Readable<JsonText> = {
  name: versions.name,
  decode: rowsOfTable(versions.name, bodyOf),
};
/** … or all but them. */
export const versionHeads: Readable<Omit<VersionRow, "body">> = {
  name: versions.name,
  decode: rowsOfTable(versions.name, (value) => JSON.parse(value.slice(0, value.indexOf("\n"))) as VersionRow),
};

const TurnMore = Type.Object({
  /** The version of the state that was current; rows of before are without it. */
  stateVersion: Type.Optional(Whole),
  externalId: Type.Optional(Text),
  /** Time at which it happened, in a session that has turns of other times than those of their ids. */
  time: Type.Optional(Instant),
  /** Tokens of input and output in a context (`token-count.ts`). */
  tokens: Type.Optional(Whole),
});

/** A turn never changes: it is kept as the two halves of its JSON object, because the context shows only the first. */
export interface TurnRow {
  /** `"id":…,"input":…,"output":…,"created_at":…` */
  shown: string;
  /** `"session_id":…` and all other members, but those that depend on who looks, or that indexes need. */
  rest: string;
  more?: Static<typeof TurnMore>;
}
export const turns = table(
  "turns",
  TWO_IDS,
  Type.Object({
    shown: Type.Object({ id: IdText("turn"), input: AnyObject, output: AnyObject, created_at: IsoTime }),
    rest: Type.Object({ session_id: IdText("sess"), turn_number: Whole }),
    more: Type.Optional(TurnMore),
  }),
  halves,
  {
    byExternalId: {
      of: (key, { more }) => (more?.externalId === undefined ? undefined : turnNameKey(sessionOf(key), more.externalId) + lastId(key)),
      record: turnOf,
    },
    byTime: {
      of: (key, { more }) => (more?.time === undefined ? undefined : sessionOf(key) + timeKey(more.time) + lastId(key)),
      record: turnOf,
    },
  },
);

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

const Embedding = Type.Object({ id: IdText("emb"), generation: Uint32, hasNoVector: Type.Optional(Type.Literal(true)) });

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
    byUser: (memory, row) => (row.userId === null ? undefined : hashKey(row.userId) + memory),
    byAgent: (memory, row) => (row.agentId === null ? undefined : hashKey(row.agentId) + memory),
    byType: (memory, row) => hashKey(row.type) + memory,
    byTag: { of: (memory, row) => row.tags.map((tag) => hashKey(tag) + memory), hasMany: true },
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
      "createdAt",
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

export const RETRIEVAL_OPERATIONS = ["search", "context"] as const;
const RetrievalRow = Type.Object({
  expiresAt: Whole,
  /** Set where the time of the id is later than that of the row, which this is: the clock was behind an earlier id. */
  at: Type.Optional(Whole),
  sessionId: IdText("sess"),
  actor: Text,
  operation: OneOf(RETRIEVAL_OPERATIONS),
  /** Beginning of its text. */
  query: Text,
  limit: Positive,
  threshold: Fraction,
  /** Set when only some types or tags were looked for. */
  filtered: Type.Optional(Type.Literal(true)),
  /** Best first, with the agent where it is not that of the session; null for a memory of none. */
  memories: Type.Array(Type.Object({ id: IdText("mem"), score: Fraction, agentId: Type.Optional(OrNull(Text)) })),
});
export type RetrievalRow = Static<typeof RetrievalRow>;
export const retrievals = table("retrievals", ID, RetrievalRow, json<RetrievalRow>(), {
  bySession: (retrieval, row) => bare(row.sessionId) + retrieval,
  byExpiry: (retrieval, row) => numberKey(row.expiresAt) + retrieval,
  ahead: (retrieval, row) => (row.at === undefined ? undefined : retrieval),
});
/** Memories and indexed documents whose vector is still to be made. */
export const pendingEmbeddings = table("pending_embeddings", /^/, Text, text);
/** A table whose rows are bytes, not text: `Tx` has calls of their own for them. */
export interface VectorTable extends AnyTable {
  readonly isOfBytes: true;
}
export const vectors: VectorTable = { name: "vectors", isOfBytes: true };

const TraceRow = Type.Object({
  expiresAt: Whole,
  /** Set where the time of the id is later than the trace's own, which this is: the clock was behind an earlier id. */
  at: Type.Optional(Whole),
  actor: Text,
  /** Left out for a change that concerns no session; only keys with the scope `admin` see it. */
  sessionId: Type.Optional(IdText("sess")),
  userId: Type.Optional(Text),
  agentId: Type.Optional(Text),
  /** The request that asked for the change, and how long it had taken by then; left out for a timer. */
  requestId: Type.Optional(Text),
  latencyMs: Type.Optional(Finite),
  /** `details` of the trace. */
  body: ObjectText,
});
export type TraceRow = Static<typeof TraceRow>;
const traceOf = (entry: string) => entry.slice(-1) + entry.slice(-1 - BARE_ID_LENGTH, -1);
/** The id and the action of a trace's key, the other way round: in the order of ids. */
const traceEntry = (key: string): string => key.slice(1) + key.slice(0, 1);
export const traces = table("traces", /^[0-9A-Za-z]{13}$/, TraceRow, having(withBody<TraceRow>(), { notifies: "traces" }), {
  bySession: {
    of: (key, row) => (row.sessionId === undefined ? undefined : bare(row.sessionId) + traceEntry(key)),
    record: traceOf,
    isBuffered: true,
  },
  byUser: {
    of: (key, row) => (row.userId === undefined ? undefined : hashKey(row.userId) + traceEntry(key)),
    record: traceOf,
    isBuffered: true,
  },
  byAgent: {
    of: (key, row) => (row.agentId === undefined ? undefined : hashKey(row.agentId) + traceEntry(key)),
    record: traceOf,
    isBuffered: true,
  },
  ahead: { of: (key, row) => (row.at === undefined ? undefined : traceEntry(key)), record: traceOf },
});

/** Left out where there is none, and by a Cairn that did not write it. */
const UserHash = Type.Optional(Type.String({ pattern: HASH.source }));

const OutboxRow = Type.Object({
  /** Types of the events of one change that some webhook wants, in the order in which they are delivered. */
  types: Type.Array(Text),
  /** Webhooks that want at least one of them. */
  webhooks: Type.Array(BareIdText),
  createdAt: Whole,
  sessionId: OrNull(IdText("sess")),
  /** `hashKey` of the user whose content it shows, which outlives the session. */
  user: UserHash,
  /** Owner of its record, where that is somebody's without a session. */
  record: Type.Optional(BareIdText),
  /** Key of the change's trace, which trace events carry. */
  trace: Text,
  /** The affected record as it was, with `object` and `id`; null where only trace events are wanted. */
  body: OrNull(ObjectText),
});
export type OutboxRow = Omit<Static<typeof OutboxRow>, "body"> & { body: JsonText };
export const outbox = table("outbox", ID, OutboxRow, having(withBody<OutboxRow>(), { notifies: "events" }));

const WebhookRow = Type.Object({
  url: Text,
  events: Type.Array(Text),
  description: OrNull(Text),
  enabled: Truth,
  /** Reason why it was disabled by itself. */
  disabledReason: OrNull(Text),
  /** In clear, because it signs; an export can leave it out. */
  secret: Text,
  /** Previous secrets that are still valid, newest first. */
  previousSecrets: Type.Array(Type.Object({ secret: Text, until: Whole })),
  createdAt: Whole,
  updatedAt: Whole,
  /** The first attempt that failed since the last one that did not. */
  failingSince: OrNull(Whole),
  /** Nothing is sent before: the receiver has asked for that. */
  pausedUntil: Type.Optional(OrNull(Whole)),
});
export type WebhookRow = Static<typeof WebhookRow>;
export const webhooks = table(
  "webhooks",
  ID,
  Type.Object({ ...WebhookRow.properties, secret: Type.Optional(Text) }),
  having(json<WebhookRow>(), { changedAt, cachedBytesMax: CACHE_BYTES_MAX.webhooks, isGlobal: true }),
);

const WebhookFailuresRow = Type.Object({
  /** Attempts that failed, by the hour in which they began: Unix milliseconds, the oldest hour first. */
  hours: Type.Array(Type.Object({ start: Whole, attempts: Whole })),
  /** The last one that failed. */
  last: Type.Object({
    at: Whole,
    /** HTTP status; null without an answer. */
    status: OrNull(Whole),
    error: Text,
  }),
});
export type WebhookFailuresRow = Static<typeof WebhookFailuresRow>;
/** Apart from the webhooks, which every change reads. */
export const webhookFailures = table("webhook_failures", ID, WebhookFailuresRow, json<WebhookFailuresRow>());

export const payloads = table("payloads", ID, AnyObject, jsonText);
/** The same table, for who shows what is posted. */
export const shownPayloads: Readable<JsonText> = {
  name: payloads.name,
  decode: rowsOfTable(payloads.name, (value) => (assertObject(value), value as JsonText)),
};

const DeliveryRow = Type.Object({
  /** Key of what is posted. */
  payload: BareIdText,
  eventId: BareIdText,
  type: Text,
  sessionId: OrNull(IdText("sess")),
  /** As those of the change in the outbox. */
  user: UserHash,
  record: Type.Optional(BareIdText),
  createdAt: Whole,
  status: OneOf(["pending", "delivered", "failed"]),
  /** Made in all. */
  attempts: Whole,
  /** Failed attempts of the present schedule; a retry by hand starts a new one. */
  failures: Whole,
  /** null while it waits for an earlier one of its session, and when it is not tried again. */
  nextAttemptAt: OrNull(Whole),
  /** Set once later ones of its session have overtaken it, or it was retried by hand: nothing waits for it any more. */
  unordered: Type.Optional(Type.Literal(true)),
  /** Set for a delivery that is not tried again. */
  once: Type.Optional(Type.Literal(true)),
  /** The latest attempts, the last one last. */
  recent: Type.Array(
    Type.Object({
      at: Whole,
      durationMs: Finite,
      /** HTTP status; null without an answer. */
      status: OrNull(Whole),
      /** Beginning of the answer; null where the address was not public. */
      body: OrNull(Text),
      /** Reason why it does not count as delivered. */
      error: OrNull(Text),
    }),
  ),
});
export type DeliveryRow = Static<typeof DeliveryRow>;
const deliveryOf = (entry: string) => entry.slice(0, BARE_ID_LENGTH) + lastId(entry);
/** The delivery before its webhook, or the other way round. */
const turned = (ids: string) => lastId(ids) + ids.slice(0, BARE_ID_LENGTH);
/** Each with one character of the keys of `byStatus`. */
const DELIVERY_CODES = { pending: "p", delivered: "d", failed: "f" } as const;
export const DELIVERY_STATUSES = Object.keys(DELIVERY_CODES) as (keyof typeof DELIVERY_CODES)[];
/** Rest of the entries of a status after the webhook. */
export const deliveryCode = (status: DeliveryRow["status"]): string => DELIVERY_CODES[status];
/** The entries of a line begin with this. Events without a session have no order; each is a line of its own. */
export const lineOf = (key: string, { sessionId, unordered }: Pick<DeliveryRow, "sessionId" | "unordered">): string =>
  sessionId === null || unordered === true ? key : key.slice(0, BARE_ID_LENGTH) + bare(sessionId);
export const deliveries = table("deliveries", TWO_IDS, DeliveryRow, json<DeliveryRow>(), {
  due: {
    of: (key, { status, nextAttemptAt }) =>
      status === "pending" && nextAttemptAt !== null ? key.slice(0, BARE_ID_LENGTH) + numberKey(nextAttemptAt) + lastId(key) : undefined,
    record: deliveryOf,
  },
  inLine: { of: (key, row) => (row.status === "pending" ? lineOf(key, row) + lastId(key) : undefined), record: deliveryOf },
  byStatus: { of: (key, { status }) => key.slice(0, BARE_ID_LENGTH) + deliveryCode(status) + lastId(key), record: deliveryOf },
  byType: { of: (key, { type }) => key.slice(0, BARE_ID_LENGTH) + hashKey(type) + lastId(key), record: deliveryOf },
  failed: { of: (key, { status }) => (status === "failed" ? turned(key) : undefined), record: turned },
  byUser: { of: (key, { user }) => (user === undefined ? undefined : user + key), record: (entry) => entry.slice(HASH_KEY_LENGTH) },
  ahead: { of: (key, { createdAt }) => ahead(lastId(key), createdAt, turned(key)), record: turned },
});

const IdempotencyRow = Type.Object({
  /** Hash of method, path and body: another request under the same key is refused. */
  fingerprint: Text,
  status: Whole,
  createdAt: Whole,
  /** Set when the body is the answer encrypted, since it shows a secret. */
  sealed: Type.Optional(Type.Literal(true)),
  /** Set when the body is the answer compressed. */
  packed: Type.Optional(Type.Literal(true)),
  /** `hashKey` of the users whose content the answer shows; left out by a Cairn that did not save them: there the answer has to say it. */
  users: Type.Optional(Type.Array(Type.String({ pattern: HASH.source }))),
  body: ObjectText,
});
export type IdempotencyRow = Static<typeof IdempotencyRow>;
export const idempotency = table("idempotency", HASH, IdempotencyRow, withBody<IdempotencyRow>(), {
  byTime: { of: (key, row) => numberKey(row.createdAt) + key, record: (entry) => entry.slice(NUMBER_KEY_LENGTH) },
  byUser: {
    of: (key, { users }) => users?.map((user) => user + key),
    hasMany: true,
    record: (entry) => entry.slice(HASH_KEY_LENGTH),
  },
});

/** Each with one character of the keys of `byKind`. */
const KIND_CODES = { key: "k", session: "s", link: "l" } as const;
export type KeyKind = keyof typeof KIND_CODES;
export const KEY_KINDS = Object.keys(KIND_CODES) as KeyKind[];
/** Prefix of the entries of a kind. */
export const kindCode = (kind: KeyKind): string => KIND_CODES[kind];

const ApiKeyRow = Type.Object({
  id: IdText("key"),
  /** `link`: good for signing in once; `session`: what signing in gives. Both end by themselves. */
  kind: OneOf(KEY_KINDS),
  /** The key that a session key came from: it ends with that one. Left out where a link signed in. */
  source: Type.Optional(IdText("key")),
  name: OrNull(Text),
  /** First 8 characters of the key: the actor in traces. */
  prefix: Text,
  scopes: Type.Array(OneOf(SCOPES)),
  tier: OneOf(["free", "pro", "enterprise"]),
  /** Set for a key that sees and changes nothing but records of this user or this agent. */
  userId: Type.Optional(Text),
  agentId: Type.Optional(Text),
  perMinute: Positive,
  burst: Positive,
  createdAt: Whole,
  /** Any time that a caller names: no key of the store is made of it. */
  expiresAt: OrNull(Instant),
  /** Up to a minute behind while a server runs; left out until the key is used. */
  lastUsedAt: Type.Optional(Whole),
  /** The key this one replaced, and the one that replaced it. */
  rolledFrom: Type.Optional(IdText("key")),
  rolledTo: Type.Optional(IdText("key")),
});
export type ApiKeyRow = Static<typeof ApiKeyRow>;
const hashIn = (entry: string): string => entry.slice(-SHA256_LENGTH);
export const apiKeys = table("api_keys", SHA256, ApiKeyRow, having(parsedOnce(json<ApiKeyRow>()), { isGlobal: true }), {
  byId: { of: (hash, row) => bare(row.id) + hash, record: hashIn },
  byKind: { of: (hash, row) => kindCode(row.kind) + bare(row.id) + hash, record: hashIn },
  bySource: { of: (hash, row) => (row.source === undefined ? undefined : bare(row.source) + bare(row.id) + hash), record: hashIn },
  byEnd: {
    of: (hash, row) => (row.kind === "key" || row.expiresAt === null ? undefined : numberKey(row.expiresAt) + hash),
    record: hashIn,
  },
});

const DeletedKeyRow = Type.Object({ deletedAt: Whole });
export type DeletedKeyRow = Static<typeof DeletedKeyRow>;
export const deletedKeys = table("deleted_keys", SHA256, DeletedKeyRow, json<DeletedKeyRow>());

/** Settings made through the API, by the names in `settings/schema.ts`: `region`, `webhooks.timeout`. */
export type SettingsRow = Readonly<Record<string, string | number | boolean>>;
export const settings = table("settings", CURRENT, AnyObject, having(json<SettingsRow>(), { isGlobal: true }));

const ProviderRow = Type.Object({
  /** Everything that decides what a vector means. */
  identity: Text,
  /** Counts the changes of the provider. Vectors of other generations compare with nothing. */
  generation: Uint32,
  /** Set until no vector of an earlier generation is left: none has an id after this one. */
  replacesUntil: Type.Optional(BareIdText),
  /** The length of its vectors and what its cosines mean, once it has answered; never set for the built-in provider. */
  vectorLength: Type.Optional(Whole),
  measured: Type.Optional(Type.Object({ relevantCosine: Finite, cosineOfUnrelated: Finite, cosineOfSame: Finite, separation: Finite })),
});
export type ProviderRow = Static<typeof ProviderRow>;
export const provider = table(
  "provider",
  CURRENT,
  ProviderRow,
  having(json<ProviderRow>(), { cachedBytesMax: CACHE_BYTES_MAX.provider, isGlobal: true }),
);
export const PROVIDER_KEY = "current";

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

const DocumentRow = Type.Object({
  /** Given with each change: what is older than the removal of its namespace is gone. */
  id: BareIdText,
  version: Positive,
  createdAt: Whole,
  updatedAt: Whole,
  expiresAt: Type.Optional(Instant),
  /** Lifetime as it was last requested. */
  ttlSeconds: Type.Optional(Finite),
  /** The session with which it goes. */
  sessionId: Type.Optional(IdText("sess")),
  /** Part of the value that it is found by: all, or what these paths lead to. */
  index: Type.Optional(Type.Union([Type.Literal(true), Type.Array(Text)], { description: "true or a list" })),
  /** The value, as it goes over the wire. */
  body: ObjectText,
});
export type DocumentRow = Static<typeof DocumentRow>;
export const documents = table(
  "documents",
  /^[\w-]{44}(?:(?:[0-9a-f]{2})+!){1,16}\.(?:[0-9a-f]{2})+$/,
  DocumentRow,
  having(withBody<DocumentRow>(), { changedAt }),
  {
    bySession: {
      of: (document, { sessionId }) => (sessionId === undefined ? undefined : bare(sessionId) + document),
      record: (entry) => entry.slice(BARE_ID_LENGTH),
    },
    byExpiry: {
      of: (document, { expiresAt }) => (expiresAt === undefined ? undefined : timeKey(expiresAt) + document),
      record: (entry) => entry.slice(NUMBER_KEY_LENGTH),
    },
    byChange: {
      of: (document, { id }) => changeKey(document, id),
      record: documentOfChange,
      fillRows: FILL_ROWS_LARGE,
    },
  },
);

const IndexedDocumentRow = Type.Object({
  /** Key of the document. It is of this one as long as its row has this row's key for its id. */
  document: Text,
  /** Set while there is a vector: its id, which without the prefix is its key, and its generation. */
  embedding: Type.Optional(Embedding),
});
export type IndexedDocumentRow = Static<typeof IndexedDocumentRow>;
export const indexedDocuments = table("indexed_documents", ID, IndexedDocumentRow, json<IndexedDocumentRow>(), {
  inNamespace: {
    of: (id, { document }) => {
      const [, , ...namespaces] = namespacesAbove(namespaceOfDocument(document));
      return namespaces.map((namespace) => hashKey(namespace) + id);
    },
    hasMany: true,
  },
});
export const documentVectors: VectorTable = { name: "document_vectors", isOfBytes: true };

const NamespaceRow = Type.Object({
  /** Documents in it, and with all that are below it. */
  own: Whole,
  all: Whole,
  /** Given when it got its first document. */
  id: BareIdText,
});
export type NamespaceRow = Static<typeof NamespaceRow>;
export const namespaces = table("namespaces", /^[\w-]{22}(?:[\w-]{22}(?:(?:[0-9a-f]{2})+!){0,16})?$/, NamespaceRow, json<NamespaceRow>());

const DocumentRemovalRow = Type.Object({
  /** Whatever of the namespace and below it has an id up to this is gone. */
  until: BareIdText,
});
export type DocumentRemovalRow = Static<typeof DocumentRemovalRow>;
export const documentRemovals = table(
  "document_removals",
  namespaces.key,
  DocumentRemovalRow,
  having(json<DocumentRemovalRow>(), { takenUntil, cachedBytesMax: CACHE_BYTES_MAX.documentRemovals, isGlobal: true }),
);

export const lastDocumentId = table("last_document_id", /^[0-9A-Za-z]{2}$/, BareIdText, text);

const UserRow = Type.Object({
  userId: Text,
  /** Creation of the newest session, to the minute; the newest memory, where no session was left when the user was noted. */
  seenAt: Whole,
});
export type UserRow = Static<typeof UserRow>;
const hashLast = (entry: string): string => entry.slice(-HASH_KEY_LENGTH);
export const users = table("users", HASH, UserRow, having(json<UserRow>(), { keepsRead: true }), {
  byName: { of: (hash, { userId }) => `${nameKey(userId)}!${hash}`, record: hashLast },
  bySeen: { of: (hash, { seenAt }) => numberKey(seenAt) + hash, record: hashLast },
});

export const ERASURE_PHASES = [
  "sessions",
  "memories",
  "traces",
  "outbox",
  "deliveries",
  "older deliveries",
  "answers",
  "older answers",
  "leftovers",
  "documents",
  "pages",
] as const;
const ErasureRow = Type.Object({
  userId: Text,
  /** Bound of the erasure: records created by then, and ids up to this one. */
  startedAt: Whole,
  until: BareIdText,
  /** Kind that is being erased now, and the key behind which that continues. */
  phase: OneOf(ERASURE_PHASES),
  after: Text,
  /** Caller that asked for it, and the request. */
  actor: Text,
  retentionDays: Positive,
  /** Counts of what was erased so far. */
  counts: Type.Object({
    sessions: Whole,
    turns: Whole,
    versions: Whole,
    retrievals: Whole,
    memories: Whole,
    documents: Whole,
    traces: Whole,
    deliveries: Whole,
    answers: Whole,
  }),
});
export type ErasureRow = Static<typeof ErasureRow>;
export const erasures = table(
  "erasures",
  HASH,
  ErasureRow,
  having(json<ErasureRow>(), { takenUntil, cachedBytesMax: CACHE_BYTES_MAX.erasures, isGlobal: true }),
);

/** Tables whose rows are records, in the order in which they are exported. */
export const RECORD_TABLES: readonly Table<never>[] = [
  meta,
  settings,
  provider,
  apiKeys,
  sessions,
  versions,
  turns,
  branches,
  memories,
  memoryVersions,
  retrievals,
  traces,
  outbox,
  webhooks,
  webhookFailures,
  payloads,
  deliveries,
  idempotency,
  deletedKeys,
  removals,
  documents,
  indexedDocuments,
  namespaces,
  documentRemovals,
  lastDocumentId,
  users,
  erasures,
] as unknown as readonly Table<never>[];

/** Every table of bytes. */
export const VECTOR_TABLES: readonly VectorTable[] = [vectors, documentVectors];

/** Every table of texts, and every index. */
export const TABLES: readonly AnyTable[] = [...RECORD_TABLES.flatMap((one) => [one, ...one.indexes]), pendingEmbeddings];
