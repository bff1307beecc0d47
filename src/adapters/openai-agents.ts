/**
 * The Agents SDK of OpenAI on Cairn: `CairnSession` keeps the items of a conversation.
 *
 * ```
 * […, id, "items"]         key that rises → item
 * […, id, "operations"]    operation id → hash of the transaction that was applied
 * […, id]                  "head" → counts the changes: a transaction that depends on what is there finds it unchanged
 * ```
 *
 * @example await run(agent, "Where is my order?", { session: new CairnSession(cairn.documents, "conversation-1") });
 *
 * @module
 */
import type {
  AgentInputItem,
  SessionHistoryRewriteArgs,
  SessionHistoryRewriteAwareSession,
  SessionHistoryTransaction,
  SessionHistoryTransactionArgs,
  SessionHistoryTransactionAwareSession,
} from "@openai/agents-core";
import type { Document, DocumentChange, Documents, JsonObject } from "../client/index.ts";
import { allDocuments, change, PAGE_MAX, rootOf, untilUnchanged } from "./shared/documents.ts";
import { hashOf } from "./shared/hash.ts";
import { Sessions, type SessionOptions, type ConversationMessage } from "./shared/sessions.ts";
import { fromStored, toStored } from "./shared/stored-json.ts";

export interface CairnSessionOptions {
  /** Namespace of conversations; `["openai-agents"]` unless given. */
  namespace?: string[];
  /** Keeps the conversation in a session of Cairn. */
  session?: SessionOptions;
}

const FRAMEWORK = "openai-agents";
const HEAD = "head";
/** Changes of one transaction; one more counts the changes. */
const CHANGES_MAX = 99;
/** Number of latest items searched for the question of an answer. */
const SEARCHED_MAX = 100;

export class CairnSession implements SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession {
  readonly #documents: Documents;
  readonly #id: string;
  readonly #root: string[];
  readonly #sessions: Sessions;

  /** @param documents - `cairn.documents`, or those of a user: `cairn.documents.of({ user_id })`; @param id - of the conversation */
  constructor(documents: Documents, id: string, { namespace = [FRAMEWORK], session }: CairnSessionOptions = {}) {
    this.#documents = documents;
    this.#id = id;
    this.#root = [...rootOf(namespace), id];
    this.#sessions = new Sessions(documents, namespace, FRAMEWORK, session);
  }

  async getSessionId(): Promise<string> {
    return this.#id;
  }

