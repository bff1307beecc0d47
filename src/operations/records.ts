/**
 * Every table that holds records, as opposed to what follows from them: what a row of it looks like outside of the store,
 * and which entries of which indexes it has.
 *
 * The commands that take a store apart (export, import, doctor) go through this list alone. A table of `tables.ts` stands
 * here, as a record or as an index of one, or among `FROM_MEMORIES`, whose rows come from memories and their vectors; a
 * test holds that.
 *
 * @module
 */
import { DIMENSION } from "../embeddings/embedder.ts";
import { SCOPES } from "../lib/scopes.ts";
import { TIERS } from "../keys/tiers.ts";
import { BARE_ID_LENGTH } from "../lib/ids.ts";
import { storedSettingsProblem, withoutWrongSettings } from "../settings/schema.ts";
import { memoryIndexKeys, sessionIndexKeys, traceIndexKeys } from "../storage/indexes.ts";
import { NUMBER_KEY_LENGTH, numberKey } from "../storage/keys.ts";
import {
  apiKeys,
  apiKeysById,
  deletedKeys,
  deliveries,
  deliveriesBySession,
  deliveriesDue,
  idempotency,
  idempotencyByTime,
  labels,
  memories,
  memoriesAhead,
  memoriesBySession,
  memoriesByTag,
  memoriesByType,
  memoriesByUser,
  meta,
  outbox,
  owed,
  payloads,
  provider,
  removals,
  sessions,
  sessionsByAgent,
  sessionsAhead,
  sessionsByExpiry,
  sessionsByUser,
  settings,
  traces,
  tracesAhead,
  tracesByAction,
  tracesByExpiry,
  tracesBySession,
  tracesByUser,
  turns,
  vectors,
  versions,
  webhooks,
  type AnyTable,
  type Table,
} from "../storage/tables.ts";
import { queueEntries } from "../webhooks/queue.ts";
import { checkUrl } from "../webhooks/target.ts";
import { secretProblem } from "../webhooks/signature.ts";
import {
  bareId,
  finite,
  id,
  instant,
  isoTime,
  listOf,
  maybe,
  nullOr,
  object,
  oneOf,
  positive,
  text,
  textThat,
  truth,
  uint32,
  uint32Text,
  whole,
  type Shape,
} from "./shapes.ts";

/** An entry of an index: its key, and its row, which is empty unless the index says more. */
export interface Entry {
  table: AnyTable;
  key: string;
  text: string;
}

/** How rows look outside: as one JSON value. Both ways exact. */
interface Outside {
  /** JSON of a stored text. */
  write(stored: string): string;
  /** The stored text of a parsed JSON value. */
  read(value: unknown): string;
}

export interface RecordTable extends Outside {
  readonly table: AnyTable;
  readonly key: RegExp;
  readonly shape: Shape;
  readonly indexes: readonly AnyTable[];
  /** The entries a row has in these. */
  entries(key: string, stored: string): Entry[];
  /** What is wrong with the values of a row that has its shape. */
  problemOf(value: unknown): string | undefined;
  /** The row without what is wrong with it; undefined where nothing is right without it. */
  mended(value: unknown): unknown;
  /** The key of the row that an entry is of. */
  recordOf(entry: { key: string; text: string }): string;
}

const asJson: Outside = { write: (stored) => stored, read: (value) => JSON.stringify(value) };
const asText: Outside = { write: (stored) => JSON.stringify(stored), read: (value) => value as string };
/** Head and body of `tables.ts` as one object, the body last. */
const asBody: Outside = {
  write: (stored) => {
    const end = stored.indexOf("\n");
    return `${stored.slice(0, end - 1)},"body":${stored.slice(end + 1)}}`;
  },
  read: (value) => {
    const { body, ...head } = value as { body: unknown };
    return `${JSON.stringify(head)}\n${JSON.stringify(body)}`;
  },
};
/** The two halves of a turn. */
const asHalves: Outside = {
  write: (stored) => {
    const end = stored.indexOf("\n");
    return `{"shown":{${stored.slice(0, end)}},"rest":{${stored.slice(end + 1)}}}`;
  },
  read: (value) => {
    const { shown, rest } = value as { shown: object; rest: object };
    return `${JSON.stringify(shown).slice(1, -1)}\n${JSON.stringify(rest).slice(1, -1)}`;
  },
};

const ID = /^[0-9A-Za-z]{12}$/;
const HASH = /^[\w-]{22}$/;
const SHA256 = /^[0-9a-f]{64}$/;
const CURRENT = /^current$/;

