/**
 * Mastra on Cairn: `CairnMemory` keeps the threads, messages and working memory of agents.
 *
 * ```
 * […, "threads"]                               thread id → thread
 * […, "threads by createdAt"]                  time and thread id; by updatedAt too, and of each resource
 * […, "messages", thread id, resource id]      time and what tells messages of one time apart → message
 * […, "message ids"]                           message id → where the message is
 * […, "messages by resource", resource id]     as in the thread → { threadId }
 * […, "resources"]                             resource id → working memory and metadata
 * ```
 *
 * Observational memory is not kept: `supportsObservationalMemory` is false.
 *
 * @example
 * const storage = new MastraCompositeStore({ id: "cairn", domains: { memory: new CairnMemory(cairn.documents) } });
 * const agent = new Agent({ …, memory: new Memory({ storage }) });
 *
 * @module
 */
import type { MastraDBMessage, StorageThreadType } from "@mastra/core/memory";
import {
  calculatePagination,
  jsonValueEquals,
  MemoryStorage,
  normalizePerPage,
  type StorageCloneThreadInput,
  type StorageCopyThreadOutput,
  type StorageListMessagesByResourceIdInput,
  type StorageListMessagesInput,
  type StorageListMessagesOutput,
  type StorageListThreadsInput,
  type StorageListThreadsOutput,
  type StorageResourceType,
} from "@mastra/core/storage";
import type { Documents } from "../client/index.ts";
import { Messages, type Order } from "./mastra/messages.ts";
import { asMastraHasThem, type MessageUpdate } from "./mastra/stored-message.ts";
import { Threads } from "./mastra/threads.ts";
import { timeOf } from "./mastra/times.ts";
import { Clock } from "./shared/clock.ts";
import { changeInParts, check, fitTogether, isConflict, rootOf, untilUnchanged } from "./shared/documents.ts";
import { fromStored, toStored } from "./shared/stored-json.ts";

export interface CairnMemoryOptions {
  /** Namespace of threads, messages and resources; `["mastra"]` unless given. */
  namespace?: string[];
}

const THREADS_PER_PAGE = 100;

export class CairnMemory extends MemoryStorage {
  override readonly supportsPartialThreadUpdate = true;
  readonly #documents: Documents;
  readonly #root: readonly string[];
  readonly #threads: Threads;
  readonly #messages: Messages;
  readonly #clock: Clock;

  /** @param documents - `cairn.documents`, or those of a user: `cairn.documents.of({ user_id })`; @param clock - for tests */
  constructor(documents: Documents, { namespace = ["mastra"] }: CairnMemoryOptions = {}, clock = new Clock()) {
    super();
    this.#documents = documents;
    this.#root = rootOf(namespace);
    this.#clock = clock;
    this.#threads = new Threads(documents, this.#root, clock);
    this.#messages = new Messages(documents, this.#root, this.#threads, clock);
  }

  override async dangerouslyClearAll(): Promise<void> {
    await this.#documents.deleteAll([...this.#root]);
  }

