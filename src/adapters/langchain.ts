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
import type { Documents } from "../client/index.ts";
import { allValues, change, rootOf } from "./shared/documents.ts";
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
    const stored = await allValues(this.#documents, this.#namespace);
    return mapStoredMessagesToChatMessages(stored.map((message) => fromStored(message) as StoredMessage));
  }

  async addMessage(message: BaseMessage): Promise<void> {
    await this.addMessages([message]);
  }

  /** Up to 100 messages are there together or not at all. */
  override async addMessages(messages: BaseMessage[]): Promise<void> {
    const stored = mapChatMessagesToStoredMessages(messages);
    await change(
      this.#documents,
      stored.map((message) => ({ op: "put", namespace: this.#namespace, value: toStored(message) })),
    );
  }

  override async clear(): Promise<void> {
    await this.#documents.deleteAll(this.#namespace);
  }
}