const anyObject = object({});
/** A trace of no session is for admin keys only, and its row has to say so. */
const traceShape = (members: Record<string, Shape>): Shape => {
  const shape = object(members);
  return (value, path) => {
    const wrong = shape(value, path);
    if (wrong !== undefined) return wrong;
    const { adminOnly, body } = value as { adminOnly?: boolean; body: { session_id: string | null } };
    return (adminOnly === true) === (body.session_id === null)
      ? undefined
      : `${path}.adminOnly is not true exactly where session_id is null`;
  };
};

const measured = object({ relevantCosine: finite, cosineOfUnrelated: finite, cosineOfSame: finite, separation: finite });
const secret = textThat(secretProblem);

function urlProblem(url: string): string | undefined {
  const checked = checkUrl(url);
  return "problem" in checked ? checked.problem : undefined;
}

const lastId = ({ key }: { key: string }) => key.slice(-BARE_ID_LENGTH);

interface Definition<Row> {
  table: Table<Row>;
  outside: Outside;
  key: RegExp;
  shape: Shape;
  indexes?: readonly AnyTable[];
  entries?: (key: string, row: Row) => { table: AnyTable; key: string; text?: string }[];
  problemOf?: (row: Row) => string | undefined;
  mended?: (row: Row) => Row | undefined;
  recordOf?: RecordTable["recordOf"];
}

function records<Row>({
  table,
  outside,
  key,
  shape,
  indexes = [],
  entries = () => [],
  problemOf = () => undefined,
  mended = () => undefined,
  recordOf = lastId,
}: Definition<Row>): RecordTable {
  return {
    // A row whose shape is right is what its table says, but for tables whose rows look otherwise outside.
    problemOf: (value) => problemOf(value as Row),
    mended: (value) => mended(value as Row),
    table,
    ...outside,
    key,
    shape,
    indexes,
    entries: (recordKey, stored) => entries(recordKey, table.decode(stored)).map((entry) => ({ text: "", ...entry })),
    recordOf,
  };
}

