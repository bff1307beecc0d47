/**
 * The versions of a session's state: 0, 1, 2 … without gaps, none ever changed. Of many the newest are kept, and version 0.
 *
 * An update and a rollback both add one; the current state is the one with the highest number, which the session's row
 * names. A change with `expected_version` is refused unless that is still the current one.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { partitionOf, type BareId } from "../lib/ids.ts";
import { jsonWith, mergeObjects, toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { invariant } from "../lib/invariant.ts";
import { toIso } from "../lib/time.ts";
import { fromBase62 } from "../lib/base62.ts";
import { versionKey } from "../storage/keys.ts";
import type { Owner } from "../storage/owner.ts";
import { pageOf, rowsOf } from "../storage/page.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { sessions, states, versionHeads, versions, type SessionRow, type VersionRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { marks, secretsIn, secretsOfBoth } from "../secrets/marks.ts";
import { commitFor, ofUser, record, type Caller, type Quotas, type Deps, type TraceEntry } from "../traces/record.ts";
import { diffObjects, isEmptyDiff, type Diff } from "./diff.ts";
import { withTurnsOf } from "./branches.ts";
import { laterOf, liveSession, sessionJson, type LiveSession } from "./live-session.ts";

export function addVersion(tx: Tx, session: BareId, version: number, row: Omit<VersionRow, "id">): void {
  tx.add(versions, versionKey(session, version), { id: version === 0 ? session : tx.bareId(partitionOf(session)), ...row });
}

/** Kinds of secrets that the state of a version is marked with. */
export function secretsOf(reader: Reader, session: BareId, version: number): string[] | undefined {
  return reader.get(versionHeads, versionKey(session, version))?.secrets;
}

/** The state of a version that exists. */
export function readState(reader: Reader, session: BareId, version: number): JsonText {
  const state = reader.get(states, versionKey(session, version));
  invariant(state !== undefined, "a session without the state of its version");
  return state;
}

/**
 * The version meant by a number of the caller's: a negative one counts back from the current one, -1 is the one before.
 *
 * @throws {ApiError} `version_not_found` for one that never was, and for one that was removed because newer ones are kept
 */
export function resolveVersion(reader: Reader, { quotas }: Deps, session: LiveSession, version: number): number {
  const { key, row } = session;
  const resolved = version < 0 ? row.version + version : version;
  if (resolved < 0 || resolved > row.version || !reader.has(versions, versionKey(key, resolved)))
    throw noVersion(session, version, resolved, quotas);
  return resolved;
}

function noVersion({ id, row }: LiveSession, said: number | string, version: number | undefined, quotas: Quotas | undefined): ApiError {
  const wasRemoved = version !== undefined && version > 0 && version < row.version;
  const why =
    wasRemoved && quotas !== undefined
      ? `any more: only its newest ${quotas.versionsKept} and version 0 are kept (setting state_versions_kept).`
      : `; its versions are 0 to ${row.version}.`;
  return new ApiError("version_not_found", `Session ${id} has no version ${said}${wasRemoved ? " " : ""}${why}`, { param: "version" });
}

/** More than one change adds, so that a lower `state_versions_kept` takes effect with the next changes. */
const VERSIONS_REMOVED_PER_CHANGE = 8;

/** Removes the oldest versions but the initial one, when there are more than are kept. */
function removeOldVersions(tx: Tx, session: BareId, current: number, kept: number): void {
  const oldestKept = current - kept + 1;
  if (oldestKept <= 1) return;
  const span = { from: versionKey(session, 1), to: versionKey(session, oldestKept), limit: VERSIONS_REMOVED_PER_CHANGE };
  const keys = tx.keys(versions, span);
  if (keys[0] === versionKey(session, 1)) keepEndOfFirst(tx, session);
  for (const key of keys) tx.remove(versions, key);
}

/** Keeps the end of version 0's turns, which the id of version 1 says, which is about to go. */
function keepEndOfFirst(tx: Tx, session: BareId): void {
  const initial = tx.get(versions, versionKey(session, 0));
  const next = tx.get(versionHeads, versionKey(session, 1));
  if (initial !== undefined && next !== undefined) tx.put(versions, versionKey(session, 0), { ...initial, until: next.id });
}

interface StateChange {
  state: JsonObject;
  reasoning?: string | undefined;
}

export interface StateUpdate extends StateChange {
  expectedVersion?: number | undefined;
}

/** Inside a transaction; with the session as it is then. */
interface Changed {
  readonly session: LiveSession;
  readonly json: JsonText;
}

