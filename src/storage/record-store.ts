/**
 * What every store can do, wherever its rows are.
 *
 * @module
 */
import type { BareId, Home, Id, IdPrefix } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import type { Reader, Tx } from "./access.ts";
import type { Listing } from "./list.ts";
import type { Page } from "./page.ts";

export interface RecordStore {
  /** Runs `work` on one moment, which sees every commit that has resolved; perhaps several times. */
  read<Result>(work: (reader: Reader) => Result): Result | Promise<Result>;
  /**
   * Runs `work`; resolves with its result once what it has written is durable. When `work` throws, nothing of it is kept and the
   * promise rejects with what was thrown.
   *
   * @param home - of the records it writes
   */
  commit<Result>(home: Home, work: (tx: Tx) => Result): Promise<Result>;
  /** One page of a list. */
  list<Prefix extends IdPrefix>(
    listing: Listing<Prefix>,
    page: Page<Id<Prefix>>,
    item: (reader: Reader, key: BareId, id: Id<Prefix>) => JsonText | undefined,
  ): Promise<JsonText>;
  close(): Promise<void>;
}
