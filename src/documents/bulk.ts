/**
 * Changes of all documents of a namespace that need each of them read: deletion by a filter, and copies.
 *
 * They hold up the commits of others, so a batch does a piece of them and says where the next one continues.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import { ApiError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { eachFetched, type Tx } from "../storage/access.ts";
import { visibleDocument, type DocumentWriter } from "../storage/document-records.ts";
import { DOCUMENT_SPACE_LENGTH, documentName, MAX_KEY, namespaceOfDocument, namespaceParts, successor } from "../storage/keys.ts";
import { documents, indexedDocuments, pendingEmbeddings, type DocumentRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";

/** Values that are compared and copied in one commit. */
const CHARACTERS_PER_COMMIT = 2 * 1024 * 1024;
const ROWS_AT_ONCE = 25;

/** Number of documents that an operation has changed, and its next `cursor`. */
export interface Piece {
  readonly changed: number;
  readonly next: string | null;
}

export class BulkChanges {
  readonly #tx: Tx;
  readonly #writer: DocumentWriter;
  #rows = 0;
  #changed = 0;
  #characters = 0;

  constructor(tx: Tx, writer: DocumentWriter) {
    this.#tx = tx;
    this.#writer = writer;
  }

  /** Deletes what passes a filter, in a namespace and below it. */
  delete(namespace: string, filter: RecordFilter, cursor: string | undefined): Piece {
    return this.#each(namespace, cursor, filter.weight, (key, row) => {
      if (!filter.passes(JSON.parse(row.body) as JsonObject)) return false;
      this.#writer.remove(key);
      return true;
    });
  }

  /**
   * Puts what is in a namespace and below it under another one too.
   *
   * @throws {ApiError} `invalid_request` where a copy would have too long a name
   */
  copy(namespace: string, to: string, cursor: string | undefined, param: string): Piece {
    return this.#each(namespace, cursor, 1, (key, row) => {
      const copy = to + key.slice(namespace.length);
      refuseLongName(copy, param);
      this.#copyOne(copy, row);
      return true;
    });
  }

  #copyOne(key: string, { id: original, expiresAt, ttlSeconds, sessionId, index, body }: DocumentRow): void {
    const { now } = this.#tx;
    const before = visibleDocument(this.#tx, key);
    const isFound = index !== undefined && this.#tx.has(indexedDocuments, original);
    const id = this.#writer.id();
    this.#writer.put(key, {
      id,
      version: (before?.version ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: Math.max(before?.updatedAt ?? 0, now),
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...(ttlSeconds === undefined ? {} : { ttlSeconds }),
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(index === undefined ? {} : { index }),
      body,
    });
    if (!isFound) return;
    this.#tx.put(pendingEmbeddings, id, "");
    this.#tx.add(indexedDocuments, id, { document: key });
  }

  /**
   * Runs through documents until that is enough for one commit.
   *
   * @param weight - how many times each may be gone through
   * @param change - says whether it has changed one
   */
  #each(namespace: string, cursor: string | undefined, weight: number, change: (key: string, row: DocumentRow) => boolean): Piece {
    const to = namespace + MAX_KEY;
    const start = cursor === undefined ? namespace : namespace.slice(0, DOCUMENT_SPACE_LENGTH) + cursor;
    let from = start < namespace ? namespace : start > to ? to : start;
    const changedBefore = this.#changed;
    const piece = (isEnd: boolean): Piece => ({
      changed: this.#changed - changedBefore,
      next: isEnd ? null : from.slice(DOCUMENT_SPACE_LENGTH),
    });
    for (;;) {
      const keys = this.#tx.keys(documents, { from, to, limit: ROWS_AT_ONCE });
      this.#tx.ahead(documents, keys);
      const rows = eachFetched(keys, (key) => ({ key, row: unlessUnreadable(() => visibleDocument(this.#tx, key)) }));
      for (const { key, row } of rows) {
        if (this.#isEnough) return piece(false);
        this.#rows++;
        this.#characters += weight * (row?.body.length ?? 0);
        if (row !== undefined && change(key, row)) this.#changed++;
        from = successor(key);
      }
      if (keys.length < ROWS_AT_ONCE) return piece(true);
    }
  }

  get #isEnough(): boolean {
    return (
      this.#rows >= LIMITS.documentBulkRowsMax || this.#changed >= LIMITS.documentBulkChangesMax || this.#characters > CHARACTERS_PER_COMMIT
    );
  }
}

function refuseLongName(key: string, param: string): void {
  const namespace = namespaceParts(namespaceOfDocument(key));
  const bytes = [...namespace, documentName(key)].reduce((sum, part) => sum + Buffer.byteLength(part), 0);
  if (bytes <= LIMITS.documentNameBytesMax && namespace.length <= LIMITS.namespaceDepthMax) return;
  throw new ApiError(
    "invalid_request",
    `${param}.to would give a document a name of more than ${LIMITS.documentNameBytesMax} bytes or a namespace of more than ${LIMITS.namespaceDepthMax} parts. Nothing was changed.`,
    { param: `${param}.to` },
  );
}