/** Replaces the state; the one before stays as its version. */
export function updateState(deps: Deps, caller: Caller, id: string, update: StateUpdate): Promise<JsonText> {
  deps.quotas?.refuseGrowth();
  const body = toJson(update.state);
  return commitFor(deps, caller, partitionOf(id), (tx) => {
    const session = liveSession(tx, caller.owner, id);
    refuseOtherVersion(session, update.expectedVersion);
    return ofUser(session.row, replaceState(tx, deps, caller, session, update, body).json);
  });
}

/** Inside a transaction. @param body - the new state as JSON, which is written before */
export function replaceState(tx: Tx, deps: Deps, caller: Caller, session: LiveSession, update: StateChange, body: JsonText): Changed {
  const difference = diffObjects(currentState(tx, session), update.state);
  const secrets = secretsIn(caller.secrets, undefined, () => [update.state, update.reasoning]);
  return changeState(tx, deps, caller, session, updatedVersion(body, difference, update.reasoning, secrets));
}

/**
 * Lays keys over the state, a null removing one, as a new version. What changes nothing makes none. The state is read where it is
 * changed, so that of two callers at the same time neither undoes what the other one did to another key.
 *
 * @throws {ApiError} `payload_too_large` when the merged state would be more than a body can bring
 */
export function patchState(deps: Deps, caller: Caller, id: string, update: StateUpdate): Promise<JsonText> {
  return commitFor(deps, caller, partitionOf(id), (tx) => {
    const session = liveSession(tx, caller.owner, id);
    refuseOtherVersion(session, update.expectedVersion);
    return ofUser(session.row, stateJson(tx, mergeState(tx, deps, caller, session, update, "state")));
  });
}

/**
 * Inside a transaction.
 *
 * @param param - the field that brought the keys, for an error
 * @returns the session as it is then
 */
export function mergeState(tx: Tx, deps: Deps, caller: Caller, session: LiveSession, update: StateChange, param: string): LiveSession {
  const before = currentState(tx, session);
  const state = mergeObjects(before, update.state);
  const difference = diffObjects(before, state);
  if (isEmptyDiff(difference)) return session;
  deps.quotas?.refuseGrowth();
  const body = toJson(state);
  if (deps.quotas !== undefined) refuseLargeState(body, toJson(before), deps.quotas.stateBytesMax, param);
  const secrets = secretsIn(caller.secrets, session.row.secrets, () => [state, update.reasoning]);
  return changeState(tx, deps, caller, session, updatedVersion(body, difference, update.reasoning, secrets)).session;
}

function currentState(reader: Reader, { key, row }: LiveSession): JsonObject {
  return JSON.parse(readState(reader, key, row.version)) as JsonObject;
}

/** Merging adds to what is there: without a limit a state could grow for ever, a body at a time. What makes it smaller is taken. */
function refuseLargeState(state: JsonText, before: JsonText, bytesMax: number, param: string): void {
  const bytes = Buffer.byteLength(state);
  if (bytes > bytesMax && bytes > Buffer.byteLength(before)) {
    throw new ApiError("payload_too_large", `The state must be at most ${bytesMax} bytes of JSON; merged it would have ${bytes}.`, {
      param,
    });
  }
}

function updatedVersion(body: JsonText, difference: Diff, reasoning: string | undefined, secrets: string[] | undefined): NewVersion {
  return {
    body,
    source: "update",
    reasoning,
    secrets,
    trace: (version) => ({ action: "state.updated", details: toJson({ reasoning, state_diff: difference, version }) }),
  };
}

export function getState({ store }: Deps, owner: Owner, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => stateJson(reader, liveSession(reader, owner, id)));
}

/** The current state by itself. @param more - further members */
function stateJson(reader: Reader, { id, key, row }: LiveSession, more?: object): JsonText {
  const version = reader.get(versions, versionKey(key, row.version));
  invariant(version !== undefined, "a session without the state of its version");
  return jsonWith(
    { object: "state", session_id: id, version: row.version },
    { state: version.body },
    { created_at: toIso(row.createdAt), updated_at: toIso(version.createdAt), secrets: version.secrets, ...more },
  );
}

export interface Rollback {
  version: number;
  /** True if turns that were logged after that version are hidden. */
  turns?: "keep" | "hide" | undefined;
  reason?: string | undefined;
  expectedVersion?: number | undefined;
}

