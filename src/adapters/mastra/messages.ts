/**
 * Messages of threads as documents.
 *
 * Each change of a message puts its entry among the ids, and names the version that it has read of it: so a message is in one place.
 *
 * @module
 */
import type { MastraDBMessage } from "@mastra/core/agent/message-list";
import {
  calculatePagination,
  normalizePerPage,
  storageMessageMatchesMetadataFilter,
  validateStorageMetadataFilter,
  type StorageListMessagesByResourceIdInput,
  type StorageListMessagesInput,
  type StorageListMessagesOutput,
} from "@mastra/core/storage";
import type { Document, DocumentChange, Documents, JsonObject } from "../../client/index.ts";
import type { Clock } from "../shared/clock.ts";
import { changeInParts, check, getAll, type DocumentAddress } from "../shared/documents.ts";
import { byKey, countOf, sliceOf, type Slice, type Span } from "../shared/slices.ts";
import { toStored } from "../shared/stored-json.ts";
import { asMastraHasThem, contentOf, groupedByThread, messageOf, updated, type MessageUpdate } from "./stored-message.ts";
import { bound, timeOf } from "./times.ts";
import type { Threads } from "./threads.ts";

const PER_PAGE = 40;
/** Number of messages of a deleted thread that are held at once. */
const CLEARED_AT_ONCE = 310;
/** Number of conditions that the server looks at. */
const CONDITIONS_MAX = 32;
/** Number of attempts to find messages that others move meanwhile. */
const READS_MAX = 20;

/** Place of a message. */
interface Entry {
  readonly threadId: string;
  readonly resourceId: string | undefined;
  readonly key: string;
}

interface StoredEntry {
  readonly entry: Entry;
  /** Every change of the message counts it up. */
  readonly version: number;
}

export type Order = "asc" | "desc";
type Filter = StorageListMessagesInput["filter"];
type Page = { found: Document[]; total: number; isMore: boolean };

export class Messages {
  readonly #documents: Documents;
  readonly #root: readonly string[];
  readonly #threads: Threads;
  readonly #clock: Clock;

  constructor(documents: Documents, root: readonly string[], threads: Threads, clock: Clock) {
    this.#documents = documents;
    this.#root = root;
    this.#threads = threads;
    this.#clock = clock;
  }

  async getAll(ids: readonly string[]): Promise<MastraDBMessage[]> {
    const found = await this.#find(ids);
    return ids.flatMap((id) => found.get(id)?.message ?? []);
  }

