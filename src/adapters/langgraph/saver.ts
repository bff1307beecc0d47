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
import { CairnError, type Document, type DocumentChange, type Documents } from "../../client/index.ts";
import { change, getAll } from "../shared/documents.ts";
import { fromBase64, toBase64 } from "../shared/stored-json.ts";

export interface CairnSaverOptions {
  /** Where checkpoints are kept; `["langgraph"]` unless given. */
  namespace?: string[];
  serde?: SerializerProtocol;
}

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

/** Where a checkpoint is; without an id the newest one is meant. */
interface Place {
  readonly thread: string;
  readonly ns: string;
  readonly id?: string;
}

const NS = "ns:";
/** Special writes have indexes below zero, and keys are sorted as texts. */
const INDEX_OFFSET = 1_000;
/** How many checkpoints are read ahead in a list. */
const LIST_PAGE = 20;
const WRITES_PAGE = 1_000;

export class CairnSaver extends BaseCheckpointSaver {
  readonly #documents: Documents;
  readonly #root: readonly string[];

  /** @param documents - `cairn.documents`, or those of a user: `cairn.documents.of({ user_id })` */
  constructor(documents: Documents, { namespace = ["langgraph"], serde }: CairnSaverOptions = {}) {
    super(serde);
    this.#documents = documents;
    this.#root = namespace;
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread, ns, id } = placeOf(config);
    if (thread === undefined) return undefined;
    const namespace = this.#checkpoints(thread, ns);
    if (id !== undefined) {
      const found = await this.#documents.get(namespace, id);
      return found === null ? undefined : { ...(await this.#tuple(found)), config };
    }
    const [latest] = (await this.#documents.list(namespace, { order: "desc", limit: 1 })).data;
    return latest === undefined ? undefined : this.#tuple(latest);
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
    const indexed = wanted.filter(([name, value]) => isPlain(value) && !name.includes("."));
    const isOneList = thread !== undefined && ns !== undefined;
    const found = this.#documents.list(
      isOneList ? this.#checkpoints(thread, ns) : [...this.#root, "threads", ...(thread === undefined ? [] : [thread])],
      {
        order: "desc",
        limit: Math.max(1, Math.min(LIST_PAGE, limit)),
        ...(isOneList ? (end === undefined ? {} : { before: end }) : { deep: true }),
        ...(indexed.length === 0 ? {} : { filter: Object.fromEntries(indexed.map(([name, value]) => [`filters.${name}`, value])) }),
      },
    );
    let left = limit;
    for await (const document of found) {
      if (left <= 0) return;
      const place = this.#placeOf(document);
      if ((ns !== undefined && place.ns !== ns) || (id !== undefined && document.key !== id)) continue;
      if (end !== undefined && document.key >= end) continue;
      const tuple = await this.#tuple(document);
      const metadata = (tuple.metadata ?? {}) as Record<string, unknown>;
      if (!wanted.every(([name, value]) => JSON.stringify(metadata[name]) === JSON.stringify(value))) continue;
      left--;
      yield tuple;
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
    const namespace = this.#values(thread, ns);
    const changes = Object.entries(newVersions)
      .filter(([channel]) => values[channel] !== undefined)
      .map(async ([channel, version]): Promise<DocumentChange> => ({
        op: "put",
        namespace,
        key: `${channel}/${version}`,
        value: { value: await this.#pack(values[channel]) },
      }));
    const stored: StoredCheckpoint = {
      checkpoint: await this.#pack({ ...rest, channel_values: {} }),
      metadata: await this.#pack(metadata),
      filters: Object.fromEntries(Object.entries(metadata).filter(([, value]) => isPlain(value))) as StoredCheckpoint["filters"],
      ...(parent === undefined ? {} : { parent }),
    };
    // The checkpoint comes last: it is not there before its values are.
    const last: DocumentChange = { op: "put", namespace: this.#checkpoints(thread, ns), key: checkpoint.id, value: stored };
    await change(this.#documents, [...(await Promise.all(changes)), last]);
    return configOf({ thread, ns, id: checkpoint.id });
  }

  /** What a task has written before stays, except for special writes such as errors: those are replaced. */
  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath = ""): Promise<void> {
    const { thread, ns, id } = placeOf(config);
    if (thread === undefined) throw missing("putWrites", "thread_id");
    if (id === undefined) throw missing("putWrites", "checkpoint_id");
    const namespace = this.#writes(thread, ns, id);
    const changes = await Promise.all(
      writes.map(async ([channel, value], position): Promise<DocumentChange & { key: string }> => {
        const index = WRITES_IDX_MAP[channel] ?? position;
        const stored: StoredWrite = { task: taskId, path: taskPath, index, channel, value: await this.#pack(value) };
        const key = `${taskId}/${String(index + INDEX_OFFSET).padStart(8, "0")}`;
        return { op: "put", namespace, key, value: stored, ...(index < 0 ? {} : { if_version: 0 }) };
      }),
    );
    try {
      await change(this.#documents, changes);
    } catch (error) {
      if (!(error instanceof CairnError) || error.code !== "version_conflict") throw error;
      const found = await getAll(this.#documents, changes);
      await this.#putRest(changes.filter(({ if_version }, i) => if_version === undefined || found[i] === null));
    }
  }

  /** Another run of the same task may write the same at the same time: what it has written meanwhile is left out one by one. */
  async #putRest(changes: readonly DocumentChange[]): Promise<void> {
    for (const one of changes) {
      await this.#documents.batch([one]).catch((error: unknown) => {
        if (!(error instanceof CairnError) || error.code !== "version_conflict") throw error;
      });
    }
  }

  async deleteThread(threadId: string): Promise<void> {
    const kinds = ["threads", "writes", "values"];
    await this.#documents.batch(kinds.map((kind) => ({ op: "delete_all" as const, namespace: [...this.#root, kind, threadId] })));
  }

  /** Forks of a thread count on from the same version: a fraction of chance keeps their values apart. */
  override getNextVersion(current: number | undefined): number {
    const [chance = 0] = crypto.getRandomValues(new Uint32Array(1));
    return Math.floor(current ?? 0) + 1 + chance / 2 ** 32;
  }

  async #tuple(document: Document): Promise<CheckpointTuple> {
    const { thread, ns } = this.#placeOf(document);
    const stored = document.value as StoredCheckpoint;
    const [checkpoint, metadata, pendingWrites] = await Promise.all([
      this.#unpack(stored.checkpoint).then((unpacked) => this.#withValues(unpacked as Checkpoint, thread, ns)),
      this.#unpack(stored.metadata) as Promise<CheckpointMetadata>,
      this.#pendingWrites(thread, ns, document.key),
    ]);
    const { parent } = stored;
    if (checkpoint.v < 4 && parent !== undefined) await this.#migratePendingSends(checkpoint, thread, ns, parent);
    return {
      config: configOf({ thread, ns, id: document.key }),
      checkpoint,
      metadata,
      pendingWrites,
      ...(parent === undefined ? {} : { parentConfig: configOf({ thread, ns, id: parent }) }),
    };
  }

  async #withValues(checkpoint: Checkpoint, thread: string, ns: string): Promise<Checkpoint> {
    const channels = Object.entries(checkpoint.channel_versions);
    const namespace = this.#values(thread, ns);
    const found = await getAll(
      this.#documents,
      channels.map(([channel, version]) => ({ namespace, key: `${channel}/${version}` })),
    );
    for (const [i, [channel]] of channels.entries()) {
      const document = found[i];
      if (document) checkpoint.channel_values[channel] = await this.#unpack((document.value as { value: Packed }).value);
    }
    return checkpoint;
  }

  /** In the order in which LangGraph applies them. */
  async #storedWrites(thread: string, ns: string, id: string): Promise<StoredWrite[]> {
    const writes: StoredWrite[] = [];
    for await (const { value } of this.#documents.list(this.#writes(thread, ns, id), { limit: WRITES_PAGE }))
      writes.push(value as StoredWrite);
    const key = ({ path, task, index }: StoredWrite) => writesSortKey(path, task, index);
    return writes.sort((a, b) => compareWritesSortKeys(key(a), key(b)));
  }

  async #pendingWrites(thread: string, ns: string, id: string): Promise<CheckpointPendingWrite[]> {
    const writes = await this.#storedWrites(thread, ns, id);
    return Promise.all(
      writes.map(async ({ task, channel, value }): Promise<CheckpointPendingWrite> => [task, channel, await this.#unpack(value)]),
    );
  }

  /** Before version 4 what was sent to tasks was written to the parent instead of a channel. */
  async #migratePendingSends(checkpoint: Checkpoint, thread: string, ns: string, parent: string): Promise<void> {
    const sends = (await this.#storedWrites(thread, ns, parent)).filter(({ channel }) => channel === TASKS);
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

  #placeOf({ namespace }: Document): Place {
    const [, thread = "", ns = ""] = namespace.slice(this.#root.length);
    return { thread, ns: ns.slice(NS.length) };
  }

  #checkpoints(thread: string, ns: string): string[] {
    return [...this.#root, "threads", thread, NS + ns];
  }

  #values(thread: string, ns: string): string[] {
    return [...this.#root, "values", thread, NS + ns];
  }

  #writes(thread: string, ns: string, id: string): string[] {
    return [...this.#root, "writes", thread, NS + ns, id];
  }
}

function placeOf(config: RunnableConfig): Partial<Place> & Pick<Place, "ns"> {
  const { thread_id: thread, checkpoint_ns: ns = "" } = (config.configurable ?? {}) as { thread_id?: unknown; checkpoint_ns?: string };
  if (thread !== undefined && (typeof thread !== "string" || thread === ""))
    throw new TypeError(`configurable.thread_id must be a text that is not empty; got ${JSON.stringify(thread)}.`);
  const id = getCheckpointId(config);
  return { ns, ...(thread === undefined ? {} : { thread }), ...(id === "" ? {} : { id }) };
}

function configOf({ thread, ns, id }: Required<Place>): RunnableConfig {
  return { configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } };
}

function missing(method: string, field: string): TypeError {
  return new TypeError(`${method} needs config.configurable.${field}: without it nothing says which thread or checkpoint is meant.`);
}

function isPlain(value: unknown): value is string | number | boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}
