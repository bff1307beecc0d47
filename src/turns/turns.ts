/**
 * Turns: what went in and what came out, in order. A turn never changes; its number is the count of turns when it was added.
 *
 * @module
 */
import { Existing, type Answered, type AnswerJson } from "../lib/answer.ts";
import type { Embedding } from "../embeddings/embedder.ts";
import { wordsOf } from "../embeddings/words/terms.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, BARE_ID_LENGTH, bareIdTime, partitionOf, isId, withPrefix, type TurnId } from "../lib/ids.ts";
import { jsonArray, jsonMembers, jsonWith, toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { createMemories, inPlace, memoriesCreated, prepareMemories, type CreatedMemory, type NewMemory } from "../memories/create.ts";
import { refuseFuture } from "../lib/occurred-at.ts";
import { toIso } from "../lib/time.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { MAX_KEY, turnKey, turnNameKey } from "../storage/keys.ts";
import type { Owner } from "../storage/owner.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { meta, sessions, turns, TURNS_SEARCHED, type SessionRow, type TurnRow } from "../storage/tables.ts";
import { allRanges, isIn, shownRanges } from "../sessions/branches.ts";
import { laterOf, liveSession, type LiveSession } from "../sessions/live-session.ts";
import { mergeState, refuseOtherVersion, replaceState } from "../sessions/versions.ts";
import { marks, secretsIn } from "../secrets/marks.ts";
import { commitFor, ofUser, record, type Caller, type Deps } from "../traces/record.ts";
import { turnsIn } from "./order.ts";
import { countTurn } from "./recent-turns.ts";
import { indexOfNew, indexTurn, turnIndexOf, type TurnDeps, type TurnIndexDeps } from "./indexed-turns.ts";
import { indexedText, wordsOfTurn } from "./indexed-text.ts";
import { shownTurns, turnJson } from "./shown.ts";

export interface NewTurn {
  input: { type: string; content: string };
  output: { type: string; content: string };
  reasoning?: string | undefined;
  metadata: JsonObject;
  externalId?: string | undefined;
  occurredAt?: number | undefined;
  stateBefore: JsonObject | null;
  stateAfter: JsonObject | null;
}

/** A turn that is written out already, since other requests wait for a transaction. */
interface Prepared {
  readonly said: string;
  readonly more: string;
  readonly occurredAt: number | undefined;
  readonly externalId: string | undefined;
  readonly tokens: number;
  /** Kinds of secrets that it is marked with. */
  readonly secrets: string[] | undefined;
  /** Makes the text that it is found by. */
  readonly text: () => string;
  /** Words of that text, where it will most likely be found by them. */
  readonly words: Embedding | undefined;
  readonly details: { input_type: string; output_type: string; reasoning?: string | undefined };
}

async function prepared(deps: TurnIndexDeps, caller: Caller, turn: NewTurn): Promise<Prepared> {
  const { input, output, reasoning, metadata, stateBefore, stateAfter, occurredAt, externalId } = turn;
  const text = () => indexedText({ input: input.content, output: output.content, reasoning: reasoning ?? "" });
  const index = turnIndexOf(deps, undefined);
  return {
    text,
    words: index === "meaning" || (index === "words" && deps.turnSearches.areKnown) ? await wordsOfTurn(text()) : undefined,
    said: jsonMembers({
      input: { type: input.type, content: input.content },
      output: { type: output.type, content: output.content },
    }),
    more: jsonMembers({ reasoning, metadata, state_before: stateBefore, state_after: stateAfter }),
    occurredAt,
    externalId,
    tokens: await countTurn(input.content, output.content),
    secrets: secretsIn(caller.secrets, undefined, () => [input.content, output.content, reasoning, metadata, stateBefore, stateAfter]),
    details: { input_type: input.type, output_type: output.type, reasoning },
  };
}

/** Changes of a step of an agent besides logging its turn. */
export interface Step {
  state?: JsonObject | undefined;
  statePatch?: JsonObject | undefined;
  expectedVersion?: number | undefined;
  /** Memories of the session. */
  memories?: readonly NewMemory[] | undefined;
}

/**
 * Logs a turn, after the state has changed where the step changes it, and adds memories to its session.
 *
 * @returns an `Existing` where the session has a turn of that external id: then nothing is changed
 */
export async function addTurn(deps: TurnDeps, caller: Caller, sessionId: string, turn: NewTurn, step: Step = {}): Promise<AnswerJson> {
  if (step.state !== undefined && step.statePatch !== undefined)
    throw new ApiError("invalid_request", "A step has state or state_patch, not both.", { param: "state_patch" });
  const ready = await prepared(deps, caller, turn);
  const { externalId, reasoning } = turn;
  const state = step.state && { ...step, state: step.state, reasoning, body: toJson(step.state) };
  // Most often one that is named is sent again because it is there, and then nothing is to be committed but an answer that is kept.
  if (externalId !== undefined && caller.once === undefined) {
    const existing = await deps.store.read((reader) => existingTurn(reader, liveSession(reader, caller.owner, sessionId), externalId));
    if (existing !== undefined) return existing.json;
  }
  const inputs = (step.memories ?? []).map((memory, i) => inPlace("memories", i, () => ofSession(memory, sessionId)));
  // The session is that of the step: no memory is at fault where it is gone.
  const hasSession = (reader: Reader) => liveSession(reader, caller.owner, sessionId);
  const memories = inputs.length === 0 ? undefined : await prepareMemories(deps, caller, inputs, "memories", hasSession);
  let after: LiveSession | undefined;
  const answer = await commitFor<AnswerJson>(deps, caller, partitionOf(sessionId), (tx) => {
    after = undefined;
    if (!deps.turnSearches.areKnown) tx.ahead(meta, [TURNS_SEARCHED]);
    const session = liveSession(tx, caller.owner, sessionId);
    const existing = externalId === undefined ? undefined : existingTurn(tx, session, externalId);
    if (existing !== undefined) return existing;
    refuseFuture(ready.occurredAt, tx.now, "occurred_at");
    deps.quotas?.refuseGrowth();
    refuseOtherVersion(session, step.expectedVersion);
    let changed = session;
    if (state !== undefined) changed = replaceState(tx, deps, caller, session, state, state.body).session;
    if (step.statePatch !== undefined)
      changed = mergeState(tx, deps, caller, session, { state: step.statePatch, reasoning }, "state_patch");
    const added = add(tx, deps, caller, changed, ready);
    tx.put(sessions, session.key, added.session.row);
    after = added.session;
    return ofUser(session.row, memories === undefined ? added.json : withMemories(added.json, createMemories(tx, caller, memories)));
  });
  if (memories !== undefined) memoriesCreated(deps, memories);
  turnsAdded(deps, after);
  return answer;
}

/** @throws {ApiError} `invalid_request` for a memory that is to be of another session */
function ofSession(memory: NewMemory, sessionId: string): NewMemory {
  if (memory.sessionId !== undefined && memory.sessionId !== sessionId)
    throw new ApiError("invalid_request", "session_id must be the session of the step, or left out.", { param: "session_id" });
  return { ...memory, sessionId };
}

/** The answer to a step. One that shows a memory that was there before is no answer to what was sent alone. */
function withMemories(turn: JsonText, created: readonly CreatedMemory[]): AnswerJson {
  const memories = jsonArray(created.map(({ json }) => json));
  const json = `${turn.slice(0, -1)},"memories":${memories}}` as JsonText;
  return created.every(({ isNew }) => isNew) ? json : new Existing(json);
}

/**
 * Logs turns in their order, all of them or none. One whose external id the session has, as the same batch may have it twice, is answered
 * as it is there.
 *
 * @returns an `Existing` where any of them was there before
 */
export async function addTurns(
  deps: Deps & TurnIndexDeps,
  caller: Caller,
  sessionId: string,
  given: readonly NewTurn[],
): Promise<AnswerJson> {
  const ready: Prepared[] = [];
  for (const turn of given) ready.push(await prepared(deps, caller, turn));
  let after: LiveSession | undefined;
  const answer = await commitFor<AnswerJson>(deps, caller, partitionOf(sessionId), (tx) => {
    if (!deps.turnSearches.areKnown) tx.ahead(meta, [TURNS_SEARCHED]);
    let session = liveSession(tx, caller.owner, sessionId);
    const { row: before } = session;
    let isAnyThere = false;
    const answers = ready.map((turn, i) => {
      const existing = turn.externalId === undefined ? undefined : existingTurn(tx, session, turn.externalId);
      if (existing !== undefined) {
        isAnyThere = true;
        return existing.json.json;
      }
      refuseFuture(turn.occurredAt, tx.now, `turns[${i}].occurred_at`);
      const added = add(tx, deps, caller, session, turn);
      session = added.session;
      return added.json;
    });
    const json = jsonWith({ object: "list" }, { data: jsonArray(answers) });
    if (session.row !== before) {
      deps.quotas?.refuseGrowth();
      tx.put(sessions, session.key, session.row);
    }
    after = session.row === before ? undefined : session;
    return ofUser(before, isAnyThere ? new Existing(json) : json);
  });
  turnsAdded(deps, after);
  return answer;
}

function turnsAdded(deps: TurnIndexDeps, session: LiveSession | undefined): void {
  if (session === undefined) return;
  deps.turnVectors.changed();
  if (turnIndexOf(deps, session.row) === "meaning") deps.turnBackfill.wake();
}

/** The turn of a session that has an external id. */
function existingTurn(reader: Reader, session: LiveSession, externalId: string): Answered<Existing> | undefined {
  const key = namedTurn(reader, session, externalId);
  const row = key === undefined ? undefined : reader.get(turns, key);
  if (key === undefined || row === undefined) return undefined;
  return ofUser(session.row, new Existing(shownTurns(reader, session)(key, row)), "if large");
}

/** The key of the turn by an external id, of the session or of another one whose turns it shows. */
function namedTurn(reader: Reader, session: LiveSession, externalId: string): string | undefined {
  const { byExternalId } = turns.index;
  const asked = new Set<string>();
  for (const range of allRanges(reader, session)) {
    if (asked.has(range.session)) continue;
    asked.add(range.session);
    const name = turnNameKey(range.session, externalId);
    const [entry] = reader.keys(byExternalId, { from: name, to: name + MAX_KEY, limit: 1 });
    const key = entry === undefined ? undefined : byExternalId.recordOf(entry);
    if (key !== undefined && (range.session === session.key || isShown(reader, session, key))) return key;
  }
  return undefined;
}

/** Checks whether a session shows a turn, by its key. */
function isShown(reader: Reader, session: LiveSession, key: string): boolean {
  const [owner, id] = [key.slice(0, BARE_ID_LENGTH), key.slice(BARE_ID_LENGTH)];
  return allRanges(reader, session).some((range) => range.session === owner && isIn(range, id));
}

/** Adds a turn, with its trace. @returns the session as it is then, which the caller has to put */
function add(
  tx: Tx,
  deps: TurnIndexDeps,
  caller: Caller,
  { id: sessionId, key, row: before }: LiveSession,
  turn: Prepared,
): { session: LiveSession; json: JsonText } {
  const id = tx.id("turn");
  const { externalId, occurredAt, tokens } = turn;
  // A session without a turn of another time than that of its id needs no index of them.
  const timedFrom = before.timedFrom ?? (occurredAt === undefined ? undefined : bare(id));
  const number = (before.turnNumber ?? before.turnCount) + 1;
  const row: SessionRow = {
    ...before,
    turnCount: before.turnCount + 1,
    ...(before.branch === undefined ? {} : { turnNumber: number }),
    ...(timedFrom === undefined ? {} : { timedFrom }),
    updatedAt: laterOf(before, tx.now),
  };
  const stored: TurnRow = {
    shown: `"id":"${id}",${turn.said},"created_at":"${toIso(tx.now)}"${occurredAt === undefined ? "" : `,"occurred_at":"${toIso(occurredAt)}"`}`,
    rest: `"session_id":"${sessionId}","turn_number":${number},${turn.more}`,
    more: {
      stateVersion: row.version,
      ...(externalId === undefined ? {} : { externalId }),
      ...(timedFrom === undefined ? {} : { time: occurredAt ?? bareIdTime(bare(id)) }),
      tokens,
      ...marks(turn.secrets),
    },
  };
  tx.add(turns, turnKey(key, bare(id)), stored);
  const index = indexOfNew(tx, deps, row);
  if (index !== "off") indexTurn(tx, bare(id), { key, row }, turn.words ?? wordsOf(turn.text()), index);
  const json = turnJson(stored, { stateVersion: row.version });
  record(tx, caller, {
    action: "turn.added",
    sessionId,
    userId: row.userId,
    agentId: row.agentId,
    details: toJson({ turn_number: number, ...turn.details }),
    record: json,
    isError: turn.details.output_type === "error",
  });
  return { session: { id: sessionId, key, row }, json };
}

export function getTurn({ store }: Deps, owner: Owner, sessionId: string, turnId: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const session = liveSession(reader, owner, sessionId);
    const id = isId("turn", turnId) ? bare(turnId) : "";
    const range = allRanges(reader, session).find((one) => isIn(one, id));
    const key = turnKey(range?.session ?? session.key, id);
    const row = reader.get(turns, key);
    if (row === undefined)
      throw new ApiError("turn_not_found", `Session ${session.id} has no turn ${turnId.slice(0, 64)}.`, { param: "turn_id" });
    return shownTurns(reader, session)(key, row);
  });
}

export interface TurnPage extends Page<TurnId> {
  order: "asc" | "desc";
  status: "current" | "all";
}

export function listTurns(
  { store }: Deps,
  owner: Owner,
  sessionId: string,
  { order, status, limit, startingAfter }: TurnPage,
): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const session = liveSession(reader, owner, sessionId);
    const show = shownTurns(reader, session);
    const ranges = status === "all" ? allRanges(reader, session) : shownRanges(reader, session);
    const after = startingAfter === undefined ? undefined : bare(startingAfter);
    const rows = turnsIn(reader, ranges, { after, descending: order === "desc" }, limit + 1);
    return pageOf(
      rows.map(({ key, row }) => ({ id: withPrefix("turn", key.slice(BARE_ID_LENGTH)), json: show(key, row) })),
      limit,
    );
  });
}
