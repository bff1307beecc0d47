/**
 * Documents that were put by a Cairn of before have no entry among those of their namespace by change. They get one in pieces, once in
 * each store, while it serves; until that is done no list is in that order.
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { NO_PARTITION } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { eachFetched, type Reader, type Tx } from "../storage/access.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { documents, DOCUMENTS_MARK, meta } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Task } from "../tasks/task.ts";

/** Each can be a megabyte. */
const DOCUMENTS_PER_COMMIT = 25;
const RETRY_AFTER_SECONDS = 5;

/** Orders the first piece at once, which is all of a new store. */
export async function documentOrder(store: RecordStore, log: Log): Promise<Task> {
  let from: string | undefined = "";
  const next = async () => {
    if (from !== undefined) from = await orderSome(store, from);
    return from === undefined ? DAY_MS : 0;
  };
  try {
    await next();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    log.error("documents are not listed by their last change yet: trying again until that can be written", { reason: error.message });
  }
  return { name: "order of documents", run: next };
}

/** @returns where to continue; undefined once all have their entry */
async function orderSome(store: RecordStore, from: string): Promise<string | undefined> {
  if ((await store.read((reader) => reader.get(meta, DOCUMENTS_MARK))) !== undefined) return undefined;
  const span = { from, to: MAX_KEY, limit: DOCUMENTS_PER_COMMIT };
  const keys = await store.read((reader) => reader.keys(documents, span));
  const last = keys.length < DOCUMENTS_PER_COMMIT ? undefined : keys.at(-1);
  await store.commit(NO_PARTITION, (tx) => {
    order(tx, keys);
    if (last === undefined) tx.put(meta, DOCUMENTS_MARK, "1");
  });
  return last === undefined ? undefined : successor(last);
}

function order(tx: Tx, keys: readonly string[]): void {
  tx.ahead(documents, keys);
  const rows = eachFetched(keys, (key) => ({ key, row: unlessUnreadable(() => tx.get(documents, key)) }));
  for (const { key, row } of rows) if (row !== undefined && row.isOrdered !== true) tx.put(documents, key, { ...row, isOrdered: true });
}

/** @throws {ApiError} `service_unavailable` while documents of before have no place in the order of changes */
export function refuseUnordered(reader: Reader, param: string): void {
  if (reader.get(meta, DOCUMENTS_MARK) !== undefined) return;
  throw new ApiError("service_unavailable", "Documents of an earlier version are still being ordered by their last change. Try again.", {
    param: `${param}.order_by`,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}
