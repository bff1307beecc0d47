/**
 * Tables of documents and their namespaces.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { bare, BARE_ID_LENGTH } from "../../lib/ids.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { changeKey, documentOfChange, NUMBER_KEY_LENGTH, hashKey, namespaceOfDocument, namespacesAbove, timeKey } from "../keys.ts";
import { BareIdText, Finite, IdText, Instant, ObjectText, Positive, Text, Whole } from "../row-types.ts";
import { changedAt, having, json, takenUntil, text, withBody } from "./codecs.ts";
import { Embedding } from "./embeddings.ts";
import { FILL_ROWS_LARGE, ID, table, type VectorTable } from "./table.ts";

const DocumentRow = Type.Object({
  /** Given with each change: what is older than the removal of its namespace is gone. */
  id: BareIdText,
  version: Positive,
  createdAt: Whole,
  updatedAt: Whole,
  expiresAt: Type.Optional(Instant),
  /** Lifetime as it was last requested. */
  ttlSeconds: Type.Optional(Finite),
  /** The session with which it goes. */
  sessionId: Type.Optional(IdText("sess")),
  /** Part of the value that it is found by: all, or what these paths lead to. */
  index: Type.Optional(Type.Union([Type.Literal(true), Type.Array(Text)], { description: "true or a list" })),
  /** The value, as it goes over the wire. */
  body: ObjectText,
});
export type DocumentRow = Static<typeof DocumentRow>;
export const documents = table(
  "documents",
  /^[\w-]{44}(?:(?:[0-9a-f]{2})+!){1,16}\.(?:[0-9a-f]{2})+$/,
  DocumentRow,
  having(withBody<DocumentRow>(), { changedAt }),
  {
    bySession: {
      of: (document, { sessionId }) => (sessionId === undefined ? undefined : bare(sessionId) + document),
      record: (entry) => entry.slice(BARE_ID_LENGTH),
    },
    byExpiry: {
      of: (document, { expiresAt }) => (expiresAt === undefined ? undefined : timeKey(expiresAt) + document),
      record: (entry) => entry.slice(NUMBER_KEY_LENGTH),
    },
    byChange: {
      of: (document, { id }) => changeKey(document, id),
      record: documentOfChange,
      fillRows: FILL_ROWS_LARGE,
    },
  },
);

const IndexedDocumentRow = Type.Object({
  /** Key of the document. It is of this one as long as its row has this row's key for its id. */
  document: Text,
  /** Set while there is a vector: its id, which without the prefix is its key, and its generation. */
  embedding: Type.Optional(Embedding),
});
export type IndexedDocumentRow = Static<typeof IndexedDocumentRow>;
export const indexedDocuments = table("indexed_documents", ID, IndexedDocumentRow, json<IndexedDocumentRow>(), {
  inNamespace: {
    of: (id, { document }) => {
      const [, , ...namespaces] = namespacesAbove(namespaceOfDocument(document));
      return namespaces.map((namespace) => hashKey(namespace) + id);
    },
    hasMany: true,
  },
});
export const documentVectors: VectorTable = { name: "document_vectors", isOfBytes: true };

const NamespaceRow = Type.Object({
  /** Documents in it, and with all that are below it. */
  own: Whole,
  all: Whole,
  /** Given when it got its first document. */
  id: BareIdText,
});
export type NamespaceRow = Static<typeof NamespaceRow>;
export const namespaces = table("namespaces", /^[\w-]{22}(?:[\w-]{22}(?:(?:[0-9a-f]{2})+!){0,16})?$/, NamespaceRow, json<NamespaceRow>());

const DocumentRemovalRow = Type.Object({
  /** Whatever of the namespace and below it has an id up to this is gone. */
  until: BareIdText,
});
export type DocumentRemovalRow = Static<typeof DocumentRemovalRow>;
export const documentRemovals = table(
  "document_removals",
  namespaces.key,
  DocumentRemovalRow,
  having(json<DocumentRemovalRow>(), { takenUntil, cachedBytesMax: CACHE_BYTES_MAX.documentRemovals, isGlobal: true }),
);

export const lastDocumentId = table("last_document_id", /^[0-9A-Za-z]{2}$/, BareIdText, text);