/** Brings back the state of a version, as a new version. */
export function rollbackSession(deps: Deps, caller: Caller, id: string, rollback: Rollback): Promise<JsonText> {
  return rollBack(deps, caller, id, rollback, (_tx, session) => session);
}

/** The same, answered with the state by itself and the version that it is of. */
export function rollbackState(deps: Deps, caller: Caller, id: string, rollback: Rollback): Promise<JsonText> {
  return rollBack(deps, caller, id, rollback, (tx, _session, restored) => {
    const session = liveSession(tx, caller.owner, id);
    return stateJson(tx, session, { success: true, new_version: session.row.version, restored_from_version: restored });
  });
}

/** @param answerOf - the answer, of the session's JSON and the version whose state it has now */
function rollBack(
  deps: Deps,
  caller: Caller,
  id: string,
  rollback: Rollback,
  answerOf: (tx: Tx, session: JsonText, restored: number) => JsonText,
): Promise<JsonText> {
  deps.quotas?.refuseGrowth();
  return commitFor(deps, caller, partitionOf(id), (tx) => {
    const session = liveSession(tx, caller.owner, id);
    refuseOtherVersion(session, rollback.expectedVersion);
    const version = resolveVersion(tx, deps, session, rollback.version);
    const hides = rollback.turns === "hide";
    const shown = hides ? withTurnsOf(tx, session, version) : session;
    const { json } = changeState(tx, deps, caller, shown, {
      body: readState(tx, session.key, version),
      source: "rollback",
      restoredFrom: version,
      reasoning: rollback.reason,
      secrets: secretsOfBoth(
        secretsOf(tx, session.key, version),
        secretsIn(caller.secrets, undefined, () => rollback.reason),
      ),
      trace: () => ({
        action: "state.rolled_back",
        details: toJson({
          from_version: session.row.version,
          to_version: version,
          reason: rollback.reason ?? null,
          turns: hides ? "hide" : undefined,
        }),
      }),
    });
    return ofUser(session.row, answerOf(tx, json, version));
  });
}

interface NewVersion {
  body: JsonText;
  source: "update" | "rollback";
  restoredFrom?: number;
  reasoning: string | undefined;
  /** Kinds of secrets that the state is marked with. */
  secrets: string[] | undefined;
  trace(version: number): Pick<TraceEntry, "action" | "details">;
}

function changeState(tx: Tx, { quotas }: Deps, caller: Caller, { id, key, row }: LiveSession, added: NewVersion): Changed {
  const { secrets: marked, ...before } = row;
  const secrets = secretsOfBoth(
    added.secrets,
    secretsIn(undefined, marked, () => before.metadata),
  );
  const changed: SessionRow = {
    ...before,
    ...marks(secrets),
    version: before.version + 1,
    updatedAt: laterOf(before, tx.now),
    ...(added.source === "rollback" ? { rollbackCount: (before.rollbackCount ?? 0) + 1 } : {}),
  };
  tx.put(sessions, key, changed);
  if (quotas !== undefined) removeOldVersions(tx, key, changed.version, quotas.versionsKept);
  addVersion(tx, key, changed.version, {
    createdAt: tx.now,
    actor: caller.actor,
    source: added.source,
    ...(added.restoredFrom === undefined ? {} : { restoredFrom: added.restoredFrom }),
    ...(added.reasoning === undefined ? {} : { reasoning: added.reasoning }),
    ...marks(added.secrets),
    body: added.body,
  });
  const json = sessionJson(id, changed, added.body);
  const { userId, agentId, version } = changed;
  record(tx, caller, { sessionId: id, userId, agentId, record: json, ...added.trace(version) });
  return { session: { id, key, row: changed }, json };
}

export function refuseOtherVersion({ id, row }: LiveSession, expected: number | undefined): void {
  if (expected !== undefined && expected !== row.version) {
    throw new ApiError("version_conflict", `Session ${id} is at version ${row.version}, not ${expected}. Nothing was changed.`, {
      param: "expected_version",
    });
  }
}

/** Newest first; a version's number is its cursor. */
export function listVersions(
  { store }: Deps,
  owner: Owner,
  id: string,
  page: { limit: number; startingAfter?: number | undefined },
): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const session = liveSession(reader, owner, id);
    const to = versionKey(session.key, Math.min(page.startingAfter ?? session.row.version + 1, session.row.version + 1));
    const rows = rowsOf(reader, versions, { from: session.key, to, descending: true }, page.limit + 1);
    return pageOf(
      rows.map(({ key, row }) => {
        const version = fromBase62(key.slice(session.key.length));
        return { id: String(version), json: versionJson(version, row) };
      }),
      page.limit,
    );
  });
}