  /** Puts messages, wherever those of the same ids were. */
  async save(messages: readonly MastraDBMessage[]): Promise<void> {
    for (const [i, { id, threadId, createdAt }] of messages.entries()) {
      check(id, `messages[${i}].id`);
      check(threadId, `messages[${i}].threadId`);
      timeOf(createdAt, `messages[${i}].createdAt`);
    }
    const last = new Map(messages.map((message) => [message.id, message]));
    for (const [threadId, ofThread] of groupedByThread(last.values())) {
      await changeInParts(this.#documents, ofThread, async (part) => {
        const [entries, thread] = await Promise.all([this.#entries(part.map(({ id }) => id)), this.#threads.get(threadId)]);
        return [...part.flatMap((message) => this.#put(message, entries.get(message.id))), ...this.#threads.touch(thread)];
      });
    }
  }

  /** Changes the messages that are there. Returns each as it was after its update. */
  async update(updates: readonly MessageUpdate[]): Promise<MastraDBMessage[]> {
    const results = new Map<MessageUpdate, MastraDBMessage | undefined>();
    await changeInParts(this.#documents, updates, async (part) => {
      const found = await this.#find(part.map(({ id }) => id));
      const changed = new Map<string, MastraDBMessage>();
      const touched = new Set<string>();
      for (const update of part) {
        const before = changed.get(update.id) ?? found.get(update.id)?.message;
        const message = before === undefined ? undefined : updated(before, update);
        results.set(update, message);
        if (message === undefined) continue;
        changed.set(update.id, message);
        for (const { threadId = "" } of [before ?? message, message]) touched.add(threadId);
      }
      const threads = await this.#threads.getAll([...touched]);
      return [
        ...Array.from(changed.values()).flatMap((message) => this.#put(message, found.get(message.id))),
        ...Array.from(threads.values()).flatMap((thread) => this.#threads.touch(thread)),
      ];
    });
    return updates.flatMap((update) => results.get(update) ?? []);
  }

  async delete(ids: readonly string[]): Promise<void> {
    await changeInParts(this.#documents, [...new Set(ids)], async (part) => {
      const entries = await this.#entries(part);
      const threads = await this.#threads.getAll([...new Set(Array.from(entries.values(), ({ entry }) => entry.threadId))]);
      return [...this.#deletions(entries), ...Array.from(threads.values()).flatMap((thread) => this.#threads.touch(thread))];
    });
  }

  /** Deletes the messages of a thread, and leaves the thread as it is. */
  async clear(threadId: string): Promise<void> {
    for (;;) {
      const found = await this.#slice(threadId, { order: "asc" }, CLEARED_AT_ONCE);
      if (found.length === 0) return;
      await changeInParts(this.#documents, found, async (part) => {
        const entries = await this.#entries(part.map(({ value }) => value["id"] as string));
        return part.flatMap(({ key, value }) => {
          const id = value["id"] as string;
          const entry = { threadId, resourceId: value["resourceId"] as string | undefined, key };
          const stored = entries.get(id);
          const isThere = stored?.entry.threadId === threadId && stored.entry.key === key;
          // One whose entry is elsewhere has been moved meanwhile; one without an entry goes too.
          return isThere ? this.#deletions(new Map([[id, stored]])) : this.#placesOf(entry).map((place) => ({ op: "delete", ...place }));
        });
      });
    }
  }

  /** Returns the newest messages of a thread that are wanted, oldest first. */
  async newest(
    threadId: string,
    dateRange: NonNullable<Filter>["dateRange"],
    limit: number,
    isWanted?: (id: string) => boolean,
  ): Promise<MastraDBMessage[]> {
    const wanted = isWanted === undefined ? undefined : ({ value }: Document) => isWanted(value["id"] as string);
    return (await this.#slice(threadId, { order: "desc", ...between(dateRange) }, limit, wanted)).reverse().map(messageOf);
  }

  /** Returns the changes that add a message which is not there yet. */
  added(message: MastraDBMessage): DocumentChange[] {
    return this.#put(message, undefined);
  }

  async list({ threadId, include = [], order, ...input }: StorageListMessagesInput & { order: Order }): Promise<StorageListMessagesOutput> {
    const { filter, perPage: asked, page = 0, includeTotal = true } = input;
    const metadata = validateStorageMetadataFilter(filter?.metadata);
    const threadIds = new Set(Array.isArray(threadId) ? threadId : [threadId]);
    if (threadIds.size === 0 || Array.from(threadIds).some((id) => !id.trim()))
      throw new Error("threadId must be a non-empty string or array of non-empty strings");
    const { slice, perPage } = pagination(asked, page);
    if (slice.limit === 0 && include.length === 0) return { messages: [], total: 0, page, perPage, hasMore: false };

    const resourceId = input.resourceId || undefined;
    const namespaces = slice.limit === 0 ? [] : await this.#namespacesOf([...threadIds], resourceId);
    const { found, total, isMore } = await this.#page(namespaces, { order, filter, metadata, includeTotal }, slice);
    const included = await this.#included(include, resourceId);
    const all = new Map([...found, ...included].map((document) => [document.value["id"] as string, document]));
    const messages = Array.from(all.values()).sort(byKey(order)).map(messageOf);
    // Included messages may be the rest of the threads.
    const ofThreads = messages.filter((message) => threadIds.has(message.threadId ?? "")).length;
    const isAll = include.length > 0 && metadata === undefined && includeTotal && ofThreads >= total;
    return { messages, total, page, perPage, hasMore: slice.limit > 0 && isMore && !isAll };
  }

  async listOfResource(input: StorageListMessagesByResourceIdInput & { order: Order }): Promise<StorageListMessagesOutput> {
    const { resourceId, include = [], filter, perPage: asked, page = 0, order } = input;
    const metadata = validateStorageMetadataFilter(filter?.metadata);
    const { slice, perPage } = pagination(asked, page);
    const { found, total } = await this.#pageOfResource(resourceId, { order, filter, metadata }, slice);
    const included = await this.#included(include, resourceId);
    const all = new Map([...found, ...included].map((document) => [document.value["id"] as string, document]));
    const ordered = Array.from(all.values()).sort(byKey("asc")).map(messageOf);
    const messages = asMastraHasThem(ordered);
    if (order === "desc") messages.reverse();
    return { messages, total, page, perPage, hasMore: slice.offset + found.length < total };
  }

  async #page(
    namespaces: readonly string[][],
    { order, filter, metadata, includeTotal }: { order: Order; filter: Filter; metadata: Metadata; includeTotal: boolean },
    { offset, limit }: Slice,
  ): Promise<Page> {
    const span: Span = { order, ...between(filter?.dateRange), ...serverFilter(metadata) };
    const isWanted =
      metadata === undefined ? undefined : ({ value }: Document) => storageMessageMatchesMetadataFilter(contentOf(value), metadata);
    if (!includeTotal) {
      const found = await sliceOf(this.#documents, namespaces, span, { offset, limit: limit + 1 }, isWanted);
      return { found: found.slice(0, limit), total: offset + found.length, isMore: found.length > limit };
    }
    if (isWanted === undefined && span.after === undefined && span.before === undefined) {
      const [found, total] = await Promise.all([
        sliceOf(this.#documents, namespaces, span, { offset, limit }),
        countOf(this.#documents, namespaces),
      ]);
      return { found, total, isMore: offset + limit < total };
    }
    const all = await sliceOf(this.#documents, namespaces, span, { offset: 0, limit: Infinity }, isWanted);
    return { found: all.slice(offset, offset + limit), total: all.length, isMore: offset + limit < all.length };
  }

  async #pageOfResource(
    resourceId: string,
    { order, filter, metadata }: { order: Order; filter: Filter; metadata: Metadata },
    { offset, limit }: Slice,
  ): Promise<{ found: Document[]; total: number }> {
    const namespaces = resourceId === "" ? [] : [this.#resource(resourceId)];
    const span: Span = { order, ...between(filter?.dateRange) };
    const read = async (slice: Slice) => {
      const entries = await sliceOf(this.#documents, namespaces, span, slice);
      const places = entries.map(({ key, value }) => this.#placeOf({ key, resourceId, threadId: value["threadId"] as string }));
      return (await getAll(this.#documents, places)).filter((document) => document !== null);
    };
    if (metadata === undefined && span.after === undefined && span.before === undefined) {
      const [found, total] = await Promise.all([read({ offset, limit }), countOf(this.#documents, namespaces)]);
      return { found, total };
    }
    const all = (await read({ offset: 0, limit: Infinity })).filter(({ value }) =>
      storageMessageMatchesMetadataFilter(contentOf(value), metadata),
    );
    return { found: all.slice(offset, offset + limit), total: all.length };
  }

  /** Returns messages that are asked for by their ids, with those around them in their threads. */
  async #included(include: NonNullable<StorageListMessagesInput["include"]>, resourceId: string | undefined): Promise<Document[]> {
    const entries = await this.#entries(include.map(({ id }) => id));
    const found: Document[] = [];
    for (const { id, withPreviousMessages = 0, withNextMessages = 0 } of include) {
      const entry = entries.get(id)?.entry;
      if (entry === undefined || (resourceId !== undefined && entry.resourceId !== resourceId)) continue;
      const { namespace, key } = this.#placeOf(entry);
      const namespaces = resourceId === undefined ? await this.#namespacesOf([entry.threadId], undefined) : [namespace];
      const read = (span: Span, limit: number) => sliceOf(this.#documents, namespaces, span, { offset: 0, limit });
      const [[target = null], previous, next] = await Promise.all([
        getAll(this.#documents, [{ namespace, key }]),
        read({ order: "desc", before: key }, withPreviousMessages),
        read({ order: "asc", after: key }, withNextMessages),
      ]);
      if (target !== null) found.push(...previous, target, ...next);
    }
    return found;
  }

  async #slice(threadId: string, span: Span, limit: number, isWanted?: (found: Document) => boolean): Promise<Document[]> {
    const namespaces = await this.#namespacesOf([threadId], undefined);
    return sliceOf(this.#documents, namespaces, span, { offset: 0, limit }, isWanted);
  }

  /** Returns messages by their ids; the version is that of the entry. */
  async #find(ids: readonly string[]): Promise<Map<string, StoredEntry & { message: MastraDBMessage }>> {
    for (let reads = 1; reads <= READS_MAX; reads++) {
      const entries = Array.from(await this.#entries(ids));
      const found = await getAll(
        this.#documents,
        entries.map(([, { entry }]) => this.#placeOf(entry)),
      );
      // One that is not where it was has been moved or deleted meanwhile.
      const messages = entries.flatMap(([id, entry], i) => {
        const document = found[i] ?? null;
        return document === null ? [] : [[id, { ...entry, message: messageOf(document) }] as const];
      });
      if (messages.length === entries.length) return new Map(messages);
    }
    throw new Error(`Messages were moved each of the ${READS_MAX} times they were read.`);
  }

  async #entries(ids: readonly string[]): Promise<Map<string, StoredEntry>> {
    const wanted = [...new Set(ids)].filter((id) => id !== "");
    const found = await getAll(
      this.#documents,
      wanted.map((key) => ({ namespace: this.#ids, key })),
    );
    return new Map(
      found.flatMap((document) => {
        if (document === null) return [];
        const { threadId, resourceId, key } = document.value as { threadId: string; resourceId?: string; key: string };
        return [[document.key, { entry: { threadId, resourceId, key }, version: document.version }] as const];
      }),
    );
  }

  #put(message: MastraDBMessage, before: StoredEntry | undefined): DocumentChange[] {
    const { id, threadId = "", role, type, content, createdAt } = message;
    const resourceId = message.resourceId || undefined;
    const time = timeOf(createdAt, "createdAt");
    const key = `${time} ${before?.entry.key.slice(time.length + 1) ?? this.#clock.next()}`;
    const entry = { threadId, resourceId, key };
    const old = new Map(before === undefined ? [] : this.#placesOf(before.entry).map((place) => [JSON.stringify(place), place]));
    const stored = toStored({ id, threadId, resourceId, role: role || "user", type: type || "text", createdAt: time, content });
    const puts = this.#placesOf(entry).map((place, i): DocumentChange => {
      const isThere = old.delete(JSON.stringify(place));
      return { op: "put", ...place, value: i === 0 ? stored : { threadId }, ...(isThere ? {} : { if_version: 0 }) };
    });
    return [
      { op: "put", namespace: this.#ids, key: id, value: toStored(entry), if_version: before?.version ?? 0 },
      ...Array.from(old.values(), (place): DocumentChange => ({ op: "delete", ...place })),
      ...puts,
    ];
  }

  #deletions(entries: ReadonlyMap<string, StoredEntry>): DocumentChange[] {
    return Array.from(entries).flatMap(([id, { entry, version }]): DocumentChange[] => [
      { op: "delete", namespace: this.#ids, key: id, if_version: version },
      ...this.#placesOf(entry).map((place): DocumentChange => ({ op: "delete", ...place })),
    ]);
  }

  /** Returns where a message is, and where the entry is by which its resource finds it. */
  #placesOf(entry: Entry): DocumentAddress[] {
    const { resourceId, key } = entry;
    return [this.#placeOf(entry), ...(resourceId === undefined ? [] : [{ namespace: this.#resource(resourceId), key }])];
  }

  #placeOf({ threadId, resourceId, key }: Entry): DocumentAddress {
    return { namespace: [...this.#thread(threadId), ...(resourceId === undefined ? [] : [resourceId])], key };
  }

  /** Returns where the messages of threads are: of a resource, or of all that there are. */
  async #namespacesOf(threadIds: readonly string[], resourceId: string | undefined): Promise<string[][]> {
    if (resourceId !== undefined) return threadIds.map((threadId) => [...this.#thread(threadId), resourceId]);
    const namespaces: string[][] = [];
    for (const threadId of threadIds) {
      const prefix = this.#thread(threadId);
      // To the server a part that is a star is any.
      for await (const found of this.#documents.namespaces({ prefix }))
        if (prefix.every((part, i) => part === found[i])) namespaces.push(found);
    }
    return namespaces;
  }

  get #ids(): string[] {
    return [...this.#root, "message ids"];
  }

  #thread(threadId: string): string[] {
    return [...this.#root, "messages", threadId];
  }

  #resource(resourceId: string): string[] {
    return [...this.#root, "messages by resource", resourceId];
  }
}

type Metadata = ReturnType<typeof validateStorageMetadataFilter>;

function pagination(asked: number | false | undefined, page: number): { slice: Slice; perPage: number | false } {
  const limit = normalizePerPage(asked, PER_PAGE);
  if (page * limit > Number.MAX_SAFE_INTEGER / 2) throw new Error("page value too large");
  const { offset, perPage } = calculatePagination(page, asked, limit);
  return { slice: { offset, limit }, perPage };
}

/** Returns the keys between which the messages of a range are. */
function between({ start, end, startExclusive, endExclusive }: NonNullable<NonNullable<Filter>["dateRange"]> = {}): Pick<
  Span,
  "after" | "before"
> {
  return {
    ...(start ? { after: bound(start, startExclusive ? "behind" : "before") } : {}),
    ...(end ? { before: bound(end, endExclusive ? "before" : "behind") } : {}),
  };
}

/** Returns what the server can tell of a filter; the rest is looked at here. */
function serverFilter(metadata: Metadata): { filter?: JsonObject } {
  const entries = Object.entries(metadata ?? {})
    .filter(([, value]) => value !== null)
    .slice(0, CONDITIONS_MAX);
  return entries.length === 0 ? {} : { filter: Object.fromEntries(entries.map(([name, value]) => [`content.metadata.${name}`, value])) };
}
