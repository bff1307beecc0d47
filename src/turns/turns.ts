/**
 * Turns: what went in and what came out, in order. A turn never changes; its number is the count of turns when it was added.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, homeOf, isId, withPrefix, type TurnId } from "../lib/ids.ts";
import { jsonMembers, toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import { AFTER_ALL, behind, turnKey } from "../storage/keys.ts";
import type { Owner } from "../storage/owner.ts";
import { pageOf, rowsOf, type Page } from "../storage/page.ts";
import { sessions, turns, type SessionRow, type TurnRow } from "../storage/tables.ts";
import { laterOf, liveSession } from "../sessions/live-session.ts";
import { commitFor, ofUser, record, type Caller, type Deps } from "../traces/record.ts";

export interface NewTurn {
  input: { type: string; content: string };
  output: { type: string; content: string };
  reasoning?: string | undefined;
  metadata: JsonObject;
  stateBefore: JsonObject | null;
  stateAfter: JsonObject | null;
}

export function addTurn(deps: Deps, caller: Caller, sessionId: string, turn: NewTurn): Promise<JsonText> {
  deps.quotas?.refuseGrowth();
  // Written out before the transaction, which other requests wait for.
  const { input, output, reasoning, metadata, stateBefore, stateAfter } = turn;
  const said = jsonMembers({
    input: { type: input.type, content: input.content },
    output: { type: output.type, content: output.content },
  });
  const more = jsonMembers({ reasoning, metadata, state_before: stateBefore, state_after: stateAfter });
  return commitFor(deps, caller, homeOf(sessionId), (tx) => {
    const session = liveSession(tx, caller.owner, sessionId);
    const id = tx.id("turn");
    const row: SessionRow = { ...session.row, turnCount: session.row.turnCount + 1, updatedAt: laterOf(session.row, tx.now) };
    const stored: TurnRow = {
      shown: `"id":"${id}",${said},"created_at":"${toIso(tx.now)}"`,
      rest: `"session_id":"${session.id}","turn_number":${row.turnCount},${more}`,
    };
    tx.put(sessions, session.key, row);
    tx.add(turns, turnKey(session.key, bare(id)), stored);
    const json = turnJson(stored);
    record(tx, caller, {
      action: "turn.added",
      sessionId: session.id,
      userId: row.userId,
      agentId: row.agentId,
      details: toJson({ turn_number: row.turnCount, input_type: input.type, output_type: output.type, reasoning }),
      record: json,
      isError: output.type === "error",
    });
    return ofUser(row, json);
  });
}

export function turnJson({ shown, rest }: TurnRow): JsonText {
  return `{"object":"turn",${shown},${rest}}` as JsonText;
}

export function getTurn({ store }: Deps, owner: Owner, sessionId: string, turnId: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const session = liveSession(reader, owner, sessionId);
    const row = isId("turn", turnId) ? reader.get(turns, turnKey(session.key, bare(turnId))) : undefined;
    if (row === undefined)
      throw new ApiError("turn_not_found", `Session ${session.id} has no turn ${turnId.slice(0, 64)}.`, { param: "turn_id" });
    return turnJson(row);
  });
}

export function listTurns(
  { store }: Deps,
  owner: Owner,
  sessionId: string,
  page: Page<TurnId> & { order: "asc" | "desc" },
): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const session = liveSession(reader, owner, sessionId);
    const cursor = page.startingAfter === undefined ? undefined : turnKey(session.key, bare(page.startingAfter));
    const descending = page.order === "desc";
    const span = {
      from: descending || cursor === undefined ? session.key : behind(cursor),
      to: descending && cursor !== undefined ? cursor : session.key + AFTER_ALL,
      descending,
    };
    const rows = rowsOf(reader, turns, span, page.limit + 1);
    return pageOf(
      rows.map(({ key, row }) => ({ id: withPrefix("turn", key.slice(session.key.length)), json: turnJson(row) })),
      page.limit,
    );
  });
}