export function getVersion({ store, quotas }: Deps, owner: Owner, id: string, version: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const session = liveSession(reader, owner, id);
    const number = /^(0|[1-9]\d{0,11})$/.test(version) ? Number(version) : undefined;
    const row = number === undefined ? undefined : reader.get(versions, versionKey(session.key, number));
    if (number === undefined || row === undefined) throw noVersion(session, version.slice(0, 20), number, quotas);
    return versionJson(number, row, row.body);
  });
}

function versionJson(version: number, row: Omit<VersionRow, "body">, state?: JsonText, changes?: Diff | null): JsonText {
  const { createdAt, reasoning, actor, source, restoredFrom: restored_from_version, secrets } = row;
  const diff = changes === undefined ? {} : { state_diff: changes };
  const head = { object: "version", version, created_at: toIso(createdAt), reasoning, actor, source, restored_from_version, secrets };
  return jsonWith({ ...head, ...diff }, { state });
}

/** A version with what changed in it, and the characters that were read for that. That before may be gone, or unreadable. */
export function changedVersion(reader: Reader, session: BareId, version: number): { json: JsonText; length: number } | undefined {
  const row = reader.get(versions, versionKey(session, version));
  if (row === undefined) return undefined;
  const before = version === 0 ? toJson({}) : unlessUnreadable(() => reader.get(states, versionKey(session, version - 1)));
  const diff = before === undefined ? null : diffObjects(JSON.parse(before) as JsonObject, JSON.parse(row.body) as JsonObject);
  return { json: versionJson(version, row, undefined, diff), length: row.body.length + (before?.length ?? 0) };
}

function* keysOf(session: BareId, from: number, to: number): Generator<string, void, undefined> {
  for (let version = from; version < to; version++) yield versionKey(session, version);
}

/**
 * The versions of a session in the order of their ids, which is that of their numbers, after or before an id; without their states.
 *
 * @param after - the first one comes behind it; from the beginning, or the end, when none is given
 * @param atOnce - how many are going to be read
 */
export function* versionsInOrder(
  reader: Reader,
  { key, row }: LiveSession,
  { after, descending, atOnce }: { after: BareId | undefined; descending: boolean; atOnce: number },
): Generator<{ id: BareId; version: number }, void, undefined> {
  const end = row.version + 1;
  const kept = { from: versionKey(key, 1), to: versionKey(key, end), limit: 1 };
  reader.aheadOf([versions], kept);
  /** One that cannot be read, which is not shown, has the place of the version before. */
  const idOf = (version: number): BareId =>
    version === 0 ? key : (unlessUnreadable(() => reader.get(versionHeads, versionKey(key, version))?.id ?? key) ?? idOf(version - 1));
  const cursor = after ?? key;
  const isBehind = (version: number) => idOf(version) > cursor || (descending && idOf(version) === cursor);
  // The first version behind the cursor is one of these, or the next; those before the ones that are kept are not there.
  let [low, high] = after !== undefined ? [1, end] : descending ? [end, end] : [1, 1];
  while (high - low > 2 * reader.recordsAtOnce) {
    const looked = spread(low, high, reader.recordsAtOnce);
    reader.ahead(
      versions,
      looked.map((version) => versionKey(key, version)),
    );
    const behind = looked.find(isBehind);
    low = 1 + (looked.findLast((version) => behind === undefined || version < behind) ?? low - 1);
    high = behind ?? high;
  }
  const first = descending ? Math.max(1, low - atOnce) : low;
  reader.ahead(versions, keysOf(key, first, descending ? high : Math.min(end, high + atOnce)));
  while (low < high && !isBehind(low)) low++;
  const [oldest] = reader.keys(versions, kept);
  const from = oldest === undefined ? end : fromBase62(oldest.slice(key.length));
  const isInitialBehind = after === undefined || (descending ? key < after : key > after);
  if (!descending && isInitialBehind) yield { id: key, version: 0 };
  if (descending) for (let version = low - 1; version >= from; version--) yield { id: idOf(version), version };
  else for (let version = Math.max(low, from); version < end; version++) yield { id: idOf(version), version };
  if (descending && isInitialBehind) yield { id: key, version: 0 };
}

/** `count` numbers between two, at equal distances. */
function spread(low: number, high: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => low + Math.floor(((high - low) * (i + 1)) / (count + 1)));
}
