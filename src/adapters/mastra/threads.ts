/**
 * Threads as documents, and the lists in which they are found by time.
 *
 * @module
 */
import type { StorageThreadType } from "@mastra/core/memory";
import type { Document, DocumentChange, Documents } from "../../client/index.ts";
import type { Clock } from "../shared/clock.ts";
import { getAll, type DocumentAddress } from "../shared/documents.ts";
import { countOf, sliceOf, type Slice } from "../shared/slices.ts";
import { fromStored, toStored } from "../shared/stored-json.ts";
import { timeOf } from "./times.ts";

type TimeField = "createdAt" | "updatedAt";
const TIME_FIELDS: readonly TimeField[] = ["createdAt", "updatedAt"];

/** A thread as it is stored, at a version. */
export interface StoredThread {
  readonly thread: StorageThreadType;
  readonly version: number;
}

export class Threads {
  readonly #documents: Documents;
  readonly #root: readonly string[];
  readonly #clock: Clock;

  constructor(documents: Documents, root: readonly string[], clock: Clock) {
    this.#documents = documents;
    this.#root = root;
    this.#clock = clock;
  }

  async get(id: string): Promise<StoredThread | undefined> {
    return (await this.getAll([id])).get(id);
  }

  async getAll(ids: readonly string[]): Promise<Map<string, StoredThread>> {
    const wanted = ids.filter((id) => id !== "");
    const found = await getAll(
      this.#documents,
      wanted.map((key) => ({ namespace: this.#threads, key })),
    );
    return new Map(
      found.flatMap((document) =>
        document === null ? [] : [[document.key, { thread: threadOf(document), version: document.version }] as const],
      ),
    );
  }

  /** Returns the changes that make a thread of what was there, or remove it; they depend on what was there. */
  changes(before: StoredThread | undefined, after: StorageThreadType | undefined): DocumentChange[] {
    const id = (after ?? before?.thread)?.id ?? "";
    const at = { namespace: this.#threads, key: id, if_version: before?.version ?? 0 };
    const places = new Map(after === undefined ? [] : this.#placesOf(after).map((place) => [JSON.stringify(place), place]));
    const changes: DocumentChange[] = [after === undefined ? { op: "delete", ...at } : { op: "put", ...at, value: toStored(after) }];
    for (const place of before === undefined ? [] : this.#placesOf(before.thread))
      if (!places.delete(JSON.stringify(place))) changes.push({ op: "delete", ...place });
    for (const place of places.values()) changes.push({ op: "put", ...place, value: {} });
    return changes;
  }

  /** Returns the changes that say that something in a thread has changed now. */
  touch(before: StoredThread | undefined): DocumentChange[] {
    if (before === undefined) return [];
    const { thread } = before;
    return this.changes(before, { ...thread, updatedAt: this.#clock.after(thread.updatedAt) });
  }

  /** Returns the threads of a resource, or all, and how many there are. */
  async list(
    { field, order, resourceId }: { field: TimeField; order: "asc" | "desc"; resourceId: string | undefined },
    slice: Slice,
    isWanted: ((thread: StorageThreadType) => boolean) | undefined,
  ): Promise<{ threads: StorageThreadType[]; total: number }> {
    const namespace = this.#listOf(field, resourceId);
    const read = async (part: Slice) => {
      const entries = await sliceOf(this.#documents, [namespace], { order }, part);
      const ids = entries.map(({ key }) => key.slice(key.indexOf(" ") + 1));
      const found = await this.getAll(ids);
      return ids.flatMap((id) => found.get(id)?.thread ?? []);
    };
    if (isWanted === undefined) {
      const [threads, total] = await Promise.all([read(slice), countOf(this.#documents, [namespace])]);
      return { threads, total };
    }
    const wanted = (await read({ offset: 0, limit: Infinity })).filter(isWanted);
    return { threads: wanted.slice(slice.offset, slice.offset + slice.limit), total: wanted.length };
  }

  #placesOf(thread: StorageThreadType): DocumentAddress[] {
    return TIME_FIELDS.flatMap((field) => {
      const key = `${timeOf(thread[field], `thread.${field}`)} ${thread.id}`;
      return [undefined, thread.resourceId].map((resourceId) => ({ namespace: this.#listOf(field, resourceId), key }));
    });
  }

  get #threads(): string[] {
    return [...this.#root, "threads"];
  }

  #listOf(field: TimeField, resourceId: string | undefined): string[] {
    return [...this.#root, `threads by ${field}`, ...(resourceId === undefined ? [] : [resourceId])];
  }
}

function threadOf({ value }: Document): StorageThreadType {
  const thread = fromStored(value) as StorageThreadType;
  return { ...thread, createdAt: new Date(thread.createdAt), updatedAt: new Date(thread.updatedAt) };
}
