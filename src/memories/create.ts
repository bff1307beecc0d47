/**
 * New memories, one or many, inside the transaction of a change.
 *
 * Their vectors are made before it; what the transaction finds changed meanwhile wins. A change that creates memories calls all three:
 * `prepareMemories` before the commit, `createMemories` inside it, `memoriesCreated` after it.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, partitionOf, withPrefix, type BareId } from "../lib/ids.ts";
import { toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { countQuoted } from "../embeddings/builtin/token-count.ts";
import { BACKGROUND, type Active, type MadeEmbedding } from "../embeddings/embeddings.ts";
import { laterOf, liveSession, type LiveSession } from "../sessions/live-session.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { hasVector } from "../storage/collections.ts";
import { ownerOfNew } from "../storage/owner.ts";
import { memories, sessions, type MemoryRow } from "../storage/tables.ts";
import { trackNamedUser } from "../storage/user-names.ts";
import { record, type Caller, type Quotas } from "../traces/record.ts";
import { changeMemory, checkTimes, embed, endOf, markSecrets, trackVectors, type MemoryChanges, type NewContent } from "./change.ts";
import type { MemoryDeps } from "./deps.ts";
import { duplicateOf } from "./duplicates.ts";
import { refuseManyPins } from "./pins.ts";
import { refuseEmptyValidity, supersede, toSupersede } from "./validity.ts";
import { memoryJson, namedMemory, nameTaken, preview, refuseLongContent, scopeOfNames, type FoundMemory } from "./record.ts";

export interface NewMemory {
  /** Left out for a memory of a user or an agent alone. */
  sessionId?: string | undefined;
  /** User and agent of the session, where there is one. */
  userId?: string | undefined;
  agentId?: string | undefined;
  content: string;
  type: string;
  tags: string[];
  metadata: JsonObject;
  embed: boolean;
  externalId?: string | undefined;
  /** Action where the owner has one of that external id; `error` unless given. */
  ifExists?: "error" | "update" | "return" | undefined;
  /** Action where the owner has a current one of the type that says the same; `allow` unless given. */
  onDuplicate?: "allow" | "return" | "update" | undefined;
  source?: MemoryRow["source"];
  importance?: number | undefined;
  pinned?: boolean | undefined;
  /** In Unix milliseconds, like the times below. */
  occurredAt?: number | undefined;
  expiresAt?: number | undefined;
  ttlSeconds?: number | undefined;
  validFrom?: number | undefined;
  validUntil?: number | undefined;
  /** Ids of those whose place it takes. */
  supersedes?: readonly string[] | undefined;
  /** Number of similar memories to answer, and these as JSON. */
  similar?: { limit?: number | undefined; threshold?: number | undefined } | undefined;
  similarFound?: JsonText | undefined;
  /** Reason for writing it. */
  reason?: string | undefined;
  /** The request as it was sent: an update keeps what that leaves out. */
  sent?: object | undefined;
}

/** A memory with its vector, ready for the transaction. */
interface PreparedMemory {
  readonly input: NewMemory;
  /** Undefined for one that wants none. */
  readonly embedding: MadeEmbedding | undefined;
  /** Tokens of its content in a context. */
  readonly tokens: number;
}

export interface PreparedMemories {
  readonly quotas: Quotas | undefined;
  readonly active: Active;
  readonly all: readonly PreparedMemory[];
  /** Path in the request; undefined for a memory that is the request. */
  readonly place: string | undefined;
}

export interface CreatedMemory {
  readonly row: MemoryRow;
  readonly json: JsonText;
  /** false for one that was there, by its external id or as a duplicate. */
  readonly isNew: boolean;
}

/**
 * Checks new memories as far as that can be done now, and makes their vectors.
 *
 * @param place - the name of the array that they are the elements of, for errors: `memories`
 * @param check - comes before all of them, in the same read; what it throws names no place
 * @throws {ApiError} of the first that is wrong, which names its place
 */