  override async getThreadById({ threadId, resourceId }: { threadId: string; resourceId?: string }): Promise<StorageThreadType | null> {
    const thread = (await this.#threads.get(threadId))?.thread;
    return thread === undefined || (resourceId !== undefined && thread.resourceId !== resourceId) ? null : thread;
  }

  override async saveThread({ thread }: { thread: StorageThreadType }): Promise<StorageThreadType> {
    check(thread.id, "thread.id");
    check(thread.resourceId, "thread.resourceId");
    for (const field of ["createdAt", "updatedAt"] as const) timeOf(thread[field], `thread.${field}`);
    await untilUnchanged(async () => {
      await this.#documents.batch(this.#threads.changes(await this.#threads.get(thread.id), thread));
    });
    return thread;
  }

  override async updateThread(update: { id: string; title?: string; metadata?: Record<string, unknown> }): Promise<StorageThreadType> {
    const { id, title, metadata } = update;
    const thread = await this.#changeThread(id, (before) => ({
      ...before,
      ...(title === undefined ? {} : { title }),
      metadata: { ...before.metadata, ...metadata },
    }));
    if (thread === null) throw new Error(`Thread with id ${id} not found`);
    return thread;
  }

  /** Changes the metadata of a thread by what is there, which others may change at the same time, in any process. */
  override async updateThreadMetadata({
    id,
    resourceId,
    update,
  }: {
    id: string;
    resourceId?: string;
    update: (thread: StorageThreadType) => Record<string, unknown> | undefined;
  }): Promise<StorageThreadType | null> {
    return this.#changeThread(id, (before) => {
      if (resourceId !== undefined && before.resourceId !== resourceId) return null;
      const metadata = update(before);
      return metadata === undefined ? before : { ...before, metadata: { ...before.metadata, ...metadata } };
    });
  }

  /** Changes a thread, unless `change` gives it back as it is, or null. */
  async #changeThread(id: string, change: (before: StorageThreadType) => StorageThreadType | null): Promise<StorageThreadType | null> {
    return untilUnchanged(async () => {
      const before = await this.#threads.get(id);
      const changed = before === undefined ? null : change(before.thread);
      if (changed === null || changed === before?.thread) return changed;
      const thread = { ...changed, updatedAt: this.#clock.after(changed.updatedAt) };
      await this.#documents.batch(this.#threads.changes(before, thread));
      return thread;
    });
  }

  /** Deletes the messages of a thread in as many parts as they fit into, and then the thread. */
  override async deleteThread({ threadId }: { threadId: string }): Promise<void> {
    await untilUnchanged(async () => {
      const thread = await this.#threads.get(threadId);
      await this.#messages.clear(threadId);
      // A message that is saved meanwhile changes the thread.
      if (thread !== undefined) await this.#documents.batch(this.#threads.changes(thread, undefined));
    });
  }

  override async listThreads({ page = 0, perPage: asked, orderBy, filter }: StorageListThreadsInput): Promise<StorageListThreadsOutput> {
    const { field, direction } = this.parseOrderBy(orderBy);
    this.validatePaginationInput(page, asked ?? THREADS_PER_PAGE);
    this.validateMetadataKeys(filter?.metadata);
    const limit = normalizePerPage(asked, THREADS_PER_PAGE);
    const { offset, perPage } = calculatePagination(page, asked, limit);
    const wanted = Object.entries(filter?.metadata ?? {});
    const { threads, total } = await this.#threads.list(
      { field, order: direction === "ASC" ? "asc" : "desc", resourceId: filter?.resourceId || undefined },
      { offset, limit },
      wanted.length === 0 ? undefined : ({ metadata }) => wanted.every(([name, value]) => jsonValueEquals(metadata?.[name], value)),
    );
    return { threads, total, page, perPage, hasMore: offset + limit < total };
  }

  /** Copies a thread: at once when it fits into one request, or else message after message into a thread that is there. */
  override async copyThread(input: StorageCloneThreadInput): Promise<StorageCopyThreadOutput> {
    const { sourceThreadId, newThreadId: id = crypto.randomUUID(), resourceId, title, metadata, options } = input;
    const source = await this.getThreadById({ threadId: sourceThreadId });
    if (source === null) throw new Error(`Source thread with id ${sourceThreadId} not found`);
    check(id, "newThreadId");
    const { messageLimit = 0, messageFilter: { startDate, endDate, messageIds = [] } = {} } = options ?? {};
    const wanted = messageIds.length === 0 ? undefined : new Set(messageIds);
    const messages = await this.#messages.newest(
      sourceThreadId,
      { ...(startDate === undefined ? {} : { start: startDate }), ...(endDate === undefined ? {} : { end: endDate }) },
      messageLimit > 0 ? messageLimit : Infinity,
      wanted === undefined ? undefined : (id) => wanted.has(id),
    );
    const now = this.#clock.time();
    const lastMessageId = messages.at(-1)?.id;
    const name = title || (source.title ? `Clone of ${source.title}` : undefined);
    const thread: StorageThreadType = {
      id,
      resourceId: resourceId || source.resourceId,
      ...(name === undefined ? {} : { title: name }),
      metadata: { ...metadata, clone: { sourceThreadId, clonedAt: now, ...(lastMessageId === undefined ? {} : { lastMessageId }) } },
      createdAt: now,
      updatedAt: now,
    };
    const copies = messages.map((message): MastraDBMessage => {
      const owner = resourceId || message.resourceId;
      return { ...message, id: crypto.randomUUID(), threadId: id, ...(owner === undefined ? {} : { resourceId: owner }) };
    });
    await this.#create(thread, copies);
    return { thread, messageIdMap: Object.fromEntries(messages.map((message, i) => [message.id, copies[i]?.id ?? ""])) };
  }

  async #create(thread: StorageThreadType, messages: readonly MastraDBMessage[]): Promise<void> {
    const head = this.#threads.changes(undefined, thread);
    const all = [...head, ...messages.flatMap((message) => this.#messages.added(message))];
    const isWhole = fitTogether(all);
    try {
      await this.#documents.batch(isWhole ? all : head);
    } catch (error) {
      if (isConflict(error)) throw new Error(`Thread with id ${thread.id} already exists`, { cause: error });
      throw error;
    }
    if (isWhole) return;
    try {
      await changeInParts(this.#documents, messages, async (part) => part.flatMap((message) => this.#messages.added(message)));
    } catch (error) {
      await this.deleteThread({ threadId: thread.id });
      throw error;
    }
  }

  override async listMessages(input: StorageListMessagesInput): Promise<StorageListMessagesOutput> {
    return this.#messages.list({ ...input, order: this.#orderOf(input) });
  }

  override async listMessagesByResourceId(input: StorageListMessagesByResourceIdInput): Promise<StorageListMessagesOutput> {
    return this.#messages.listOfResource({ ...input, order: this.#orderOf(input) });
  }

  #orderOf({ orderBy }: Pick<StorageListMessagesInput, "orderBy">): Order {
    return this.parseOrderBy(orderBy, "ASC").direction === "ASC" ? "asc" : "desc";
  }

  override async listMessagesById({ messageIds }: { messageIds: string[] }): Promise<{ messages: MastraDBMessage[] }> {
    return { messages: asMastraHasThem(await this.#messages.getAll(messageIds)) };
  }

  /** Messages of one thread that fit into one request, 19 to 31, are there together or not at all. */
  override async saveMessages({ messages }: { messages: MastraDBMessage[] }): Promise<{ messages: MastraDBMessage[] }> {
    await this.#messages.save(messages);
    return { messages: asMastraHasThem(messages) };
  }

  override async updateMessages({ messages }: { messages: MessageUpdate[] }): Promise<MastraDBMessage[]> {
    return this.#messages.update(messages);
  }

  override async deleteMessages(messageIds: string[]): Promise<void> {
    await this.#messages.delete(messageIds);
  }

  override async getResourceById({ resourceId }: { resourceId: string }): Promise<StorageResourceType | null> {
    return (await this.#resource(resourceId)).resource;
  }

  override async saveResource({ resource }: { resource: StorageResourceType }): Promise<StorageResourceType> {
    check(resource.id, "resource.id");
    await this.#documents.put(this.#resources, resource.id, toStored(resource));
    return resource;
  }

  override async updateResource({
    resourceId,
    workingMemory,
    metadata,
  }: {
    resourceId: string;
    workingMemory?: string;
    metadata?: Record<string, unknown>;
  }): Promise<StorageResourceType> {
    check(resourceId, "resourceId");
    return untilUnchanged(async () => {
      const { resource: before, version } = await this.#resource(resourceId);
      const now = this.#clock.time();
      const memory = workingMemory ?? before?.workingMemory;
      const resource: StorageResourceType = {
        ...(before ?? { id: resourceId, createdAt: now }),
        ...(memory === undefined ? {} : { workingMemory: memory }),
        metadata: { ...before?.metadata, ...metadata },
        updatedAt: now,
      };
      await this.#documents.put(this.#resources, resourceId, toStored(resource), { if_version: version });
      return resource;
    });
  }

  async #resource(resourceId: string): Promise<{ resource: StorageResourceType | null; version: number }> {
    const found = resourceId === "" ? null : await this.#documents.get(this.#resources, resourceId);
    if (found === null) return { resource: null, version: 0 };
    const resource = fromStored(found.value) as StorageResourceType;
    const times = { createdAt: new Date(resource.createdAt), updatedAt: new Date(resource.updatedAt) };
    return { resource: { ...resource, ...times }, version: found.version };
  }

  get #resources(): string[] {
    return [...this.#root, "resources"];
  }
}