/** In the order in which they are exported. */
export const RECORDS: readonly RecordTable[] = [
  records({ table: meta, outside: asText, key: /^(schema|nextLabel|firstLabel|backupNumber)$/, shape: uint32Text }),
  records({
    table: settings,
    outside: asJson,
    key: CURRENT,
    shape: anyObject,
    problemOf: (row) => storedSettingsProblem(row)?.message,
    mended: withoutWrongSettings,
  }),
  records({
    table: provider,
    outside: asJson,
    key: CURRENT,
    shape: object({ identity: text, vectorLength: maybe(whole), measured: maybe(measured) }),
    problemOf: ({ vectorLength = 1 }) =>
      vectorLength >= 1 && vectorLength <= DIMENSION ? undefined : `vectorLength must be from 1 to ${DIMENSION}`,
    // All else is found out again from the provider.
    mended: ({ identity }) => ({ identity }),
  }),
  records({
    table: apiKeys,
    outside: asJson,
    key: SHA256,
    shape: object({
      id: id("key"),
      name: nullOr(text),
      prefix: text,
      scopes: listOf(oneOf(...SCOPES)),
      tier: oneOf(...TIERS),
      perMinute: positive,
      burst: positive,
      createdAt: whole,
      // Any time that a caller names: no key of the store is made of it.
      expiresAt: nullOr(instant),
      lastUsedAt: maybe(whole),
      rolledFrom: maybe(id("key")),
      rolledTo: maybe(id("key")),
    }),
    indexes: [apiKeysById],
    entries: (hash, row) => [{ table: apiKeysById, key: row.id.slice("key_".length), text: hash }],
    recordOf: (entry) => entry.text,
  }),
  records({
    table: sessions,
    outside: asJson,
    key: ID,
    shape: object({
      agentId: text,
      userId: nullOr(text),
      createdAt: whole,
      updatedAt: whole,
      metadata: anyObject,
      memoryCount: whole,
      turnCount: whole,
      ttlSeconds: whole,
      expiresAt: whole,
      version: whole,
    }),
    indexes: [sessionsByAgent, sessionsByUser, sessionsByExpiry, sessionsAhead],
    entries: sessionIndexKeys,
  }),
  records({
    table: versions,
    outside: asBody,
    key: /^[0-9A-Za-z]{19}$/,
    shape: object({
      createdAt: whole,
      reasoning: maybe(text),
      actor: text,
      source: oneOf("initial", "update", "rollback"),
      body: anyObject,
    }),
  }),
  records({
    table: turns,
    outside: asHalves,
    key: /^[0-9A-Za-z]{24}$/,
    shape: object({
      shown: object({ id: id("turn"), input: anyObject, output: anyObject, created_at: isoTime }),
      rest: object({ session_id: id("sess"), turn_number: whole }),
    }),
  }),
  records({
    table: memories,
    outside: asJson,
    key: ID,
    shape: object({
      sessionId: id("sess"),
      userId: nullOr(text),
      content: text,
      type: text,
      tags: listOf(text),
      metadata: anyObject,
      createdAt: whole,
      embed: truth,
      embedding: maybe(object({ id: id("emb"), label: uint32 })),
    }),
    indexes: [memoriesBySession, memoriesByUser, memoriesByType, memoriesByTag, memoriesAhead],
    entries: memoryIndexKeys,
  }),
  records({
    table: traces,
    outside: asBody,
    key: ID,
    shape: traceShape({
      expiresAt: whole,
      at: maybe(whole),
      adminOnly: maybe(truth),
      body: object({ id: id("trace"), session_id: nullOr(id("sess")), user_id: maybe(text), action: text, timestamp: isoTime }),
    }),
    indexes: [tracesBySession, tracesByUser, tracesByAction, tracesByExpiry, tracesAhead],
    entries: traceIndexKeys,
  }),
  records({
    table: outbox,
    outside: asBody,
    key: ID,
    shape: object({ type: text, createdAt: whole, sessionId: nullOr(text), traceId: maybe(text), body: nullOr(anyObject) }),
  }),
  records({
    table: webhooks,
    outside: asJson,
    key: ID,
    shape: object({
      url: textThat(urlProblem),
      events: listOf(text),
      description: nullOr(text),
      enabled: truth,
      disabledReason: nullOr(text),
      // Left out of an export without secrets.
      secret: maybe(secret),
      previousSecrets: listOf(object({ secret, until: whole })),
      createdAt: whole,
      updatedAt: whole,
      since: bareId,
      failingSince: nullOr(whole),
      pausedUntil: maybe(nullOr(whole)),
    }),
  }),
  records({ table: payloads, outside: asJson, key: ID, shape: anyObject }),
  records({
    table: deliveries,
    outside: asJson,
    key: /^[0-9A-Za-z]{24}$/,
    shape: object({
      payload: bareId,
      eventId: bareId,
      type: text,
      sessionId: nullOr(id("sess")),
      createdAt: whole,
      status: oneOf("pending", "delivered", "failed"),
      attempts: whole,
      failures: whole,
      nextAttemptAt: nullOr(whole),
      unordered: maybe(truth),
      last: nullOr(anyObject),
    }),
    indexes: [deliveriesDue, deliveriesBySession],
    entries: (key, row) => queueEntries(key.slice(0, BARE_ID_LENGTH), key.slice(BARE_ID_LENGTH), row),
    recordOf: ({ key }) => key.slice(0, BARE_ID_LENGTH) + lastId({ key }),
  }),
  records({
    table: idempotency,
    outside: asBody,
    key: HASH,
    shape: object({ fingerprint: text, status: whole, createdAt: whole, sealed: maybe(truth), body: anyObject }),
    indexes: [idempotencyByTime],
    entries: (key, row) => [{ table: idempotencyByTime, key: numberKey(row.createdAt) + key }],
    recordOf: ({ key }) => key.slice(NUMBER_KEY_LENGTH),
  }),
  records({ table: deletedKeys, outside: asJson, key: SHA256, shape: object({ deletedAt: whole }) }),
  records({ table: removals, outside: asJson, key: ID, shape: object({ memories: truth }) }),
];

/** Which memory has which vector, and which is to get one. */
export const FROM_MEMORIES: readonly AnyTable[] = [vectors, labels, owed];

/** A table as what it holds, text for text. */
export function stored({ name }: AnyTable): Table<string> {
  return { name, encode: (row) => row, decode: (row) => row };
}

/**
 * What is wrong with a row, if anything.
 *
 * @param value - of the row's JSON outside of the store
 */
export function rowProblem(of: RecordTable, key: string, value: unknown): string | undefined {
  if (!of.key.test(key)) return "the key has not the shape of one";
  const wrong = of.shape(value, "row") ?? of.problemOf(value);
  if (wrong !== undefined) return wrong;
  const id = ownIdOf(of, value);
  return id !== undefined && id !== key ? "the row says another id than its key" : undefined;
}

/** The key, where the row says it too. */
function ownIdOf({ table }: RecordTable, value: unknown): string | undefined {
  if (table === traces) return (value as { body: { id: string } }).body.id.slice("trace_".length);
  if (table !== turns) return undefined;
  const { shown, rest } = value as { shown: { id: string }; rest: { session_id: string } };
  return rest.session_id.slice("sess_".length) + shown.id.slice("turn_".length);
}