export async function prepareMemories(
  deps: MemoryDeps,
  caller: Caller,
  inputs: readonly NewMemory[],
  place?: string,
  check?: (reader: Reader) => unknown,
): Promise<PreparedMemories> {
  deps.quotas?.refuseGrowth();
  const wanted = await deps.store.read((reader) => {
    check?.(reader);
    return inputs.map((input, i) => inPlace(place, i, () => wantsVector(reader, caller, input)));
  });
  const { active } = deps.embeddings;
  const limitsId = caller.limitsId ?? BACKGROUND.limitsId;
  const embeddings: Promise<MadeEmbedding | undefined>[] = [];
  const tokens: number[] = [];
  for (const [i, { content }] of inputs.entries()) {
    // Others are answered in between: to cut one text into words takes a millisecond.
    if (i > 0) await nextTurn();
    const made = wanted[i] === true ? deps.embeddings.embedMemory(active, content, limitsId) : Promise.resolve(undefined);
    // A failure of one while others are begun is thrown below.
    made.catch(() => undefined);
    embeddings.push(made);
    tokens.push(await countQuoted(content));
  }
  const made = await Promise.all(embeddings);
  return { quotas: deps.quotas, active, place, all: inputs.map((input, i) => ({ input, embedding: made[i], tokens: tokens[i]! })) };
}

/**
 * Checks whether the text of a memory has to go to the provider: not where one is there that is returned, or changed in other things.
 *
 * @throws {ApiError} where it cannot be created
 */
function wantsVector(reader: Reader, caller: Caller, input: NewMemory): boolean {
  const owner = ownerOf(reader, caller, input);
  refuseLongContent(input.content);
  checkTimes(input, reader.now);
  refuseEmptyValidity(input);
  const there = memoryThere(reader, caller, owner, input);
  if (there === undefined) toSupersede(reader, caller, owner, input.supersedes ?? []);
  return input.embed && (there === undefined || (!there.isDuplicate && input.ifExists === "update" && there.row.content !== input.content));
}

/** A memory that takes the place of a new one. */
interface MemoryThere extends FoundMemory {
  /** True if it says the same; else it has the external id. */
  readonly isDuplicate: boolean;
}

/** @throws {ApiError} `already_exists` for an external id that is taken */
function memoryThere(reader: Reader, caller: Caller, of: MemoryOwner, input: NewMemory): MemoryThere | undefined {
  const named = memoryNamed(reader, caller, of, input);
  if (named !== undefined) return { ...named, isDuplicate: false };
  const { onDuplicate = "allow", supersedes = [] } = input;
  if (onDuplicate === "allow") return undefined;
  const same = duplicateOf(reader, caller.owner, { ...of, sessionId: of.session?.id }, input);
  // A memory that is about to be past is no duplicate of the one that supersedes it.
  return same === undefined || supersedes.includes(same.id) ? undefined : { ...same, isDuplicate: true };
}

/**
 * The memory that is there by the external id of a new one.
 *
 * @throws {ApiError} `already_exists` where that is not to be
 */
function memoryNamed(reader: Reader, { owner }: Caller, of: MemoryOwner, input: NewMemory): FoundMemory | undefined {
  const { externalId, ifExists, supersedes = [] } = input;
  if (externalId === undefined) return undefined;
  const there = namedMemory(reader, { ...of, namedWithin: scopeOfNames(owner) }, externalId);
  // A new one takes over the name of one whose place it takes.
  if (there !== undefined && ifExists !== "update" && supersedes.includes(there.id)) return undefined;
  if (there !== undefined && (ifExists ?? "error") === "error") throw nameTaken(there, externalId);
  return there;
}

/**
 * Creates memories, each with its trace and event, in their order.
 *
 * @throws {ApiError} of the first that is wrong, which names its place: then nothing of the transaction may be kept
 */
