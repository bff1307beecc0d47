/**
 * Brings memories that were found into a store. Their names are external ids: what is there already is not sent, and what is sent twice is
 * stored once. One whose text has changed since stays as it is, unless it is to be updated.
 *
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import { LIMITS } from "../../lib/limits.ts";
import { isUnfit, type Ask } from "./asking.ts";
import type { FoundMemory, SourceMemory, SourceSession } from "./found.ts";
import { hashOf } from "./values.ts";

/** The rest of a body is small. */
const BATCH_BYTES_MAX = LIMITS.bodyBytesMax - 65_536;

export interface MemoryWriterOptions {
  readonly ask: Ask;
  /** The user of memories whose source names none. */
  readonly user: string | undefined;
  /** True to count only. */
  readonly isDry: boolean;
  /** True to replace what has changed in the source. */
  readonly isUpdate: boolean;
  /** Finds or makes a session; its empty id is that of a dry run. */
  readonly session: (session: SourceSession) => Promise<string>;
  /** Called with a memory that the server refused. */
  readonly onRefused: (memory: SourceMemory, reason: string) => Promise<void> | void;
}

type NewMemory = SourceMemory & { readonly session_id?: string; readonly user_id?: string; readonly agent_id?: string };
type Batch = readonly { readonly memory: NewMemory; readonly isNew: boolean }[];
type Kept = { readonly id: string; readonly hash: string; readonly document: unknown };

export class MemoryWriter {
  readonly counts = { memories: 0, present: 0, changed: 0, removed: 0 };
  readonly #options: MemoryWriterOptions;
  #from: string | undefined;
  /** Memories of the source that are there, by owner and external id. */
  #present = new Map<string, Kept>();
  /** Documents that were read, and what they have. */
  readonly #documents = new Set<unknown>();
  readonly #seen = new Set<string>();
  #batch: Batch[number][] = [];
  #batchBytes = 0;

  constructor(options: MemoryWriterOptions) {
    this.#options = options;
  }

  /** Takes the next memory, which is stored with those after it, or by `end`. @returns true for one that is new */
  async memory(found: FoundMemory): Promise<boolean> {
    const key = await this.#keyOf(found);
    const { document } = found.memory.metadata;
    if (document !== undefined) {
      this.#documents.add(document);
      this.#seen.add(key);
    }
    const hash = stateOf(found.memory);
    const kept = this.#present.get(key);
    const isNew = kept === undefined;
    if (!isNew && kept.hash === hash) {
      this.counts.present += 1;
      return false;
    }
    this.#present.set(key, { id: kept?.id ?? "", hash, document });
    if (isNew || this.#options.isUpdate) await this.#take(found, isNew);
    else this.counts.changed += 1;
    return isNew;
  }

  async end(): Promise<void> {
    await this.#flush();
  }

  /** Takes away, of an update, what the documents that were read have no longer. */
  async takeAway(): Promise<void> {
    if (!this.#options.isUpdate) return;
    for (const [key, { id, document }] of this.#present)
      if (this.#documents.has(document) && !this.#seen.has(key)) await this.#delete(key, id);
  }

  /** Removes a memory that an import has made. */
  async remove(found: FoundMemory): Promise<void> {
    const key = await this.#keyOf(found);
    const kept = this.#present.get(key);
    if (kept !== undefined) await this.#delete(key, kept.id);
  }

  async #delete(key: string, id: string): Promise<void> {
    this.#present.delete(key);
    this.counts.removed += 1;
    if (!this.#options.isDry) await this.#options.ask("DELETE /v1/memory/{memory_id}", { path: { memory_id: id } });
  }

  async #keyOf({ from, session, owner, memory }: FoundMemory): Promise<string> {
    if (from !== this.#from) await this.#load(from);
    const { user_id: user, agent_id: agent } = this.#ownerOf({ from, session, owner });
    return keyOf(user, agent, memory.external_id);
  }

  #ownerOf({ from, session, owner }: Pick<FoundMemory, "from" | "session" | "owner">): { user_id?: string; agent_id?: string } {
    const user = (session ?? owner).user ?? this.#options.user;
    const agent = session?.agentId ?? owner.agent ?? (user === undefined ? from : undefined);
    return { ...(user === undefined ? {} : { user_id: user }), ...(agent === undefined ? {} : { agent_id: agent }) };
  }

  /** Learns what is there of a source. */
  async #load(from: string): Promise<void> {
    this.#from = from;
    this.#present = new Map();
    const filter = { "metadata.imported_from": from };
    for (let after: string | undefined; ;) {
      const query = { filter, limit: LIMITS.listMax, status: "all", ...(after === undefined ? {} : { starting_after: after }) };
      const page = await this.#options.ask("GET /v1/memory", { query });
      for (const memory of page["data"] as JsonObject[]) {
        const { id, external_id: name, user_id: user, agent_id: agent, metadata } = memory;
        if (typeof name !== "string") continue;
        const { document } = metadata as JsonObject;
        this.#present.set(keyOf(user, agent, name), { id: id as string, hash: stateOf(memory as unknown as SourceMemory), document });
      }
      after = page["last_id"] as string;
      if (page["has_more"] !== true) return;
    }
  }

  async #take(found: FoundMemory, isNew: boolean): Promise<void> {
    const session = found.session === undefined ? undefined : await this.#options.session(found.session);
    const owner = session === undefined ? this.#ownerOf(found) : { session_id: session };
    const memory = { ...found.memory, ...owner };
    const bytes = Buffer.byteLength(JSON.stringify(memory)) + 64;
    if (this.#batch.length === LIMITS.memoryBatchMax || this.#batchBytes + bytes > BATCH_BYTES_MAX) await this.#flush();
    this.#batch.push({ memory, isNew });
    this.#batchBytes += bytes;
  }

  async #flush(): Promise<void> {
    const batch = this.#batch;
    [this.#batch, this.#batchBytes] = [[], 0];
    if (batch.length > 0) await this.#send(batch);
  }

  /** Sends memories together; one by one where one of them does not fit. */
  async #send(batch: Batch): Promise<void> {
    const ifExists = this.#options.isUpdate ? "update" : "return";
    const memories = batch.map(({ memory }) => ({ ...memory, if_exists: ifExists }));
    try {
      if (!this.#options.isDry) await this.#options.ask("POST /v1/memory/batch", { body: { memories } });
      for (const { isNew } of batch) this.counts[isNew ? "memories" : "changed"] += 1;
    } catch (error) {
      if (!isUnfit(error)) throw error;
      const [one] = batch;
      if (one !== undefined && batch.length === 1) await this.#options.onRefused(one.memory, error.message);
      else for (const single of batch) await this.#send([single]);
    }
  }
}

function keyOf(user: unknown, agent: unknown, name: string): string {
  // Names are of a user, or of an agent where there is none.
  return JSON.stringify(typeof user !== "string" ? [null, agent, name] : [user, name]);
}

/** Hash of what an update would replace. */
function stateOf({ content, type, tags }: SourceMemory): string {
  return hashOf(JSON.stringify([content, type, [...tags].toSorted()]));
}
