/**
 * States as they were last set, for the next update to compare with: reading and parsing what is replaced costs as much as
 * all else that an update thinks about.
 *
 * A version never changes once it is committed, so what is kept here is right for as long as the session is at that version,
 * which its row says.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import type { JsonObject } from "../lib/json.ts";
import { rememberingFor } from "../lib/remember.ts";
import { Remembered } from "../storage/remembered.ts";
import type { Store } from "../storage/store.ts";

const SESSIONS_MAX = 1_000;
/** Characters of JSON; an object takes several times as much. */
const LENGTH_MAX = 4_096;

interface Latest {
  version: number;
  state: JsonObject;
}

const statesOf = rememberingFor<Store, Remembered<Latest>>(() => new Remembered(SESSIONS_MAX));

export function latestState(store: Store, session: BareId, version: number): JsonObject | undefined {
  const latest = statesOf(store).get(session);
  return latest?.version === version ? latest.state : undefined;
}

/** To be called when it is committed. @param length - of the state as JSON */
export function rememberState(store: Store, session: BareId, latest: Latest, length: number): void {
  if (length <= LENGTH_MAX) statesOf(store).set(session, latest);
}
