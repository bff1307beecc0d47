/**
 * A benchmark of retrieval in the form that all formats become: conversations, and questions with the messages that answer them.
 *
 * @module
 */

export interface Message {
  readonly id: string;
  readonly text: string;
}

export interface Conversation {
  readonly id: string;
  readonly messages: readonly Message[];
}

export interface Question {
  readonly id: string;
  readonly text: string;
  readonly category: string;
  /** Messages that answer it, as the file names them: some may not be there. */
  readonly evidence: readonly string[];
  /** Conversations that answer it, where the file names them besides their messages. */
  readonly conversations: readonly string[];
  /** True for a question that no message answers. */
  readonly isUnanswerable: boolean;
}

/** Conversations that are searched together, and what is asked of them. */
export interface Haystack {
  readonly id: string;
  /** The language of its messages; empty where the file does not say. */
  readonly language: string;
  readonly conversations: readonly Conversation[];
  readonly questions: readonly Question[];
}