  async getItems(limit?: number): Promise<AgentInputItem[]> {
    const found = limit === undefined ? await allDocuments(this.#documents, this.#items) : await this.#last(limit);
    return found.map(({ value }) => fromStored(value) as AgentInputItem);
  }

  /** Items that fit into one request, up to 99, are there together or not at all. */
  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length === 0) return;
    const appended = items.map((item) => this.#append(item));
    await this.#sessions.change(this.#id, (documents) => change(documents, appended, [this.#changed()]));
    await this.#log(items);
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    const pop = { op: "pop", namespace: this.#items } as const;
    const [popped] = await this.#sessions.change(this.#id, (documents) => documents.batch([pop, this.#changed()]));
    return popped === null ? undefined : (fromStored(popped.value) as AgentInputItem);
  }

  async clearSession(): Promise<void> {
    await this.#documents.deleteAll(this.#root);
  }

  /** Replaces the first of the function calls with an id where it is, and removes the others. */
  async applyHistoryMutations({ mutations }: SessionHistoryRewriteArgs): Promise<void> {
    if (mutations.length === 0) return;
    await this.#whileUnchanged(async () => {
      const found = await allDocuments(this.#documents, this.#items);
      const items = new Map(found.map(({ key, value }) => [key, value]));
      for (const { callId, replacement } of mutations) {
        const calls = Array.from(items).filter(([, item]) => item["type"] === "function_call" && item["callId"] === callId);
        for (const [i, [key]] of calls.entries()) {
          if (i === 0) items.set(key, toStored(replacement));
          else items.delete(key);
        }
      }
      return found.flatMap(({ key, value, version }): DocumentChange[] => {
        const item = items.get(key);
        if (item === undefined) return [this.#remove(key, version)];
        return item === value ? [] : [{ op: "put", namespace: this.#items, key, value: item, if_version: version }];
      });
    });
  }

  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    if (typeof operationId !== "string" || operationId.trim() === "") throw new TypeError("operationId must be a text that is not empty.");
    const key = JSON.stringify(operationId);
    const sha256 = await hashOf(JSON.stringify(sorted(toStored(transaction))));
    const isNew = await this.#whileUnchanged(async () => {
      const before = await this.#documents.get(this.#operations, key);
      if (before !== null) {
        if (before.value["sha256"] === sha256) return [];
        throw new Error(`The operation ${key} was applied before, with another transaction.`);
      }
      const changes = await this.#changesOf(transaction);
      return [{ op: "put", namespace: this.#operations, key, value: { sha256 }, if_version: 0 }, ...changes];
    });
    if (isNew && transaction.type === "append_items") await this.#log(transaction.items);
  }

  async #changesOf(transaction: SessionHistoryTransaction): Promise<DocumentChange[]> {
    if (transaction.type === "append_items") return transaction.items.map((item) => this.#append(item));
    const { expectedSuffix, replacement } = transaction;
    const suffix = await this.#last(expectedSuffix.length);
    const isThere =
      suffix.length === expectedSuffix.length && suffix.every(({ value }, i) => isSame(value, toStored(expectedSuffix[i] as object)));
    if (!isThere) throw new Error("The history does not end with the items that are to be replaced. Nothing was changed.");
    return [...suffix.map(({ key, version }) => this.#remove(key, version)), ...replacement.map((item) => this.#append(item))];
  }

  /**
   * Makes changes that depend on what is there, in one transaction; when others were faster, after looking again. Returns whether there was
   * something to change.
   *
   * The versions of a head begin again at 1 when a conversation is cleared, so changes name those of what they replace too.
   */
  async #whileUnchanged(changes: () => Promise<DocumentChange[]>): Promise<boolean> {
    return untilUnchanged(async () => {
      const head = await this.#documents.get(this.#root, HEAD);
      const made = await changes();
      if (made.length === 0) return false;
      if (made.length > CHANGES_MAX)
        throw new RangeError(`A change of the history may have at most ${CHANGES_MAX} items; this one has ${made.length}.`);
      const changed = { ...this.#changed(), if_version: head?.version ?? 0 };
      await this.#sessions.change(this.#id, (documents) => documents.batch([...made, changed]));
      return true;
    });
  }

  #log(items: readonly AgentInputItem[]): Promise<void> {
    const before = async () => (await this.getItems(SEARCHED_MAX)).flatMap(spokenIn);
    return this.#sessions.log(this.#id, items.flatMap(spokenIn), before);
  }

  /** The newest items, in the order in which they were added. */
  async #last(count: number): Promise<Document[]> {
    const found: Document[] = [];
    if (count <= 0) return found;
    for await (const document of this.#documents.list(this.#items, { order: "desc", limit: Math.min(count, PAGE_MAX) })) {
      found.push(document);
      if (found.length === count) break;
    }
    return found.reverse();
  }

  #append(item: AgentInputItem): DocumentChange {
    return { op: "put", namespace: this.#items, value: toStored(item) };
  }

  #remove(key: string, version: number): DocumentChange {
    return { op: "delete", namespace: this.#items, key, if_version: version };
  }

  #changed(): DocumentChange {
    return { op: "put", namespace: this.#root, key: HEAD, value: {} };
  }

  get #items(): string[] {
    return [...this.#root, "items"];
  }

  get #operations(): string[] {
    return [...this.#root, "operations"];
  }
}

/** Checks whether two values are the same JSON, whatever the order of their members. */
function isSame(a: JsonObject, b: JsonObject): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

/** Text of an item; undefined for instructions. */
function spokenIn(item: AgentInputItem): ConversationMessage[] {
  if (!("role" in item)) return [{ role: "other", text: "" }];
  if (item.role !== "user" && item.role !== "assistant") return [];
  const { role, content } = item;
  if (typeof content === "string") return [{ role, text: content }];
  const texts = content.flatMap((part) => ("text" in part && typeof part.text === "string" ? [part.text] : []));
  return [{ role, text: texts.join("\n") }];
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}
