/**
 * Traces of a user in the store besides sessions and memories, which say the name: documents, traces, deliveries and answers kept for
 * retries are found by it.
 *
 * @module
 */
import { namespaceRow } from "../storage/document-records.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { MAX_KEY, documentsOfUser, hashKey } from "../storage/keys.ts";
import { apiKeys, deliveries, erasures, idempotency, kindCode, memories, retrievals, sessions, traces } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { actionOf, isAdminAction } from "../traces/events.ts";
import { ERASED_DETAILS } from "../traces/traces.ts";

/** Erasures of a user, one after the other, whose traces are passed over. */
const TRACES_SEARCHED = 100;

/** Grants are few, and no index has their users: of more than these the newest are looked at. */
const GRANTS_SEARCHED = 1_000;

/** Indexes of what an erasure removes. */
const CONTENT = [...[sessions, memories, retrievals, deliveries, idempotency].map(({ index }) => index.byUser), retrievals.index.byOther];

/** Checks whether anything names a user, be it a trace that an erasure has left. */
export function hasRecords(reader: Reader, userId: string): boolean {
  const hash = hashKey(userId);
  const indexes = [...CONTENT, traces.index.byUser];
  const span = { from: hash, to: hash + MAX_KEY, limit: 1 };
  return (
    eachFetched(indexes, (index) => reader.keys(index, span).length > 0).includes(true) ||
    hasDocuments(reader, userId) ||
    hasGrant(reader, userId)
  );
}

/** Checks whether an erasure has something to remove: traces without their content, and what one is removing, are none of it. */
export function hasContent(reader: Reader, userId: string): boolean {
  const hash = hashKey(userId);
  if (hasDocuments(reader, userId)) return true;
  const until = erasedUntil(reader, hash);
  // A later event comes with a later trace, and so does an answer.
  if (until === "") {
    const span = { from: hash, to: hash + MAX_KEY, limit: 1 };
    if (eachFetched(CONTENT, (index) => reader.keys(index, span).length > 0).includes(true)) return true;
  }
  return hasTraces(reader, hash, until) || hasGrant(reader, userId, until);
}

/** Checks whether an application is bound to a user. @param until - id up to which grants are being removed */
function hasGrant(reader: Reader, userId: string, until = ""): boolean {
  const { byKind } = apiKeys.index;
  const kind = kindCode("oauth");
  const span = { from: kind + until, to: kind + MAX_KEY, limit: GRANTS_SEARCHED, descending: true };
  const hashes = reader.keys(byKind, span).map((entry) => byKind.recordOf(entry));
  reader.ahead(apiKeys, hashes);
  return eachFetched(hashes, (hash) => unlessUnreadable(() => reader.get(apiKeys, hash))?.userId === userId).includes(true);
}

/** Up to which id a user's records are being removed; empty where none are. */
export function erasedUntil(reader: Reader, hash: string): string {
  return reader.isEmpty(erasures) ? "" : (reader.get(erasures, hash)?.until ?? "");
}

/** Checks whether there are traces with content: an erasure takes it from all that there are, so the newest one says it. */
function hasTraces(reader: Reader, hash: string, until: string): boolean {
  const { byUser } = traces.index;
  const span = { from: hash + until, to: hash + MAX_KEY, limit: TRACES_SEARCHED, descending: true };
  for (const entry of reader.keys(byUser, span)) {
    const key = byUser.recordOf(entry);
    const action = actionOf(key);
    if (action === undefined || isAdminAction(action)) continue;
    const row = unlessUnreadable(() => reader.get(traces, key));
    if (row !== undefined) return row.body !== ERASED_DETAILS;
  }
  return false;
}

function hasDocuments(reader: Reader, userId: string): boolean {
  return documentsOf(reader, userId) > 0;
}

/** Number of documents that an erasure would remove, those that are kept with an agent too. */
export function documentsOf(reader: Reader, userId: string): number {
  return namespaceRow(reader, documentsOfUser(userId))?.all ?? 0;
}
