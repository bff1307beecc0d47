/**
 * The Claude Agent SDK on Cairn: `CairnSessionStore` keeps the transcripts of sessions and of their subagents.
 *
 * ```
 * […, "entries", project, session]            rising key → what one append brought, as lines of JSON
 * […, "entries", project, session, subpath]   the same of a subagent
 * […, "parts",   project, session, …]         a piece of an append that is larger than a request
 * […, "sessions", project]                    session → the summary that the SDK folds; its `updated_at` is the session's `mtime`
 * ```
 *
 * An append becomes visible in one transaction, with its summary. An entry's uuid counts once when a transcript is loaded: that also covers
 * an append that the SDK sends again. Two equal entries without a uuid are two.
 *
 * @example
 * for await (const message of query({ prompt, options: { sessionStore: new CairnSessionStore(cairn.documents) } })) console.log(message);
 *
 * @module
 */
import {
  foldSessionSummary,
  type SessionKey,
  type SessionStore,
  type SessionStoreEntry,
  type SessionSummaryEntry,
} from "@anthropic-ai/claude-agent-sdk";
import type { Document, DocumentChange, Documents } from "../client/index.ts";
import { allDocuments, change, getAll, rootOf, untilUnchanged } from "./shared/documents.ts";
import { PartMissing, split, textOf } from "./shared/texts.ts";

export interface CairnSessionStoreOptions {
  /** Namespace of transcripts; `["claude-agent-sdk-ts"]` unless given. */
  namespace?: string[];
}

/** Number of reads of a transcript that is deleted meanwhile. */
const READS_MAX = 20;

type Session = Pick<SessionKey, "projectKey" | "sessionId">;

export class CairnSessionStore implements SessionStore {
  readonly #documents: Documents;
  readonly #root: readonly string[];

  /** @param documents - `cairn.documents`, or those of a user: `cairn.documents.of({ user_id })` */
  constructor(documents: Documents, { namespace = ["claude-agent-sdk-ts"] }: CairnSessionStoreOptions = {}) {
    this.#documents = documents;
    this.#root = rootOf(namespace);
  }

  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const { puts, value } = split(this.#of("parts", key), entries.map((entry) => JSON.stringify(entry)).join("\n"));
    await change(this.#documents, puts);
    const append: DocumentChange = { op: "put", namespace: this.#of("entries", key), value };
    if (key.subpath) await this.#documents.batch([append]);
    else await untilUnchanged(() => this.#appendWithSummary(key, append, entries));
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    for (let reads = 1; ; reads++) {
      try {
        return await this.#load(key);
      } catch (error) {
        if (!(error instanceof PartMissing) || reads === READS_MAX) throw error;
      }
    }
  }

  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    const found = [];
    for await (const { key, updated_at } of this.#documents.list(this.#sessions(projectKey), { values: false }))
      found.push({ sessionId: key, mtime: Date.parse(updated_at) });
    return found;
  }

  async listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    return (await allDocuments(this.#documents, this.#sessions(projectKey))).map(summaryOf);
  }

  /** Deletes a session with the transcripts of its subagents, or the transcript of one of them. */
  async delete(key: SessionKey): Promise<void> {
    const deletions = ["entries", "parts"].map((kind): DocumentChange => ({ op: "delete_all", namespace: this.#of(kind, key) }));
    const listed: DocumentChange = { op: "delete", namespace: this.#sessions(key.projectKey), key: key.sessionId };
    await this.#documents.batch(key.subpath ? deletions : [...deletions, listed]);
  }

  async listSubkeys({ projectKey, sessionId }: Session): Promise<string[]> {
    const prefix = this.#of("entries", { projectKey, sessionId });
    const found = [];
    for await (const namespace of this.#documents.namespaces({ prefix })) {
      // To the server a part that is a star is any.
      if (namespace.length > prefix.length && prefix.every((part, i) => namespace[i] === part)) found.push(namespace.at(-1) ?? "");
    }
    return found;
  }

  async #appendWithSummary(key: SessionKey, append: DocumentChange, entries: SessionStoreEntry[]): Promise<void> {
    const at = { namespace: this.#sessions(key.projectKey), key: key.sessionId };
    const [before = null] = await getAll(this.#documents, [at]);
    const { data } = foldSessionSummary(before === null ? undefined : summaryOf(before), key, entries);
    // As text: the SDK gets back what it has made, whatever JSON it is.
    const value = { summary: JSON.stringify(data) };
    await this.#documents.batch([append, { op: "put", ...at, value, if_version: before?.version ?? 0 }]);
  }

  async #load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const documents = await allDocuments(this.#documents, this.#of("entries", key));
    const seen = new Set<string>();
    const entries: SessionStoreEntry[] = [];
    for (const { value } of documents) {
      for (const line of (await textOf(this.#documents, this.#of("parts", key), value)).split("\n")) {
        const entry = JSON.parse(line) as SessionStoreEntry;
        if (entry.uuid === undefined || !seen.has(entry.uuid)) entries.push(entry);
        if (entry.uuid !== undefined) seen.add(entry.uuid);
      }
    }
    return documents.length === 0 ? null : entries;
  }

  #of(kind: string, { projectKey, sessionId, subpath }: SessionKey): string[] {
    return [...this.#root, kind, projectKey, sessionId, ...(subpath ? [subpath] : [])];
  }

  #sessions(projectKey: string): string[] {
    return [...this.#root, "sessions", projectKey];
  }
}

function summaryOf({ key, updated_at, value }: Document): SessionSummaryEntry {
  return { sessionId: key, mtime: Date.parse(updated_at), data: JSON.parse(value["summary"] as string) as Record<string, unknown> };
}
