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
import { spokenIn } from "./shared/langchain-messages.ts";
import { Sessions, type SessionOptions, type ConversationMessage } from "./shared/sessions.ts";
import { fromStored, toStored } from "./shared/stored-json.ts";

export interface CairnChatHistoryOptions {
  /** Namespace of conversations; `["langchain"]` unless given. */
  namespace?: string[];
  /** Keeps the conversation in a session of Cairn. */
  session?: SessionOptions;
}

const FRAMEWORK = "langchain";
/** Number of latest messages searched for the question of an answer. */
const SEARCHED_MAX = 100;

export class CairnChatHistory extends BaseListChatMessageHistory {
  override lc_namespace = ["cairn"];
  readonly #documents: Documents;
  readonly #id: string;
  readonly #namespace: string[];
  readonly #sessions: Sessions;

  /** @param documents - `cairn.documents`, or those of a user: `cairn.documents.of({ user_id })`; @param id - of the conversation */
  constructor(documents: Documents, id: string, { namespace = [FRAMEWORK], session }: CairnChatHistoryOptions = {}) {
    super();
    this.#documents = documents;
    this.#id = id;
    this.#namespace = [...rootOf(namespace), id];
    this.#sessions = new Sessions(documents, namespace, FRAMEWORK, session);
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
    if (stored.length === 0) return;
    const puts = stored.map((value) => ({ op: "put", namespace: this.#namespace, value }) as const);
    await this.#sessions.change(this.#id, (documents) => change(documents, puts));
    await this.#sessions.log(this.#id, messages.map(spokenIn), () => this.#latest());
  }

  async #latest(): Promise<ConversationMessage[]> {
    const { data } = await this.#documents.list(this.#namespace, { order: "desc", limit: SEARCHED_MAX });
    return toMessages(data.map(({ value }) => value).reverse()).map(spokenIn);
  }

  override async clear(): Promise<void> {
    await this.#documents.deleteAll(this.#namespace);
  }
}

function toMessages(stored: readonly JsonObject[]): BaseMessage[] {
  return mapStoredMessagesToChatMessages(stored.map((message) => fromStored(message) as StoredMessage));
}
