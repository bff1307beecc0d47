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
import { bare, homeOf, withPrefix, type BareId, type Id } from "../lib/ids.ts";
import { toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { BACKGROUND, type Active, type MadeEmbedding } from "../embeddings/embeddings.ts";
import { laterOf, liveSession, type LiveSession } from "../sessions/live-session.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { hasVector, MEMORIES } from "../storage/collections.ts";
import { generationOf } from "../storage/memory-records.ts";
import { ownerOfNew } from "../storage/owner.ts";
import { memories, pendingEmbeddings, sessions, type MemoryRow } from "../storage/tables.ts";
import { noteNamedUser } from "../storage/user-names.ts";
import { record, type Caller } from "../traces/record.ts";
import { storeVector } from "../vectors/store-vector.ts";
import type { MemoryDeps } from "./deps.ts";
import { memoryJson, preview, refuseLongContent } from "./record.ts";

export interface NewMemory {
  /** Left out for a memory of a user or an agent alone. */
  sessionId?: string | undefined;
  /** Those of the session, where there is one. */
  userId?: string | undefined;
  agentId?: string | undefined;
  content: string;
  type: string;
  tags: string[];
  metadata: JsonObject;
  embed: boolean;
}

/** A memory with its vector, ready for the transaction. */
interface PreparedMemory {
  readonly input: NewMemory;
  /** Undefined for one that wants none. */
  readonly embedding: MadeEmbedding | undefined;
}

export interface PreparedMemories {
  readonly active: Active;
  readonly all: readonly PreparedMemory[];
  /** Where in the request they are; undefined for a memory that is the request. */
  readonly place: string | undefined;
}

export interface CreatedMemory {
  readonly row: MemoryRow;
  readonly json: JsonText;
}

/**
 * Checks new memories as far as that can be done now, and makes their vectors.
 *
 * @param place - the name of the array that they are the elements of, for errors: `memories`
 * @throws {ApiError} of the first that is wrong, which names its place
 */
export async function prepareMemories(
  deps: MemoryDeps,
  caller: Caller,
  inputs: readonly NewMemory[],
  place?: string,
): Promise<PreparedMemories> {
  deps.quotas?.refuseGrowth();
  await deps.store.read((reader) => inputs.forEach((input, i) => inPlace(place, i, () => void ownerOf(reader, caller, input))));
  inputs.forEach(({ content }, i) => inPlace(place, i, () => refuseLongContent(content)));
  const { active } = deps.embeddings;
  const limitsId = caller.limitsId ?? BACKGROUND.limitsId;
  const embeddings: Promise<MadeEmbedding | undefined>[] = [];
  for (const { embed: wantsVector, content } of inputs) {
    // Others are answered in between: to cut one text into words takes a millisecond.
    if (embeddings.length > 0) await nextTurn();
    const made = wantsVector ? deps.embeddings.embedMemory(active, content, limitsId) : Promise.resolve(undefined);
    // What goes wrong with one while others are begun is thrown below.
    made.catch(() => undefined);
    embeddings.push(made);
  }
  const made = await Promise.all(embeddings);
  return { active, place, all: inputs.map((input, i) => ({ input, embedding: made[i] })) };
}

/**
 * Creates memories, each with its trace and event, in their order.
 *
 * @throws {ApiError} of the first that is wrong, which names its place: then nothing of the transaction may be kept
 */
export function createMemories(tx: Tx, caller: Caller, { all, active, place }: PreparedMemories): CreatedMemory[] {
  const counted = new Map<BareId, { session: LiveSession; memories: number }>();
  const created = all.map(({ input, embedding }, i) =>
    inPlace(place, i, () => {
      const { session, userId, agentId } = ownerOf(tx, caller, input);
      if (session === undefined) noteNamedUser(tx, userId);
      else counted.set(session.key, { session, memories: (counted.get(session.key)?.memories ?? 0) + 1 });
      return createMemory(tx, caller, { session, userId, agentId }, input, active, embedding);
    }),
  );
  for (const { session, memories: added } of counted.values()) {
    const { key, row } = session;
    tx.put(sessions, key, { ...row, memoryCount: row.memoryCount + added, updatedAt: laterOf(row, tx.now) });
  }
  return created;
}

/** To be called once memories are committed. */
export function memoriesCreated(deps: MemoryDeps, { all }: PreparedMemories): void {
  for (const { input, embedding } of all) if (input.embed) noteVectors(deps, embedding);
}

interface MemoryOwner {
  session: LiveSession | undefined;
  userId: string | null;
  agentId: string | null;
}

/**
 * Whose a new memory is: its session's user and agent, or those that it names, or the ones that the key is bound to.
 *
 * @throws {ApiError} `session_not_found`, `permission_denied`, or `invalid_request` where it is nobody's or not its session's
 */
function ownerOf(reader: Reader, { owner }: Caller, { sessionId, userId, agentId }: NewMemory): MemoryOwner {
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
  const message = `${param} must be the ${noun} of the session that session_id names: leave ${param} out, or session_id to keep the memory without a session.`;
  return new ApiError("invalid_request", message, { param });
}

function createMemory(
  tx: Tx,
  caller: Caller,
  { session, userId, agentId }: MemoryOwner,
  input: NewMemory,
  active: Active,
  embedding: MadeEmbedding | undefined,
): CreatedMemory {
  const id = tx.id("mem", session === undefined ? undefined : homeOf(session.id));
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
    embed: input.embed,
  };
  // Made with its memory, the vector is as new as the memory's id.
  if (input.embed) embed(tx, active, key, row, embedding, withPrefix("emb", key));
  tx.add(memories, key, row);
  const json = memoryJson(id, row, generationOf(tx));
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
    }),
    record: json,
  });
  return { row, json };
}

/** Gives a memory its vector and words; when there is none of the provider that is set by now, it is made later. */
export function embed(tx: Tx, active: Active, memory: BareId, row: MemoryRow, embedding: MadeEmbedding | undefined, id?: Id<"emb">): void {
  const isOfProvider = embedding !== undefined && generationOf(tx) === active.generation;
  if (!isOfProvider || embedding.isPending === true) tx.put(pendingEmbeddings, memory, "");
  if (isOfProvider) row.embedding = storeVector(tx, MEMORIES, memory, active.generation, embedding, id);
}

/** To be called after a commit that stored a vector, or left one to be made later. */
export function noteVectors(deps: MemoryDeps, embedding: MadeEmbedding | undefined): void {
  if (embedding === undefined || embedding.isPending === true) deps.backfill.wake();
  if (embedding !== undefined) deps.vectors.changed();
}

/** Runs what concerns one of the memories of a request: an error says which of them is at fault. */
function inPlace<Result>(place: string | undefined, i: number, work: () => Result): Result {
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
