/**
 * LangChain on Cairn: `CairnChatHistory` keeps the messages of a conversation.
 *
 * @example
 * const history = new CairnChatHistory(cairn.documents, "conversation-1");
 * await history.addUserMessage("Where is my order?");
 * await history.addMessage(await model.invoke(await history.getMessages()));
 *
 * @module
 */
import { BaseListChatMessageHistory } from "@langchain/core/chat_history";
import {
  mapChatMessagesToStoredMessages,
  mapStoredMessagesToChatMessages,
  type BaseMessage,
  type StoredMessage,
} from "@langchain/core/messages";
import type { Documents, JsonObject } from "../client/index.ts";
import { allDocuments, change, rootOf } from "./shared/documents.ts";
import { fromStored, toStored } from "./shared/stored-json.ts";

export interface CairnChatHistoryOptions {
  /** Where conversations are kept; `["langchain"]` unless given. */
  namespace?: string[];
}

export class CairnChatHistory extends BaseListChatMessageHistory {
  override lc_namespace = ["cairn"];
  readonly #documents: Documents;
  readonly #namespace: string[];

  /** @param documents - `cairn.documents`, or those of a user: `cairn.documents.of({ user_id })`; @param id - of the conversation */
  constructor(documents: Documents, id: string, { namespace = ["langchain"] }: CairnChatHistoryOptions = {}) {
    super();
    this.#documents = documents;
    this.#namespace = [...rootOf(namespace), id];
  }

  async getMessages(): Promise<BaseMessage[]> {
    const stored = await allDocuments(this.#documents, this.#namespace);
    return toMessages(stored.map(({ value }) => value));
  }

  async addMessage(message: BaseMessage): Promise<void> {
    await this.addMessages([message]);
  }

  /**
   * Messages that fit into one request, up to 100, are there together or not at all.
   *
   * @throws {TypeError} when LangChain could not read one of them again, such as a `RemoveMessage`
   */
  override async addMessages(messages: BaseMessage[]): Promise<void> {
    const stored = mapChatMessagesToStoredMessages(messages).map(toStored);
    for (const [i, message] of stored.entries()) {
      try {
        toMessages([message]);
      } catch (error) {
        const type = messages[i]?.type ?? "unknown";
        throw new TypeError(
          `A history cannot keep messages[${i}], of the type ${JSON.stringify(type)}: LangChain could not read it again.`,
          {
            cause: error,
          },
        );
      }
    }
    await change(
      this.#documents,
      stored.map((value) => ({ op: "put", namespace: this.#namespace, value })),
    );
  }

  override async clear(): Promise<void> {
    await this.#documents.deleteAll(this.#namespace);
  }
}

function toMessages(stored: readonly JsonObject[]): BaseMessage[] {
  return mapStoredMessagesToChatMessages(stored.map((message) => fromStored(message) as StoredMessage));
}