export function createMemories(tx: Tx, caller: Caller, prepared: PreparedMemories): CreatedMemory[] {
  const { all, active, place, quotas } = prepared;
  const counted = new Map<BareId, { session: LiveSession; memories: number }>();
  const created = all.map(({ input, embedding, tokens }, i) =>
    inPlace(place, i, () => {
      const owner = ownerOf(tx, caller, input);
      const { session, userId } = owner;
      const there = memoryThere(tx, caller, owner, input);
      if (there !== undefined) return withFound(takeOver(tx, caller, quotas, there, input, { active, embedding, tokens }), input);
      if (session === undefined) trackNamedUser(tx, userId);
      else counted.set(session.key, { session, memories: (counted.get(session.key)?.memories ?? 0) + 1 });
      return withFound(createMemory(tx, caller, owner, input, { active, embedding, tokens }), input);
    }),
  );
  for (const { session, memories: added } of counted.values()) {
    const { key, row } = session;
    tx.put(sessions, key, { ...row, memoryCount: row.memoryCount + added, updatedAt: laterOf(row, tx.now) });
  }
  return created;
}

/** Adds what was found before to the answer. */
function withFound(created: CreatedMemory, { similarFound }: NewMemory): CreatedMemory {
  return similarFound === undefined ? created : { ...created, json: `${created.json.slice(0, -1)},"similar":${similarFound}}` as JsonText };
}

/** To be called once memories are committed. */
export function memoriesCreated(deps: MemoryDeps, { all }: PreparedMemories): void {
  for (const { input, embedding } of all) if (input.embed) trackVectors(deps, embedding);
}

export interface MemoryOwner {
  session: LiveSession | undefined;
  userId: string | null;
  agentId: string | null;
}

/**
 * Owner of a new memory: its session's user and agent, or those that it names, or the ones that the key is bound to.
 *
 * @throws {ApiError} `session_not_found`, `permission_denied`, or `invalid_request` where it is nobody's or not its session's
 */
export function ownerOf(reader: Reader, { owner }: Caller, { sessionId, userId, agentId }: NewMemory): MemoryOwner {
  const named = ownerOfNew(owner, { userId, agentId });
  if (sessionId === undefined) {
    if (named.userId === undefined && named.agentId === undefined)
      throw new ApiError("invalid_request", "session_id is required where there is neither a user_id nor an agent_id.", {
        param: "session_id",
      });
    return { session: undefined, userId: named.userId ?? null, agentId: named.agentId ?? null };
  }
  const session = liveSession(reader, owner, sessionId);
  if (userId !== undefined && userId !== session.row.userId) throw otherThanSession("user_id", "user");
  if (agentId !== undefined && agentId !== session.row.agentId) throw otherThanSession("agent_id", "agent");
  return { session, userId: session.row.userId, agentId: session.row.agentId };
}

function otherThanSession(param: string, noun: string): ApiError {
  const message = `${param} must be the ${noun} of the memory's session (session_id), or left out; a memory of another ${noun} is added without the session.`;
  return new ApiError("invalid_request", message, { param });
}

/** Answers with a memory that is there, changed by what was sent where that is wanted. */
function takeOver(
  tx: Tx,
  caller: Caller,
  quotas: Quotas | undefined,
  there: MemoryThere,
  input: NewMemory,
  content: NewContent,
): CreatedMemory {
  const { isDuplicate } = there;
  const { sent = {}, type, tags, metadata, source, importance, pinned, validFrom, validUntil, externalId, reason, supersedes = [] } = input;
  if (supersedes.length > 0 && (isDuplicate || input.ifExists !== "return"))
    throw new ApiError(
      "version_conflict",
      isDuplicate
        ? `supersedes is for a new memory; ${there.id} says the same already (on_duplicate).`
        : "supersedes is for a new memory; the one with this external_id is there, and is changed.",
      { param: "supersedes" },
    );
  const answered = ({ row, json }: Pick<CreatedMemory, "row" | "json">): CreatedMemory => ({
    row,
    json: isDuplicate ? (`${json.slice(0, -1)},"duplicate":true}` as JsonText) : json,
    isNew: false,
  });
  if ((isDuplicate ? input.onDuplicate : input.ifExists) === "return")
    return answered({ row: there.row, json: memoryJson(tx, there.id, there.row) });
  const isSent = (name: string) => Object.hasOwn(sent, name);
  const changes: MemoryChanges = {
    // One that says the same keeps its own words, and a name that it has.
    ...(isDuplicate ? { externalId: there.row.externalId ?? externalId } : { content: input.content }),
    ...(isSent("type") ? { type } : {}),
    ...(isSent("tags") ? { tags } : {}),
    source,
    importance,
    pinned,
    expiresAt: endOf(input, tx.now),
    validFrom,
    validUntil,
    reason,
  };
  return answered(changeMemory(tx, caller, quotas, there, changes, isSent("metadata") ? metadata : there.row.metadata, content));
}

