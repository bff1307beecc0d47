/**
 * Checkpoints of LangGraph as documents.
 *
 * ```
 * […, "threads", thread, "ns:" + namespace]                   checkpoint id → the checkpoint without its values, metadata, parent
 * […, "values",  thread, "ns:" + namespace]                   channel/version → a value, once for all checkpoints that have it
 * […, "writes",  thread, "ns:" + namespace, checkpoint id]    task/index → what a task wrote
 * ```
 *
 * @module
 */
import { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  compareWritesSortKeys,
  copyCheckpoint,
  getCheckpointId,
  maxChannelVersion,
  TASKS,
  WRITES_IDX_MAP,
  writesSortKey,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import type { Document, DocumentChange, Documents, Filter } from "../../client/index.ts";
import { allDocuments, change, readAll, rootOf } from "../shared/documents.ts";
import { spokenIn } from "../shared/langchain-messages.ts";
import { lastAsked, Sessions, type SessionOptions, type ConversationMessage } from "../shared/sessions.ts";
import { fromBase64, isScalar, toBase64 } from "../shared/stored-json.ts";

export interface CairnSaverOptions {
  /** Namespace of checkpoints; `["langgraph"]` unless given. */
  namespace?: string[];
  serde?: SerializerProtocol;
  /**
   * Keeps each thread in a session of Cairn, which is deleted with it. `logTurns` logs the answers in the channel `messages`, as that of
   * `MessagesAnnotation`.
   */
  session?: SessionOptions;
}

const FRAMEWORK = "langgraph";

/** A value as LangGraph serialises it: JSON as it is, bytes in base64. */
type Packed = { type: string; text: string } | { type: string; base64: string };

interface StoredCheckpoint {
  checkpoint: Packed;
  metadata: Packed;
  /** Members of the metadata that are texts, numbers or booleans, for filters. */
  filters: Record<string, string | number | boolean>;
  parent?: string;
}

interface StoredWrite {
  task: string;
  path: string;
  index: number;
  channel: string;
  value: Packed;
}

/** Namespace of the checkpoints of a thread. */
interface CheckpointAddress {
  readonly thread: string;
  readonly ns: string;
}

/** The documents of values, by the names of their places; null where there is none. */
type Values = Map<string, Document | null>;

/** The channel of what is said, in graphs that have it. */
const MESSAGES = "messages";
const NS = "ns:";
/** Special writes have indexes below zero, and keys are sorted as texts. */
const INDEX_OFFSET = 1_000;
/** Number of checkpoints read ahead in a list. */
const LIST_PAGE = 20;

export class CairnSaver extends BaseCheckpointSaver {
  readonly #documents: Documents;
  readonly #root: readonly string[];
  readonly #sessions: Sessions;

  /** @param documents - `cairn.documents`, or those of a user: `cairn.documents.of({ user_id })` */
  constructor(documents: Documents, { namespace = [FRAMEWORK], serde, session }: CairnSaverOptions = {}) {
    super(serde);
    this.#documents = documents;
    this.#root = rootOf(namespace);
    this.#sessions = new Sessions(documents, namespace, FRAMEWORK, session);
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread, ns, id } = placeOf(config);
    if (thread === undefined) return undefined;
    const namespace = this.#checkpoints({ thread, ns });
    if (id !== undefined) {
      const found = await this.#documents.get(namespace, id);
      const [tuple] = await this.#tuples(found === null ? [] : [found]);
      return tuple === undefined ? undefined : { ...tuple, config };
    }
    const { data } = await this.#documents.list(namespace, { order: "desc", limit: 1 });
    return (await this.#tuples(data))[0];
  }

  /** Gives the newest first of each thread and namespace. */
  async *list(
    config: RunnableConfig,
    { limit = Infinity, before, filter = {} }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { thread, id } = placeOf(config);
    const ns = (config.configurable as { checkpoint_ns?: string } | undefined)?.checkpoint_ns;
    const end = before === undefined ? undefined : placeOf(before).id;
    const wanted = Object.entries(filter).filter(([, value]) => value !== undefined) as [string, unknown][];
    // Dots would be paths, and only plain values stand next to the metadata.
    const indexed = wanted.filter(([name, value]) => isScalar(value) && !name.includes("."));
    const isOneList = thread !== undefined && ns !== undefined;
    const namespace = isOneList ? this.#checkpoints({ thread, ns }) : [...this.#root, "threads", ...(thread === undefined ? [] : [thread])];
    const options = {
      order: "desc" as const,
      limit: Math.max(1, Math.min(LIST_PAGE, limit)),
      ...(isOneList ? (end === undefined ? {} : { before: end }) : { deep: true }),
      ...(indexed.length === 0 ? {} : { filter: Object.fromEntries(indexed.map(([name, value]) => [`filters.${name}`, value])) as Filter }),
    };
    const isFound = async (document: Document) => {
      if ((ns !== undefined && this.#placeOf(document).ns !== ns) || (id !== undefined && document.key !== id)) return false;
      if (end !== undefined && document.key >= end) return false;
      const metadata = (await this.#unpack((document.value as StoredCheckpoint).metadata)) as Record<string, unknown>;
      return wanted.every(([name, value]) => JSON.stringify(metadata[name]) === JSON.stringify(value));
    };
    // Neighbours have most values in common, also those of two pages.
    const values: Values = new Map();
    for (let left = limit, cursor: string | null | undefined; left > 0 && cursor !== null;) {
      const page = await this.#documents.list(namespace, { ...options, ...(cursor === undefined ? {} : { cursor }) });
      cursor = page.next_cursor;
      const are = await Promise.all(page.data.map(isFound));
      const found = page.data.filter((_, i) => are[i]).slice(0, left);
      left -= found.length;
      yield* await this.#tuples(found, values);
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread, ns, id: parent } = placeOf(config);
    if (thread === undefined) throw missing("put", "thread_id");
    const { channel_values: values, ...rest } = copyCheckpoint(checkpoint);
    const namespace = this.#values({ thread, ns });
    const put = async ([channel, version]: [string, string | number]): Promise<DocumentChange> => {
      return { op: "put", namespace, key: `${channel}/${version}`, value: { value: await this.#pack(values[channel]) } };
    };
    const putAll = (versions: ChannelVersions) =>
      Promise.all(
        Object.entries(versions)
          .filter(([channel]) => values[channel] !== undefined)
          .map(put),
      );
    const stored: StoredCheckpoint = {
      checkpoint: await this.#pack({ ...rest, channel_values: {} }),
      metadata: await this.#pack(metadata),
      filters: Object.fromEntries(Object.entries(metadata).filter(([, value]) => isScalar(value))) as StoredCheckpoint["filters"],
      ...(parent === undefined ? {} : { parent }),
    };
    // The checkpoint comes last: it is not there before its values are.
    const last: DocumentChange = { op: "put", namespace: this.#checkpoints({ thread, ns }), key: checkpoint.id, value: stored };
    const changes = await putAll(newVersions);
    await this.#sessions.change(thread, async (documents, isAgain) =>
      change(documents, [...(isAgain ? await putAll(checkpoint.channel_versions) : changes), last]),
    );
    if (this.#sessions.logsTurns && ns === "" && metadata.source === "loop" && newVersions[MESSAGES] !== undefined)
      await this.#sessions.log(thread, answerIn(values[MESSAGES], checkpoint.id), async () => []);
    return configOf({ thread, ns, id: checkpoint.id });
  }

  /** Keeps what a task has written before, except for special writes such as errors: those are replaced. */
  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath = ""): Promise<void> {
    const { thread, ns, id } = placeOf(config);
    if (thread === undefined) throw missing("putWrites", "thread_id");
    if (id === undefined) throw missing("putWrites", "checkpoint_id");
    const namespace = this.#writes({ thread, ns }, id);
    const changes = await Promise.all(
      writes.map(async ([channel, value], position): Promise<DocumentChange> => {
        const index = WRITES_IDX_MAP[channel] ?? position;
        const stored: StoredWrite = { task: taskId, path: taskPath, index, channel, value: await this.#pack(value) };
        const key = `${taskId}/${String(index + INDEX_OFFSET).padStart(8, "0")}`;
        return { op: "put", namespace, key, value: stored, ...(index < 0 ? {} : { if_exists: "keep" }) };
      }),
    );
    await this.#sessions.change(thread, (documents) => change(documents, changes));
  }

  /** Deletes a thread, and the session that it is kept in with its turns and memories. */
  async deleteThread(threadId: string): Promise<void> {
    const kinds = ["threads", "writes", "values"];
    await this.#documents.batch(kinds.map((kind) => ({ op: "delete_all" as const, namespace: [...this.#root, kind, threadId] })));
    await this.#sessions.delete(threadId);
  }

  /** Forks of a thread count on from the same version: a fraction of chance keeps their values apart. */
  override getNextVersion(current: number | undefined): number {
    const [chance = 0] = crypto.getRandomValues(new Uint32Array(1));
    return Math.floor(current ?? 0) + 1 + chance / 2 ** 32;
  }

  /**
   * Returns checkpoints with their values and what tasks wrote, all read together.
   *
   * @param values - that were read before; afterwards those of these checkpoints
   */
  async #tuples(documents: readonly Document[], values: Values = new Map()): Promise<CheckpointTuple[]> {
    const checkpoints = await Promise.all(
      documents.map(async (document) => {
        const stored = document.value as StoredCheckpoint;
        const checkpoint = (await this.#unpack(stored.checkpoint)) as Checkpoint;
        const namespace = this.#values(this.#placeOf(document));
        const channels = Object.entries(checkpoint.channel_versions).map(([channel, version]) => {
          const key = `${channel}/${version}`;
          return { channel, namespace, key, name: JSON.stringify([namespace, key]) };
        });
        return { document, stored, checkpoint, channels };
      }),
    );
    const places = new Map(checkpoints.flatMap(({ channels }) => channels.map((place) => [place.name, place])));
    for (const name of values.keys()) if (!places.has(name)) values.delete(name);
    const missing = Array.from(places.values()).filter(({ name }) => !values.has(name));
    const writes = documents.map((document) => this.#writes(this.#placeOf(document), document.key));
    const { found, lists } = await readAll(this.#documents, missing, writes);
    for (const [i, { name }] of missing.entries()) values.set(name, found[i] ?? null);
    return Promise.all(
      checkpoints.map(async ({ document: { key: id, ...document }, stored: { metadata, parent }, checkpoint, channels }, i) => {
        const place = this.#placeOf(document);
        for (const { channel, name } of channels) {
          const value = values.get(name);
          if (value) checkpoint.channel_values[channel] = await this.#unpack((value.value as { value: Packed }).value);
        }
        if (checkpoint.v < 4 && parent !== undefined) await this.#migratePendingSends(checkpoint, place, parent);
        return {
          config: configOf({ ...place, id }),
          checkpoint,
          metadata: (await this.#unpack(metadata)) as CheckpointMetadata,
          pendingWrites: await this.#pendingWrites(lists[i] ?? []),
          ...(parent === undefined ? {} : { parentConfig: configOf({ ...place, id: parent }) }),
        };
      }),
    );
  }

  #pendingWrites(documents: readonly Document[]): Promise<CheckpointPendingWrite[]> {
    return Promise.all(
      inOrder(documents).map(async ({ task, channel, value }): Promise<CheckpointPendingWrite> => [
        task,
        channel,
        await this.#unpack(value),
      ]),
    );
  }

  /** Before version 4 what was sent to tasks was written to the parent instead of a channel. */
  async #migratePendingSends(checkpoint: Checkpoint, place: CheckpointAddress, parent: string): Promise<void> {
    const written = await allDocuments(this.#documents, this.#writes(place, parent));
    const sends = inOrder(written).filter(({ channel }) => channel === TASKS);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_values[TASKS] = await Promise.all(sends.map(({ value }) => this.#unpack(value)));
    checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  async #pack(value: unknown): Promise<Packed> {
    const [type, bytes] = await this.serde.dumpsTyped(value);
    return type === "json" ? { type, text: new TextDecoder().decode(bytes) } : { type, base64: toBase64(bytes) };
  }

  async #unpack(packed: Packed): Promise<unknown> {
    return this.serde.loadsTyped(packed.type, "text" in packed ? new TextEncoder().encode(packed.text) : fromBase64(packed.base64));
  }

  #placeOf({ namespace }: Pick<Document, "namespace">): CheckpointAddress {
    const [, thread = "", ns = ""] = namespace.slice(this.#root.length);
    return { thread, ns: ns.slice(NS.length) };
  }

  #checkpoints({ thread, ns }: CheckpointAddress): string[] {
    return [...this.#root, "threads", thread, NS + ns];
  }

  #values({ thread, ns }: CheckpointAddress): string[] {
    return [...this.#root, "values", thread, NS + ns];
  }

  #writes({ thread, ns }: CheckpointAddress, id: string): string[] {
    return [...this.#root, "writes", thread, NS + ns, id];
  }
}

/** The last of messages with the last of the user, where they are messages. */
function answerIn(messages: unknown, checkpointId: string): ConversationMessage[] {
  if (!Array.isArray(messages) || !messages.every((message) => BaseMessage.isInstance(message))) return [];
  const spoken = messages.map(spokenIn);
  const last = spoken.at(-1);
  return last === undefined
    ? []
    : [
        { role: "user", text: lastAsked(spoken) },
        { ...last, name: checkpointId },
      ];
}

/** Writes of tasks, in the order in which LangGraph applies it. */
function inOrder(documents: readonly Document[]): StoredWrite[] {
  const key = ({ path, task, index }: StoredWrite) => writesSortKey(path, task, index);
  return documents.map(({ value }) => value as unknown as StoredWrite).sort((a, b) => compareWritesSortKeys(key(a), key(b)));
}

/** Without an id the newest one is meant. */
function placeOf(config: RunnableConfig): Partial<CheckpointAddress> & Pick<CheckpointAddress, "ns"> & { id?: string } {
  const { thread_id: thread, checkpoint_ns: ns = "" } = (config.configurable ?? {}) as { thread_id?: unknown; checkpoint_ns?: string };
  if (thread !== undefined && (typeof thread !== "string" || thread === ""))
    throw new TypeError(`configurable.thread_id must be a text that is not empty; got ${JSON.stringify(thread)}.`);
  const id = getCheckpointId(config);
  return { ns, ...(thread === undefined ? {} : { thread }), ...(id === "" ? {} : { id }) };
}

function configOf({ thread, ns, id }: CheckpointAddress & { id: string }): RunnableConfig {
  return { configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } };
}

function missing(method: string, field: string): TypeError {
  return new TypeError(`${method} needs config.configurable.${field}: without it nothing says which thread or checkpoint is meant.`);
}
