/**
 * The newest id of a store, after which new ones continue.
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { eachFetched, type Reader } from "./access.ts";
import { MAX_KEY } from "./keys.ts";
import {
  apiKeys,
  erasures,
  memories,
  outbox,
  payloads,
  retrievals,
  sessions,
  traces,
  VECTOR_TABLES,
  webhooks,
  type AnyTable,
} from "./tables.ts";
import { unlessUnreadable } from "./unreadable.ts";

/** As keys have it; undefined in a store without records. */
export function newestId(reader: Reader): BareId | undefined {
  const newest = (table: AnyTable, from = "", to = MAX_KEY) => reader.keys(table, { from, to, limit: 1, descending: true });
  const ids = [sessions, memories, retrievals, ...VECTOR_TABLES, outbox, apiKeys.index.byId, webhooks, payloads].flatMap((table) =>
    newest(table),
  );
  // A trace's key begins with its action.
  for (let [key] = newest(traces); key !== undefined; [key] = newest(traces, "", key.slice(0, 1))) ids.push(key.slice(1));
  const untils = eachFetched(reader.keys(erasures, { from: "", to: MAX_KEY }), (user) =>
    unlessUnreadable(() => reader.get(erasures, user)?.until),
  );
  ids.push(...untils.filter((id) => id !== undefined));
  return ids
    .filter((id) => id !== "")
    .map((id) => id.slice(0, BARE_ID_LENGTH))
    .toSorted()
    .at(-1);
}