function createMemory(
  tx: Tx,
  caller: Caller,
  { session, userId, agentId }: MemoryOwner,
  input: NewMemory,
  { active, embedding, tokens }: NewContent,
): CreatedMemory {
  const superseded = toSupersede(tx, caller, { userId, agentId }, input.supersedes ?? []);
  const id = tx.id("mem", session === undefined ? undefined : partitionOf(session.id));
  const key = bare(id);
  const row: MemoryRow = {
    ...(session === undefined ? {} : { sessionId: session.id }),
    userId,
    agentId,
    content: input.content,
    type: input.type,
    tags: input.tags,
    metadata: input.metadata,
    createdAt: tx.now,
    ...(input.externalId === undefined ? {} : { externalId: input.externalId, namedWithin: scopeOfNames(caller.owner) }),
    ...given("source", input.source),
    ...given("importance", input.importance),
    ...(input.pinned === true ? { pinned: true } : {}),
    ...given("occurredAt", input.occurredAt),
    ...given("expiresAt", endOf(input, tx.now) ?? undefined),
    // From then on it is current, and what it supersedes is not.
    ...given("validFrom", input.validFrom ?? (superseded.length === 0 ? undefined : tx.now)),
    ...given("validUntil", input.validUntil),
    ...(superseded.length === 0 ? {} : { supersedes: superseded.map((old) => old.id) }),
    actor: caller.actor,
    ...given("reason", input.reason),
    ...given("tokens", tokens),
    embed: input.embed,
  };
  markSecrets(row, caller, undefined);
  refuseEmptyValidity(row);
  // Made with its memory, the vector is as new as the memory's id.
  if (input.embed) embed(tx, active, key, row, embedding, withPrefix("emb", key));
  tx.add(memories, key, row);
  const json = memoryJson(tx, id, row);
  record(tx, caller, {
    action: "memory.created",
    sessionId: session?.id ?? null,
    userId,
    agentId,
    ...(session === undefined ? { recordId: key } : {}),
    details: toJson({
      memory_id: id,
      content_preview: preview(row.content),
      type: row.type,
      tags: row.tags,
      embedded: hasVector(row),
      reason: input.reason,
    }),
    record: json,
  });
  if (superseded.length > 0) supersede(tx, caller, superseded, id, row);
  refuseManyPins(tx, row);
  return { row, json, isNew: true };
}

/** A member of a row, where there is one: most rows have none of these. */
function given<Name extends string, Value>(name: Name, value: Value | undefined): { [Key in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [Key in Name]?: Value };
}

/** Runs what concerns one of the memories of a request: an error says which of them is at fault. */
export function inPlace<Result>(place: string | undefined, i: number, work: () => Result): Result {
  if (place === undefined) return work();
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.detail.param === undefined) throw error;
    const { param } = error.detail;
    const path = `${place}[${i}].${param}`;
    const message = error.message.startsWith(param) ? path + error.message.slice(param.length) : `${path}: ${error.message}`;
    throw new ApiError(error.code, message, { ...error.detail, param: path });
  }
}
